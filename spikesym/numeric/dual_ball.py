"""Certified dual activations: closed forms in Arb, Hermite series with a proved bound of the rest.

The series in the correlation rho of U and U' is, for derivatives of orders i and j too,

    E[f^(i)(U) f^(j)(U')] = q^(-i/2) q'^(-j/2) sum_k rho^k sqrt((k+i)! (k+j)!)/k! m_{k+i}(q) m_{k+j}(q'),

with m_k(q) = E[f(sqrt(q) z) He_k(z)]/sqrt(k!). By Cauchy-Schwarz and Parseval the terms from K on are at most
max_{k >= K} |rho|^k sqrt((k+i)! (k+j)!)/k! times sqrt(R_{K+i}(q) R_{K+j}(q')), R_K = E f^2 - sum_{k<K} m_k^2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy
from flint import acb, arb, ctx, fmpq

from ..errors import CertificationError
from ..symbolic.symbols import QP, Q, T, X
from . import arb_functions
from .arb_eval import evaluate
from .quadrature import function_integrand, hermite_moments

if TYPE_CHECKING:
    from ..symbolic.functions import ScalarFunction

#: an exact number: an integer, a fraction, a float (read as the dyadic it is) or a SymPy constant
Exact = Any

_COUNTS = (24, 48, 96, 192, 384, 768)


def exact(value: Exact) -> sympy.Expr:
    """The SymPy number that a value stands for.

    Examples
    --------
    >>> exact(0.5), exact(Fraction(1, 3))
    (1/2, 1/3)
    """
    if isinstance(value, sympy.Expr):
        return value
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    if isinstance(value, int):
        return sympy.Integer(value)
    return sympy.Rational(Fraction(float(value)))


def formula_ball(expr: sympy.Expr, q: Exact, qp: Exact, t: Exact, bits: int) -> arb:
    """A closed form in q, q', t at exact numbers inside its domain."""
    return evaluate(expr, bits, {Q: exact(q), QP: exact(qp), T: exact(t)})


# The bivariate normal distribution function. --------------------------------------------------------------------


def bivariate_normal_ball(h: arb, k: arb, r: arb) -> arb:
    """P(V < h, V' < k) at correlation r, by one of two integrals that suit r.

    Examples
    --------
    >>> print(bivariate_normal_ball(arb(1), arb(1), arb(0.5)).str(12, radius=False))
    0.745203586847
    """
    if abs(r) < 0.95:
        return _normal(h) * _normal(k) + _arc_integral(h, k, r)
    sine = (1 - r * r).sqrt()
    if (h > 0 or h < 0) and (k > 0 or k < 0) and sine > 0:
        half = arb(0) if (h > 0) == (k > 0) else arb(0.5)
        u, v = (k - r * h) / (sine * h), (h - r * k) / (sine * k)
        return (_normal(h) + _normal(k)) / 2 - _owen(h, u) - _owen(k, v) - half
    return _normal(h) * _normal(k) + _arc_integral(h, k, r)


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2


def _arc_integral(h: arb, k: arb, r: arb) -> arb:
    """The integral of the density in the correlation, in the angle asin r."""
    square, product = acb(h * h + k * k) / 2, acb(h * k)

    def integrand(a: acb, analytic: bool) -> acb:
        return ((product * a.sin() - square) / a.cos() ** 2).exp()

    return acb.integral(integrand, acb(0), acb(r.asin())).real / (2 * arb.pi())


def _owen(h: arb, a: arb) -> arb:
    """Owen's T function; the interval of integration is kept within [0, 1]."""
    if not (a > 0 or a < 0):
        a = arb(0).union(a) if a.is_finite() else arb.nan()
        return arb(0, (abs(a) / (2 * arb.pi())).upper()) if a.is_finite() else a
    if a < 0:
        return -_owen(h, -a)
    if a > 1:
        # T(h, a) + T(a h, 1/a) = (Phi(h) + Phi(a h))/2 - Phi(h) Phi(a h), for a > 0
        p, p_a = _normal(h), _normal(a * h)
        return (p + p_a) / 2 - p * p_a - _owen_small(a * h, 1 / a)
    return _owen_small(h, a)


def _owen_small(h: arb, a: arb) -> arb:
    square = acb(h * h) / 2

    def integrand(x: acb, analytic: bool) -> acb:
        weight = 1 + x * x
        return (-square * weight).exp() / weight

    return acb.integral(integrand, acb(0), acb(a)).real / (2 * arb.pi())


arb_functions.REAL[("BivariateNormal", 3)] = lambda analytic, h, k, r: bivariate_normal_ball(h, k, r)


# Hermite series. ----------------------------------------------------------------------------------------------


