"""The spectrum in double precision: milliseconds at any d, for curves, figures and learning curves.

The same Gram form as :mod:`spikesym.numeric.spectrum`, without enclosures: entries by the recurrence with the
Funk-Hecke coefficients folded in (nothing overflows), a pivoted Cholesky factor, and Jacobi's method on the factor,
which keeps the relative accuracy of eigenvalues that are 60 orders of magnitude apart. The truncation is doubled until
the eigenvalues asked for stand still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lapack
from threadpoolctl import ThreadpoolController

from ..errors import CertificationError, InputError
from .gram import first_degree
from .sphere import beta_values, relu_coefficient

Array = NDArray[np.float64]

#: relative change of the eigenvalues under doubling at which the truncation is accepted
_STABLE = 2e-12
_ROUNDING = 1e-8
_LARGEST = 4096
#: rank up to which the factor goes to Jacobi's method; beyond it the eigenvalues fall slowly and plain ones will do
_LARGEST_RANK = 320
_SMALLEST_EIGENVALUE = 1e-280


@dataclass(frozen=True)
class FastChain:
    """Eigenvalues (in units of A, for the ReLU) and unit eigenvectors of one sector's even chain.

    Attributes
    ----------
    degrees : ndarray of int, shape (n,)
        Harmonic each eigenfunction grows from.
    values, base : ndarray, shape (n,)
        lambda/A at this B, and at B = 0.
    vectors : ndarray, shape (kept, n)
        Columns: components on the normalised harmonics of degree degrees[0], degrees[0] + 2, ...
    truncation : int
        Largest degree kept.
    change : float
        Largest relative change of an eigenvalue when the truncation was last doubled.
    """

    degrees: NDArray[np.int64]
    values: Array
    base: Array
    vectors: Array
    truncation: int
    change: float

    @property
    def ratios(self) -> Array:
        """values / base."""
        return self.values / self.base


def fast_chain(d: int, sector: int, ratio: float, degrees: int) -> FastChain:
    """Eigenvalues of the sector's even chain up to the degree given, b = ``ratio`` >= 0.

    Relative accuracy is about 1e-12 while B/(A d) stays below about 0.1 and degrades slowly beyond.

    Raises
    ------
    InputError
        For a negative ratio.
    CertificationError
        When more than 4096 harmonics would be needed, or an eigenvalue asked for underflows.

    Examples
    --------
    >>> chain = fast_chain(10**6, 0, 5.0, degrees=2)
    >>> [float(f"{r:.10g}") for r in chain.ratios]
    [1.000005, 35.99874005]
    """
    if not 0 <= ratio < np.inf:
        raise InputError(f"must be at least 0, got {ratio}", "B/A", "the certified spectrum takes negative B")
    start = first_degree(sector)
    wanted = (degrees - start) // 2 + 1
    if wanted < 1:
        empty = np.zeros(0)
        return FastChain(np.zeros(0, dtype=np.int64), empty, empty, np.zeros((0, 0)), 0, 0.0)
    size = max(12, wanted + 6)
    values, vectors = _solve(d, sector, ratio, size, wanted)
    change = np.inf
    while True:
        if 2 * size > _LARGEST:
            raise CertificationError(
                f"B/A = {ratio:.6g} at d = {d}: eigenvalues still move by {change:.1e} at {size} harmonics; "
                "take B/(A d) below about 10 or fewer degrees"
            )
        size *= 2
        before, last = values, change
        values, vectors = _solve(d, sector, ratio, size, wanted)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = float(np.nanmax(np.abs(values - before) / values))
        # rounding decides how small the change can become: accept it where doubling no longer helps
        if change <= _STABLE or (change <= _ROUNDING and change > last / 4):
            break
    if values[-1] < _SMALLEST_EIGENVALUE:
        raise CertificationError(
            f"the eigenvalue of degree {degrees} underflows at d = {d}; use the certified spectrum"
        )
    base = np.array([d * relu_coefficient(start + 2 * k, d) ** 2 for k in range(wanted)])
    return FastChain(start + 2 * np.arange(wanted), values, base, vectors, start + 2 * (size - 1), change)


def alignment(d: int, A: float, B_values: Sequence[float], degree: int = 2) -> dict[str, Array]:
    """Squared weight of the zonal harmonic of this degree in the top eigenfunction, for k1 and for k0.

    Parameters
    ----------
    d : int
        Input dimension, at least 2.
    A : float
        Positive.
    B_values : sequence of float
        Values of B >= 0.
    degree : int
        Even degree of the harmonic; 2 by default.

    Returns
    -------
    dict
        ``{"B": ..., "k1": ..., "k0": ...}``, arrays of one length. k0 is the kernel with the same A and B = 0.

    Examples
    --------
    >>> curve = alignment(1000, 1.0, [0.0, 5.0])
    >>> [float(f"{w:.8g}") for w in curve["k1"]], [float(w) for w in curve["k0"]]
    ([0.0, 1.2364244e-05], [0.0, 0.0])
    """
    if degree % 2 or degree < 0:
        raise InputError(f"must be even, got {degree}", "degree", "the top eigenfunction is even")

    def weight(ratio: float) -> float:
        vectors = fast_chain(d, 0, ratio, 0).vectors
        return float(vectors[degree // 2, 0] ** 2) if degree // 2 < len(vectors) else 0.0

    B = np.asarray(B_values, dtype=float)
    return {
        "B": B,
        "k1": np.array([weight(value / A) for value in B]),
        "k0": np.full(len(B), weight(0.0)),
    }


def _solve(d: int, sector: int, ratio: float, size: int, wanted: int) -> tuple[Array, Array]:
    """The largest eigenvalues and eigenvectors of the block of this size."""
    # BLAS threads cost far more than they save on blocks this small
    with np.errstate(under="ignore"), _threads().limit(limits=1):
        matrix = _block(d, sector, ratio, size)
        factor = _cholesky(matrix, wanted)
        if factor is None:
            found, vectors = eigh(matrix, subset_by_index=[size - wanted, size - 1])
            return found[::-1], _positive(vectors[:, ::-1])
        left, triangle = np.linalg.qr(factor)
        # row and column scaling at once ('F'), no column dropped for being small (jobr 0)
        sigma, u, _, work, _, info = lapack.dgejsv(triangle, joba=2, jobu=0, jobv=3, jobr=0, jobp=0)
        if info:
            raise CertificationError(f"the Jacobi singular value decomposition failed with code {info}")
        sigma = sigma * (work[0] / work[1])
        count = min(wanted, len(sigma))
        values = np.zeros(wanted)
        values[:count] = sigma[:count] ** 2
        return values, _positive(left @ u[:, :count])


def _positive(vectors: Array) -> Array:
    """Each eigenvector with its own harmonic's component positive."""
    own = np.arange(vectors.shape[1])
    return vectors * np.where(vectors[own, own] < 0, -1.0, 1.0)


