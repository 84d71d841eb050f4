"""The mean over training batches of the surrogate's kernel, for single pairs of inputs, at any dimension.

Given the batch the surrogate's features are N(0, Gamma_b/d), Gamma_b = I + d eps v v^T, v = X^T y/n = U w* + (V/n)^(1/2) h
with U = mean(y s), V = mean(y^2) and h Gaussian across w*. For a pair x, x' the mean over batches is one over (U, V) and over
the two Gaussian numbers <h, x>, <h, x'>: nothing has d dimensions. (U, V) enters by its exact mean and covariance, which
leaves a relative error of order 1/n^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..gaussian import GaussianData, gaussian_data
from ..model import Model
from ..symbolic.functions import make_function
from .dual import dual
from .dual_series import HermiteTable, series
from .kernel_inputs import as_direction, as_rows
from .quenched import batch_strength
from .slope_tiles import float_breakpoints

Array = NDArray[np.float64]
#: k at variances q, q' and covariance t
KernelFunction = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class BatchLaw:
    """Means of U = mean(y s) and V = mean(y^2) and n times their covariance.

    Parameters
    ----------
    signal : float
        E U = c_1.
    power : float
        E V = E y^2.
    covariance : array of shape (2, 2)
    """

    signal: float
    power: float
    covariance: Array

    @classmethod
    def of(cls, link: GaussianData, noise_var: float) -> BatchLaw:
        """From the link and Gaussian noise: needs E g^4, E g^3 s, E g^2 s^2.

        Examples
        --------
        >>> BatchLaw.of(gaussian_data("s", "link"), 0.0).covariance.round(12).tolist()
        [[2.0, 2.0], [2.0, 2.0]]
        """
        c1, g2 = float(link.coefficient(1)), float(link.second_moment)
        g22, g31 = float(link.second_moment_x2), float(link_power(link, 3).coefficient(1))
        y2 = g2 + noise_var
        y4 = float(link.expectation(4)) + 6 * noise_var * g2 + 3 * noise_var**2
        along = g22 + noise_var - c1**2
        mixed = g31 + 3 * noise_var * c1 - c1 * y2
        return cls(c1, y2, np.array([[along, mixed], [mixed, y4 - y2**2]]))

    def nodes(self, n: int) -> tuple[Array, Array, Array]:
        """Values of U and V and their weights: mean and covariance are exact.

        Raises :class:`~spikesym.errors.InputError` where n is so small that V could come out negative.
        """
        values, vectors = np.linalg.eigh(self.covariance / n)
        axes = vectors * np.sqrt(np.maximum(values, 0.0))
        points, weights = [], []
        for left in (-1.0, 1.0):
            for right in (-1.0, 1.0):
                points.append(np.array([self.signal, self.power]) + axes @ np.array([left, right]))
                weights.append(0.25)
        u, v = np.array(points).T
        if np.min(v) <= 0:
            raise InputError(f"n = {n} is too small for this link", "-n", "give more samples")
        return u, v, np.array(weights)


def link_power(link: GaussianData, power: int) -> GaussianData:
    """Gaussian data of g^power."""
    if link.function.expr is not None:
        return gaussian_data(link.function.expr**power, "link")
    g = link.function.numpy()
    return gaussian_data(lambda x: g(x) ** power, "link")


@dataclass(frozen=True)
class BatchMean:
    """Mean over batches of the kernel given the batch, for pairs in the geometry of w*.

    A pair is given by s, s', by |x_perp|^2/d, |x'_perp|^2/d and by the cosine of x_perp and x'_perp.
    """

    kernel: KernelFunction
    law: BatchLaw
    d: int
    n: int
    eps: float
    nodes: int

    @property
    def power(self) -> float:
        """d E V/n: variance of the noise along a point of length sqrt(d)."""
        return self.law.power * self.d / self.n

    def means(self, s: Array, sp: Array, x: Array, xp: Array, c: Array) -> tuple[Array, Array]:
        """k1* and k1 at arrays of one shape (k,)."""
        u, v, batch_weights = self.law.nodes(self.n)
        g, weights = gauss_normal(self.nodes)
        first, second = (a.ravel() for a in np.meshgrid(g, g, indexing="ij"))
        inner = np.outer(weights, weights).ravel()
        spread = np.sqrt(v * self.d / self.n)[None, :, None]
        along = np.sqrt(x)[:, None, None] * spread * first
        turned = (c[:, None] * first + np.sqrt(1 - c * c)[:, None] * second)[:, None, :]
        across = np.sqrt(xp)[:, None, None] * spread * turned
        a, b = (u[None, :] * s[:, None])[:, :, None] + along, (u[None, :] * sp[:, None])[:, :, None] + across
        cross = np.sqrt(x * xp) * c
        q, qp, t = s * s / self.d + x, sp * sp / self.d + xp, s * sp / self.d + cross
        given = self.kernel(
            q[:, None, None] + self.eps * a * a,
            qp[:, None, None] + self.eps * b * b,
            t[:, None, None] + self.eps * a * b,
        )
        signal2 = self.law.signal**2 + float(self.law.covariance[0, 0]) / self.n
        mean = self.kernel(
            q + self.eps * (signal2 * s * s + self.power * x),
            qp + self.eps * (signal2 * sp * sp + self.power * xp),
            t + self.eps * (signal2 * s * sp + self.power * cross),
        )
        return (given @ inner) @ batch_weights, mean


def surrogate_kernels(model: Model, X: Any, Y: Any, w: Any, nodes: int = 24) -> tuple[Array, Array]:
    """k1* and k1 of the surrogate for corresponding rows of X and Y, shape (k, d); w is w*.

    Parameters
    ----------
    model : Model
        With sizes.
    X, Y : arrays of shape (k, d)
    w : array of shape (d,)
        The unit vector w*.
    nodes : int
        Of the Gauss rule for <h, x> and <h, x'>.

    Examples
    --------
    >>> x = np.eye(5)[:2] * 2.0
    >>> star, k1 = surrogate_kernels(Model(link="s", d=5, n=40, m=5, eta=5), x, x[::-1], np.eye(5)[0])
    >>> bool(np.all(np.abs(star / k1 - 1) < 0.02))
    True
    """
    X, Y = as_rows(X, "X").astype(np.float64), as_rows(Y, "Y").astype(np.float64)
    w = as_direction(w, X.shape[1])
    batches = batch_mean(model, nodes)
    s, sp = X @ w, Y @ w
    across, across_p = X - s[:, None] * w, Y - sp[:, None] * w
    x, xp, inner = (
        np.einsum("kd,kd->k", a, b) for a, b in ((across, across), (across_p, across_p), (across, across_p))
    )
    scale = np.sqrt(x * xp)
    cosine = np.clip(np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0), -1.0, 1.0)
    return batches.means(s, sp, x / batches.d, xp / batches.d, cosine)


def batch_mean(model: Model, nodes: int) -> BatchMean:
    """The mean over batches of a model with sizes."""
    model.require_sizes()
    d, n = int(model.d or 0), int(model.n or 0)
    link = gaussian_data(model.link, "link", model.parameters)
    activation = gaussian_data(model.activation, "activation", model.parameters)
    eps = batch_strength(model) * float(activation.coefficient(1)) ** 2 / d
    return BatchMean(kernel_function(activation), BatchLaw.of(link, float(model.noise_var)), d, n, eps, nodes)


def kernel_function(activation: GaussianData) -> KernelFunction:
    """k at variances and covariance, vectorised, the fastest way that there is for typical pairs."""
    function = activation.function
    own = dual(function if function.expr is None else make_function(function.expr, "activation"))
    if own.exact is None:
        table = HermiteTable(function.numpy(), float_breakpoints(function))

        def by_series(q: Array, qp: Array, t: Array) -> Array:
            q, qp, t = np.broadcast_arrays(q, qp, t)
            return series(table, table, q, qp, t).values

        return by_series
    kink = own.kink

    def by_angle(q: Array, qp: Array, t: Array) -> Array:
        assert kink is not None
        root, root_p = np.sqrt(q), np.sqrt(qp)
        cosine = np.clip(t / (root * root_p), -1.0, 1.0)
        return kink.at_angle(root, root_p, cosine, np.sqrt(1.0 - cosine * cosine))

    def by_values(q: Array, qp: Array, t: Array) -> Array:
        q, qp, t = np.broadcast_arrays(q, qp, t)
        return own.at(q, qp, t, np.maximum(q * qp - t * t, 0.0))

    return by_values if kink is None else by_angle


def gauss_normal(count: int) -> tuple[Array, Array]:
    """Nodes and weights for N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()