@dataclass
class CertifiedSeries:
    """E[f^(i)(U) h^(j)(U')] by the series, for functions with an expression.

    Derivatives are shifts of the series of f and h, so that kinks and jumps need no care.
    """

    first: ScalarFunction
    i: int
    second: ScalarFunction
    j: int
    terms: int = field(default=0, init=False)

    def ball(self, q: Exact, qp: Exact, t: Exact, bits: int) -> arb:
        """A ball; terms are added until the bound of the rest is 2**-bits of the scale sqrt(E f^2 E h^2).

        Where the coefficients fall too slowly for that, the ball is as wide as the bound reached.
        """
        q, qp, t = exact(q), exact(qp), exact(t)
        old = ctx.prec
        ctx.prec = bits + 32
        try:
            return self._ball(q, qp, t, bits)
        finally:
            ctx.prec = old

    def _ball(self, q: sympy.Expr, qp: sympy.Expr, t: sympy.Expr, bits: int) -> arb:
        variance, variance_p, covariance = (evaluate(v, ctx.prec) for v in (q, qp, t))
        rho = covariance / (variance * variance_p).sqrt()
        scale = variance ** (arb(-self.i) / 2) * variance_p ** (arb(-self.j) / 2)
        best: arb | None = None
        for count in _COUNTS:
            if count <= max(self.i, self.j):
                continue
            m, rest = orthonormal_coefficients(self.first, q, count, bits)
            m_p, rest_p = (
                (m, rest)
                if self._symmetric(q, qp)
                else orthonormal_coefficients(self.second, qp, count, bits)
            )
            total, terms = arb(0), count - max(self.i, self.j)
            for k in range(terms):
                total += rho**k * _weight(k, self.i, self.j) * m[k + self.i] * m_p[k + self.j]
            bound = _largest_weight(abs(rho), terms, self.i, self.j)
            # the rests are counted from the degrees where the sum stopped, which are at most `count`
            tail = (
                bound * (_rest_from(m, rest, terms + self.i) * _rest_from(m_p, rest_p, terms + self.j)).sqrt()
            )
            result = (total + arb(0, tail.abs_upper())) * scale
            if result.is_finite() and (best is None or result.rad() < best.rad()):
                best, self.terms = result, terms
            size = (_rest_from(m, rest, 0) * _rest_from(m_p, rest_p, 0)).sqrt()
            if tail < size * arb(2) ** (-bits):
                break
        if best is None:
            raise CertificationError(
                "the Hermite series of the dual activation has no bound here; lower |t|/sqrt(q q')"
            )
        return best

    def _symmetric(self, q: sympy.Expr, qp: sympy.Expr) -> bool:
        return q == qp and self.first.expr == self.second.expr


def orthonormal_coefficients(
    function: ScalarFunction, q: sympy.Expr, count: int, bits: int
) -> tuple[list[arb], arb]:
    """m_0, ..., m_{count-1} of z -> f(sqrt(q) z), and a ball for E f^2 - sum m_k^2 (at least zero)."""
    key = (function.expr, q, count, bits)
    if key not in _CACHE:
        from ..symbolic.functions import make_function

        scaled = make_function(function.symbolic().subs(X, sympy.sqrt(q) * X), "activation")
        raw = hermite_moments(function_integrand(scaled, lambda e: e), count, bits)
        square = hermite_moments(function_integrand(scaled, lambda e: e**2), 1, bits)[0]
        factorial, m = arb(1), []
        for k, value in enumerate(raw):
            factorial *= max(k, 1)
            m.append(value / factorial.sqrt())
        rest = square
        for value in m:
            rest -= value * value
        if len(_CACHE) > 256:
            _CACHE.clear()
        _CACHE[key] = (m, rest.abs_upper().max(arb(0)).union(arb(0)))
    return _CACHE[key]


_CACHE: dict[tuple[Any, ...], tuple[list[arb], arb]] = {}


def _rest_from(m: list[arb], rest: arb, start: int) -> arb:
    """An upper bound of sum_{k >= start} m_k^2."""
    total = rest.abs_upper()
    for value in m[start:]:
        total += (value * value).abs_upper()
    return total.abs_upper()


def _weight(k: int, i: int, j: int) -> arb:
    """sqrt((k+i)! (k+j)!)/k!."""
    return (arb(k + 1).rising(i) * arb(k + 1).rising(j)).sqrt()


def _largest_weight(rho: arb, start: int, i: int, j: int) -> arb:
    """An upper bound of rho^k sqrt((k+i)! (k+j)!)/k! over k >= start; infinite where the weight grows for ever.

    Successive ratios rho sqrt((1 + i/(k+1)) (1 + j/(k+1))) fall with k: once below one, the maximum is behind; while
    above one, a stride of n steps gains at most the n-th power of the first ratio.
    """
    rho = rho.abs_upper().min(arb(1))
    best, k = arb(0), start
    while k < start + 1_000_000:
        weight = rho**k * _weight(k, i, j)
        best = best.max(weight)
        ratio = rho * ((1 + arb(fmpq(i, k + 1))) * (1 + arb(fmpq(j, k + 1)))).sqrt()
        if ratio <= 1:
            return best.abs_upper()
        if rho >= 1:
            break
        stride = 1 + k // 50
        best = best.max(weight * ratio**stride)
        k += stride
    return arb("inf")
