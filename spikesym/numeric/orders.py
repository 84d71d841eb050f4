"""Two-sided growth bounds: f(t) = t^p exp(a t + b t^2) h(t) with h(t) in a known interval for all t >= T.

The arithmetic of such bounds proves how a function behaves at infinity, and, with t = 1/|x - x0|, at a
finite point. An interval that excludes zero makes the bound two-sided, so that divergence can be proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from flint import arb

from .ranges import Range

#: added to an exponent when two of them are equal as far as their balls tell
_NUDGE = arb(2) ** -30


class Undecided(Exception):
    """The growth could not be bounded by these rules (a larger T may help)."""


@dataclass(frozen=True)
class Order:
    """The bound t^p exp(a t + b t^2) h, h in ``range``, for all t >= the T that it was made for.

    ``diverges`` says that |f| is known to tend to infinity where the range alone does not show it.

    Examples
    --------
    >>> line = Order(arb(1), arb(0), arb(0), Range.of(arb(1)))
    >>> product = line.times(Order.bounded(Range.of(arb(-1), arb(1))))
    >>> product.p, product.is_two_sided, line.tends_to_infinity
    (1.00000000000000, False, True)
    """

    p: arb
    a: arb
    b: arb
    range: Range
    diverges: bool = False

    @classmethod
    def bounded(cls, values: Range) -> Order:
        """A function whose values all lie in ``values``."""
        if not values.is_finite:
            raise Undecided("unbounded")
        return cls(arb(0), arb(0), arb(0), values)

    @property
    def is_two_sided(self) -> bool:
        """Whether the bound holds from below too."""
        return self.range.sign != 0

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

    @property
    def tends_to_infinity(self) -> bool:
        """Whether |f| is proved to tend to infinity."""
        return self.diverges or (self.trend > 0 and self.is_two_sided)

    @property
    def _stays_away(self) -> bool:
        return self.diverges or (self.trend >= 0 and self.is_two_sided)

    def scale(self, t: arb) -> arb:
        """The comparison function t^p exp(a t + b t^2) at ``t``."""
        return (t.log() * self.p + self.a * t + self.b * t * t).exp()

    def times(self, other: Order) -> Order:
        """Bound of the product."""
        kept = (self.diverges and other._stays_away) or (other.diverges and self._stays_away)
        return Order(self.p + other.p, self.a + other.a, self.b + other.b, self.range * other.range, kept)

    def to_power(self, exponent: arb, values: Range | None) -> Order:
        """Bound of a power, from the range of the power of h."""
        if values is None or not values.is_finite:
            raise Undecided("a power of a function that may vanish")
        grows = self.diverges and bool(exponent > 0)
        return Order(self.p * exponent, self.a * exponent, self.b * exponent, values, grows)

    def ratio(self, top: Order, start: arb) -> Range:
        """The range of the quotient of the comparison functions for t >= ``start``; ``top`` must dominate."""
        dp, da, db = (_difference(getattr(self, n), getattr(top, n)) for n in ("p", "a", "b"))
        if dp == 0 and da == 0 and db == 0:
            return Range.of(arb(1))
        # the logarithm of the ratio has derivative dp/t + da + 2 db t; it must not be positive after ``start``
        zero = arb(0)
        if not (db <= 0 and dp.max(zero) / start + da + 2 * db * start <= 0):
            raise Undecided("comparison of two growths needs a larger start")
        largest = (start.log() * dp + da * start + db * start * start).exp()
        if not largest.is_finite():
            raise Undecided("comparison of two growths")
        return Range.of(zero, largest)

    def join(self, other: Order) -> Order:
        """Whichever comparison function grows faster; a little more than both where that cannot be told."""
        exponents: list[arb] = []
        names = ("b", "a", "p")
        for i, name in enumerate(names):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine > theirs:
                return self._with_exponents(exponents, self, names[i:])
            if mine < theirs:
                return self._with_exponents(exponents, other, names[i:])
            exponents.append(mine if mine - theirs == 0 else (mine.max(theirs) + _NUDGE).upper())
        return Order(exponents[2], exponents[1], exponents[0], self.range)

    @staticmethod
    def _with_exponents(start: list[arb], rest: Order, names: tuple[str, ...]) -> Order:
        b, a, p = [*start, *(getattr(rest, name) for name in names)]
        return Order(p, a, b, rest.range)

    def values(self, start: arb) -> Range:
        """A range with all values for t >= ``start``; raises :class:`Undecided` for an unbounded function."""
        if self.trend > 0:
            raise Undecided("unbounded")
        return self.range * self.ratio(Order.bounded(Range.of(arb(1))), start)

    def least(self, start: arb) -> arb:
        """A lower bound of |f| for t >= ``start`` of a two-sided bound that does not fall."""
        if not (self.b >= 0 and self.a >= 0 and self.p >= 0):
            raise Undecided("growth that is not monotone")
        return self.range.least * self.scale(start).lower()


def _difference(x: arb, y: arb) -> arb:
    """x - y, exactly zero for one and the same number, whatever its radius."""
    return arb(0) if x is y else x - y


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
    top = orders[0]
    for order in orders[1:]:
        top = top.join(order)
    result: Range | None = None
    for order in orders:
        scaled = order.range * order.ratio(top, start)
        result = scaled if result is None else op(result, scaled)
    assert result is not None
    return Order(top.p, top.a, top.b, result)
