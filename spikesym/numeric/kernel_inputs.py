"""Inputs of kernels: checks, the linear map by Gamma^(1/2), and pairs of rows that need care."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .angles import euclidean, pair_angles

Array = NDArray[Any]


def as_rows(X: Any, where: str) -> Array:
    """A finite two-dimensional float32 or float64 array; raises :class:`~spikesym.errors.InputError`."""
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise InputError(f"not real numbers: {array.dtype}", where, "give an array of float64 or float32")
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(
            f"shape {array.shape}", where, "give an array of shape (number of points, dimension)"
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError("not finite", where, "remove NaN and infinity")
    return array


def as_direction(w: Any, d: int, where: str = "w") -> Array:
    """A unit vector of length d; raises :class:`~spikesym.errors.InputError`."""
    array = np.asarray(w)
    if array.dtype.kind not in "fiub" or array.shape != (d,) or not np.isfinite(array).all():
        raise InputError(f"shape {array.shape}, type {array.dtype}", where, f"give {d} finite real numbers")
    array = array.astype(np.float64)
    norm = float(np.linalg.norm(array))
    if abs(norm - 1) > 1e-6:
        raise InputError(f"norm {norm:.6g}", where, "give a unit vector, the target direction w*")
    return np.asarray(array / norm)


@dataclass(frozen=True)
class Covariance:
    """Gamma = A I + B w w^T, or any positive semidefinite matrix.

    Parameters
    ----------
    A, B : float
        Of the spiked form; A > 0 and A + B >= 0.
    w : array of shape (d,) or None
        Unit vector of the spike; needed when B is not 0.
    matrix : array of shape (d, d) or None
        A general Gamma, in place of the spiked form.
    """

    A: float = 1.0
    B: float = 0.0
    w: Array | None = None
    matrix: Array | None = None

    def __post_init__(self) -> None:
        if self.matrix is not None:
            object.__setattr__(self, "matrix", _checked_matrix(self.matrix))
            return
        if not (np.isfinite(self.A) and self.A > 0):
            raise InputError(f"must be positive, got {self.A}", "--A", "give a positive number")
        if not (np.isfinite(self.B) and self.A + self.B >= 0):
            raise InputError(
                f"A + B must not be negative, got B = {self.B}", "--B", "give a number of at least -A"
            )
        if self.B != 0 and self.w is None:
            raise InputError("missing", "w", "give the direction w* of the spike, a unit vector")
        if self.w is not None:
            object.__setattr__(self, "w", as_direction(self.w, np.size(self.w)))

    def root_map(self, X: Array) -> Array:
        """Rows Gamma^(1/2) x / sqrt(d), in the float type of X."""
        d = X.shape[1]
        self.check_dimension(d)
        if self.matrix is not None:
            return np.asarray(X @ _root(self.matrix).astype(X.dtype) / X.dtype.type(np.sqrt(d)))
        scale = np.sqrt(self.A / d)
        Z = X * X.dtype.type(scale)
        if self.B != 0:
            assert self.w is not None
            # Gamma^(1/2) = sqrt(A) (I + (sqrt(1 + B/A) - 1) w w^T), the difference without cancellation
            ratio = self.B / self.A
            stretch = ratio / (np.sqrt(1 + ratio) + 1)
            w = self.w.astype(X.dtype)
            Z += np.outer((Z @ w) * X.dtype.type(stretch), w)
        return np.asarray(Z)

    def apply(self, X: Array) -> Array:
        """Rows Gamma x."""
        self.check_dimension(X.shape[1])
        if self.matrix is not None:
            return np.asarray(X @ self.matrix)
        result = self.A * X
        if self.B != 0:
            assert self.w is not None
            result = result + np.outer(X @ self.w, self.B * self.w)
        return np.asarray(result)

    def inner(self, X: Array, Y: Array) -> Array:
        """x^T Gamma y for corresponding rows."""
        if self.matrix is not None:
            return euclidean(X @ self.matrix, Y)
        result = self.A * euclidean(X, Y)
        if self.B != 0:
            assert self.w is not None
            result += self.B * (X @ self.w) * (Y @ self.w)
        return np.asarray(result)

    def angles(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Cosine and sine of the angles between Gamma^(1/2) x and Gamma^(1/2) y for corresponding rows."""
        isotropic = self.matrix is None and self.B == 0
        return pair_angles(X, Y) if isotropic else pair_angles(X, Y, self.inner)

    def check_dimension(self, d: int) -> None:
        """Refuse inputs whose dimension is not that of Gamma."""
        have = len(self.matrix) if self.matrix is not None else None if self.w is None else len(self.w)
        if have is not None and have != d:
            raise InputError(f"dimension {d}, but Gamma has {have}", "X", f"give points of dimension {have}")


