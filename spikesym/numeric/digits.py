"""Decimal text of one ball: as many digits as are certain, and how far the text can be from the number."""

from __future__ import annotations

import math

from flint import arb, ctx

from .value import float_text


def certain_text(ball: arb, digits: int) -> str:
    """The ball's number in at most ``digits`` significant digits, fewer where they are not certain.

    Every digit printed is right: both ends of the ball round to the text. ``"0"`` for a ball around zero.

    Examples
    --------
    >>> certain_text(arb("1.23456789", "1e-5"), 15), certain_text(arb(0.25), 15), certain_text(arb(0, 1e-30), 15)
    ('1.2346', '0.25', '0')
    """
    if not ball.is_finite() or ball.contains(0):
        return "0"
    known = min(digits, max(1, math.floor(ball.rel_accuracy_bits() * math.log10(2)) + 1))
    # the ends of the ball, not of what the precision in force would make of it
    with ctx.workprec(4 * digits + 128):
        low, high = arb(ball.lower()), arb(ball.upper())
        for count in range(known, 0, -1):
            first, last = float_text(low, count), float_text(high, count)
            if first == last:
                return first
        return float_text(arb(ball.mid()), 1)


def is_short(ball: arb, digits: int) -> bool:
    """Whether fewer than ``digits`` digits of the ball are certain.

    Examples
    --------
    >>> is_short(arb("1.23456789", "1e-5"), 15), is_short(arb(0.25), 15)
    (True, False)
    """
    accuracy = ball.rel_accuracy_bits()
    return bool(accuracy * math.log10(2) < digits)


def distance_text(ball: arb, text: str) -> str:
    """An upper bound, in two digits, of the distance of the printed text from the number in the ball.

    Examples
    --------
    >>> distance_text(arb("1.23456789", "1e-5"), "1.2346"), distance_text(arb(0.25), "0.25")
    ('4.3e-05', '0')
    """
    with ctx.workprec(max(ctx.prec, 64 + 4 * len(text))):
        bound = arb(abs(ball - arb(text)).upper())
        if bound == 0:
            return "0"
        mantissa, power = (int(v) for v in bound.man_exp())
    log10 = math.log10(mantissa) + power * math.log10(2)
    exponent = math.floor(log10)
    lead = math.ceil(10 ** (log10 - exponent) * 10 + 1e-6) / 10
    return f"{lead:.1f}e{exponent:+03d}" if lead < 10 else f"1.0e{exponent + 1:+03d}"
