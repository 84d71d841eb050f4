"""Certified supremum of |F| over the real line, or the proof that it is infinite.

Branch and bound with balls: an interval is bounded directly, by the mean value theorem, and by its
endpoints where the derivative keeps its sign. Beyond a radius the growth of F bounds the rest.
"""

from __future__ import annotations

import heapq
from itertools import zip_longest
from typing import Any

import sympy
from flint import arb, ctx

from ..budget import within
from ..errors import CertificationError
from ..symbolic.symbols import X
from .arb_eval import Compiled, compile
from .growth import order_at_point
from .integrand import Integrand, end_ball, tail_growth
from .orders import Order, Undecided

_MOST_INTERVALS = 4000
_MOST_OPS = 120
_FORM_BUDGET = 0.4
_STARTS = (8.0, 64.0, 1024.0, 2.0**40, 2.0**100)


class Unbounded(Exception):
    """The function is proved to be unbounded; the message says where."""


def supremum(integrand: Integrand, bits: int) -> arb:
    """A ball that contains sup |F|, of relative radius about 2**-bits.

    Raises :class:`Unbounded` with the place when the supremum is infinite, and
    :class:`~spikesym.errors.CertificationError` when neither can be proved.

    Examples
    --------
    >>> from sympy import log, exp
    >>> print(supremum(Integrand.of_expression(X / (1 + X**2)), 40).str(10, radius=False))
    0.5000000000
    >>> supremum(Integrand.of_expression(log(1 + exp(X))), 40)
    Traceback (most recent call last):
        ...
    spikesym.numeric.supremum.Unbounded: grows without bound as x -> +infinity
    """
    old = ctx.prec
    ctx.prec = bits + 30
    try:
        search = _Search(2.0**-bits)
        known = _tails(integrand)
        for tail in known:
            for _, low, _ in tail:
                search.note(low)
        for left, right in zip_longest(*known):
            left, right = left or known[0][-1], right or known[1][-1]
            # a tail that only the search of the middle can settle is tried after it
            attempt = search.copy()
            attempt.over(integrand, max(left[0], right[0]))
            if attempt.settles(left[2]) and attempt.settles(right[2]):
                return attempt.result()
        raise CertificationError("the supremum is approached too slowly at infinity")
    finally:
        ctx.prec = old


def _tails(integrand: Integrand) -> list[list[tuple[float, arb, arb]]]:
    """Bounds of both tails from several starts; a proof that one is unbounded goes before any doubt."""
    doubts: list[CertificationError] = []
    found: list[list[tuple[float, arb, arb]]] = [[], []]
    for side, bounds in zip((-1, 1), found, strict=True):
        for start in _STARTS:
            try:
                bounds.append(_tail(integrand, side, start))
            except CertificationError as error:
                doubts.append(error)
    if not all(found):
        raise doubts[0]
    return found


def _tail(integrand: Integrand, side: int, start: float) -> tuple[float, arb, arb]:
    """Where the tail begins, and a lower and an upper bound of sup |F| over it."""
    expr = integrand.right if side > 0 else integrand.left
    begin, order = tail_growth(expr, side, max(start, integrand.start))
    low, high = _bounds(order, arb(begin), f"as x -> {'+' if side > 0 else '-'}infinity")
    return begin, low, high


def _bounds(order: Order, start: arb, where: str) -> tuple[arb, arb]:
    if order.tends_to_infinity:
        raise Unbounded(f"grows without bound {where}")
    try:
        values = order.values(start)
        return values.least, values.largest
    except Undecided as error:
        raise CertificationError(f"no bound {where}: {error}") from None


class _Slope:
    """The derivative on intervals; by a second form of it where the first does not show the sign."""

    def __init__(self, expr: sympy.Expr) -> None:
        self.plain = compile(expr, (X,), real=True)
        factored = _factored(expr)
        self.factored = None if factored is None else compile(factored, (X,), real=True)

    def __call__(self, interval: arb) -> arb:
        ball = self.plain(interval)
        if self.factored is None or ball > 0 or ball < 0:
            return ball
        other = self.factored(interval)
        return other if not ball.is_finite() or other > 0 or other < 0 else ball


