"""Analytic pieces as sums of terms whose Gaussian moments close.

A term is c x^p exp(alpha x - gamma x^2) times error functions of affine arguments, or over (x^2 + q)^m.
Sines and cosines enter as exponentials with imaginary alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import sympy
from sympy import I, Integer

from .hermite_series import polynomial_of
from .symbols import X

_TRIGONOMETRIC = (sympy.sin, sympy.cos, sympy.sinh, sympy.cosh)
_MAX_TERMS = 4000


class NoClosedForm(Exception):
    """The expression is not a finite sum of terms whose Gaussian moments are known to close."""


@dataclass(frozen=True)
class Shape:
    """exp(alpha x - gamma x^2) * prod of erf(a x + b) over ``gates`` / (x^2 + q)^m for ``pole`` = (q, m)."""

    alpha: sympy.Expr = sympy.S.Zero
    gamma: sympy.Expr = sympy.S.Zero
    gates: tuple[tuple[sympy.Expr, sympy.Expr], ...] = ()
    pole: tuple[sympy.Expr, int] | None = None

    @property
    def is_one(self) -> bool:
        """Whether the shape is the constant 1, so that its terms are powers."""
        return self == _ONE

    def without_gate(self, i: int) -> tuple[sympy.Expr, Shape]:
        """(factor, shape) of the derivative of the i-th gate: 2a/sqrt(pi) exp(-(a x + b)^2) in its place."""
        a, b = self.gates[i]
        rest = self.gates[:i] + self.gates[i + 1 :]
        factor = 2 * a / sympy.sqrt(sympy.pi) * sympy.exp(-(b**2))
        return factor, replace(self, alpha=self.alpha - 2 * a * b, gamma=self.gamma + a**2, gates=rest)


_ONE = Shape()

#: a function: coefficients by (shape, power of x)
Terms = dict[tuple[Shape, sympy.Expr], sympy.Expr]


def terms_of(expr: sympy.Expr, x: sympy.Symbol = X) -> Terms:
    """The terms of an analytic expression in ``x``; raises :class:`NoClosedForm`.

    Examples
    --------
    >>> terms_of(3 * X**2 * sympy.exp(-X))
    {(Shape(alpha=-1, gamma=0, gates=(), pole=None), 2): 3}
    """
    total: Terms = {}
    if expr.is_polynomial(x):
        for (power,), coefficient in polynomial_of(expr, x).terms():
            if coefficient != 0:
                total[_ONE, Integer(power)] = coefficient
        return total
    expr = expr.replace(lambda e: isinstance(e, _TRIGONOMETRIC) and e.has(x), lambda e: e.rewrite(sympy.exp))
    expr = expr.replace(sympy.erfc, lambda u: 1 - sympy.erf(u))
    if _count(expr, x) > _MAX_TERMS:
        raise NoClosedForm("too many terms")
    for product in sympy.Add.make_args(sympy.expand(expr, power_exp=False)):
        coefficient, key = _term(product, x)
        total[key] = sympy.expand(total.get(key, Integer(0)) + coefficient)
    return {key: c for key, c in total.items() if c != 0}


def _count(expr: sympy.Expr, x: sympy.Symbol) -> int:
    """A bound of the number of terms after expansion."""
    if isinstance(expr, sympy.Add):
        return sum(_count(a, x) for a in expr.args)
    if isinstance(expr, sympy.Mul):
        return math.prod(_count(a, x) for a in expr.args)
    if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and expr.exp > 1:
        n, m = int(expr.exp), _count(expr.base, x)
        return math.comb(n + m - 1, n) if m > 1 else 1
    return 1


def _term(product: sympy.Expr, x: sympy.Symbol) -> tuple[sympy.Expr, tuple[Shape, sympy.Expr]]:
    coefficient, power, exponent = Integer(1), Integer(0), Integer(0)
    gates: list[tuple[sympy.Expr, sympy.Expr]] = []
    pole: tuple[sympy.Expr, int] | None = None
    for factor in sympy.Mul.make_args(product):
        if not factor.has(x):
            coefficient *= factor
            continue
        base, order = factor.as_base_exp()
        if base == x and not order.has(x):
            power += order
        elif isinstance(factor, sympy.exp):
            exponent += factor.args[0]
        elif base == sympy.E or (not base.has(x) and base.is_positive):
            exponent += order * sympy.log(base)
        elif isinstance(base, sympy.erf) and order.is_Integer and 0 < order <= 12:
            gates += [_affine(base.args[0], x)] * int(order)
        elif pole is None and order.is_Integer and order < 0:
            scale, pole = _pole(base, int(-order), x)
            coefficient /= scale
        else:
            raise NoClosedForm(f"factor {factor}")
    constant, alpha, square = _quadratic(exponent, x)
    # erf is odd: gates with a leading coefficient of one sign only, so that equal shapes are seen as equal
    for i, (a, b) in enumerate(gates):
        if a.could_extract_minus_sign():
            coefficient, gates[i] = -coefficient, (-a, -b)
    gates.sort(key=sympy.default_sort_key)
    return coefficient * sympy.exp(constant), (Shape(alpha, -square, tuple(gates), pole), power)


def _quadratic(exponent: sympy.Expr, x: sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    """Coefficients of 1, x, x^2."""
    if not exponent.is_polynomial(x) or (polynomial := sympy.Poly(exponent, x)).degree() > 2:
        raise NoClosedForm(f"exponent {exponent}")
    c = polynomial.coeff_monomial
    if c(x**2).has(I):
        raise NoClosedForm(f"exponent {exponent}")
    return c(1), c(x), c(x**2)


def _affine(argument: sympy.Expr, x: sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr]:
    constant, slope, square = _quadratic(argument, x)
    if square != 0 or not (slope.is_real and constant.is_real):
        raise NoClosedForm(f"erf of {argument}")
    return slope, constant


def _pole(base: sympy.Expr, order: int, x: sympy.Symbol) -> tuple[sympy.Expr, tuple[sympy.Expr, int]]:
    """(scale, (q, order)) with base^order = scale (x^2 + q)^order and q > 0."""
    if base.is_polynomial(x) and sympy.degree(base, x) > 2:
        # expansion has multiplied a power of a quadratic out
        scale, factors = sympy.factor_list(base, x)
        if len(factors) != 1:
            raise NoClosedForm(f"denominator {base}")
        rest, pole = _pole(factors[0][0], order * int(factors[0][1]), x)
        return rest * scale**order, pole
    constant, slope, square = _quadratic(base, x)
    if slope != 0 or square == 0 or not (constant / square).is_positive:
        raise NoClosedForm(f"denominator {base}")
    return square**order, (constant / square, order)


def add_terms(parts: Iterable[tuple[sympy.Expr, Terms]]) -> Terms:
    """A linear combination; terms that vanish are dropped."""
    total: Terms = {}
    for weight, terms in parts:
        for key, c in terms.items():
            total[key] = total.get(key, Integer(0)) + weight * c
    return {key: c for key, c in ((k, sympy.expand(v)) for k, v in total.items()) if c != 0}
