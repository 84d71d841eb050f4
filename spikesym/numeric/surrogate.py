"""The Hilbert-Schmidt distance of the surrogate's kernel k1* from k1, by quadrature at any dimension.

With the mean over batches of :mod:`.batch_mean` for each pair, the norm is an integral over s, s', the two lengths across w*
and the angle between them; its cost does not grow with d.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from ..errors import CertificationError, InputError
from ..gaussian import GaussianData, gaussian_data
from ..model import Model
from ..symbolic.covariance_judges import Q_COEF
from ..symbolic.surrogate import NOISE_RATIO, S_G, mu, noise_ratio, surrogate_formulas
from ..symbolic.symbols import C1, EG2, TAU2, B, D, N
from .batch_mean import BatchMean, batch_mean, gauss_normal
from .sphere import gauss_rule

Array = NDArray[np.float64]

#: nodes for s and s', for <h, x> and <h, x'>, for the lengths, for the angle
LEVELS = ((6, 6, 2, 3), (8, 8, 3, 4), (12, 12, 3, 5), (16, 20, 3, 5), (24, 32, 3, 5))


@dataclass(frozen=True)
class SurrogateDistance:
    """Distance of k1* from k1 in L^2 of two independent inputs, the Hilbert-Schmidt norm of the difference of operators.

    Attributes
    ----------
    d, n, m : int
    eta, B : float
        Step, and B = d eps c_1^2 to leading order.
    norm, kernel_norm : float
        Of k1* - k1 and of k1.
    change : float
        Relative change of the norm in the last refinement.
    predicted : float
        Its leading order (registry: ``approx``); ``kind`` says which: "smooth" (any activation) or "kinked" (p z + q|z|).
    """

    d: int
    n: int
    m: int
    eta: float
    B: float
    norm: float
    kernel_norm: float
    change: float
    predicted: float
    kind: str

    @property
    def by_spike(self) -> float:
        """norm/(B/d)^2."""
        return self.norm / (self.B / self.d) ** 2

    @property
    def by_paper(self) -> float:
        """norm/(eta^4 ln(d)^3/d^5), the published rate."""
        return self.norm / (self.eta**4 * math.log(self.d) ** 3 / self.d**5)


def surrogate_distance(model: Model, tolerance: float = 1e-3) -> SurrogateDistance:
    """The distance of the surrogate's kernel from k1 for a model with sizes, d at least 4.

    Parameters
    ----------
    model : Model
        The residual does not matter: the surrogate has labels only.
    tolerance : float
        Relative change of the norm in a refinement at which to stop.

    Raises
    ------
    CertificationError
        When the finest rule has not settled.

    Examples
    --------
    >>> found = surrogate_distance(Model(link="relu", d=10000, n=20000, m=15000, eta0=1, zeta="1/2"))
    >>> bool(abs(found.norm / found.predicted - 1) < 0.01), found.kind
    (True, 'kinked')
    """
    model.require_sizes()
    d, n, m = int(model.d or 0), int(model.n or 0), int(model.m or 0)
    if d < 4:
        raise InputError(f"must be at least 4, got {d}", "-d", "give a dimension of at least 4")
    link = gaussian_data(model.link, "link", model.parameters)
    activation = gaussian_data(model.activation, "activation", model.parameters)
    batches = batch_mean(model, LEVELS[0][1])
    norm = kernel_norm = change = math.nan
    for level in LEVELS:
        before = norm
        norm, kernel_norm = _norms(batches, level)
        change = abs(norm - before) / norm if norm else 0.0
        if change < tolerance:
            break
    else:
        raise CertificationError(
            f"the distance has not settled: relative change {change:.2g} in the last refinement"
        )
    spike = d * batches.eps * batches.law.signal**2
    predicted, kind = predicted_distance(model, link, activation, spike)
    return SurrogateDistance(d, n, m, model.eta_value, spike, norm, kernel_norm, change, predicted, kind)


def predicted_distance(
    model: Model, link: GaussianData, activation: GaussianData, spike: float
) -> tuple[float, str]:
    """The leading order of the distance, and its kind."""
    slopes = activation.function.piecewise_linear_coefficients()
    kind = "smooth" if slopes is None else "kinked"
    formula = surrogate_formulas()[kind]
    values: dict[Any, Any] = {
        B: spike, D: model.d, N: model.n, C1: float(link.coefficient(1)), EG2: float(link.second_moment),
        TAU2: float(model.noise_var), S_G: float(link.s_g),
    }  # fmt: skip
    values[NOISE_RATIO] = noise_ratio().subs(values)
    if slopes is None:
        values.update({mu(k): float(activation.coefficient(k)) for k in range(5)})
    else:
        values[Q_COEF] = slopes[1]
    return math.sqrt(float(sympy.N(formula.subs(values)))), kind


def _gauss_length(freedom: int, count: int) -> tuple[Array, Array]:
    """Nodes and weights for a chi-square variable over its mean, from the Jacobi matrix of the Laguerre polynomials."""
    a, k = freedom / 2 - 1, np.arange(count)
    nodes, vectors = eigh_tridiagonal(2 * k + a + 1, np.sqrt(k[1:] * (k[1:] + a)))
    return 2 * nodes / freedom, vectors[0] ** 2


def _pairs(count: int) -> Iterator[tuple[float, float, float]]:
    """Nodes of (s, s') with weights; those that differ by an exchange or a common sign count together."""
    nodes, weights = gauss_normal(count)
    for i in range(count):
        for j in range(count):
            mirror = (count - 1 - i, count - 1 - j)
            images = {(i, j), (j, i), mirror, mirror[::-1]}
            if (i, j) == min(images):
                yield float(nodes[i]), float(nodes[j]), float(len(images) * weights[i] * weights[j])


def _norms(batches: BatchMean, level: tuple[int, int, int, int]) -> tuple[float, float]:
    """Norms of k1* - k1 and of k1 by one rule."""
    points, nodes, lengths, angles = level
    batches = replace(batches, nodes=nodes)
    d = batches.d
    length, length_weights = _gauss_length(d - 1, lengths)
    cosine, cosine_weights = gauss_rule(angles, (d - 3) / 2)
    x, xp, c = (
        a.ravel() for a in np.meshgrid(length * (d - 1) / d, length * (d - 1) / d, cosine, indexing="ij")
    )
    outer = np.einsum("i,j,k->ijk", length_weights, length_weights, cosine_weights).ravel()
    difference2 = kernel2 = 0.0
    for s, sp, weight in _pairs(points):
        star, mean = batches.means(np.full_like(x, s), np.full_like(x, sp), x, xp, c)
        difference2 += weight * float(outer @ (star - mean) ** 2)
        kernel2 += weight * float(outer @ mean**2)
    return math.sqrt(difference2), math.sqrt(kernel2)
