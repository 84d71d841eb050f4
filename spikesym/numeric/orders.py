"""Two-sided growth bounds: f(t) = t^p exp(a t + b t^2) h(t) with h(t) in a known interval for all t >= T.

The arithmetic of such bounds proves how a function behaves at infinity, and, with t = 1/|x - x0|, at a
finite point. An interval that excludes zero makes the bound two-sided, so that divergence can be proved.
The exponents are exact numbers: 4/3 - 4/3 is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import sympy
from flint import arb, ctx
from sympy import Integer, Rational

from .arb_eval import evaluate
from .ranges import Range

ZERO, ONE = Integer(0), Integer(1)
_SIGN_BITS = 200
#: added to an exponent when two of them are equal as far as can be told
_NUDGE = Rational(1, 2**30)


class Undecided(Exception):
    """The growth could not be bounded by these rules (a larger T may help)."""


def sign(exponent: sympy.Expr) -> int:
    """The sign of an exact exponent; raises :class:`Undecided` where it is not clear."""
    found = _sign(exponent)
    if found is None:
        raise Undecided(f"sign of the exponent {exponent}")
    return found


@lru_cache(maxsize=4096)
def _sign(exponent: sympy.Expr) -> int | None:
    if exponent.is_Rational:
        return int(sympy.sign(exponent))
    if exponent in (sympy.oo, -sympy.oo):
        return 1 if exponent is sympy.oo else -1
    if exponent is sympy.nan:
        return None
    ball = evaluate(exponent, _SIGN_BITS)
    if ball > 0 or ball < 0:
        return 1 if ball > 0 else -1
    return 0 if sympy.simplify(exponent) == 0 else None


def ball_of(exponent: sympy.Expr) -> arb:
    """The exponent as a ball at the current precision."""
    return arb.pos_inf() if exponent is sympy.oo else evaluate(exponent, ctx.prec)


def rational_above(ball: arb) -> Rational:
    """A rational number that is at least the ball, and close to it."""
    exact = Fraction(float(ball.upper()))
    return Rational(exact.numerator, exact.denominator) * (1 + _NUDGE) + _NUDGE


@dataclass(frozen=True)
class Order:
    """The bound t^p exp(a t + b t^2) h, h in ``range``, for all t >= the T that it was made for.

    ``p``, ``a`` and ``b`` are exact SymPy numbers (``b`` may be infinite). ``diverges`` says that |f| is
    known to tend to infinity where the range alone does not show it.

    Examples
    --------
    >>> line = Order(ONE, ZERO, ZERO, Range.of(arb(1)))
    >>> product = line.times(Order.bounded(Range.of(arb(-1), arb(1))))
    >>> product.p, product.is_two_sided, line.tends_to_infinity
    (1, False, True)
    """

    p: sympy.Expr
    a: sympy.Expr
    b: sympy.Expr
    range: Range
    diverges: bool = False

    @classmethod
    def bounded(cls, values: Range) -> Order:
        """A function whose values all lie in ``values``."""
        if not values.is_finite:
            raise Undecided("unbounded")
        return cls(ZERO, ZERO, ZERO, values)

    @property
    def is_two_sided(self) -> bool:
        """Whether the bound holds from below too."""
        return self.range.sign != 0

    @property
    def trend(self) -> int:
        """+1 if the comparison function tends to infinity, -1 if to zero, 0 if it is constant."""
        return next((s for s in map(sign, (self.b, self.a, self.p)) if s), 0)

    @property
    def tends_to_infinity(self) -> bool:
        """Whether |f| is proved to tend to infinity."""
        return self.diverges or (self.trend > 0 and self.is_two_sided)

    @property
    def _stays_away(self) -> bool:
        return self.diverges or (self.trend >= 0 and self.is_two_sided)

    def scale(self, t: arb) -> arb:
        """The comparison function t^p exp(a t + b t^2) at ``t``."""
        return (t.log() * ball_of(self.p) + ball_of(self.a) * t + ball_of(self.b) * t * t).exp()

    def times(self, other: Order) -> Order:
        """Bound of the product."""
        kept = (self.diverges and other._stays_away) or (other.diverges and self._stays_away)
        return Order(self.p + other.p, self.a + other.a, self.b + other.b, self.range * other.range, kept)

    def to_power(self, exponent: sympy.Expr, values: Range | None) -> Order:
        """Bound of a power, from the range of the power of h."""
        if values is None or not values.is_finite:
            raise Undecided("a power of a function that may vanish")
        grows = self.diverges and sign(exponent) > 0
        return Order(self.p * exponent, self.a * exponent, self.b * exponent, values, grows)

    def ratio(self, top: Order, start: arb) -> Range:
        """The range of the quotient of the comparison functions for t >= ``start``; ``top`` must dominate."""
        dp, da, db = self.p - top.p, self.a - top.a, self.b - top.b
        if dp == 0 and da == 0 and db == 0:
            return Range.of(arb(1))
        if db is -sympy.oo:
            return Range.of(arb(0))
        # the logarithm of the ratio has derivative dp/t + da + 2 db t; it must not be positive after ``start``
        zero, p, a, b = arb(0), ball_of(dp), ball_of(da), ball_of(db)
        if not (b <= 0 and p.max(zero) / start + a + 2 * b * start <= 0):
            raise Undecided("comparison of two growths needs a larger start")
        largest = (start.log() * p + a * start + b * start * start).exp()
        if not largest.is_finite():
            raise Undecided("comparison of two growths")
        return Range.of(zero, largest)

    def join(self, other: Order) -> Order:
        """Whichever comparison function grows faster; a little more than both where that cannot be told."""
        mine, theirs = (self.b, self.a, self.p), (other.b, other.a, other.p)
        exponents: list[sympy.Expr] = []
        for i, (x, y) in enumerate(zip(mine, theirs, strict=True)):
            order = 0 if x == y else _sign(x - y)
            if order:
                b, a, p = [*exponents, *(mine if order > 0 else theirs)[i:]]
                return Order(p, a, b, self.range)
            exponents.append(x if order == 0 else rational_above(ball_of(x).max(ball_of(y))))
        return Order(exponents[2], exponents[1], exponents[0], self.range)

    def values(self, start: arb) -> Range:
        """A range with all values for t >= ``start``; raises :class:`Undecided` for an unbounded function."""
        if self.trend > 0:
            raise Undecided("unbounded")
        return self.range * self.ratio(Order.bounded(Range.of(arb(1))), start)

    def least(self, start: arb) -> arb:
        """A lower bound of |f| for t >= ``start`` of a two-sided bound that does not fall."""
        if min(map(sign, (self.b, self.a, self.p))) < 0 or self.b is sympy.oo:
            raise Undecided("growth that is not monotone")
        return self.range.least * self.scale(start).lower()


def total(orders: list[Order], start: arb) -> Order:
    """Bound of a sum."""
    result = _combined(orders, start, Range.__add__)
    growing = [order for order in orders if order.tends_to_infinity]
    if len(growing) == 1 and all(o.trend <= 0 for o in orders if o is not growing[0]):
        return replace(result, diverges=True)
    return result


def extreme(orders: list[Order], start: arb, op: Callable[[Range, Range], Range]) -> Order:
    """Bound of a maximum, a minimum, or of a function that agrees with one of several at each point."""
    return _combined(orders, start, op)


def _combined(orders: list[Order], start: arb, op: Callable[[Range, Range], Range]) -> Order:
    if not orders:
        raise Undecided("no function left")
    top = orders[0]
    for order in orders[1:]:
        top = top.join(order)
    result: Range | None = None
    for order in orders:
        scaled = order.range * order.ratio(top, start)
        result = scaled if result is None else op(result, scaled)
    assert result is not None
    return Order(top.p, top.a, top.b, result)
