"""Dual activations without a closed form, in floating point: Hermite series in the correlation.

With orthonormal coefficients m_k(q) = E[f(sqrt(q) z) h_k(z)],

    E[f(U) h(U')] = sum_k rho^k m_k[f](q) m_k[h](q'),   rho = t / sqrt(q q'),

and after K terms the rest is at most |rho|^K sqrt(R_K[f](q) R_K[h](q')), R_K = E f^2 - sum_{k<K} m_k^2 (Cauchy-Schwarz
and Parseval). The coefficients come from Gauss-Legendre panels that end at the break points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[Any]

_NODES = 16
_LEGENDRE = np.polynomial.legendre.leggauss(_NODES)
_REACH = 13.0
_FARTHEST_REACH = 38.0
_PANELS = (26, 52, 104, 208, 416, 832, 1664)
_FEW_BREAKPOINTS = 3
_GRADING = 6.0
_GRADES = 14
#: numbers of terms that are tried: for all entries, and for those where the series is slow
TERMS = (32, 64, 128, 256, 512)
MORE_TERMS = (1024, 2048)
_CONVERGED = 1e-14
#: variances larger by this factor than those that the panels were settled for need no new search
_MARGIN = 1.25
_EPS = float(np.finfo(np.float64).eps)
#: numbers of (variance, node, coefficient) triples held at once
_CHUNK = 4_000_000


@dataclass(frozen=True)
class SeriesValues:
    """Values of a truncated series, a bound of what was cut off (absolute, elementwise), and the number of terms."""

    values: Array
    bound: Array
    terms: int


@dataclass
class HermiteTable:
    """Orthonormal Hermite coefficients of z -> f(sqrt(q) z) for arrays of variances q.

    Parameters
    ----------
    function : callable
        Vectorised f.
    breakpoints : tuple of float
        Points where f is not analytic.
    """

    function: Callable[[Array], Array]
    breakpoints: tuple[float, ...] = ()
    _settled: dict[int, tuple[int, float, float]] = field(default_factory=dict, init=False, repr=False)

    def coefficients(self, q: Array, count: int) -> tuple[Array, Array, float]:
        """Coefficients of shape (len(q), count), E f^2 of shape (len(q),), and the change in the last refinement.

        The panels are halved until the change (2-norm, relative to sqrt(E f^2)) is at rounding level, or the finest is
        reached; what was found is kept for variances that are not much larger.
        """
        largest = float(np.max(q, initial=0.0))
        known, reached, change = self._settled.get(count, (_PANELS[0], 0.0, np.inf))
        if largest <= _MARGIN * reached:
            return *self._at(q, count, known), change
        previous = None
        for panels in _PANELS[_PANELS.index(known) :]:
            current = self._at(q, count, panels)
            if previous is not None:
                scale = np.sqrt(np.maximum(current[1], np.finfo(float).tiny))
                change = float(np.max(np.linalg.norm(current[0] - previous[0], axis=1) / scale, initial=0.0))
                if change < _CONVERGED:
                    break
            previous = current
        self._settled[count] = (panels, largest, change)
        return *current, change

    def _at(self, q: Array, count: int, panels: int) -> tuple[Array, Array]:
        reach = self._reach(q)
        if not self.breakpoints:
            nodes, weights, functions = _shared_rule(reach, panels, count)
            values = self.function(np.sqrt(q)[:, None] * nodes)
            return values @ functions.T, values**2 @ weights
        coefficients = np.empty((len(q), count))
        squares = np.empty(len(q))
        step = max(1, _CHUNK // (panels * _NODES * 4))
        for low in range(0, len(q), step):
            part = q[low : low + step]
            nodes, weights = _rule(self._edges(part, reach, panels))
            values = self.function(np.sqrt(part)[:, None] * nodes)
            root = np.sqrt(_density(nodes))
            squares[low : low + step] = np.sum(values**2 * root**2 * weights, axis=1)
            product = values * root * weights
            previous, current = np.zeros_like(nodes), root
            for k in range(count):
                coefficients[low : low + step, k] = np.sum(product * current, axis=1)
                following = (nodes * current - np.sqrt(k) * previous) / np.sqrt(k + 1)
                previous, current = current, following
        return coefficients, squares

    @cached_property
    def _points(self) -> Array:
        """The break points, approached geometrically (where there are few), for singularities such as |z|^(1/2)."""
        points = np.array(self.breakpoints)
        if not 0 < len(points) <= _FEW_BREAKPOINTS:
            return points
        steps = _GRADING ** -np.arange(1.0, _GRADES)
        return np.concatenate([points, *(points + sign * step for sign in (-1, 1) for step in steps)])

    def _reach(self, q: Array) -> float:
        """Where the integrand of E f^2 has died out."""
        reach = _REACH
        largest = np.sqrt(np.max(q, initial=0.0))
        while reach < _FARTHEST_REACH:
            ends = self.function(np.array([-largest * reach, largest * reach]))
            if np.all(np.abs(ends) ** 2 * _density(np.array([reach])) < 1e-30):
                break
            reach *= 1.5
        return reach

    def _edges(self, q: Array, reach: float, panels: int) -> Array:
        """Panel edges for each variance: a uniform grid and the break points, in units of sqrt(q)."""
        grid = np.broadcast_to(np.linspace(-reach, reach, panels + 1), (len(q), panels + 1))
        points = self._points[None, :] / np.sqrt(np.maximum(q, 1e-300))[:, None]
        return np.sort(np.concatenate([grid, np.clip(points, -reach, reach)], axis=1), axis=1)


@lru_cache(maxsize=8)
def _shared_rule(reach: float, panels: int, count: int) -> tuple[Array, Array, Array]:
    """Nodes, Gaussian weights, and h_k times these weights, on equal panels."""
    nodes, weights = (v[0] for v in _rule(np.linspace(-reach, reach, panels + 1)[None, :]))
    density = _density(nodes)
    return nodes, weights * density, _hermite_functions(nodes, count) * np.sqrt(density) * weights


def _rule(edges: Array) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on the panels between successive edges, row by row."""
    x, w = _LEGENDRE
    middle = (edges[:, 1:] + edges[:, :-1])[:, :, None] / 2
    half = (edges[:, 1:] - edges[:, :-1])[:, :, None] / 2
    nodes = (middle + half * x).reshape(len(edges), -1)
    weights = (half * w).reshape(len(edges), -1)
    return nodes, weights


