"""Closed intervals with endpoints at full precision (the radius of an Arb ball has thirty bits)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import arb


@dataclass(frozen=True)
class Range:
    """The closed interval [low, high]; both ends are exact.

    Examples
    --------
    >>> unit = Range.of(arb(-1), arb(1))
    >>> (unit * unit).high == 1, (unit + unit).high == 2, unit.integer_power(2).low == 0
    (True, True, True)
    """

    low: arb
    high: arb

    @classmethod
    def of(cls, *balls: arb) -> Range:
        """The smallest interval that contains the balls."""
        low, high = balls[0].lower(), balls[0].upper()
        for ball in balls[1:]:
            low, high = low.min(ball.lower()), high.max(ball.upper())
        return cls(low, high)

    @property
    def is_finite(self) -> bool:
        """Whether both ends are finite."""
        return bool(self.low.is_finite() and self.high.is_finite())

    @property
    def sign(self) -> int:
        """+1 or -1 when every number of the interval has that sign, 0 otherwise."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    @property
    def largest(self) -> arb:
        """The largest absolute value."""
        return abs(self.low).max(abs(self.high))

    @property
    def least(self) -> arb:
        """The smallest absolute value."""
        return arb(0) if self.sign == 0 else abs(self.low).min(abs(self.high))

    def ball(self) -> arb:
        """A ball that contains the interval."""
        return self.low.union(self.high)

    def __add__(self, other: Range) -> Range:
        return Range.of(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range.of(*(a * b for a in (self.low, self.high) for b in (other.low, other.high)))

    def union(self, other: Range) -> Range:
        """The smallest interval that contains both."""
        return Range.of(self.low, self.high, other.low, other.high)

    def extreme(self, other: Range, op: Callable[[arb, arb], arb]) -> Range:
        """The range of a maximum or a minimum."""
        return Range.of(op(self.low, other.low), op(self.high, other.high))

    def absolute(self) -> Range:
        """The range of absolute values."""
        return Range.of(self.least, self.largest)

    def monotone(self, function: Callable[[arb], arb]) -> Range:
        """The range of a monotone function."""
        return Range.of(function(self.low), function(self.high))

    def integer_power(self, n: int) -> Range | None:
        """The range of the n-th power; None where a negative power meets zero."""
        if n < 0:
            return None if self.sign == 0 else self.monotone(lambda x: x**n)
        if n == 0:
            return Range.of(arb(1))
        if n % 2 or self.sign:
            return self.monotone(lambda x: x**n)
        return Range.of(arb(0), self.largest**n)

    def real_power(self, exponent: arb) -> Range | None:
        """The range of a power of a quantity that is known not to be negative."""
        if self.high < 0 or (not exponent > 0 and not self.low > 0):
            return None
        low = self.low.max(arb(0))
        return Range.of(*(x**exponent if x > 0 else arb(0) for x in (low, self.high)))


def hull(ranges: Sequence[Range]) -> Range:
    """The smallest interval that contains all of them."""
    result = ranges[0]
    for item in ranges[1:]:
        result = result.union(item)
    return result
