"""Bounds of what the parser builds: digits, exponents, degrees, magnitudes, all checked beforehand."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import sympy

MAX_DIGITS = 100
MAX_DECIMAL_EXPONENT = 300
MAX_EXPONENT = 1000
MAX_DEGREE = 2000
MAX_BITS = 12000
LARGEST, SMALLEST = 1e300, 1e-300

_LITERAL = re.compile(r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d+))?")
_NOT_REAL = ("a constant that is not a real number", "no division by 0, no root or log below 0")


@dataclass(frozen=True)
class Node:
    """A subexpression: its float value where it is a constant, and a bound of its degree."""

    expr: sympy.Expr
    value: float | None
    degree: int


class OutOfBounds(Exception):
    """``what`` is out of bounds, and the ``remedy``."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


def rational_literal(literal: str) -> Fraction:
    """The exact value of a decimal literal.

    Examples
    --------
    >>> rational_literal("0.3"), rational_literal("1e-3")
    (Fraction(3, 10), Fraction(1, 1000))
    """
    match = _LITERAL.fullmatch(literal)
    if not match:
        raise OutOfBounds(f"not a number: {literal[:40]!r}", "write decimals such as 0.3, 3/10 or 1e-3")
    digits, exponent = match.group(1), match.group(2) or "0"
    if len(digits) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent)) > MAX_DECIMAL_EXPONENT:
        raise OutOfBounds(
            f"number too long: {literal[:20]}",
            f"at most {MAX_DIGITS} digits and exponents up to {MAX_DECIMAL_EXPONENT}",
        )
    return Fraction(literal)


def checked_value(compute: Callable[[], float]) -> float:
    """The float value of a constant; refused when it is not real or outside 1e-300 ... 1e300."""
    try:
        value = compute()
    except (ValueError, ZeroDivisionError):
        raise OutOfBounds(*_NOT_REAL) from None
    except OverflowError:
        value = math.inf
    if isinstance(value, complex) or math.isnan(value):
        raise OutOfBounds(*_NOT_REAL)
    if value and not SMALLEST < abs(value) < LARGEST:
        raise OutOfBounds("a constant outside 1e-300 ... 1e300", "scale the expression")
    return float(value)


def checked_degree(degree: float) -> int:
    """The degree, rounded up; refused above :data:`MAX_DEGREE`."""
    if degree > MAX_DEGREE:
        raise OutOfBounds(f"degree above {MAX_DEGREE}", "lower the powers")
    return math.ceil(degree)


def power(base: Node, exponent: Node, varies: Callable[[sympy.Expr], bool]) -> Node:
    """base**exponent; ``varies`` tells whether an expression depends on the variable."""
    a, p = base.value, exponent.value
    if p is None:
        if (a is None or a <= 0) and (varies(exponent.expr) or base.expr.is_nonnegative is not True):
            raise OutOfBounds(
                "a power with a varying exponent", "write exp(s*log(...)) of a positive quantity"
            )
        return Node(base.expr**exponent.expr, None, base.degree + 1)
    if abs(p) > MAX_EXPONENT:
        raise OutOfBounds("exponent too large", f"exponents up to {MAX_EXPONENT} are read")
    if a is None:
        degree = checked_degree(base.degree * max(1.0, abs(p)))
        return Node(base.expr**exponent.expr, None, degree)
    value = checked_value(lambda: a**p)
    if base.expr.is_Rational and exponent.expr.is_Rational:
        bits = max(int(base.expr.p).bit_length(), int(base.expr.q).bit_length())
        if bits * abs(p) > MAX_BITS:
            raise OutOfBounds("power too large", f"at most {MAX_BITS} binary digits")
    return Node(base.expr**exponent.expr, value, 0)


def combined(left: Node, sign: str, right: Node) -> Node:
    """left + right, left - right, left * right or left / right."""
    if sign == "/" and right.expr == 0:
        raise OutOfBounds("division by zero", "check the denominator")
    operate = _OPERATIONS[sign]
    degree = max(left.degree, right.degree) if sign in "+-" else checked_degree(left.degree + right.degree)
    expr = operate(left.expr, right.expr)
    a, b = left.value, right.value
    if a is None or b is None:
        return Node(expr, None, degree)
    # exact where it can be: the difference of nearby rationals is not zero
    return Node(expr, checked_value(lambda: float(expr) if expr.is_Rational else operate(a, b)), 0)


_OPERATIONS: dict[str, Callable] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}
