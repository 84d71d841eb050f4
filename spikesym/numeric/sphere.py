"""Spherical harmonics in numbers: stable recurrences, Funk-Hecke coefficients, Gauss rules, for d from 2 to 1e9.

The recurrences are those of :mod:`spikesym.symbolic.sphere` (the tests compare them as rational numbers), written
for balls and for NumPy. Orthonormal polynomials carry the Gegenbauer index Lambda = l + (d - 2)/2 of their sector.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, ctx, fmpq, fmpz
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigvalsh_tridiagonal

Array = NDArray[np.float64]


def multiplicity(degree: int, dimension: int) -> int:
    """N(d, degree): the number of independent spherical harmonics, an exact integer; d >= 1.

    Examples
    --------
    >>> multiplicity(2, 3), multiplicity(5, 2), multiplicity(1, 1), multiplicity(2, 1)
    (5, 2, 1, 0)
    """
    if degree == 0:
        return 1
    if dimension == 1:
        return 1 if degree == 1 else 0
    if dimension == 2:
        return 2
    return (2 * degree + dimension - 2) * math.comb(degree + dimension - 3, degree) // (dimension - 2)


def multiplicity_text(number: int) -> str:
    """Decimal digits of an integer of any length (Python refuses beyond 4300 digits).

    Examples
    --------
    >>> len(multiplicity_text(10**5000))
    5001
    """
    return str(fmpz(number))


def beta_squared(k: int, index: arb) -> arb:
    """beta_k^2 of t pi_k = beta_(k+1) pi_(k+1) + beta_k pi_(k-1), as a ball; k = 1 includes Lambda = 0."""
    if k == 0:
        return arb(0)
    if k == 1:
        return 1 / (2 * (1 + index))
    return k * (k - 1 + 2 * index) / (4 * (k + index) * (k - 1 + index))


def beta_values(count: int, index: float) -> Array:
    """beta_0 ... beta_(count-1) in double precision.

    Examples
    --------
    >>> [float(beta) for beta in beta_values(3, 0.0)]
    [0.0, 0.7071067811865476, 0.5]
    """
    k = np.arange(2, max(count, 2), dtype=float)
    rest = k * (k - 1 + 2 * index) / (4 * (k + index) * (k - 1 + index))
    return np.sqrt(np.concatenate([[0.0, 1 / (2 * (1 + index))], rest]))[:count]


def gegenbauer_index(d: int, sector: int) -> arb:
    """Lambda = l + (d - 2)/2 as an exact ball."""
    return arb(fmpq(2 * sector + d - 2, 2))


def gamma_ratio(d: int, bits: int) -> arb:
    """Gamma((d+1)/2) / Gamma(d/2); a difference of log-gammas, with the bits that it cancels added first.

    Examples
    --------
    >>> print(gamma_ratio(10**9, 100).str(22, radius=False))
    22360.67976940772702104
    """
    with ctx.workprec(bits + 2 * d.bit_length() + 20):
        half = arb(fmpq(d, 2))
        ratio = ((half + arb(fmpq(1, 2))).lgamma() - half.lgamma()).exp()
    with ctx.workprec(bits):
        return +ratio


def weight_mass(d: int, bits: int) -> arb:
    """The integral B(1/2, (d-1)/2) of (1 - t^2)^((d-3)/2) over [-1, 1], the zeroth moment of Funk-Hecke.

    Examples
    --------
    >>> print(weight_mass(10**9, 100).str(19, radius=False))
    7.926654601157012979e-5
    """
    with ctx.workprec(bits + 10):
        # B(1/2, (d-1)/2) = sqrt(pi) Gamma((d-1)/2) / Gamma(d/2), and Gamma((d+1)/2) = (d-1)/2 Gamma((d-1)/2)
        result = arb.pi().sqrt() * gamma_ratio(d, bits + 10) / arb(fmpq(d - 1, 2))
    with ctx.workprec(bits):
        return +result


def relu_coefficients(d: int, count: int, bits: int) -> list[arb]:
    """Funk-Hecke coefficients a_0, a_2, ..., a_(2 count - 2) of ReLU, E[max(t, 0) P_ell(t)], as balls.

    The odd ones are a_1 = 1/(2d) and zero. Those of |t| are twice the even ones.

    Examples
    --------
    >>> a = relu_coefficients(3, 2, 60)
    >>> print(a[0].str(5, radius=False), a[1].str(5, radius=False))
    0.25000 0.062500
    """
    with ctx.workprec(bits):
        current = 1 / (2 * arb.pi().sqrt() * gamma_ratio(d, bits))
        result = []
        for k in range(count):
            result.append(current)
            current = current * fmpq(1 - 2 * k, 2 * k + d + 1)
        return result


def relu_coefficient(degree: int, d: int) -> float:
    """a_degree of ReLU in double precision, relative error below 1e-15 for d up to 1e9.

    Examples
    --------
    >>> relu_coefficient(1, 100), relu_coefficient(3, 100)
    (0.005, 0.0)
    """
    if degree % 2:
        return 0.5 / d if degree == 1 else 0.0
    return float(relu_coefficients(d, degree // 2 + 1, 80)[-1])


def moment(order: int, d: int) -> fmpq:
    """E t^order over the uniform sphere of R^d, exactly.

    Examples
    --------
    >>> moment(2, 5), moment(4, 3), moment(3, 5)
    (1/5, 1/5, 0)
    """
    if order % 2:
        return fmpq(0)
    result = fmpq(1)
    for j in range(order // 2):
        result *= fmpq(2 * j + 1, 2 * j + d)
    return result


def legendre(degree: int, t: ArrayLike, d: int) -> Array:
    """P_degree(t; d), value 1 at t = 1, for real t in [-1, 1]; shape of t. No overflow at any d or degree.

    For d = 2 it is the Chebyshev polynomial, for d = 3 Legendre's.

    Examples
    --------
    >>> round(float(legendre(3, 0.3, 2)), 15)
    -0.792
    """
    x = np.asarray(t, dtype=float)
    previous, current = np.zeros_like(x), np.ones_like(x)
    for k in range(degree):
        if k == 0:
            previous, current = current, x.copy()  # (d - 2)/(d - 2) t, also at d = 2
        else:
            previous, current = current, ((2 * k + d - 2) * x * current - k * previous) / (k + d - 2)
    return current


def gegenbauer(degree: int, index: float, t: float) -> float:
    """C_degree^(index)(t) for index >= 0 and t in [-1, 1], accurate at high degree and index.

    Examples
    --------
    >>> gegenbauer(0, 0.0, 0.3), gegenbauer(2, 1.0, 0.0)
    (1.0, -1.0)
    >>> abs(gegenbauer(200, 49.0, 0.3) / 1.146482702367925099e40 - 1) < 1e-12
    True
    """
    if degree == 0:
        return 1.0
    # the plain recurrence is stable for |t| <= 1; only the size needs care, so the power of two is kept apart
    previous, current, exponent = 1.0, 2 * index * t, 0
    for k in range(1, degree):
        previous, current = (
            current,
            (2 * (k + index) * t * current - (k + 2 * index - 1) * previous) / (k + 1),
        )
        shift = math.frexp(max(abs(previous), abs(current)))[1]
        if abs(shift) > 200:
            previous, current = math.ldexp(previous, -shift), math.ldexp(current, -shift)
            exponent += shift
    return math.ldexp(current, exponent)


def orthonormal(count: int, t: ArrayLike, index: float) -> tuple[Array, NDArray[np.int64]]:
    """Orthonormal polynomials pi_0 ... pi_(count-1) of this index at t, with a power of two kept apart.

    Returns ``(mantissa, exponent)`` of shape (count, *t.shape): pi_r = mantissa * 2**exponent. At t = 1 and d = 1e9
    they pass 1e700, which no double holds; ``numpy.ldexp(mantissa, exponent)`` is right wherever it fits.

    Examples
    --------
    >>> mantissa, exponent = orthonormal(201, 1.0, (10**9 - 2) / 2)
    >>> round(float(np.log10(mantissa[200]) + exponent[200] * np.log10(2)), 6)
    712.55156
    """
    x = np.asarray(t, dtype=float)
    beta = beta_values(count + 1, index)
    mantissa = np.empty((count, *x.shape))
    exponents = np.zeros((count, *x.shape), dtype=np.int64)
    previous, current = np.zeros_like(x), np.ones_like(x)
    scale = np.zeros(x.shape, dtype=np.int64)
    for r in range(count):
        mantissa[r], exponents[r] = current, scale
        following = (x * current - beta[r] * previous) / beta[r + 1]
        previous, current = current, following
        _, shift = np.frexp(np.maximum(np.abs(previous), np.abs(current)))
        shift = np.where(np.abs(shift) > 300, shift, 0).astype(np.int64)
        if np.any(shift):
            previous, current = np.ldexp(previous, -shift), np.ldexp(current, -shift)
            scale = scale + shift
    return mantissa, exponents


def gauss_rule(count: int, index: float) -> tuple[Array, Array]:
    """Nodes and weights of the Gauss rule for the probability density proportional to (1 - t^2)^(index - 1/2).

    Eigenvalues of the Jacobi matrix for the nodes, 1 / sum_k pi_k^2 for the weights: right where the usual
    library call returns NaN (index of hundreds and more).

    Examples
    --------
    >>> t, w = gauss_rule(40, (10**9 - 2) / 2)
    >>> bool(abs(w.sum() - 1) < 1e-12), bool(abs((w * t**2).sum() * 10**9 - 1) < 1e-12)
    (True, True)
    """
    beta = beta_values(count, index)
    nodes = eigvalsh_tridiagonal(np.zeros(count), beta[1:]) if count > 1 else np.zeros(1)
    nodes = (nodes - nodes[::-1]) / 2
    mantissa, exponent = orthonormal(count, nodes, index)
    with np.errstate(over="ignore"):
        size = np.sum(np.ldexp(mantissa, exponent.astype(np.int32)) ** 2, axis=0)
    return nodes, 1 / size


def gauss_rule_balls(count: int, index: arb, bits: int) -> tuple[list[arb], list[arb]]:
    """The same rule to ``bits`` bits by Newton's method; midpoints, not enclosures.

    Examples
    --------
    >>> t, w = gauss_rule_balls(5, arb(0.5), 200)
    >>> with ctx.workprec(200):
    ...     print(sum(a * b**8 for a, b in zip(w, t, strict=True)).str(30, radius=False))
    0.111111111111111111111111111111
    """
    start, _ = gauss_rule(count, float(index))
    with ctx.workprec(bits + 30):
        beta = [beta_squared(k, index).sqrt().mid() for k in range(count + 1)]
        nodes, weights = [], []
        for guess in start:
            t = arb(float(guess))
            for _ in range(bits.bit_length()):
                value, slope, _ = _value_and_slope(t, beta)
                step = (value / slope).mid()
                t = (t - step).mid()
                if abs(step) < arb(2) ** (-bits // 2 - 8):
                    break  # the next step, quadratic, is below the precision
            value, slope, size = _value_and_slope(t, beta)
            nodes.append((t - value / slope).mid())
            weights.append((1 / size).mid())
        return nodes, weights


def _value_and_slope(t: arb, beta: list[arb]) -> tuple[arb, arb, arb]:
    """pi_n, its derivative, and the sum of the squares of pi_0 ... pi_(n-1), n = len(beta) - 1, as midpoints."""
    previous, current = arb(0), arb(1)
    previous_slope, slope = arb(0), arb(0)
    size = arb(0)
    for k in range(len(beta) - 1):
        size = (size + current * current).mid()
        following = ((t * current - beta[k] * previous) / beta[k + 1]).mid()
        following_slope = ((current + t * slope - beta[k] * previous_slope) / beta[k + 1]).mid()
        previous, current = current, following
        previous_slope, slope = slope, following_slope
    return current, slope, size
