"""The law of a neuron's features after the step: Gaussian, a mixture of two Gaussians, or a Gaussian with a mean.

A centred Gaussian readout turns the step into a covariance; the features are Gaussian, and k1 is the kernel of N(0, Gamma/d).
A readout of random signs has the same Gamma, but the features sit at two points +-delta with the bulk around them. A constant
readout moves every neuron by the same delta: Gamma = I + delta delta^T (and terms of order d^(zeta - 1)) in second moment only,
and the kernel is that of a Gaussian with a mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.special import ndtr

from ..errors import InputError
from ..gaussian import gaussian_data
from ..model import Model
from ..numeric.kernel_inputs import as_direction
from ..numeric.quenched import batch_strength, derivative_means, quenched_covariance
from .reference import annealed_spike

READOUT_LAWS = ("gaussian", "rademacher", "constant")
STATEMENTS = {
    "gaussian": "Gaussian readout: the features are N(0, Gamma), and k1 = k0(Gamma^(1/2) x, Gamma^(1/2) x') is the limit of "
    "the network's kernel.",
    "rademacher": "Readout +-varsigma/sqrt(m): the same Gamma, but the features are a mixture of two Gaussians at +-delta; "
    "second moments agree with N(0, Gamma), the kernel does not.",
    "constant": "Constant readout varsigma/sqrt(m): every neuron moves by the same delta; Gamma = I + delta delta^T holds in "
    "second moment only, and the kernel is that of a Gaussian with mean delta.",
}


@dataclass(frozen=True)
class Marginal:
    """A mixture of Gaussians on the line: the law of sqrt(d) <w(1), u>.

    Parameters
    ----------
    weights, means, deviations : arrays of shape (components,)

    Examples
    --------
    >>> law = Marginal(np.array([0.5, 0.5]), np.array([-2.0, 2.0]), np.array([1.0, 1.0]))
    >>> law.second_moment, round(float(law.cdf(0.0)), 12)
    (5.0, 0.5)
    """

    weights: np.ndarray
    means: np.ndarray
    deviations: np.ndarray

    @property
    def mean(self) -> float:
        """Mean."""
        return float(self.weights @ self.means)

    @property
    def second_moment(self) -> float:
        """Mean square."""
        return float(self.weights @ (self.means**2 + self.deviations**2))

    def _standard(self, x: Any) -> np.ndarray:
        return np.asarray((np.asarray(x, dtype=np.float64)[..., None] - self.means) / self.deviations)

    def pdf(self, x: Any) -> np.ndarray:
        """Density at an array of points."""
        z = self._standard(x)
        return np.asarray((np.exp(-0.5 * z * z) / self.deviations) @ self.weights / np.sqrt(2 * np.pi))

    def cdf(self, x: Any) -> np.ndarray:
        """Distribution function at an array of points."""
        return np.asarray(ndtr(self._standard(x)) @ self.weights)


@dataclass(frozen=True)
class SpikedCovariance:
    """A I + B u u^T."""

    A: float
    B: float
    direction: np.ndarray

    def variance(self, u: np.ndarray) -> float:
        """u^T (A I + B w w^T) u."""
        return float(self.A * (u @ u) + self.B * (u @ self.direction) ** 2)

    def matrix(self) -> np.ndarray:
        """As an array of shape (d, d)."""
        return self.A * np.eye(self.direction.size) + self.B * np.outer(self.direction, self.direction)

    def color(self, white: np.ndarray) -> np.ndarray:
        """Rows with this covariance from rows of independent N(0, 1)."""
        root = np.sqrt(self.A)
        along = (np.sqrt(max(self.A + self.B, 0.0)) - root) * (white @ self.direction)
        return np.asarray(root * white + along[:, None] * self.direction)


@dataclass(frozen=True)
class DenseCovariance:
    """A positive semidefinite matrix of shape (d, d)."""

    values: np.ndarray

    def variance(self, u: np.ndarray) -> float:
        """u^T C u."""
        return float(u @ self.values @ u)

    def matrix(self) -> np.ndarray:
        """The matrix."""
        return self.values

    def color(self, white: np.ndarray) -> np.ndarray:
        """Rows with this covariance from rows of independent N(0, 1)."""
        return np.asarray(white @ cholesky(self.values))


@dataclass(frozen=True)
class Component:
    """One Gaussian of the mixture, for sqrt(d) w(1)."""

    weight: float
    mean: np.ndarray
    covariance: SpikedCovariance | DenseCovariance


@dataclass(frozen=True)
class FeatureLaw:
    """The law of sqrt(d) w_j(1); make one with :meth:`annealed` or :meth:`given_batch`.

    Attributes
    ----------
    readout : {"gaussian", "rademacher", "constant"}
    components : tuple of Component
        Their first and second moments are those of the network; the Gaussian shape is the leading order.
    statement : str
        What this readout changes, in a sentence.
    """

    readout: str
    components: tuple[Component, ...]

    @property
    def statement(self) -> str:
        """What this readout changes."""
        return STATEMENTS[self.readout]

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.components[0].mean.size)

    @classmethod
    def annealed(cls, model: Model, direction: Any, readout: str | None = None) -> FeatureLaw:
        """The law averaged over training batches.

        Parameters
        ----------
        model : Model
            With sizes and a step.
        direction : array of shape (d,)
            The unit vector w*.
        readout : str, optional
            The model's by default; "constant" is possible here only.

        Notes
        -----
        Gamma is exact where the package has an exact form. The mean delta = kappa^(1/2) mu_1 c_1 w* and the terms
        2 (kappa/d)^(1/2) mu_2 (c_0 I + c_2 w* w*^T) by which one sign's covariance differs are of leading order.

        Raises
        ------
        InputError
            For a constant readout with the full residual: the output at initialisation is then of order one.

        Examples
        --------
        >>> model = Model(d=50, n=100, m=75, eta=60, residual="labels")
        >>> law = FeatureLaw.annealed(model, np.eye(50)[0], "rademacher")
        >>> [round(float(c.mean[0]), 3) for c in law.components]
        [-1.414, 1.414]
        """
        kind = _checked(model, readout)
        w = as_direction(direction, int(model.d or 0))
        A, B, _ = annealed_spike(model)
        link = gaussian_data(model.link, "link", model.parameters)
        activation = gaussian_data(model.activation, "activation", model.parameters)
        c0, c1, c2 = (float(link.coefficient(k)) for k in range(3))
        mu1, mu2 = (float(activation.coefficient(k)) for k in (1, 2))
        strength = batch_strength(model)
        delta = np.sqrt(strength) * mu1 * c1
        cross = 2 * np.sqrt(strength / w.size) * mu2

        def covariance(sign: float) -> SpikedCovariance:
            return SpikedCovariance(A + sign * cross * c0, B - delta**2 + sign * cross * c2, w)

        if kind == "gaussian":
            return cls(kind, (Component(1.0, np.zeros(w.size), SpikedCovariance(A, B, w)),))
        return cls(kind, tuple(Component(p, sign * delta * w, covariance(sign)) for p, sign in _signs(kind)))

    @classmethod
    def given_batch(cls, model: Model, inputs: Any, labels: Any, readout: str | None = None) -> FeatureLaw:
        """The law over the neurons of networks trained on one batch, labels only.

        Parameters
        ----------
        model : Model
            With sizes and a step; residual "labels".
        inputs, labels : arrays of shape (n, d) and (n,)
        readout : str, optional
            The model's by default; "constant" is possible here only.

        Notes
        -----
        First and second moments, and those given the sign of the readout, are exact at every size.

        Examples
        --------
        >>> X = np.random.default_rng(0).standard_normal((40, 10))
        >>> law = FeatureLaw.given_batch(Model(d=10, n=40, m=20, eta=20, residual="labels"), X, X[:, 0], "constant")
        >>> law.second_moment.shape, bool(np.linalg.norm(law.components[0].mean) > 1)
        ((10, 10), True)
        """
        kind = _checked(model, readout)
        batch = quenched_covariance(model, inputs, labels)
        gamma = batch.matrix()
        d = gamma.shape[0]
        if kind == "gaussian":
            return cls(kind, (Component(1.0, np.zeros(d), DenseCovariance(gamma)),))
        delta = np.sqrt(batch.strength) * batch.mean_slope_vector
        curvature = derivative_means(batch.slopes.function, batch.tiles.variances, 2)
        weighted = batch.inputs * (batch.labels * curvature)[:, None]
        cross = 2 * np.sqrt(batch.strength / d) * (batch.inputs.T @ weighted) / len(batch.labels)
        cross = (cross + cross.T) / 2
        gamma -= np.outer(delta, delta)
        return cls(
            kind,
            tuple(
                Component(p, sign * delta, DenseCovariance(gamma + sign * cross)) for p, sign in _signs(kind)
            ),
        )

    @property
    def second_moment(self) -> np.ndarray:
        """d E[w(1) w(1)^T], shape (d, d)."""
        total = np.zeros((self.dimension, self.dimension))
        for c in self.components:
            total += c.weight * (c.covariance.matrix() + np.outer(c.mean, c.mean))
        return total

    def marginal(self, direction: Any) -> Marginal:
        """The law of sqrt(d) <w(1), u> for a unit vector u: along w*, or along any direction."""
        u = as_direction(direction, self.dimension, "direction")
        parts = [(c.weight, float(c.mean @ u), c.covariance.variance(u)) for c in self.components]
        weights, means, variances = (np.array(v) for v in zip(*parts, strict=True))
        return Marginal(weights, means, np.sqrt(variances))

    def sample(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Weights w_j(1), rows of shape (count, d)."""
        which = rng.choice(len(self.components), count, p=[c.weight for c in self.components])
        rows = rng.standard_normal((count, self.dimension))
        for index, c in enumerate(self.components):
            mine = which == index
            rows[mine] = c.covariance.color(rows[mine]) + c.mean
        return rows / np.sqrt(self.dimension)


def _signs(kind: str) -> tuple[tuple[float, float], ...]:
    return ((0.5, -1.0), (0.5, 1.0)) if kind == "rademacher" else ((1.0, 1.0),)


def _checked(model: Model, readout: str | None) -> str:
    model.require_sizes()
    kind = model.readout if readout is None else readout
    if kind not in READOUT_LAWS:
        raise InputError(f"unknown: {kind!r}", "readout", "choose " + ", ".join(READOUT_LAWS))
    if kind == "constant" and model.residual != "labels":
        raise InputError(
            "with a constant readout the output at initialisation is of order one and enters the step",
            "--residual",
            "give --residual labels",
        )
    return kind
