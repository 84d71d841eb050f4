"""Exact Gaussian expectations of polynomials by rational arithmetic, at any degree."""

from __future__ import annotations

from functools import lru_cache

import sympy
from flint import fmpq, fmpq_poly

from ..symbolic.symbols import X


def polynomial_expectation(expr: sympy.Expr, power: int, derivative: int, k: int) -> sympy.Rational | None:
    """E[(f^(derivative))^power He_k] for a polynomial f with rational coefficients; None for anything else.

    Stein's lemma turns He_k into k derivatives, and E x^(2j) = (2j - 1)!!.

    Parameters
    ----------
    expr : sympy.Expr
        f, in ``X``.
    power, derivative, k : int
        At least 0.

    Examples
    --------
    >>> polynomial_expectation(X**3, 2, 0, 0), polynomial_expectation(X**3, 1, 0, 1)
    (15, 3)
    >>> polynomial_expectation(sympy.exp(X), 1, 0, 0) is None
    True
    """
    coefficients = _coefficients(expr)
    if coefficients is None:
        return None
    f = fmpq_poly(list(coefficients))
    for _ in range(derivative):
        f = f.derivative()
    f = f**power
    total, moment = fmpq(0), fmpq(1)
    # E of the k-th derivative: sum of c_n n!/(n-k)! E x^(n-k), the falling factorial carried along
    falling = fmpq(1)
    for i in range(1, k + 1):
        falling *= i
    for n in range(k, f.degree() + 1):
        if n > k:
            falling *= fmpq(n, n - k)
        if (n - k) % 2 == 0:
            if n > k:
                moment *= n - k - 1
            total += f[n] * falling * moment
    return sympy.Rational(int(total.p), int(total.q))


@lru_cache(maxsize=64)
def _coefficients(expr: sympy.Expr) -> tuple[fmpq, ...] | None:
    """Coefficients from the constant up, or None."""
    if not expr.is_polynomial(X):
        return None
    found = sympy.Poly(expr, X).all_coeffs()[::-1]
    if not all(c.is_Rational for c in found):
        return None
    return tuple(fmpq(int(c.p), int(c.q)) for c in found)
