"""Functions on their analytic pieces, as quadrature takes them, and how they behave at the ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import sympy
from flint import acb, arb, ctx

from ..errors import CertificationError
from ..symbolic.symbols import X
from .arb_eval import compile, evaluate
from .growth import growth_at_infinity, order_at_point
from .orders import Order, Undecided

#: where growth at infinity and orders at a point are tried from
_STARTS = (4.0, 8.0, 16.0, 32.0, 64.0)
_REACHES = (1.0, 0.125, 2.0**-8, 2.0**-16, 2.0**-32)


class PieceLike(Protocol):
    """An open interval on which ``expr`` (in X) is analytic."""

    @property
    def lower(self) -> Any:
        """Left end: an exact SymPy real, -oo, or an object with ``ball(bits)``."""

    @property
    def upper(self) -> Any:
        """Right end, likewise."""

    @property
    def expr(self) -> sympy.Expr:
        """The expression in X."""


@dataclass(frozen=True)
class Integrand:
    """F on its pieces, and beyond all of them.

    Parameters
    ----------
    pieces : callable
        Maps a radius R to the pieces that cover [-R, R].
    left, right : sympy.Expr
        Expressions (in X) that equal F for x <= -start and x >= start; they may contain ``Abs`` and the like.
    start : float
        From where those hold.
    """

    pieces: Callable[[float], Sequence[PieceLike]]
    left: sympy.Expr
    right: sympy.Expr
    start: float = 0.0

    @classmethod
    def of_expression(cls, expr: sympy.Expr) -> Integrand:
        """F given by one expression that is analytic on the whole line."""
        return cls(lambda radius: [PlainPiece(-sympy.oo, sympy.oo, expr)], expr, expr)


@dataclass(frozen=True)
class PlainPiece:
    """An interval with its expression."""

    lower: Any
    upper: Any
    expr: sympy.Expr


def function_integrand(function: Any, of_piece: Callable[[sympy.Expr], sympy.Expr]) -> Integrand:
    """The integrand made from a ScalarFunction by a map of expressions, such as squaring or differentiating.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> squared = function_integrand(make_function("abs(s-1)", "link"), lambda e: e**2)
    >>> [(p.lower, p.upper, p.expr) for p in squared.pieces(9.0)]
    [(-oo, 1, (1 - x)**2), (1, oo, (x - 1)**2)]
    """
    if not function.has_finite_breakpoints:
        whole = of_piece(function.expr)
        return Integrand(lambda radius: _mapped(function.pieces(radius), of_piece), whole, whole)
    pieces = _mapped(function.pieces(), of_piece)
    ends = [end_ball(piece.upper, 0.0) for piece in pieces[:-1]]
    # a little beyond, for the rounding to a double
    start = max((float(abs(end).upper()) * (1 + 1e-12) for end in ends), default=0.0)
    return Integrand(lambda radius: pieces, pieces[0].expr, pieces[-1].expr, start)


def _mapped(pieces: Sequence[PieceLike], of_piece: Callable[[sympy.Expr], sympy.Expr]) -> list[PlainPiece]:
    return [PlainPiece(piece.lower, piece.upper, of_piece(piece.expr)) for piece in pieces]


def end_ball(end: Any, clip: float) -> arb:
    """An endpoint as a ball; infinite ones are clipped."""
    if end in (sympy.oo, -sympy.oo):
        return arb(clip)
    if hasattr(end, "ball"):
        return end.ball(ctx.prec)
    return evaluate(end, ctx.prec)


def tail_growth(expr: sympy.Expr, side: int, start: float) -> tuple[float, Order]:
    """The growth of F at side * infinity, and from where it holds.

    Examples
    --------
    >>> start, order = tail_growth(X**2 * sympy.tanh(X), 1, 0.0)
    >>> start, order.p, order.tends_to_infinity
    (4.0, 2, True)
    """
    problem = ""
    for candidate in _STARTS:
        first = max(candidate, start + (1.0 if candidate > _STARTS[0] else 0.0))
        try:
            return first, growth_at_infinity(expr, X, side, first)
        except Undecided as error:
            problem = str(error)
    raise CertificationError(f"growth of {str(expr)[:80]} at {'+' if side > 0 else '-'}infinity: {problem}")


def point_order(expr: sympy.Expr, point: sympy.Expr, side: int) -> tuple[float, Order]:
    """The order of F at a point from one side, and the distance to which it holds.

    Examples
    --------
    >>> reach, order = point_order(1 / sympy.sin(X), sympy.Integer(0), 1)
    >>> reach, order.p, order.is_two_sided
    (1.0, 1, True)
    """
    problem = ""
    for reach in _REACHES:
        try:
            return reach, order_at_point(expr, X, point, side, reach)
        except Undecided as error:
            problem = str(error)
    raise CertificationError(f"order of {str(expr)[:80]} at {point}: {problem}")


def is_regular(expr: sympy.Expr, end: arb) -> bool:
    """Whether the expression (in X) is analytic on some disc around the point.

    Examples
    --------
    >>> is_regular(sympy.sqrt(X), arb(0)), is_regular(sympy.sqrt(X), arb(1))
    (False, True)
    """
    function = compile(expr, (X,))
    for exponent in (4, 10, 20):
        disc = acb(end + arb(0, 2.0**-exponent), arb(0, 2.0**-exponent))
        if function(disc, analytic=True).is_finite():
            return True
    return False
