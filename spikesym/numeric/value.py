"""A number together with what is known about it: closed form, enclosure, how it was made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flint import arb, ctx

from ..errors import CertificationError, InputError

if TYPE_CHECKING:
    import sympy

#: a function from a working precision in bits to a ball that contains the number
Encloser = Callable[[int], arb]

_MAX_BITS = 20000


@dataclass(frozen=True)
class Value:
    """A real number: a closed form where there is one, an enclosure at any precision otherwise.

    Parameters
    ----------
    exact : sympy.Expr or None
        Closed form. It may contain free parameters; then the value has no number.
    encloser : callable or None
        Maps a working precision in bits to an Arb ball; made from ``exact`` when left out.
    certified : bool
        Whether the ball is a proof. False for numbers from a Python callable.
    method : str
        How the number was made, as shown to the user.

    Examples
    --------
    >>> import sympy
    >>> v = Value(exact=1 / sympy.sqrt(2 * sympy.pi))
    >>> v.text(15)
    '0.398942280401433'
    >>> v.to_json(15)["sympy"]
    'sqrt(2)/(2*sqrt(pi))'
    """

    exact: sympy.Expr | None = None
    encloser: Encloser | None = None
    certified: bool = True
    method: str = "closed form"

    @property
    def has_number(self) -> bool:
        """Whether the value is a number (no free parameter is left)."""
        return self.encloser is not None or (self.exact is not None and not self.exact.free_symbols)

    @property
    def is_zero(self) -> bool | None:
        """True or False when that is proved, None when zero lies within the radius at 50 digits."""
        if self.exact is not None and self.exact.is_zero is not None:
            return bool(self.exact.is_zero)
        ball = self.ball(180)
        return None if ball.contains(0) else False

    def ball(self, bits: int) -> arb:
        """An Arb ball for the value, computed with a working precision of ``bits``."""
        with ctx.workprec(bits):
            if self.encloser is not None:
                return self.encloser(bits)
            if self.exact is None or self.exact.free_symbols:
                free = sorted(map(str, self.exact.free_symbols)) if self.exact is not None else []
                raise InputError(
                    f"no number: free parameters {free}", "value", "give them with --set NAME=VALUE"
                )
            return _exact_ball(self.exact, bits)

    def enclosure(self, digits: int = 15) -> arb:
        """A ball of relative radius below 10**-digits (absolute, for a value that is zero)."""
        if not self.certified:
            return self.ball(_bits(digits))
        return refine(self.ball, digits, self._floor(digits))

    def _floor(self, digits: int) -> int:
        # precision is cheap for a closed form, so that tiny values are told from zero; a quadrature is
        # not raised to thousands of digits for a coefficient that symmetry makes zero
        return 3000 if self.encloser is None else digits + 40

    def text(self, digits: int = 15) -> str:
        """The value in ``digits`` significant digits, correct to the last one printed."""
        if not self.certified:
            return float_text(self.ball(_bits(digits)), digits)
        return ball_text(self.ball, digits, self._floor(digits))

    def radius(self, digits: int = 15) -> str:
        """Radius of the enclosure behind :meth:`text`, rounded up to two digits; ``"0"`` for exact zero."""
        return radius_text(self.enclosure(digits))

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """``{"sympy": ..., "value": ..., "radius": ..., "certified": ..., "method": ...}``."""
        number = self.has_number
        return {
            "sympy": None if self.exact is None else str(self.exact),
            "value": self.text(digits) if number else None,
            "radius": self.radius(digits) if number else None,
            "certified": self.certified,
            "method": self.method,
        }

    def __float__(self) -> float:
        return float(self.enclosure(17).mid())


def _bits(digits: int) -> int:
    return math.ceil(digits * 3.3219280948873626) + 32


def refine(ball: Encloser, digits: int, floor: int | None = None) -> arb:
    """Raise the precision until ``ball`` has relative radius 10**-digits, or contains zero within 10**-floor.

    ``floor`` is ``digits`` when left out. Raises :class:`~spikesym.errors.CertificationError` where the
    radius does not shrink.
    """
    floor = digits if floor is None else floor
    bits = _bits(digits)
    result = ball(bits)
    while True:
        if result.is_finite():
            radius = arb(result.rad())
            if radius < arb(10) ** (-digits) * result.abs_lower():
                return result
            if result.contains(0) and radius < arb(10) ** (-floor):
                return result
        if bits > max(_MAX_BITS, 64 * _bits(digits)):
            raise CertificationError(
                f"no enclosure to {digits} digits; reached {result.str(5)} with {bits} bits"
            )
        bits *= 2
        result = ball(bits)


def ball_text(ball: Encloser, digits: int, floor: int | None = None) -> str:
    """Decimal text of ``digits`` significant digits, every one of them right (correctly rounded)."""
    extra = 3
    while True:
        result = refine(ball, digits + extra, floor)
        if result.contains(0):
            return "0"
        # lower() and upper() round to the context's precision
        with ctx.workprec(2 * _bits(digits + extra)):
            low, high = float_text(result.lower(), digits), float_text(result.upper(), digits)
        if low == high:
            return low
        if extra > 4 * digits + 60:
            # a tie in decimal (0.125 to two digits) cannot be told from its neighbours: both are right
            return high
        extra *= 2


def float_text(number: arb, digits: int) -> str:
    """Midpoint of ``number`` in ``digits`` significant decimal digits; plain for moderate exponents."""
    from mpmath import mp, mpf, nstr

    with mp.workprec(_bits(digits) + 32):
        mid = number.mid()
        man, exp = mid.man_exp()
        value = mpf((int(man), int(exp)))
        text: str = nstr(value, digits, strip_zeros=True, min_fixed=-5, max_fixed=digits + 1)
    text = text[:-2] if text.endswith(".0") else text
    return text.replace(".0e", "e")


def radius_text(ball: arb) -> str:
    """Radius of a ball in two digits, rounded up."""
    radius = ball.rad()
    if radius == 0:
        return "0"
    man, exp = (int(v) for v in radius.man_exp())
    log10 = math.log10(abs(man)) + exp * math.log10(2)
    exponent = math.floor(log10)
    lead = math.ceil(10 ** (log10 - exponent) * 10 + 1e-6) / 10
    if lead >= 10:
        lead, exponent = lead / 10, exponent + 1
    return f"{lead:.1f}e{exponent:+03d}"


@lru_cache(maxsize=4096)
def _exact_ball(expr: sympy.Expr, bits: int) -> arb:
    from .arb_eval import evaluate

    return evaluate(expr, bits)
