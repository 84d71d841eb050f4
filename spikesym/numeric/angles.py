"""Angles of nearly parallel and nearly opposite vectors without loss of digits.

1 - cos^2 loses everything near 0 and pi. From variances and a covariance, the discriminant q q' - t^2 is
computed with the rounding errors of both products; from vectors, the sine is the length of the part of one that is
orthogonal to the other, again with the rounding errors of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

Array = NDArray[Any]

_SPLIT = 134217729.0  # 2^27 + 1, Veltkamp's constant for float64
#: how far beyond q q' a covariance's square may lie before it is an error and not rounding
_SLACK = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-4}


def discriminant(q: Array, qp: Array, t: Array) -> Array:
    """q q' - t^2 for float64 arrays, correct to a few units in the last place even under cancellation.

    The result is at least zero.

    Examples
    --------
    >>> e = 2.0**-30
    >>> float(discriminant(np.array(1.0 + e), np.array(1.0 + e), np.array(1.0 + e - 2**-52))) * 2.0**51
    1.0000000009313226
    """
    # scaling by even powers of two keeps the error-free products within range
    exponent, exponent_p = (2 * np.round(np.frexp(v)[1] / 2).astype(np.int64) for v in (q, qp))
    a, b = np.ldexp(q, -exponent), np.ldexp(qp, -exponent_p)
    c = np.ldexp(t, -(exponent + exponent_p) // 2)
    high, low = _product(a, b)
    high_t, low_t = _product(c, c)
    value = np.maximum((high - high_t) + (low - low_t), 0.0)
    return np.asarray(np.ldexp(value, exponent + exponent_p))


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product and its rounding error (Dekker)."""
    product = a * b
    scaled_a, scaled_b = _SPLIT * a, _SPLIT * b
    a_high = scaled_a - (scaled_a - a)
    b_high = scaled_b - (scaled_b - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def euclidean(X: Array, Y: Array) -> Array:
    """Inner products of corresponding rows."""
    return np.asarray(np.einsum("ij,ij->i", X, Y))


def pair_angles(
    X: Array, Y: Array, inner: Callable[[Array, Array], Array] = euclidean
) -> tuple[Array, Array]:
    """Cosine and sine of the angle between row i of ``X`` and row i of ``Y``, the sine to relative accuracy.

    Parameters
    ----------
    X, Y : arrays of shape (n, d)
        Rows that are zero give cosine 0 and sine 0.
    inner : callable
        The inner products of corresponding rows in which angles are measured.

    Returns
    -------
    cosine, sine : arrays of shape (n,)

    Examples
    --------
    >>> X, Y = np.array([[1.0, 1.0]]), np.array([[-3.0, -3.0 + 2.0**-40]])
    >>> bool(abs(pair_angles(X, Y)[1][0] * 6 * 2.0**40 - 1 - 2.0**-40 / 6) < 1e-15)
    True
    """
    return _frame(X, Y, inner)[:2]


def pair_frames(X: Array, Y: Array, w: Array) -> tuple[Array, Array, Array]:
    """Cosine, sine, and the inner product of w with the unit vector along the part of y that is orthogonal to x.

    The last is 0 where x and y are parallel.
    """
    cosine, sine, rest = _frame(X, Y, euclidean)
    length = np.sqrt(euclidean(rest, rest))
    return cosine, sine, np.divide(rest @ w, length, out=np.zeros_like(length), where=length > 0)


def _frame(X: Array, Y: Array, inner: Callable[[Array, Array], Array]) -> tuple[Array, Array, Array]:
    X, Y = _scaled(np.asarray(X, dtype=np.float64)), _scaled(np.asarray(Y, dtype=np.float64))
    square, square_p = inner(X, X), inner(Y, Y)
    zero = (square <= 0) | (square_p <= 0)
    square, square_p = np.where(zero, 1.0, square), np.where(zero, 1.0, square_p)
    along = inner(X, Y)
    rest = orthogonal_part(X, Y, along / square)
    # the rounding of the factor leaves a part along X
    rest -= (inner(X, rest) / square)[:, None] * X
    sine = np.sqrt(np.maximum(inner(rest, rest), 0.0) / square_p)
    cosine = along / np.sqrt(square * square_p)
    cosine, sine = (np.where(zero, 0.0, v) for v in (np.clip(cosine, -1.0, 1.0), np.minimum(sine, 1.0)))
    return cosine, sine, rest


def orthogonal_part(X: Array, Y: Array, factor: Array) -> Array:
    """Rows y - factor x, where the products are not rounded before the subtraction."""
    product, error = _product(X, factor[:, None])
    return np.asarray((Y - product) - error)


def _scaled(X: Array) -> Array:
    """Each row divided by the power of two next to its largest entry, which is exact."""
    exponent = np.frexp(np.abs(X).max(axis=1, initial=0.0))[1]
    return np.asarray(np.ldexp(X, -exponent[:, None]))


def covariances(q: Any, qp: Any, t: Any) -> tuple[Array, Array, Array, np.dtype[Any]]:
    """The arguments of a dual activation as float64 arrays of one shape, checked; and the type of the result.

    Raises :class:`~spikesym.errors.InputError` unless q, q' >= 0 and t^2 <= q q' up to rounding.
    """
    arrays = [np.asarray(v) for v in (q, qp, t)]
    if any(a.dtype.kind not in "fiub" for a in arrays):
        raise InputError("not real numbers", "q, q', t", "give arrays of real numbers")
    kind = np.result_type(*arrays)
    dtype = np.dtype(np.float32) if kind == np.float32 or kind == np.float16 else np.dtype(np.float64)
    a, b, c = np.broadcast_arrays(*(x.astype(np.float64) for x in arrays))
    if (a < 0).any() or (b < 0).any():
        raise InputError("a negative variance", "q, q'", "give variances of at least 0")
    limit = np.sqrt(a) * np.sqrt(b)
    if (np.abs(c) > limit * (1 + _SLACK[dtype]) + np.finfo(np.float64).tiny).any():
        raise InputError("not a covariance: t^2 exceeds q q'", "t", "give |t| of at most sqrt(q q')")
    return a, b, c, dtype