class _Search:
    """The best lower bound so far, and the largest upper bound of what is settled."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = arb(tolerance)
        self.best, self.top = arb(0), arb(0)
        self.count = 0

    def copy(self) -> _Search:
        other = _Search(0.0)
        other.tolerance, other.best = self.tolerance, self.best
        return other

    def note(self, ball: arb) -> None:
        """A value of |F|, or a ball with values of it: the supremum is at least its lower end."""
        self.best = self.best.max(ball.abs_lower())

    def settles(self, ball: arb) -> bool:
        """Whether the upper end of this ball is within the tolerance of the best lower bound."""
        if ball.abs_upper() <= self.best * (1 + self.tolerance):
            self.top = self.top.max(ball.abs_upper())
            return True
        return False

    def result(self) -> arb:
        return self.best.union(self.best.max(self.top))

    def over(self, integrand: Integrand, radius: float) -> None:
        """Branch and bound over [-radius, radius]."""
        jobs: list[tuple[Compiled, _Slope, arb, arb]] = []
        for piece in integrand.pieces(radius):
            value = compile(piece.expr, (X,), real=True)
            slope = _Slope(piece.expr.diff(X))
            low, high = end_ball(piece.lower, -radius), end_ball(piece.upper, radius)
            low, high = low.max(arb(-radius)), high.min(arb(radius))
            for end, side in ((piece.lower, 1), (piece.upper, -1)):
                at = low if side > 0 else high
                if end not in (sympy.oo, -sympy.oo) and abs(at) < radius and not value(at).is_finite():
                    reach = self._singular_end(piece.expr, end, side, float((high - low).mid()))
                    low, high = (low + reach, high) if side > 0 else (low, high - reach)
            if low < high:
                cuts = [low, *(arb(c) for c in _grid(radius) if low < c and c < high), high]
                jobs += [(value, slope, cuts[i], cuts[i + 1]) for i in range(len(cuts) - 1)]
        # the interval with the largest upper bound first: that raises the lower bound soonest
        waiting: list[tuple[float, int, tuple[Compiled, _Slope, arb, arb], arb, arb]] = []
        for job in jobs:
            self._consider(job, waiting)
        while waiting:
            _, _, (value, slope, low, high), ball, middle = heapq.heappop(waiting)
            if not self.settles(ball):
                self._consider((value, slope, low, middle), waiting)
                self._consider((value, slope, middle, high), waiting)

    def _consider(self, job: tuple[Compiled, _Slope, arb, arb], waiting: list[Any]) -> None:
        self.count += 1
        if self.count > _MOST_INTERVALS:
            raise CertificationError("too many intervals in the search for the supremum")
        ball, middle = self._bound(*job)
        if not self.settles(ball):
            heapq.heappush(waiting, (-float(ball.abs_upper()), self.count, job, ball, middle))

    def _bound(self, value: Compiled, slope: _Slope, low: arb, high: arb) -> tuple[arb, arb]:
        interval, middle = low.union(high), ((low + high) / 2).mid()
        ball, steepness, centre = value(interval), slope(interval), value(middle)
        if centre.is_finite():
            self.note(centre)
        if steepness.is_finite():
            if steepness > 0 or steepness < 0:
                ends = value(low).union(value(high))
                if ends.is_finite():
                    self.note(value(low))
                    self.note(value(high))
                    return ends, middle
            linear = centre + steepness * (interval - middle)
            if linear.is_finite() and (not ball.is_finite() or linear.rad() < ball.rad()):
                ball = linear
        return (ball if ball.is_finite() else arb.pos_inf()), middle

    def _singular_end(self, expr: sympy.Expr, end: sympy.Expr, side: int, room: float) -> arb:
        """Settle a neighbourhood of an endpoint where the expression has no value; returns its width."""
        reach = room / 4
        while reach > 2.0**-300:
            try:
                order = order_at_point(expr, X, end, side, reach)
                low, high = _bounds(order, 1 / arb(reach), f"near x = {end}")
            except Undecided:
                reach /= 16
                continue
            self.note(low)
            if self.settles(high):
                return arb(reach)
            reach /= 16
        raise CertificationError(f"no bound near x = {end}")


def _factored(slope: sympy.Expr) -> sympy.Expr | None:
    """The derivative in one exponential, over one denominator and factored: a form whose sign balls can tell."""
    written = slope.rewrite(sympy.exp)
    if not written.has(sympy.exp) or sympy.count_ops(written) > _MOST_OPS:
        return None
    y = sympy.Symbol("y", positive=True)
    rates = [e.args[0].coeff(X, 1) for e in written.atoms(sympy.exp) if e.has(X)]
    if not rates or not all(r.is_Rational and r != 0 for r in rates):
        return None
    unit = sympy.gcd_list(rates)

    def in_unit(argument: sympy.Expr) -> sympy.Expr:
        rate = argument.coeff(X, 1)
        rest = sympy.expand(argument - rate * X)
        return sympy.exp(argument) if rest.has(X) else y ** (rate / unit) * sympy.exp(rest)

    found, _ = within(
        _FORM_BUDGET, lambda: sympy.factor(sympy.together(written.replace(sympy.exp, in_unit))), None
    )
    return None if found is None else found.subs(y, sympy.exp(unit * X))


def _grid(radius: float) -> list[float]:
    """Starting cuts: 0 and powers of two."""
    cuts, step = [0.0], 0.5
    while step < radius:
        cuts = [-step, *cuts, step]
        step *= 2
    return cuts
