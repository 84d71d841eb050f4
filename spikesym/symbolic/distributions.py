"""Derivatives in the sense of distributions: regular pieces and point masses at jumps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy
from flint import ctx
from sympy import Integer

from ..budget import within
from ..errors import InputError
from .pieces import Piece, pieces
from .roots import IsolatedRoot, NoBall, enclose
from .symbols import X

_LIMIT_SECONDS = 1.0
_ZERO_BITS = 400


@dataclass(frozen=True)
class Atom:
    """weight * delta^(order)(x - point)."""

    point: sympy.Expr
    weight: sympy.Expr
    order: int


@dataclass(frozen=True)
class Distribution:
    """A function on pieces plus point masses and their derivatives.

    ``pieces`` cover the line (or the radius asked for) and may differ from those of the function.
    """

    pieces: tuple[Piece, ...]
    atoms: tuple[Atom, ...]

    @property
    def is_function(self) -> bool:
        """Whether there are no point masses."""
        return not self.atoms


def derivative(expr: sympy.Expr, order: int = 1, radius: Any = None) -> Distribution:
    """The derivative of this order of an expression in ``X``, as a distribution.

    With J_m the jump of the m-th ordinary derivative at a break point b, the n-th derivative is the
    ordinary one on the pieces plus the sum over m < n of J_m delta_b^(n-1-m).

    Raises :class:`~spikesym.errors.InputError` when a one-sided limit is infinite, so that the derivative is
    not a function plus point masses, and where :func:`~spikesym.symbolic.pieces.pieces` does.

    Examples
    --------
    >>> derivative(sympy.Max(0, X), 2).atoms
    (Atom(point=0, weight=1, order=0),)
    >>> derivative(sympy.sign(X - 1), 2).atoms
    (Atom(point=1, weight=2, order=1),)
    """
    if order < 0:
        raise InputError(f"derivative of order {order}", "order", "give 0, 1, 2, ...")
    return _derivative(sympy.sympify(expr), order, radius)


@lru_cache(maxsize=512)
def _derivative(expr: sympy.Expr, order: int, radius: Any) -> Distribution:
    parts = pieces(expr, radius)
    atoms = []
    for left, right in pairwise(parts):
        for m in range(order):
            weight = jump(left.expr.diff(X, m), right.expr.diff(X, m), right.lower)
            if weight != 0:
                atoms.append(Atom(right.lower, weight, order - 1 - m))
    regular = tuple(Piece(p.lower, p.upper, p.expr.diff(X, order)) for p in parts)
    return Distribution(regular, tuple(atoms))


def jump(left: sympy.Expr, right: sympy.Expr, point: sympy.Expr) -> sympy.Expr:
    """The limit from the right minus that from the left, exactly 0 where they agree."""
    if left == right and _value(right, point) is not None:
        return Integer(0)
    if isinstance(point, IsolatedRoot) and not sympy.simplify((right - left) / point.equation).has(X):
        # the point was defined by right = left
        return Integer(0)
    difference = _limit(right, point, "+") - _limit(left, point, "-")
    difference = sympy.expand(difference)
    if difference == 0:
        return Integer(0)
    if difference.free_symbols:
        return sympy.simplify(difference)
    try:
        with ctx.workprec(_ZERO_BITS):
            ball = enclose(difference)
    except NoBall:
        return difference
    if ball.contains(0):
        # equal to 100 digits and made from one expression: equal
        return Integer(0)
    return difference


def _value(expr: sympy.Expr, point: sympy.Expr) -> sympy.Expr | None:
    """The value by substitution where it is finite."""
    value = expr.subs(X, point)
    if value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo) or value.is_finite is False:
        return None
    return value


def _limit(expr: sympy.Expr, point: sympy.Expr, side: str) -> sympy.Expr:
    value = _value(expr, point)
    if value is None:
        value, done = within(_LIMIT_SECONDS, lambda: sympy.limit(expr, X, point, side), None)
        if not done or value is None or value.is_finite is not True:
            raise InputError(
                f"infinite or unknown limit of {str(expr)[:50]} at {point}",
                "derivative",
                "this derivative is not a function plus point masses",
            )
    return value
