"""Closed forms of dual activations as NumPy functions that keep their accuracy where floating point tends to lose it.

Radicands are written in the discriminant q q' - t^2, which comes in accurate; the arcsine is taken as an angle; the
bivariate normal distribution function through Owen's T; products of exponentials and hyperbolic functions in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from scipy import special

from ..symbolic.dual_engine import BivariateNormal, root, tidy
from ..symbolic.dual_simplify import DELTA, GAP, ROOT, ROOTP, SIGN, in_discriminant, in_gap, products
from ..symbolic.symbols import QP, Q, T
from .arb_eval import evaluate

Array = NDArray[Any]

#: a variance below this is treated as this: closed forms divide by it, and their limits are reached long before
_LEAST_VARIANCE = 1e-60
#: thresholds beyond this are infinite for the normal distribution in float64
_FARTHEST = 40.0

_VARIABLES = {s: i for i, s in enumerate((Q, QP, T, DELTA, ROOT, ROOTP, SIGN, GAP))}


class DualFunction:
    """A closed form in q, q', t, evaluated on float64 arrays; see :func:`compile_dual`."""

    def __init__(self, expr: sympy.Expr) -> None:
        self.expr = expr
        self._tape: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self._index: dict[sympy.Basic, int] = {s: i for s, i in _VARIABLES.items()}
        self._result = self._add(_prepared(expr))

    def __call__(self, q: Array, qp: Array, t: Array, delta: Array) -> Array:
        """Values at float64 arrays of one shape; ``delta`` is q q' - t^2, accurate where it is small."""
        tiny = (q < _LEAST_VARIANCE) | (qp < _LEAST_VARIANCE)
        q, qp = np.maximum(q, _LEAST_VARIANCE), np.maximum(qp, _LEAST_VARIANCE)
        if tiny.any():
            t, delta = np.where(tiny, 0.0, t), np.where(tiny, q * qp, delta)
        delta = np.maximum(delta, 1e-200 * q * qp)
        root, root_p = np.sqrt(q), np.sqrt(qp)
        gap = delta / (root * root_p + np.abs(t))
        registers: list[Any] = [q, qp, t, delta, root, root_p, np.where(t < 0, -1.0, 1.0), gap]
        with np.errstate(all="ignore"):
            for op, sources in self._tape:
                registers.append(op(*[registers[i] for i in sources]))
        return np.array(
            np.broadcast_to(registers[self._result], np.broadcast_shapes(q.shape, qp.shape, t.shape)),
            dtype=np.float64,
        )

    @cached_property
    def size(self) -> DualFunction | None:
        """The sum of the sizes of the terms, with probabilities taken as 1; None where nothing can be amplified.

        The absolute error is about 1e-16 times this: exponentials times differences of probabilities lose digits.
        """
        if not self.expr.has(BivariateNormal, sympy.erf) or not self.expr.has(sympy.exp):
            return None
        terms = []
        for term in products(self.expr):
            bounded = term.replace(BivariateNormal, lambda *_: sympy.Integer(1))
            terms.append(sympy.Abs(bounded.replace(sympy.erf, lambda _: sympy.Integer(1))))
        return DualFunction(sympy.Add(*terms))

    def _add(self, node: sympy.Basic) -> int:
        if node in self._index:
            return self._index[node]
        op, parts = _operation(node)
        sources = tuple(self._add(p) for p in parts)
        self._tape.append((op, sources))
        self._index[node] = len(_VARIABLES) - 1 + len(self._tape)
        return self._index[node]


def compile_dual(expr: sympy.Expr) -> DualFunction:
    """A NumPy function of (q, q', t, q q' - t^2) for a closed form without free parameters.

    Examples
    --------
    >>> f = compile_dual(2 * sympy.asin(2 * T / sympy.sqrt((1 + 2 * Q) * (1 + 2 * QP))) / sympy.pi)
    >>> one = np.array([1.0])
    >>> float(f(one, one, one, 0 * one)[0])
    0.46455905439753997
    """
    return DualFunction(expr)


# The two functions that need the square root of 1 - r^2, which is formed in exact algebra first. -------------


class _Angle(sympy.Function):
    """asin(x) from x and sqrt(1 - x^2)."""

    nargs = 2


class _Bivariate(sympy.Function):
    """BivariateNormal(h, k, r) from h, k, r, (k - r h)/sqrt(1 - r^2), (h - r k)/sqrt(1 - r^2)."""

    nargs = 5


class _ExpSinh(sympy.Function):
    """exp(e) sinh(o)."""

    nargs = 2


class _ExpCosh(sympy.Function):
    """exp(e) cosh(o)."""

    nargs = 2


def _prepared(expr: sympy.Expr) -> sympy.Expr:
    expr = expr.replace(sympy.asin, lambda x: _Angle(x, root(1 - x**2)))
    expr = expr.replace(BivariateNormal, _bivariate)
    if expr.has(sympy.sinh, sympy.cosh):
        expr = sympy.Add(*(_fused(term) for term in products(expr)))
    return in_discriminant(in_gap(expr))