@lru_cache(maxsize=1)
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _block(d: int, sector: int, ratio: float, size: int) -> Array:
    """M/A in double precision by the recurrence of :mod:`spikesym.numeric.gram`, coefficients folded in."""
    odd, start, length = sector % 2, first_degree(sector), 2 * size
    index = sector + (d - 2) / 2
    beta = beta_values(odd + 2 * length + 3, index) ** 2
    k = np.arange(length)
    diagonal = beta[odd + 2 * k] + beta[odd + 2 * k + 1]
    off = np.zeros(length + 1)
    off[1:] = np.sqrt(beta[odd + 2 * k + 1] * beta[odd + 2 * k + 2])
    ell = start + 2.0 * k
    step = -(ell - 1) / (ell + d + 1)  # a_(ell+2) / a_ell
    row = _first_row(d, sector, ratio, step)
    matrix = np.zeros((size, size))
    matrix[0] = matrix[:, 0] = row[:size]
    above = np.zeros(length)
    here = row
    # entries carry a_i a_j: moving an index by one multiplies by its step
    right, left = off[1:] / step, np.concatenate([[0.0], off[1:-1] * step[:-1]])
    for i in range(size - 1):
        stop = length - i - 1
        j = slice(i + 1, stop)
        value = (
            (diagonal[j] - diagonal[i]) * here[j]
            + right[j] * here[i + 2 : stop + 1]
            + left[j] * here[i : stop - 1]
        )
        if i:
            value -= off[i] * step[i - 1] * above[j]
        following = np.zeros(length)
        following[j] = value * (step[i] / off[i + 1])
        above, here = here, following
        matrix[i + 1, i + 1 :] = matrix[i + 1 :, i + 1] = following[i + 1 : size]
    return matrix


