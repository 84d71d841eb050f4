"""E P(rho)^2 and E Q(rho)^2 of a link, certified at any dimension: closed, from closed P and Q, or from the link alone.

P(rho) = E[s g(s) Phi(kappa s)], Q(rho) = E[g(s) phi(kappa s)], kappa = rho/sqrt(1 - rho^2): what the exact A and B of
activations p z + q|z| need of the link.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy
from flint import acb, arb, ctx

from ..symbolic.angle import PHI
from ..symbolic.covariance_links import LinkForms, link_forms
from ..symbolic.symbols import C1, D, X
from .arb_eval import compile, evaluate
from .direction_means import PowerSeries, mean_square_by_series, mean_square_by_trapezoid, series_suffices
from .quadrature import Integrand, PlainPiece, end_ball, function_integrand, hermite_moments
from .value import Value

_COUNTS = (32, 64, 128, 256)


@dataclass(frozen=True)
class LinkMeans:
    """E P^2 and E Q^2 with the forms of P and Q behind them.

    ``forms`` is None where P and Q have no closed form; ``method`` says how the numbers were made.
    """

    EP2: Value
    EQ2: Value
    forms: LinkForms | None
    method: str


def link_means(data: Any, d: int | None) -> LinkMeans | None:
    """E P^2 and E Q^2 of a link.

    Parameters
    ----------
    data : GaussianData
        Of the link, with an expression (None is returned for a Python callable without parity).
    d : int or None
        Dimension; without it only the closed forms are given, in the symbol d.

    Examples
    --------
    >>> from spikesym.gaussian import gaussian_data
    >>> means = link_means(gaussian_data("exp(-abs(s))", "link"), 5)
    >>> means.method, means.EQ2.text(12)
    ('trapezoidal rule along the direction', '0.0382836553661')
    """
    function = data.function
    forms = link_forms(function.expr) if function.expr is not None else None
    if forms is None and data.parity == "odd":
        forms = LinkForms("odd", C1 / 2, sympy.Integer(0), C1, C1**2 / 4, sympy.Integer(0))
    if forms is not None and forms.EP2 is not None and forms.EQ2 is not None:
        values = [_closed(e, d, data) for e in (forms.EP2, forms.EQ2)]
        return LinkMeans(values[0], values[1], forms, "closed form")
    if function.expr is None or function.expr.free_symbols - {X}:
        return None
    if d is None:
        empty = Value(method="needs d")
        return LinkMeans(empty, empty, forms, "needs d")
    computed = _DirectionMeans(data, forms, d)
    method = "trapezoidal rule along the direction, P and Q in closed form" if forms else computed.method()
    return LinkMeans(
        Value(encloser=computed.p_squared, method=method, exact=forms.EP2 if forms else None),
        Value(encloser=computed.q_squared, method=method, exact=forms.EQ2 if forms else None),
        forms,
        method,
    )


def _closed(expr: sympy.Expr, d: int | None, data: Any) -> Value:
    """A closed form in d (and c_1, for an odd link), evaluated without substituting into gamma functions."""
    if d is None:
        return Value(exact=expr)
    c1 = data.coefficient(1) if expr.has(C1) else None

    def enclose(bits: int) -> arb:
        values = {D: d} if c1 is None else {D: d, C1: c1.ball}
        return evaluate(expr, bits, values)

    return Value(exact=expr, encloser=enclose, certified=c1 is None or c1.certified)


class _DirectionMeans:
    """The two means by series or by the trapezoidal rule."""

    def __init__(self, data: Any, forms: LinkForms | None, d: int) -> None:
        self.data, self.d = data, d
        self.absolute: dict[int, arb] = {}
        expr = data.function.expr
        #: of a polynomial link: its series in rho end there
        self.degree = sympy.degree(expr, X) if expr.is_polynomial(X) and not expr.is_number else None
        self.compiled: dict[str, Callable[..., arb]] = {}
        if forms is not None:
            self.compiled = {
                "P": compile(forms.P - forms.c1 / 2, (PHI,), real=True),
                "Q": compile(forms.Q, (PHI,), real=True),
            }

    def method(self) -> str:
        """How a number of ordinary precision is made."""
        if self.degree is not None:
            return "finite Hermite series in rho"
        return "Hermite series in rho" if self._count(110) else "trapezoidal rule along the direction"

    def _count(self, bits: int) -> int | None:
        for count in _COUNTS:
            if series_suffices(count, count, self.d, bits):
                return count
        return None

    def p_squared(self, bits: int) -> arb:
        c1 = self.data.coefficient(1).ball(bits)
        return c1 * c1 / 4 + self._mean("P", bits)

    def q_squared(self, bits: int) -> arb:
        return self._mean("Q", bits)

    def _mean(self, which: str, bits: int) -> arb:
        count = None if self.compiled else self._count(bits)
        if self.degree is not None:
            count = int(self.degree) + 3
        if count is not None:
            series = self._p_series(count, bits) if which == "P" else self._q_series(count, bits)
            return mean_square_by_series(series, self.d, bits)
        moment = (self.data.second_moment_x2 if which == "P" else self.data.second_moment).ball(bits)

        def bound2(a: float) -> arb:
            if which == "P":
                # sum |t_k| <= sqrt(E[(s g)^2] E[(sign/2)^2])
                return moment / 4
            # |Q|^2 <= E[g^2]/(2 pi) (cosh 2x cos 2a)^(-1/2) at u = x + i a, by Cauchy-Schwarz against the density
            return moment / (2 * arb.pi()) / (2 * arb(a)).cos().sqrt()

        return mean_square_by_trapezoid(lambda u, b: self._node(which, u, b), bound2, self.d, bits)

    def _node(self, which: str, u: arb, bits: int) -> arb:
        if self.compiled:
            return self.compiled[which](u.sinh().atan())
        old = ctx.prec
        ctx.prec = bits + 20
        try:
            return self._p_node(u, bits) if which == "P" else self._q_node(u, bits)
        finally:
            ctx.prec = old

    def _q_node(self, u: arb, bits: int) -> arb:
        """Q = c/sqrt(2 pi) E[g(c r)] with c = cos(phi) = 1/cosh(u)."""
        c, radius, outside = 1 / u.cosh(), *_cut(bits)
        inner = self._integral(c, radius, lambda r: (-r * r / 2).exp(), bits)
        # beyond: |int g phi(kappa s) phi(s)| <= sqrt(E g^2 c erfc(R/sqrt 2)/(2 pi)), by Cauchy-Schwarz
        rest = _root(self.data.second_moment.ball(bits) * c * outside / (2 * arb.pi()))
        return c * inner / (2 * arb.pi()) + arb(0, rest)

    def _p_node(self, u: arb, bits: int) -> arb:
        """P - c_1/2 = E[|s| g]/2 - E[|s| g erfc(kappa |s|/sqrt 2)]/2, the second part on the scale 1/kappa."""
        if u == 0:
            return arb(0)
        kappa, radius, outside = u.sinh(), *_cut(bits)
        scale = 1 / (1 + kappa * kappa).sqrt()
        # s = scale r: erfc(kappa |s|/sqrt 2) phi(s) has the Gaussian decay exp(-r^2/2) in r
        ratio, width = kappa * scale / arb(2).sqrt(), scale * scale / 2

        def weight(r: acb) -> acb:
            side = r if r.real > 0 else -r
            return side * (ratio * side).erfc() * (-width * r * r).exp()

        inner = self._integral(scale, radius, weight, bits) * scale * scale / (2 * arb.pi()).sqrt()
        # beyond: erfc(x) <= exp(-x^2), so the rest is at most sqrt(E g^2 s^2) times the root of a Gaussian tail
        rest = _root(self.data.second_moment_x2.ball(bits)) * _root(outside)
        return (self._absolute(bits) - inner) / 2 + arb(0, rest.upper())

    def _absolute(self, bits: int) -> arb:
        """E[|s| g(s)]."""
        if bits not in self.absolute:
            self.absolute[bits] = hermite_moments(_absolute_integrand(self.data.function), 1, bits + 10)[0]
        return self.absolute[bits]

    def _integral(self, scale: arb, radius: float, weight: Callable[[acb], acb], bits: int) -> arb:
        """Integral of g(scale r) weight(r) over |r| <= radius, piece by piece, split at 0."""
        total = acb(0)
        for piece in self.data.function.pieces(float((scale * radius).upper()) + 1e-9):
            g = compile(piece.expr, (X,))
            ends = [
                (end_ball(e, x) / scale).max(arb(-radius)).min(arb(radius))
                for e, x in ((piece.lower, -1e9), (piece.upper, 1e9))
            ]
            cuts = [ends[0], arb(0), ends[1]] if ends[0] < 0 < ends[1] else ends
            for low, high in pairwise(cuts):
                if low < high:
                    total += acb.integral(
                        lambda r, analytic, g=g: g(r * scale, analytic=analytic) * weight(r),
                        acb(low), acb(high), abs_tol=arb(2) ** (-bits), rel_tol=arb(2) ** (-bits),
                    )  # fmt: skip
        return total.real

    def _p_series(self, count: int, bits: int) -> PowerSeries:
        """P - c_1/2 = sum over odd k of E[s g He_k] E[He_k sign/2] rho^k/k!, with its Cauchy-Schwarz rest."""
        c = self._link_coefficients(count + 1, bits + 20)
        terms, in_link, in_sign = [arb(0)] * count, self.data.second_moment_x2.ball(bits), arb(1) / 4
        for k in range(count):
            e = c[k + 1] + (k * c[k - 1] if k else 0)
            in_link -= e * e / math.factorial(k)
            if k % 2:
                sign = _he_at_zero(k - 1) / (2 * arb.pi()).sqrt()
                in_sign -= sign * sign / math.factorial(k)
                terms[k] = e * sign / math.factorial(k)
        rest = arb(0) if self.degree is not None else _root(in_link) * _root(in_sign)
        return PowerSeries(terms, rest, count)

    def _q_series(self, count: int, bits: int) -> PowerSeries:
        """Q/sqrt(1 - rho^2) = sum over even k of c_k phi(0) He_k(0) rho^k/k!; He_k(0)^2 <= k! bounds the rest."""
        c = self._link_coefficients(count, bits + 20)
        density = 1 / (2 * arb.pi()).sqrt()
        terms, in_link = [arb(0)] * count, self.data.second_moment.ball(bits)
        for k in range(count):
            in_link -= c[k] * c[k] / math.factorial(k)
            if k % 2 == 0:
                terms[k] = c[k] * density * _he_at_zero(k) / math.factorial(k)
        # sqrt(1 - rho^2) |rest| <= sqrt(E g^2 left) phi(0) |rho|^count
        rest = arb(0) if self.degree is not None else _root(in_link) * density
        return PowerSeries(terms, rest, count, companion=True)

    def _link_coefficients(self, count: int, bits: int) -> tuple[arb, ...]:
        """c_0, c_1, ...: exact for a polynomial, whose high degrees a quadrature would take minutes for."""
        if self.degree is None:
            return _coefficients(self.data.function, count, bits)
        return tuple(
            self.data.coefficient(k).ball(bits) if k <= self.degree else arb(0) for k in range(count)
        )


def _he_at_zero(k: int) -> int:
    """He_k(0) for even k: (-1)^(k/2) (k-1)!!."""
    value = 1
    for i in range(1, k, 2):
        value *= -i
    return value


def _root(ball: arb) -> arb:
    """Upper bound of the square root of a number that is not negative, whatever its ball says."""
    upper = ball.upper()
    return upper.sqrt().upper() if upper > 0 else arb(0)


def _cut(bits: int) -> tuple[float, arb]:
    """A radius R with erfc(R/sqrt 2) below 2**(-2 bits), and that number."""
    radius = math.ceil(math.sqrt(4 * bits * math.log(2)) * 8) / 8 + 1.0
    return radius, (arb(radius) / arb(2).sqrt()).erfc()


def _absolute_integrand(function: Any) -> Integrand:
    """|s| g(s), with a break point at zero."""
    whole = function_integrand(function, lambda e: e)

    def pieces(radius: float) -> list[PlainPiece]:
        found = []
        for piece in whole.pieces(radius):
            below, above = end_ball(piece.lower, -1e9) < 0, end_ball(piece.upper, 1e9) > 0
            if below:
                found.append(
                    PlainPiece(piece.lower, sympy.Integer(0) if above else piece.upper, -X * piece.expr)
                )
            if above:
                found.append(
                    PlainPiece(sympy.Integer(0) if below else piece.lower, piece.upper, X * piece.expr)
                )
        return found

    return Integrand(pieces, -X * whole.left, X * whole.right, whole.start)


@lru_cache(maxsize=64)
def _coefficients(function: Any, count: int, bits: int) -> tuple[arb, ...]:
    return tuple(hermite_moments(function_integrand(function, lambda e: e), count, bits))
