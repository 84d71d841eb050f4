"""Even and odd part of a function without closed moments, where one of them is a polynomial."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import sympy
from sympy import Integer, Rational

from ..budget import within
from .pieces import SWITCHES
from .roots import sign_at
from .symbols import X

#: the search takes milliseconds; the budget is for what nobody has thought of
_SECONDS = 2.0
_PROBE = Rational(10007, 16384)
_MAX_DEGREE = 3
_DIGITS = 25


@lru_cache(maxsize=256)
def polynomial_parts(expr: sympy.Expr) -> tuple[sympy.Expr | None, sympy.Expr | None]:
    """(even part, odd part), each where it is a polynomial of degree at most 3, else None.

    Examples
    --------
    >>> polynomial_parts(1 / (1 + sympy.exp(-X))), polynomial_parts(sympy.log(1 + sympy.exp(X)))
    ((1/2, None), (None, x/2))
    """
    found, _ = within(_SECONDS, lambda: _both(expr), (None, None))
    return found


def _both(expr: sympy.Expr) -> tuple[sympy.Expr | None, sympy.Expr | None]:
    mirrored = expr.subs(X, -X)
    return _polynomial((expr + mirrored) / 2), _polynomial((expr - mirrored) / 2)


def _polynomial(part: sympy.Expr) -> sympy.Expr | None:
    if part == 0:
        return part
    if part.has(*SWITCHES):
        return None
    return _search(part)


def _search(part: sympy.Expr) -> sympy.Expr | None:
    """The polynomial that ``part`` is, found by the first derivative that vanishes identically."""
    if not _may_be_polynomial(part):
        return None
    slope, value = part, Integer(0)
    for n in range(_MAX_DEGREE + 2):
        if _vanishes(slope):
            return value
        at_zero = slope.subs(X, 0)
        if at_zero.is_finite is not True or n == _MAX_DEGREE + 1:
            return None
        value += sympy.simplify(at_zero) * X**n / sympy.factorial(n)
        slope = slope.diff(X)
    return None


def _may_be_polynomial(part: sympy.Expr) -> bool:
    """False where differences of values at equal steps show at once that it is none of low degree."""
    if part.free_symbols - {X}:
        return True
    values = [sympy.N(part.subs(X, Rational(3 * j, 8)), _DIGITS) for j in range(1, _MAX_DEGREE + 3)]
    if not all(v.is_Float or v.is_Integer for v in values):
        return True
    scale = max(abs(v) for v in values)
    for _ in range(_MAX_DEGREE + 1):
        values = [b - a for a, b in pairwise(values)]
    return bool(abs(values[0]) <= scale * sympy.Float(10) ** (6 - _DIGITS))


def _vanishes(expr: sympy.Expr) -> bool:
    """Whether a rational function of x and exponentials cancels to zero."""
    if expr == 0:
        return True
    if not expr.free_symbols - {X} and sign_at(expr, _PROBE) in (1, -1):
        return False
    if sympy.expand(expr) == 0:
        return True
    y = sympy.Dummy("y", positive=True)
    exchanged = expr.replace(
        lambda e: (
            isinstance(e, sympy.exp)
            and e.has(X)
            and e.args[0].is_polynomial(X)
            and sympy.degree(e.args[0], X) == 1
        ),
        lambda e: y ** e.args[0].coeff(X, 1) * sympy.exp(e.args[0].coeff(X, 0)),
    )
    exchanged = sympy.expand(exchanged, trig=False)
    return exchanged.is_rational_function(X, y) and sympy.cancel(exchanged) == 0