def _checked_matrix(matrix: Any) -> Array:
    array = np.asarray(matrix)
    if array.dtype.kind not in "fiu" or array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise InputError(
            f"shape {array.shape}, type {array.dtype}", "Gamma", "give a square matrix of real numbers"
        )
    array = array.astype(np.float64)
    scale = float(np.abs(array).max(initial=0.0))
    if not np.isfinite(scale) or np.abs(array - array.T).max(initial=0.0) > 1e-10 * scale:
        raise InputError("not symmetric", "Gamma", "give a symmetric positive semidefinite matrix")
    return np.asarray((array + array.T) / 2)


def _root(matrix: Array) -> Array:
    """The symmetric square root; eigenvalues that are negative by rounding are zero."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-10 * max(abs(values[-1]), abs(values[0])):
        raise InputError(
            f"eigenvalue {values[0]:.3g} is negative", "Gamma", "give a positive semidefinite matrix"
        )
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


@dataclass(frozen=True)
class Pairs:
    """A block of pairs of rows: standard deviations and the angle, accurate near 0 and pi.

    ``root`` has shape (n, 1), ``root_p`` (1, m), ``cosine`` and ``sine`` (n, m).
    """

    root: Array
    root_p: Array
    cosine: Array
    sine: Array

    @classmethod
    def of(cls, X: Array, Y: Array, covariance: Covariance) -> Pairs:
        """The geometry of all pairs of rows, of X and of Y, after the map by Gamma^(1/2)/sqrt(d); in float64."""
        X, Y = X.astype(np.float64), Y.astype(np.float64)
        Z, Zp = covariance.root_map(X), covariance.root_map(Y)
        root, root_p = norms(Z)[:, None], norms(Zp)[None, :]
        cosine = Z @ Zp.T
        cosine *= inverse(root)
        cosine *= inverse(root_p)
        np.clip(cosine, -1.0, 1.0, out=cosine)
        square = (1 - cosine) * (1 + cosine)
        sine = np.sqrt(square)
        for rows, columns in close_pairs(square, CLOSE, X.shape[1]):
            cosine[rows, columns], sine[rows, columns] = covariance.angles(X[rows], Y[columns])
        # a zero row is taken as orthogonal to everything: a jump at zero then counts half
        sine[(root[:, 0] == 0), :] = 1.0
        sine[:, (root_p[0] == 0)] = 1.0
        return cls(root, root_p, cosine, sine)


#: below this square of the sine, angles are computed again from the rows
CLOSE = 0.02
#: entries of the rows of pairs that are held at once
_PAIR_ENTRIES = 1 << 20


def close_pairs(square: Array, limit: float, d: int) -> list[tuple[Array, Array]]:
    """Index arrays (rows, columns) of entries below ``limit``, in chunks of bounded size."""
    rows, columns = np.nonzero(square < limit)
    step = max(1, _PAIR_ENTRIES // d)
    return [(rows[i : i + step], columns[i : i + step]) for i in range(0, len(rows), step)]


def norms(Z: Array) -> Array:
    """Euclidean norms of rows, in float64."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", Z, Z, dtype=np.float64)))


def inverse(x: Array) -> Array:
    """1/x, and 0 where x is 0."""
    return np.asarray(np.divide(1.0, x, out=np.zeros_like(x), where=x != 0))