def _density(x: Array) -> Array:
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def _hermite_functions(x: Array, count: int) -> Array:
    """Rows h_k(x) sqrt(density), k < count, which are bounded."""
    rows = np.empty((count, len(x)))
    previous, current = np.zeros_like(x), np.sqrt(_density(x))
    for k in range(count):
        rows[k] = current
        previous, current = current, (x * current - np.sqrt(k) * previous) / np.sqrt(k + 1)
    return rows


def series(
    first: HermiteTable,
    second: HermiteTable,
    q: Array,
    qp: Array,
    t: Array,
    terms: tuple[int, ...] = TERMS,
    orders: tuple[int, int] = (0, 0),
) -> SeriesValues:
    """E[f^(i)(U) h^(j)(U')] with a bound of the truncation; the arrays broadcast against each other.

    The orders (i, j) of derivatives shift the series of f and h themselves, so that kinks, jumps and Python callables
    need no differentiation; the result is not a number where a variance is 0 and its order is not.

    Terms are added until the bound is at rounding level relative to sqrt(E f^2 E h^2), or ``terms`` are exhausted.

    Examples
    --------
    >>> table = HermiteTable(np.sin)
    >>> one, half = np.array([1.0]), np.array([0.5])
    >>> result = series(table, table, one, one, half)
    >>> bool(abs(result.values[0] - np.exp(-1) * np.sinh(0.5)) < 1e-15), bool(result.bound[0] < 1e-14)
    (True, True)
    """
    levels, index = np.unique(q, return_inverse=True)
    levels_p, index_p = np.unique(qp, return_inverse=True)
    index, index_p = index.reshape(np.shape(q)), index_p.reshape(np.shape(qp))
    scale = np.sqrt(q) * np.sqrt(qp)
    zero = scale == 0
    rho = np.where(zero, 0.0, np.clip(t / np.where(zero, 1.0, scale), -1.0, 1.0))
    i, j = orders
    shift = max(i, j)
    m, square, change = first.coefficients(levels, terms[-1])
    same = second is first and np.array_equal(levels, levels_p)
    m_p, square_p, change_p = (m, square, change) if same else second.coefficients(levels_p, terms[-1])
    size = np.sqrt(square)[index] * np.sqrt(square_p)[index_p]
    for count in terms:
        kept = count - shift
        rest = np.maximum(square - np.sum(m[:, : kept + i] ** 2, axis=1), 0)
        rest_p = np.maximum(square_p - np.sum(m_p[:, : kept + j] ** 2, axis=1), 0)
        largest = _largest_weight(np.abs(rho), kept, i, j)
        tail = largest * np.sqrt(rest)[index] * np.sqrt(rest_p)[index_p]
        if np.all(tail <= 4 * _EPS * size):
            break
    weights = _weights(np.arange(kept), i, j)
    total = np.zeros(np.shape(rho))
    for k in range(kept - 1, -1, -1):
        total *= rho
        total += weights[k] * m[:, k + i][index] * m_p[:, k + j][index_p]
    # by Cauchy-Schwarz, the changes being 2-norms relative to each factor's root mean square
    amplified = np.max(weights * np.max(np.abs(rho), initial=0.0) ** np.arange(kept), initial=1.0)
    rounding = (change + change_p + 8 * _EPS) * size * amplified
    with np.errstate(all="ignore"):
        scale = np.sqrt(q) ** -float(i) * np.sqrt(qp) ** -float(j) if shift else np.ones(())
        return SeriesValues(total * scale, (tail + rounding) * scale, kept)


