"""Break points and analytic pieces of a function with kinks, jumps, branches and singular points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy
from flint import ctx
from sympy import Integer, Rational, oo
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from ..errors import InputError
from .roots import NoBall, enclose, sign_at, sign_of, sort_points
from .symbols import X
from .zeros import InfinitelyMany, Undecided, zeros

#: functions that change their form where an argument vanishes
SWITCHES = (sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Max, sympy.Min, sympy.Piecewise)


_PROBE = Rational(10007, 16384)


@dataclass(frozen=True)
class Piece:
    """An open interval (lower, upper) on which ``expr`` (in ``X``) is analytic and equals the function."""

    lower: sympy.Expr
    upper: sympy.Expr
    expr: sympy.Expr


def pieces(expr: sympy.Expr, radius: Any = None) -> tuple[Piece, ...]:
    """The analytic pieces of an expression in ``X``, ascending; they cover the line, or [-radius, radius].

    Their expressions are free of Abs, Max, Min, sign, Heaviside and Piecewise. Slopes that are free
    parameters are taken to be non-zero.

    Raises :class:`~spikesym.errors.InputError` without ``radius`` when the break points are not finitely
    many, and when their order depends on parameters without value.

    Examples
    --------
    >>> for piece in pieces(abs(X**2 - 2)):
    ...     print(piece.lower, piece.upper, piece.expr)
    -oo -sqrt(2) x**2 - 2
    -sqrt(2) sqrt(2) 2 - x**2
    sqrt(2) oo x**2 - 2
    """
    try:
        found = _pieces(sympy.sympify(expr), _rational(radius))
    except InfinitelyMany as reason:
        raise InputError(
            f"break points not known to be finitely many: {reason}", str(expr)[:60], "ask within a radius"
        ) from None
    except (Undecided, NoBall) as reason:
        raise InputError(
            f"break points are open: {reason}",
            str(expr)[:60],
            "give values of the parameters by --set NAME=VALUE",
        ) from None
    return found


def breakpoints(expr: sympy.Expr, radius: Any = None) -> tuple[sympy.Expr, ...]:
    """Points between the pieces (within [-radius, radius]); see :func:`pieces`.

    Examples
    --------
    >>> breakpoints(sympy.Max(0, X - Rational(1, 2)) + abs(sympy.tanh(X)))
    (0, 1/2)
    """
    limit = _rational(radius)
    points = [p.lower for p in pieces(expr, radius)[1:]]
    return tuple(p for p in points if limit is None or p.free_symbols or sign_of(limit - abs(p)) != -1)


@lru_cache(maxsize=512)
def has_finite_breakpoints(expr: sympy.Expr) -> bool:
    """Whether the pieces are known to be finitely many, with known break points."""
    try:
        _pieces(expr, None)
    except (InfinitelyMany, Undecided, NoBall, InputError):
        return False
    return True


def homogeneous_coefficients(expr: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
    """(p, q) with f(x) = p x + q |x|, or None when f is not homogeneous of degree one.

    Examples
    --------
    >>> homogeneous_coefficients(sympy.Max(X, X / 10)), homogeneous_coefficients(sympy.tanh(X))
    ((11/20, 9/20), None)
    """
    try:
        found = pieces(expr)
    except InputError:
        return None
    if len(found) > 2 or (len(found) == 2 and found[0].upper != 0):
        return None
    slopes = []
    for piece in found:
        slope = sympy.cancel(sympy.expand(piece.expr) / X)
        if slope.has(X):
            return None
        slopes.append(slope)
    left, right = slopes[0], slopes[-1]
    return sympy.expand((left + right) / 2), sympy.expand((right - left) / 2)


def _rational(radius: Any) -> Rational | None:
    if radius is None:
        return None
    if isinstance(radius, sympy.Rational):
        return radius
    exact = Fraction(radius)
    return Rational(exact.numerator, exact.denominator)


@lru_cache(maxsize=2048)
def _pieces(expr: sympy.Expr, radius: Rational | None) -> tuple[Piece, ...]:
    expr = _canonical(expr)
    first, last = (-oo, oo) if radius is None or _is_smooth(expr) else (-radius, radius)
    ends = [first, *_strictly_between(_switch_points(expr, radius), first, last), last]
    found: list[Piece] = []
    for lower, upper in pairwise(ends):
        resolved = resolve(expr, lower, upper)
        singular = _strictly_between(_singular_points(resolved, radius), lower, upper)
        cuts = [lower, *singular, upper]
        for i, (low, high) in enumerate(pairwise(cuts)):
            piece = Piece(low, high, resolved)
            if i == 0 and found and _continues(found[-1], piece, radius):
                found[-1] = Piece(found[-1].lower, high, found[-1].expr)
            else:
                found.append(piece)
    return tuple(found)


def _is_smooth(expr: sympy.Expr) -> bool:
    return not expr.has(*SWITCHES) and not any(True for _ in _singular_equations(expr))


def _continues(before: Piece, after: Piece, radius: Rational | None) -> bool:
    """Whether the function is analytic across the point where two pieces meet."""
    if before.expr != after.expr:
        difference = before.expr - after.expr
        # cheap at a point first: expanding may take long
        if not difference.free_symbols - {X} and sign_at(difference, _PROBE) in (1, -1):
            return False
        if sympy.expand(difference) != 0:
            return False
    return after.lower not in sort_points([*_singular_points(after.expr, radius)])


def _strictly_between(points: list[sympy.Expr], lower: sympy.Expr, upper: sympy.Expr) -> list[sympy.Expr]:
    def is_less(a: sympy.Expr, b: sympy.Expr) -> bool:
        if a == -oo or b == oo:
            return True
        return a != b and sort_points([a, b]) == [a, b]

    return sort_points([p for p in points if is_less(lower, p) and is_less(p, upper)])


# ---- where the function may change or is singular ------------------------------------------------------------


def _switch_points(expr: sympy.Expr, radius: Rational | None) -> list[sympy.Expr]:
    points: list[sympy.Expr] = []
    for node in sympy.preorder_traversal(expr):
        if isinstance(node, SWITCHES) and node.has(X):
            for equation in _switch_equations(node):
                points += _zeros_of_pieces(equation, radius)
    return sort_points(points)


def _switch_equations(node: sympy.Expr) -> Iterator[sympy.Expr]:
    if isinstance(node, sympy.Max | sympy.Min):
        for i, a in enumerate(node.args):
            yield from (a - b for b in node.args[:i])
    elif isinstance(node, sympy.Piecewise):
        for _, condition in node.args:
            for relation in condition.atoms(sympy.core.relational.Relational):
                yield relation.lhs - relation.rhs
    else:
        yield node.args[0]


def _zeros_of_pieces(equation: sympy.Expr, radius: Rational | None) -> list[sympy.Expr]:
    """Zeros and break points of an expression that may itself have pieces."""
    if not equation.has(*SWITCHES):
        return zeros(equation, radius) + _singular_points(equation, radius)
    points: list[sympy.Expr] = []
    parts = _pieces(equation, radius)
    for piece in parts:
        points.append(piece.lower)
        points += _strictly_between(zeros(piece.expr, radius), piece.lower, piece.upper)
    return points[1:]


def _singular_points(expr: sympy.Expr, radius: Rational | None) -> list[sympy.Expr]:
    return [z for equation in _singular_equations(expr) for z in zeros(equation, radius)]


def _singular_equations(expr: sympy.Expr) -> Iterator[sympy.Expr]:
    """Expressions whose zeros are the points where an expression without switches is not analytic."""
    for node in sympy.preorder_traversal(expr):
        if not node.has(X):
            continue
        if isinstance(node, sympy.Pow):
            base, exponent = node.args
            if base.has(X) and not (exponent.is_Integer and exponent >= 0):
                yield base
        elif isinstance(node, sympy.log):
            yield node.args[0]
        elif isinstance(node, sympy.tan | sympy.sec):
            yield sympy.cos(node.args[0])
        elif isinstance(node, sympy.cot | sympy.csc):
            yield sympy.sin(node.args[0])
        elif isinstance(node, sympy.coth | sympy.csch):
            yield node.args[0]
        elif isinstance(node, sympy.asin | sympy.acos):
            yield from (node.args[0] - 1, node.args[0] + 1)


# ---- which branch holds on an interval -----------------------------------------------------------------------


def resolve(expr: sympy.Expr, lower: sympy.Expr, upper: sympy.Expr) -> sympy.Expr:
    """The expression on (lower, upper), where no switch changes, written without switches."""
    sample = _sample(lower, upper)
    known: dict[sympy.Basic, sympy.Expr] = {}

    def sign(part: sympy.Expr) -> int:
        return _sign_at(part, sample)

    def visit(node: sympy.Basic) -> sympy.Basic:
        if not node.has(X) or not node.has(*SWITCHES):
            return node
        if node not in known:
            known[node] = choose(node)
        return known[node]

    def choose(node: sympy.Basic) -> sympy.Basic:
        if isinstance(node, sympy.Piecewise):
            for branch, condition in node.args:
                if _holds(condition, lambda part: sign(visit(part))):
                    return visit(branch)
            raise InputError(
                f"no branch holds on ({lower}, {upper})",
                str(node)[:60],
                "end the Piecewise with (value, True)",
            )
        arguments = [visit(a) for a in node.args]
        if isinstance(node, sympy.Abs):
            s = sign(arguments[0])
            return s * arguments[0] if s else Integer(0)
        if isinstance(node, sympy.sign):
            return Integer(sign(arguments[0]))
        if isinstance(node, sympy.Heaviside):
            return Rational(1 + sign(arguments[0]), 2)
        if isinstance(node, sympy.Max | sympy.Min):
            best, side = arguments[0], 1 if isinstance(node, sympy.Max) else -1
            for other in arguments[1:]:
                best = other if sign(other - best) == side else best
            return best
        return node.func(*arguments)

    result = visit(expr)
    if result.has(sympy.zoo, sympy.nan):
        raise InputError(f"undefined on ({lower}, {upper})", str(expr)[:60], "give a function that is finite")
    return result


def _sample(lower: sympy.Expr, upper: sympy.Expr) -> sympy.Expr:
    """A point inside the interval; rational where there are no parameters."""
    if lower.free_symbols or upper.free_symbols:
        if lower == -oo:
            return upper - 1
        return lower + 1 if upper == oo else (lower + upper) / 2
    with ctx.workprec(256):
        if lower == -oo and upper == oo:
            return Rational(7, 16)
        if lower == -oo:
            middle = enclose(upper) - 1
        elif upper == oo:
            middle = enclose(lower) + 1
        else:
            middle = (enclose(lower) + enclose(upper)) / 2
        man, exp = middle.mid().man_exp()
    return Rational(int(man)) * Rational(2) ** int(exp)


def _sign_at(part: sympy.Expr, sample: sympy.Expr) -> int:
    if part.free_symbols - {X} or sample.free_symbols:
        value = sympy.expand(part.subs(X, sample))
        for sign, test in ((0, value.is_zero), (1, value.is_positive), (-1, value.is_negative)):
            if test:
                return sign
        raise Undecided(f"sign of {value}")
    found = sign_at(part, sample)
    if found is None and sympy.expand(part) != 0 and sympy.simplify(part) != 0:
        raise Undecided(f"sign of {str(part)[:60]} near {sample}")
    return found or 0


def _holds(condition: sympy.Basic, sign: Any) -> bool:
    if isinstance(condition, BooleanTrue | BooleanFalse):
        return bool(condition)
    if isinstance(condition, And):
        return all(_holds(c, sign) for c in condition.args)
    if isinstance(condition, Or):
        return any(_holds(c, sign) for c in condition.args)
    if isinstance(condition, Not):
        return not _holds(condition.args[0], sign)
    if isinstance(condition, sympy.ITE):
        test, then, otherwise = condition.args
        return _holds(then if _holds(test, sign) else otherwise, sign)
    s = sign(condition.lhs - condition.rhs)
    return bool(type(condition)(Integer(s), Integer(0)))


def _canonical(expr: sympy.Expr) -> sympy.Expr:
    """With free parameters: switches of linear arguments written with slope one.

    |a x + b| = |a| |x + b/a| and sign(a x + b) = sign(a) sign(x + b/a) for a other than 0; Max, Min and
    Heaviside of them by Abs and sign.
    """
    if not expr.free_symbols - {X}:
        return expr

    def fold(node: sympy.Expr) -> sympy.Expr:
        side = 1 if isinstance(node, sympy.Max) else -1
        value = node.args[0]
        for other in node.args[1:]:
            value = (value + other + side * _scaled_abs(value - other)) / 2
        return value

    expr = expr.replace(
        lambda e: isinstance(e, sympy.Max | sympy.Min) and e.free_symbols - {X} != set(), fold
    )
    expr = expr.replace(sympy.Heaviside, lambda u, *half: (1 + _scaled_sign(u)) / 2)
    return expr.replace(sympy.Abs, _scaled_abs).replace(sympy.sign, _scaled_sign)


def _slope(u: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr] | None:
    if not u.has(X) or not u.free_symbols - {X} or not u.is_polynomial(X) or sympy.degree(u, X) != 1:
        return None
    a, b = sympy.Poly(u, X).all_coeffs()
    return (a, b) if a.free_symbols else None


def _scaled_abs(u: sympy.Expr) -> sympy.Expr:
    if (line := _slope(u)) is None:
        return sympy.Abs(u, evaluate=False) if u.has(X) else sympy.Abs(u)
    a, b = line
    return sympy.Abs(a) * sympy.Abs(X + b / a)


def _scaled_sign(u: sympy.Expr) -> sympy.Expr:
    if (line := _slope(u)) is None:
        return sympy.sign(u)
    a, b = line
    return sympy.sign(a) * sympy.sign(X + b / a)