def _bivariate(h: sympy.Expr, k: sympy.Expr, r: sympy.Expr) -> sympy.Expr:
    sine = root(1 - r**2)
    return _Bivariate(h, k, r, tidy(k - r * h) / sine, tidy(h - r * k) / sine)


def _fused(term: sympy.Expr) -> sympy.Expr:
    rest, exponent = [], sympy.Integer(0)
    hyperbolic = None
    for factor in sympy.Mul.make_args(term):
        if isinstance(factor, sympy.exp):
            exponent += factor.args[0]
        elif hyperbolic is None and isinstance(factor, sympy.sinh | sympy.cosh):
            hyperbolic = factor
        else:
            rest.append(factor)
    if hyperbolic is None:
        return term
    fused = _ExpSinh if isinstance(hyperbolic, sympy.sinh) else _ExpCosh
    return sympy.Mul(*rest, fused(exponent, hyperbolic.args[0]))


# Operations. ---------------------------------------------------------------------------------------------------


def _operation(node: sympy.Basic) -> tuple[Callable[..., Any], Sequence[sympy.Basic]]:
    if not node.free_symbols:
        value = float(evaluate(node, 80).mid())
        return (lambda: value), ()
    if isinstance(node, sympy.Symbol):
        raise ValueError(f"no value for the parameter {node}")
    if isinstance(node, sympy.Add):
        return _sum, node.args
    if isinstance(node, sympy.Mul):
        return _product, node.args
    if isinstance(node, sympy.Pow):
        return _power(node)
    return _FUNCTIONS[type(node)], node.args


def _sum(*terms: Any) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _product(*factors: Any) -> Any:
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return total


def _power(node: sympy.Pow) -> tuple[Callable[..., Any], Sequence[sympy.Basic]]:
    base, exponent = node.args
    if exponent.is_Integer and abs(exponent) <= 4:
        n = int(exponent)
        return (lambda x: _product(*[x] * n) if n > 0 else 1 / _product(*[x] * -n)), (base,)
    if exponent.is_Rational and exponent.q == 2:
        n = int(exponent.p)
        return (lambda x: np.sqrt(x) if n == 1 else 1 / np.sqrt(x) if n == -1 else np.sqrt(x) ** n), (base,)
    if not exponent.free_symbols:
        value = float(evaluate(exponent, 80).mid())
        return (lambda x: x**value), (base,)
    return (lambda x, y: x**y), (base, exponent)


def _exp_sinh(exponent: Array, odd: Array) -> Array:
    small = np.abs(odd) < 1
    return np.asarray(
        np.where(
            small,
            np.exp(exponent) * np.sinh(np.where(small, odd, 0)),
            (np.exp(exponent + odd) - np.exp(exponent - odd)) / 2,
        )
    )


def _exp_cosh(exponent: Array, odd: Array) -> Array:
    return np.asarray((np.exp(exponent + odd) + np.exp(exponent - odd)) / 2)


def bivariate_normal(h: Array, k: Array, r: Array, u: Array, v: Array) -> Array:
    """P(V < h, V' < k) with u = (k - r h)/sqrt(1 - r^2) and v = (h - r k)/sqrt(1 - r^2), by Owen's T function.

    The differences in u and v must come in without cancellation. Absolute error of about 1e-16; at h = 0 or k = 0 the
    limits of Owen's formula are taken.

    Examples
    --------
    >>> half = np.sqrt(0.75)
    >>> float(bivariate_normal(*map(np.array, (0.0, 0.0, 0.5, 0.0, 0.0))).round(12))
    0.333333333333
    >>> float(bivariate_normal(*map(np.array, (1.0, 1.0, 0.5, 0.5 / half, 0.5 / half))).round(12))
    0.745203586847
    """
    h, k = np.clip(h, -_FARTHEST, _FARTHEST), np.clip(k, -_FARTHEST, _FARTHEST)
    with np.errstate(all="ignore"):
        # at h = 0 the ratio is +-inf, by the sign of u
        a = np.where(h == 0, np.copysign(np.inf, u), u / h)
        b = np.where(k == 0, np.copysign(np.inf, v), v / k)
    # signs, since the product of tiny thresholds underflows
    signs = np.sign(h) * np.sign(k)
    apart = (signs > 0) | ((signs == 0) & (h + k >= 0))
    value = (special.ndtr(h) + special.ndtr(k)) / 2 - special.owens_t(h, a) - special.owens_t(k, b)
    value = np.clip(value - np.where(apart, 0.0, 0.5), 0.0, 1.0)
    both = (h == 0) & (k == 0)
    return np.asarray(np.where(both, 0.25 + np.arcsin(np.clip(r, -1, 1)) / (2 * np.pi), value))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    sympy.exp: np.exp,
    sympy.erf: special.erf,
    sympy.sinh: np.sinh,
    sympy.cosh: np.cosh,
    sympy.sin: np.sin,
    sympy.cos: np.cos,
    sympy.log: np.log,
    sympy.Abs: np.abs,
    sympy.sign: np.sign,
    _Angle: np.arctan2,
    _Bivariate: bivariate_normal,
    _ExpSinh: _exp_sinh,
    _ExpCosh: _exp_cosh,
}