def _weights(k: Array, i: int, j: int) -> Array:
    """sqrt((k+i)! (k+j)!)/k!."""
    logs = (special.gammaln(k + i + 1.0) + special.gammaln(k + j + 1.0)) / 2 - special.gammaln(k + 1.0)
    return np.asarray(np.exp(logs)) if i or j else np.ones(len(k))


def _largest_weight(rho: Array, start: int, i: int, j: int) -> Array:
    """Upper bound of rho^k sqrt((k+i)! (k+j)!)/k! over k >= start; infinite at rho = 1 for derivatives."""
    if not i and not j:
        return np.asarray(rho**start)
    # (k + 1)^((i+j)/2) (1 + max(i, j)/(k+1))^((i+j)/2) rho^k, whose maximum over real k is at (i+j)/(2 log(1/rho))
    power = (i + j) / 2
    with np.errstate(all="ignore"):
        fall = -np.log(np.clip(rho, 1e-300, None))
        at = np.maximum(np.where(fall > 0, power / fall, np.inf) - 1, start)
        bound = np.exp(power * np.log(at + 1) - fall * at) * (1 + max(i, j) / (start + 1)) ** power
    return np.where(fall > 0, bound, np.inf)


def line(first: HermiteTable, second: HermiteTable, q: float, qp: float, sign: float) -> tuple[float, float]:
    """E[f(sqrt(q) z) h(sign sqrt(q') z)] by one rule, and the change when it is refined."""
    previous = value = np.nan
    for panels in _PANELS:
        edges = np.concatenate(
            [first._edges(np.array([q]), _REACH, panels), second._edges(np.array([qp]), _REACH, 1)], axis=1
        )
        nodes, weights = _rule(np.sort(np.concatenate([edges, sign * edges], axis=1), axis=1))
        z, w = nodes[0], weights[0] * _density(nodes[0])
        product = first.function(np.sqrt(q) * z) * second.function(sign * np.sqrt(qp) * z)
        previous, value = value, float(np.sum(product * w))
        if abs(value - previous) <= 1e-15 * abs(value):
            break
    return value, abs(value - previous)


def plane(
    first: HermiteTable, second: HermiteTable, q: float, qp: float, cosine: float, sine: float
) -> tuple[float, float]:
    """E[f(U) h(U')] by two nested rules, and the change when both are refined: for correlations close to +-1."""
    previous = value = np.nan
    for panels in (26, 52, 104, 208):
        outer, weights = _rule(first._edges(np.array([q]), _REACH, panels))
        x, w = outer[0], weights[0] * _density(outer[0])
        # U' = sqrt(q') (cosine x + sine y): break points in y
        points = second._points[None, :] / np.sqrt(max(qp, 1e-300)) - cosine * x[:, None]
        points = np.clip(points / max(sine, 1e-300), -_REACH, _REACH)
        grid = np.broadcast_to(np.linspace(-_REACH, _REACH, panels + 1), (len(x), panels + 1))
        y, v = _rule(np.sort(np.concatenate([grid, points], axis=1), axis=1))
        inner = np.sum(
            second.function(np.sqrt(qp) * (cosine * x[:, None] + sine * y)) * _density(y) * v, axis=1
        )
        previous, value = value, float(np.sum(first.function(np.sqrt(q) * x) * w * inner))
        if abs(value - previous) <= 1e-14 * abs(value):
            break
    return value, abs(value - previous)
