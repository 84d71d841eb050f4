"""Certified Gaussian expectations: E[F(x) He_k(x)] for x ~ N(0, 1) and all k < count at once.

F is analytic on pieces. Each piece is cut into panels with a proved Gauss–Legendre error; a singular
endpoint is approached geometrically in its own coordinate and the last gap is bounded; the tails are
bounded by the growth of F. Every error is in the radius of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import sympy
from flint import acb, arb, ctx

from ..errors import CertificationError
from ..symbolic.symbols import X
from .arb_eval import compile
from .gauss_legendre import BOUND_BITS, Chart, MehlerBound, add_panel, choose_rule, log_upper, mehler_bound
from .growth import order_at_point
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
from .orders import Order, Undecided, ball_of

__all__ = ["Integrand", "PlainPiece", "end_ball", "function_integrand", "hermite_moments"]

_PANEL = 2.0
_MOST_PANELS = 10000
_MOST_BISECTIONS = 1200
_FARTHEST = 4000.0
_PROBES = (-5.1, -2.9, -1.7, -0.6, 0.4, 1.3, 2.7, 4.9)
#: below this distance from a point where the integrand is not analytic, bisection gives up
_FINEST = 2.0**-80
#: how near to a point its order is looked for
_NEAREST = 2.0**-40


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
        errors = _Errors(count)
        radius = _cut_tails(integrand, count, log_tolerance, errors)
        work = _Panels(count, log_tolerance - math.log(64), working, errors)
        for piece in integrand.pieces(radius):
            work.add_piece(piece, radius)
        return [total + arb(0, errors.of_degree(k)) for k, total in enumerate(work.totals)]
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


class _Panels:
    """The sums over panels, and how many more panels and bisections are allowed."""

    def __init__(self, count: int, log_tolerance: float, working: int, errors: _Errors) -> None:
        self.count, self.log_tolerance, self.working, self.errors = count, log_tolerance, working, errors
        self.totals = [arb(0)] * count
        self.panels_left, self.bisections_left = _MOST_PANELS, _MOST_BISECTIONS
        self.most_nodes = 40 + working // 4

    def add_piece(self, piece: PieceLike, radius: float) -> None:
        """Add the integral over one piece within [-radius, radius]."""
        lower, upper = end_ball(piece.lower, -radius), end_ball(piece.upper, radius)
        if piece.expr == 0 or not lower < radius or not upper > -radius:
            return
        lower_is_end, upper_is_end = bool(lower > -radius), bool(upper < radius)
        lower = lower if lower_is_end else arb(-radius)
        upper = upper if upper_is_end else arb(radius)
        room = float(((upper - lower) / 2).mid())
        if lower_is_end and not is_regular(piece.expr, lower):
            lower = lower + self.add_singular_end(piece.expr, piece.lower, lower, 1, room)
        if upper_is_end and not is_regular(piece.expr, upper):
            upper = upper - self.add_singular_end(piece.expr, piece.upper, upper, -1, room)
        length = float((upper - lower).upper())
        if upper - lower <= 0:
            return
        n = max(1, math.ceil(length / _PANEL))
        cuts = [lower, *[((lower * (n - j) + upper * j) / n).mid() for j in range(1, n)], upper]
        plain = Chart(compile(piece.expr, (X,), real=True), compile(piece.expr, (X,)), arb(0), 1)
        self.add_panels(plain, list(pairwise(cuts)), piece.expr)

    def add_panels(self, chart: Chart, jobs: list[tuple[arb, arb]], expr: sympy.Expr) -> None:
        """Add panels of one chart, bisecting those on which the rule would take too many nodes."""
        while jobs:
            low, high = jobs.pop()
            rule = choose_rule(chart, low, high, self.count, self.log_tolerance, self.most_nodes)
            if rule is not None:
                self.panels_left -= 1
                add_panel(chart, low, high, rule, self.totals, self.working)
                self.errors.add(rule.error)
                continue
            self.bisections_left -= 1
            if self.panels_left < 0 or self.bisections_left < 0:
                raise CertificationError(f"too many panels for {str(expr)[:80]}")
            middle = ((low + high) / 2).mid()
            scale = low.abs_lower().max(arb(1)) if chart.is_plain else low
            if not high - low > _FINEST * scale:
                at = float((chart.origin + chart.side * middle).mid())
                raise CertificationError(f"{str(expr)[:80]} is not analytic near x = {at:.6g}")
            jobs += [(low, middle), (middle, high)]

    def add_singular_end(self, expr: sympy.Expr, end: Any, ball: arb, side: int, room: float) -> arb:
        """Add panels that double away from a singular endpoint; returns how far they reach.

        The gap (0, first) before them is bounded by |F| <= C u^(-p) and goes to the errors.
        """
        end = sympy.sympify(end)
        reach, bound = point_order(expr, end, side)
        while bound.trend < 0 and reach > _NEAREST:  # vanishes there: bounded is enough
            try:
                bound = Order.bounded(bound.values(1 / arb(reach)))
            except Undecided:
                reach /= 4
        slack = 1 - ball_of(bound.p)
        if not slack > 0 or not (bound.a == 0 and bound.b == 0):
            raise CertificationError(f"{str(expr)[:80]} is not integrable at {end}")
        mehler = mehler_bound(self.count, 0.0, 0.0)
        log_size = log_upper(bound.range.largest) + log_upper(1 / slack)
        budget = self.log_tolerance - mehler.log_factor(self.count - 1) - log_size
        exponent = min(-1.0, budget / float(slack.lower()) / math.log(2))
        top = math.floor(math.log2(min(reach, room, 1.0)))
        depth = max(1, math.ceil(top - exponent))
        first = arb(2) ** (top - depth)
        self.errors.add(_Gap(log_size + float((slack * first.log()).upper()) + 1e-6, mehler))
        u = sympy.Symbol("u", positive=True)
        local = _by_half_angles(expr.subs(X, end + side * u), u, reach)
        chart = Chart(compile(local, (u,), real=True), compile(local, (u,)), ball, side, is_plain=False)
        chart = _precise_enough(chart, first, depth - top)
        self.bisections_left += depth
        self.add_panels(chart, [(first * arb(2) ** j, first * arb(2) ** (j + 1)) for j in range(depth)], expr)
        return first * arb(2) ** depth


def _precise_enough(chart: Chart, first: arb, doublings: int) -> Chart:
    """The chart with the extra bits that its expression needs next to the endpoint.

    Differences such as 1/2 - tanh(x) cancel next to their zero: one bit for each halving of the distance, or
    several for a multiple zero.
    """
    for multiple in (0, 1, 2, 4):
        candidate = replace(chart, extra_bits=multiple * (doublings + 20))
        with ctx.workprec(ctx.prec + candidate.extra_bits):
            value = chart.real(3 * first / 2)
        with ctx.workprec(BOUND_BITS + candidate.extra_bits):
            around = chart.complex(acb(3 * first / 2 + arb(0, first / 4)), analytic=True)
        precise = value.is_finite() and (value == 0 or value.rel_accuracy_bits() > ctx.prec - 60)
        if precise and around.is_finite() and around.abs_upper() < 2**10 * abs(value).upper():
            return candidate
    return candidate


def _by_half_angles(local: sympy.Expr, u: sympy.Symbol, reach: float) -> sympy.Expr:
    """cos and cosh written by squares of half the argument, so that 1 - cos(u) keeps its relative accuracy."""
    if not local.has(sympy.cos, sympy.cosh):
        return local
    written = local.replace(sympy.cos, lambda w: 1 - 2 * sympy.sin(w / 2) ** 2)
    written = written.replace(sympy.cosh, lambda w: 1 + 2 * sympy.sinh(w / 2) ** 2)
    for size in written.atoms(sympy.Abs):
        # the root of a square; its argument keeps its sign next to the endpoint
        try:
            sign = order_at_point(size.args[0], u, sympy.Integer(0), 1, reach).range.sign
        except Undecided:
            sign = 0
        if sign == 0:
            return local
        written = written.subs(size, sign * size.args[0])
    return written
