"""Certified Gaussian expectations: E[F(x) He_k(x)] for x ~ N(0, 1) and all k < count at once.

F is analytic on pieces. Each piece is cut into panels with a proved Gauss–Legendre error; a singular
endpoint is approached geometrically in its own coordinate and the last gap is bounded; the tails are
bounded by the growth of F. Every error is in the radius of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb, ctx

from ..errors import CertificationError
from ..symbolic.symbols import X
from .arb_eval import compile
from .gauss_legendre import Chart, MehlerBound, add_panel, choose_rule, log_upper, mehler_bound
from .integrand import (
    Integrand,
    PieceLike,
    PlainPiece,
    end_ball,
    function_integrand,
    is_regular,
    point_order,
    tail_growth,
)
from .orders import Order, ball_of

__all__ = ["Integrand", "PlainPiece", "end_ball", "function_integrand", "hermite_moments"]

_PANEL = 2.0
_MOST_PANELS = 6000
_FARTHEST = 4000.0
_PROBES = (-5.1, -2.9, -1.7, -0.6, 0.4, 1.3, 2.7, 4.9)
#: below this distance from a point where the integrand is not analytic, bisection gives up
_FINEST = 2.0**-80


def hermite_moments(integrand: Integrand, count: int, bits: int) -> list[arb]:
    """Balls for E[F He_k], k = 0, ..., count - 1, with radius about 2**-bits sqrt(k!) relative to the size of F.

    Raises :class:`~spikesym.errors.CertificationError` when a tail or a singular point cannot be bounded.

    Examples
    --------
    >>> from sympy import tanh
    >>> mean, slope = hermite_moments(Integrand.of_expression(tanh(X)), 2, 80)
    >>> print(slope.str(20, radius=False))
    0.60570550960215882558
    """
    old = ctx.prec
    # recurrences of He_k in ball arithmetic lose up to sqrt(k) |x| - x^2/2 <= k/2 nats
    ctx.prec = working = bits + math.ceil(0.75 * count) + 40
    try:
        log_tolerance = _log_scale(integrand) - bits * math.log(2)
        totals = [arb(0)] * count
        errors = _Errors(count)
        radius = _cut_tails(integrand, count, log_tolerance, errors)
        panels = _MOST_PANELS
        for piece in integrand.pieces(radius):
            panels = _add_piece(piece, radius, totals, errors, log_tolerance - math.log(64), working, panels)
        return [total + arb(0, errors.of_degree(k)) for k, total in enumerate(totals)]
    finally:
        ctx.prec = old


class _Errors:
    """Error bounds for orthonormal degrees, collected; given back for monic ones."""

    def __init__(self, count: int) -> None:
        self.bounds = [arb(0)] * count

    def add(self, bound: Callable[[int], arb]) -> None:
        self.bounds = [(total + bound(k)).upper() for k, total in enumerate(self.bounds)]

    def of_degree(self, k: int) -> arb:
        return (self.bounds[k] * arb(math.factorial(k)).sqrt()).upper()


@dataclass(frozen=True)
class _Gap:
    """What is left out of the integral (a tail, or the gap at a singular point), by orthonormal degree."""

    log_size: float
    mehler: MehlerBound

    def __call__(self, k: int) -> arb:
        return arb(self.log_size + self.mehler.log_factor(k) + 1e-6).exp()


def _log_scale(integrand: Integrand) -> float:
    """Logarithm of the size of F exp(-x^2/4) at a few points: the tolerance is relative to it."""
    largest = -math.inf
    pieces = list(integrand.pieces(6.0))
    compiled = [(p, compile(p.expr, (X,), real=True)) for p in pieces]
    for probe in _PROBES:
        for piece, function in compiled:
            if end_ball(piece.lower, -6.0) < probe < end_ball(piece.upper, 6.0):
                value = abs(function(arb(probe)))
                if value.is_finite():
                    largest = max(largest, log_upper(value) - probe * probe / 4)
    return largest if largest > -math.inf else 0.0


# ---- tails ---------------------------------------------------------------------------------------------------


def _cut_tails(integrand: Integrand, count: int, log_tolerance: float, errors: _Errors) -> float:
    """A radius beyond which both tails together are within the tolerance; their bound goes to ``errors``."""
    radius = 0.0
    tails = []
    for side, expr in ((-1, integrand.left), (1, integrand.right)):
        start, order = tail_growth(expr, side, integrand.start)
        tails.append((start, order))
        radius = max(radius, start, 6.0)
    while True:
        mehler = mehler_bound(count, radius, 0.0)
        logs = [_log_tail(order, mehler.r, radius) for _, order in tails]
        worst = max(logs) + mehler.log_factor(count - 1)
        if worst <= log_tolerance:
            for log in logs:
                errors.add(_Gap(log, mehler))
            return radius
        if radius > _FARTHEST:
            raise CertificationError("the Gaussian tail of the function could not be bounded")
        radius += 0.5 if radius < 40 else radius / 16


def _log_tail(order: Order, r: float, radius: float) -> float:
    """log of int_R^inf |h| t^p exp(a t + b t^2 - t^2/(2(1+r))) dt, by the slope of its logarithm at R."""
    if order.range.largest == 0:
        return -math.inf
    if order.b is sympy.oo:
        return math.inf
    x, p, a = arb(radius), ball_of(order.p), ball_of(order.a)
    s = 1 / (1 + arb(r)) - 2 * ball_of(order.b)
    rate = s * x - a - p.max(arb(0)) / x
    if not rate > 0 or not s >= 0:
        return math.inf
    size = order.range.largest / rate
    exponent = p * x.log() + a * x - s * x * x / 2
    return log_upper(size) + float(exponent.upper()) + 1e-6


# ---- pieces --------------------------------------------------------------------------------------------------


def _add_piece(
    piece: PieceLike,
    radius: float,
    totals: list[arb],
    errors: _Errors,
    log_tolerance: float,
    working: int,
    panels: int,
) -> int:
    """Add the integral over one piece; returns how many panels are left."""
    lower, upper = end_ball(piece.lower, -radius), end_ball(piece.upper, radius)
    if not lower < radius or not upper > -radius:
        return panels
    lower_is_end, upper_is_end = bool(lower > -radius), bool(upper < radius)
    lower = lower if lower_is_end else arb(-radius)
    upper = upper if upper_is_end else arb(radius)
    if piece.expr == 0:
        return panels
    plain = Chart(compile(piece.expr, (X,), real=True), compile(piece.expr, (X,)), arb(0), 1)
    jobs: list[tuple[Chart, arb, arb]] = []
    room = ((upper - lower) / 2).mid()
    for end, ball, side, inside in (
        (piece.lower, lower, 1, lower_is_end),
        (piece.upper, upper, -1, upper_is_end),
    ):
        if inside and not is_regular(piece.expr, ball):
            chart, first, depth = _singular_chart(
                piece.expr, end, ball, side, float(room), log_tolerance, errors, len(totals)
            )
            jobs += [(chart, first * arb(2) ** j, first * arb(2) ** (j + 1)) for j in range(depth)]
            reach = first * arb(2) ** depth
            if side > 0:
                lower = lower + reach
            else:
                upper = upper - reach
    length = float((upper - lower).upper())
    if length > 0 and not upper - lower <= 0:
        n = max(1, math.ceil(length / _PANEL))
        cuts = [lower, *[((lower * (n - j) + upper * j) / n).mid() for j in range(1, n)], upper]
        jobs += [(plain, cuts[j], cuts[j + 1]) for j in range(n)]
    most = 40 + working // 4
    while jobs:
        chart, low, high = jobs.pop()
        panels -= 1
        if panels < 0:
            raise CertificationError(f"too many panels for {str(piece.expr)[:80]}")
        rule = choose_rule(chart, low, high, len(totals), log_tolerance, most)
        if rule is not None:
            add_panel(chart, low, high, rule, totals, working)
            errors.add(rule.error)
            continue
        middle = ((low + high) / 2).mid()
        scale = low.abs_lower().max(arb(1)) if chart is plain else low
        if not high - low > _FINEST * scale:
            at = float((chart.origin + chart.side * middle).mid())
            raise CertificationError(f"{str(piece.expr)[:80]} is not analytic near x = {at:.6g}")
        jobs += [(chart, low, middle), (chart, middle, high)]
    return panels


def _singular_chart(
    expr: sympy.Expr,
    end: Any,
    ball: arb,
    side: int,
    room: float,
    log_tolerance: float,
    errors: _Errors,
    count: int,
) -> tuple[Chart, arb, int]:
    """Coordinate u at a singular endpoint, the first u of the panels, and how often it doubles.

    The gap (0, first) is bounded by |F| <= C u^(-p) and goes to ``errors``.
    """
    end = sympy.sympify(end)
    u = sympy.Symbol("u", positive=True)
    local = expr.subs(X, end + side * u)
    reach, bound = point_order(expr, end, side)
    gap = 1 - ball_of(bound.p)
    if not gap > 0 or not (bound.a == 0 and bound.b == 0):
        raise CertificationError(f"{str(expr)[:80]} is not integrable at {end}")
    mehler = mehler_bound(count, 0.0, 0.0)
    log_size = log_upper(bound.range.largest) + log_upper(1 / gap)
    budget = log_tolerance - mehler.log_factor(count - 1) - log_size
    exponent = min(-1.0, budget / float(gap.lower()) / math.log(2))
    top = math.floor(math.log2(min(reach, room, 1.0)))
    depth = max(1, math.ceil(top - exponent))
    first = arb(2) ** (top - depth)
    log_gap = log_size + float((gap * first.log()).upper()) + 1e-6
    errors.add(_Gap(log_gap, mehler))
    chart = Chart(compile(local, (u,), real=True), compile(local, (u,)), ball, side)
    return chart, first, depth
