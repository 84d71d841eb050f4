"""Two-sided growth bounds: f(t) = t^p exp(a t + b t^2) h(t) with h(t) in a known ball for all t >= T.

The arithmetic of such bounds proves how a function behaves at infinity, and, with t = 1/|x - x0|, at a
finite point. A ball that excludes zero makes the bound two-sided, so that divergence can be proved too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

#: added to an exponent when two of them are equal as far as their balls tell
_NUDGE = arb(2) ** -30


class Undecided(Exception):
    """The growth could not be bounded by these rules (a larger T may help)."""


@dataclass(frozen=True)
class Order:
    """The bound t^p exp(a t + b t^2) h, h in ``ball``, for all t >= the T that it was made for.

    Examples
    --------
    >>> line, wave = Order(arb(1), arb(0), arb(0), arb(1)), Order.bounded(arb(0, 1))
    >>> line.times(wave).p, line.times(wave).is_two_sided
    (1.00000000000000, False)
    """

    p: arb
    a: arb
    b: arb
    ball: arb

    @classmethod
    def bounded(cls, ball: arb) -> Order:
        """A function whose values all lie in ``ball``."""
        if not ball.is_finite():
            raise Undecided("unbounded")
        return cls(arb(0), arb(0), arb(0), ball)

    @property
    def is_two_sided(self) -> bool:
        """Whether the bound holds from below too."""
        return bool(self.ball > 0) or bool(self.ball < 0)

    @property
    def trend(self) -> int:
        """+1 if the comparison function tends to infinity, -1 if to zero, 0 if it is constant."""
        for exponent in (self.b, self.a, self.p):
            if exponent > 0:
                return 1
            if exponent < 0:
                return -1
            if not exponent == 0:
                raise Undecided("sign of an exponent")
        return 0

    def scale(self, t: arb) -> arb:
        """The comparison function t^p exp(a t + b t^2) at ``t``."""
        return (t.log() * self.p + self.a * t + self.b * t * t).exp()

    def times(self, other: Order) -> Order:
        """Bound of the product."""
        return Order(self.p + other.p, self.a + other.a, self.b + other.b, self.ball * other.ball)

    def to_power(self, exponent: arb, of_ball: Callable[[arb], arb]) -> Order:
        """Bound of a power; ``of_ball`` applies the power to the ball."""
        ball = of_ball(self.ball)
        if not ball.is_finite():
            raise Undecided("a power of a function that may vanish")
        return Order(self.p * exponent, self.a * exponent, self.b * exponent, ball)

    def relative_to(self, top: Order, start: arb) -> arb:
        """The ball of f / (comparison function of ``top``) for t >= ``start``; ``top`` must dominate."""
        dp, da, db = self.p - top.p, self.a - top.a, self.b - top.b
        if dp == 0 and da == 0 and db == 0:
            return self.ball
        # the logarithm of the ratio has derivative dp/t + da + 2 db t; it must not be positive after ``start``
        zero = arb(0)
        if not (db <= 0 and dp.max(zero) / start + da + 2 * db * start <= 0):
            raise Undecided("comparison of two growths needs a larger start")
        top_ratio = (start.log() * dp + da * start + db * start * start).exp()
        if not top_ratio.is_finite():
            raise Undecided("comparison of two growths")
        return self.ball * zero.union(top_ratio.upper())

    def join(self, other: Order) -> Order:
        """Whichever comparison function grows faster; a little more than both where that cannot be told."""
        exponents: list[arb] = []
        names = ("b", "a", "p")
        for i, name in enumerate(names):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine > theirs:
                return self._raised_to(exponents, self, names[i:])
            if mine < theirs:
                return self._raised_to(exponents, other, names[i:])
            exponents.append(mine if mine - theirs == 0 else (mine.max(theirs) + _NUDGE).upper())
        return Order(exponents[2], exponents[1], exponents[0], self.ball)

    @staticmethod
    def _raised_to(start: list[arb], rest: Order, names: tuple[str, ...]) -> Order:
        b, a, p = [*start, *(getattr(rest, name) for name in names)]
        return Order(p, a, b, rest.ball)

    def values(self, start: arb) -> arb:
        """A ball with all values for t >= ``start``; raises :class:`Undecided` for an unbounded function."""
        if self.trend > 0:
            raise Undecided("unbounded")
        return self.relative_to(Order.bounded(arb(1)), start)

    def lower_size(self, start: arb) -> arb:
        """A lower bound of |f| for t >= ``start`` of a two-sided growing bound."""
        rising = self.b >= 0 and self.a >= 0 and self.p >= 0
        if not rising:
            raise Undecided("growth that is not monotone")
        return self.ball.abs_lower() * self.scale(start).lower()


def combine(orders: list[Order], start: arb, op: Callable[[list[arb]], arb]) -> Order:
    """Bound of ``op`` of several functions (a sum, a maximum, a union), positively homogeneous in them."""
    top = orders[0]
    for order in orders[1:]:
        top = top.join(order)
    return Order(top.p, top.a, top.b, op([order.relative_to(top, start) for order in orders]))