def _first_row(d: int, sector: int, ratio: float, step: Array) -> Array:
    """a_0 a_k d G_{0,k}/(A d) along the chain."""
    odd, length = sector % 2, len(step)
    p, q, gamma = odd + 0.5, sector + (d - 1) / 2, (d + 2) / 2
    k = np.arange(length - 1, dtype=float)
    norm = (k + p) * (k + q) / ((2 * k + p + q) * (2 * k + p + q + 1) * (k + 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        norm[1:] /= ((2 * k + p + q - 1) * (2 * k + p + q) / (k + p + q - 1))[1:]
    norm[0] /= p + q
    first, third = sector + odd - 1, 2 * odd + sector - odd + d / 2
    growth = step[:-1] * ratio * (gamma + k) * np.sqrt(norm)
    if first == -1:
        quotients = np.concatenate(
            [
                [1 / (1 + ratio / d)],
                _ratios(0.0, 1.5, third + 2, ratio, 2 * length)[: 2 * length - 4].reshape(-1, 2).prod(1),
            ]
        )
        value = 1 + ratio / d
    else:
        quotients = (
            _ratios(float(first), p, third, ratio, 2 * length)[: 2 * length - 2].reshape(-1, 2).prod(1)
        )
        value = 1.0
        for m in range(first):
            value *= _ratios(p, float(m), third - first + m, ratio, 1)[0]
    value *= (1 + ratio) ** odd * relu_coefficient(first_degree(sector), d) ** 2 * d
    return value * np.concatenate([[1.0], np.cumprod(growth * quotients[: length - 1])])


def _ratios(a: float, b: float, c: float, x: float, count: int) -> Array:
    """The quotients of :func:`spikesym.numeric.gram.contiguous_ratios` in double precision."""
    terms = count + 32
    while True:
        m = np.arange(terms)
        j, lower = m // 2, c + m
        step = np.where(m % 2 == 1, (b + j + 1) * (lower - a - j), (a + j) * (lower - b - j))
        step = (x * step / (lower * (lower + 1))).tolist()
        low, high = [0.0] * terms, 0.0
        current, other = 0.0, 1.0  # the two ends of the starting interval
        for i in range(terms - 1, -1, -1):
            current = 1 / (1 + step[i] * current)
            other = 1 / (1 + step[i] * other)
            low[i] = current
            if i == count - 1:
                high = other
        if abs(high - low[count - 1]) <= 1e-15 * high or terms > 1 << 20:
            return np.array(low[:count])
        terms *= 2


def _cholesky(matrix: Array, wanted: int) -> Array | None:
    """Columns of a pivoted Cholesky factor, until what is left is below the rounding of the wanted eigenvalues.

    None when that takes too many columns.
    """
    size = len(matrix)
    rest = np.diag(matrix).copy()
    factor = np.zeros((size, min(size, _LARGEST_RANK)))
    pivots: list[float] = []
    for k in range(size):
        p = int(np.argmax(rest))
        pivot = float(rest[p])
        if pivot <= 0 or (k > wanted + 2 and rest.sum() < 1e-19 * pivots[wanted - 1]):
            return factor[:, :k]
        if k == factor.shape[1]:
            return None
        factor[:, k] = (matrix[:, p] - factor[:, :k] @ factor[p, :k]) / np.sqrt(pivot)
        pivots.append(pivot)
        rest = np.maximum(rest - factor[:, k] ** 2, 0.0)
        rest[p] = 0.0
    return factor
