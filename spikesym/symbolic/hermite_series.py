"""Hermite polynomials and series in floats, by recurrence in the orthonormal basis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from .symbols import X

#: between these degrees polynomials may be evaluated as Hermite series, otherwise as written
MIN_DEGREE, MAX_DEGREE = 6, 150
_PROBES = np.array([0.3, 0.9, 1.7, 2.8, 4.1])


def orthonormal_hermite(k: int, x: Any) -> Any:
    """he_k(x)/sqrt(k!) by the three-term recurrence, for arrays of any shape and float type.

    Examples
    --------
    >>> print(f"{orthonormal_hermite(304, 1.0):.13f}")
    0.0461343833966
    """
    previous, current = 0.0, np.ones_like(x)
    for j in range(k):
        previous, current = current, (x * current - math.sqrt(j) * previous) / math.sqrt(j + 1)
    return current


def polynomial_of(expr: sympy.Expr, x: sympy.Symbol = X) -> sympy.Poly:
    """The polynomial that an expression in ``x`` is, by arithmetic of polynomials instead of expanding.

    Examples
    --------
    >>> polynomial_of((X + 1)**500 - (X + 1)**499 * X).degree()
    499
    """
    if isinstance(expr, sympy.Add):
        terms = [polynomial_of(a, x) for a in expr.args]
        return sum(terms[1:], terms[0])
    if isinstance(expr, sympy.Mul):
        return math.prod((polynomial_of(a, x) for a in expr.args), start=sympy.Poly(1, x))
    if isinstance(expr, sympy.Pow) and expr.has(x):
        return polynomial_of(expr.base, x) ** int(expr.exp)
    return sympy.Poly(expr, x)


def hermite_coefficients(polynomial: sympy.Poly) -> list[sympy.Expr]:
    """c_k with sum_k c_k He_k(x) = polynomial, exactly; synthetic conversion by x He_k = He_{k+1} + k He_{k-1}.

    Examples
    --------
    >>> hermite_coefficients(sympy.Poly(X**4, X))
    [3, 0, 6, 0, 1]
    """
    series: list[sympy.Expr] = []
    for a in polynomial.all_coeffs():
        shifted = [sympy.Integer(0), *series]
        for k in range(1, len(series)):
            shifted[k - 1] += k * series[k]
        shifted[0] += a
        series = shifted
    return series


def well_conditioned_series(expr: sympy.Expr) -> Callable[[Any], Any] | None:
    """The polynomial as an orthonormal Hermite series, where that loses fewer digits than its monomials."""
    polynomial = polynomial_of(expr)
    if not all(c.is_Rational for c in polynomial.all_coeffs()):
        return None
    try:
        monomials = [float(c) for c in reversed(polynomial.all_coeffs())]
        series = [
            float(c * sympy.sqrt(sympy.factorial(k)).evalf(30))
            for k, c in enumerate(hermite_coefficients(polynomial))
        ]
    except OverflowError:
        return None
    if not (np.isfinite(series).all() and np.isfinite(monomials).all()):
        return None
    size_series = np.array(_sum_series(np.abs(series), _PROBES, absolute=True))
    size_monomials = np.polyval(np.abs(monomials[::-1]), _PROBES)
    if not np.log(size_series / size_monomials).mean() < -1.0:
        return None
    return lambda x: _sum_series(series, x)


def _sum_series(coefficients: Any, x: Any, absolute: bool = False) -> Any:
    previous: Any = 0.0
    current = np.ones_like(x)
    total = coefficients[0] * current
    for j in range(len(coefficients) - 1):
        previous, current = current, (x * current - math.sqrt(j) * previous) / math.sqrt(j + 1)
        total = total + coefficients[j + 1] * (np.abs(current) if absolute else current)
    return total
