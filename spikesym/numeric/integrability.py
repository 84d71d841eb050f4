"""Whether E[f^2] is finite: proved, or refused with the reason."""

from __future__ import annotations

from typing import Any

import sympy
from flint import acb, arb, ctx

from ..errors import CertificationError, NotIntegrableError
from ..symbolic.symbols import X
from .arb_eval import compile
from .integrand import Integrand, end_ball, function_integrand, is_regular, point_order, tail_growth
from .orders import Undecided, sign

#: the interval around zero that is covered by balls; beyond it growth decides
_COVER = 12.0
_FINEST = 2.0**-34
_BESIDE = 2.0**-12
_MOST_INTERVALS = 4000
_REMEDY = "give a function g with finite E[g(s)^2] for s ~ N(0, 1)"


def check_square_integrable(function: Any, where: str) -> None:
    """Raise :class:`~spikesym.errors.NotIntegrableError` with the reason unless E[f^2] is proved finite.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> check_square_integrable(make_function("log(abs(s))", "link"), "--link")
    >>> check_square_integrable(make_function("1/s", "link"), "--link")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    spikesym.errors.NotIntegrableError: --link: E[g(s)^2] is infinite: g(s)^2 grows like |s|^(-2) at s = 0; ...
    """
    name = {"--activation": "sigma(z)"}.get(where, "g(s)")
    check_integrand(function_integrand(function, lambda e: e), where, name)


def check_integrand(integrand: Integrand, where: str, name: str) -> None:
    """The same for a function given by its pieces; ``name`` is what errors call it.

    Examples
    --------
    >>> check_integrand(Integrand.of_expression(sympy.exp(X**2 / 5)), "--link", "g(s)")
    """
    old = ctx.prec
    ctx.prec = 64
    try:
        pieces = list(integrand.pieces(_COVER))
        for end, side, expr in _finite_ends(pieces):
            _check_end(expr, end, side, where, name)
        for piece in pieces:
            _check_inside(piece, where, name)
        for side, expr in ((1, integrand.right), (-1, integrand.left)):
            _check_tail(expr, side, integrand.start, where, name)
    finally:
        ctx.prec = old


def _decays(b: sympy.Expr, a: sympy.Expr, p: sympy.Expr) -> bool:
    """Whether t^p exp(a t + b t^2) is proved to be integrable at infinity."""
    try:
        for exponent in (b, a):
            if trend := sign(exponent):
                return trend < 0
        return sign(p + 1) < 0
    except Undecided:
        return False


def _finite_ends(pieces: list[Any]) -> list[tuple[Any, int, sympy.Expr]]:
    """Endpoints with the side that a piece lies on, nearest to zero first: errors name that one."""
    ends = [(e, side, p.expr) for p in pieces for e, side in ((p.lower, 1), (p.upper, -1))]
    finite = [item for item in ends if item[0] not in (sympy.oo, -sympy.oo)]
    return sorted(finite, key=lambda item: abs(float(end_ball(item[0], 0.0))))


def _refuse(what: str, where: str) -> NotIntegrableError:
    return NotIntegrableError(what, where, _REMEDY)


def _check_tail(expr: sympy.Expr, side: int, start: float, where: str, name: str) -> None:
    place = f"{name[-2]} -> {'+' if side > 0 else '-'}infinity"
    try:
        _, order = tail_growth(expr, side, start)
    except CertificationError as error:
        raise _refuse(f"E[{name}^2] could not be shown to be finite: {error}", where) from None
    if order.range.largest == 0 or _decays(2 * order.b - sympy.Rational(1, 2), 2 * order.a, 2 * order.p):
        return
    if order.is_two_sided:
        growth = "exp(x^2/4)" if order.b is not sympy.oo else "exp(c x^2) for every c"
        kind = "as fast as" if order.b == sympy.Rational(1, 4) else "faster than"
        raise _refuse(f"E[{name}^2] is infinite: {name} grows {kind} {growth} as {place}", where)
    raise _refuse(f"E[{name}^2] could not be shown to be finite: growth as {place}", where)


def _check_end(expr: sympy.Expr, end: Any, side: int, where: str, name: str) -> None:
    """A singular endpoint: |x - x0|^(-p) is square integrable for p < 1/2."""
    ball = end_ball(end, 0.0)
    beside = compile(expr, (X,), real=True)(ball + side * arb(2) ** -6)
    if is_regular(expr, ball) or not beside.is_finite():
        return  # where it is not real, the check of the inside says so
    try:
        _, order = point_order(expr, end, side)
    except CertificationError as error:
        raise _refuse(f"E[{name}^2] could not be shown to be finite: {error}", where) from None
    # with t = 1/|x - x0| the integral of f^2 dx is that of f^2 t^(-2) dt
    if _decays(2 * order.b, 2 * order.a, 2 * order.p - 2):
        return
    at = f"{name[-2]} = {end}"
    if not order.is_two_sided:
        raise _refuse(f"E[{name}^2] could not be shown to be finite at {at}", where)
    flat = order.a == 0 and order.b == 0
    growth = f"{_distance(name, end)}^{_exponent(-2 * order.p)}" if flat else "the exponential of a pole"
    raise _refuse(f"E[{name}^2] is infinite: {name}^2 grows like {growth} at {at}", where)


def _distance(name: str, end: sympy.Expr) -> str:
    return f"|{name[-2]}|" if end == 0 else f"|{name[-2]} - {end}|".replace("- -", "+ ")


def _exponent(power: sympy.Expr) -> str:
    text = str(power if power.is_Integer else sympy.N(power, 4))
    return f"({text})"


def _check_inside(piece: Any, where: str, name: str) -> None:
    """Every piece is finite and real: cover it by intervals, and say what is wrong where that fails."""
    value = compile(piece.expr, (X,), real=True)
    low, high = end_ball(piece.lower, -_COVER), end_ball(piece.upper, _COVER)
    ends = [e for e, raw in ((low, piece.lower), (high, piece.upper)) if raw not in (sympy.oo, -sympy.oo)]
    jobs = [(low.max(arb(-_COVER)), high.min(arb(_COVER)))]
    budget = _MOST_INTERVALS
    while jobs:
        a, b = jobs.pop()
        budget -= 1
        # next to an endpoint the order there has been looked at
        beside = any(abs(e - m) < _BESIDE for e in ends for m in (a, b)) and b - a < _BESIDE
        if not a < b or beside or value(a.union(b)).is_finite():
            continue
        middle = ((a + b) / 2).mid()
        at = float(middle)
        if not value(middle).is_finite() and _is_complex(piece.expr, middle):
            region = "< 0" if at < 0 else f"= {at:.4g}"
            raise _refuse(f"{name} is not a real number for {name[-2]} {region}", where)
        if b - a < _FINEST or budget < 0:
            raise _singular_inside(piece.expr, a, b, where, name)
        jobs += [(a, middle), (middle, b)]


def _is_complex(expr: sympy.Expr, at: arb) -> bool:
    value = compile(expr, (X,))(acb(at))
    return bool(value.is_finite()) and not value.imag.contains(0)


def _singular_inside(expr: sympy.Expr, a: arb, b: arb, where: str, name: str) -> NotIntegrableError:
    """A point inside a piece without finite value: a pole is proved by a sign change of the denominator."""
    at = float(((a + b) / 2).mid())
    top, bottom = sympy.fraction(sympy.together(_with_quotients(expr)))
    low, high = a - arb(2) ** -10, b + arb(2) ** -10
    over, under = compile(top, (X,), real=True), compile(bottom, (X,), real=True)
    changes = (under(low) < 0 and under(high) > 0) or (under(low) > 0 and under(high) < 0)
    near = low.union(high)
    if changes and under(near).is_finite() and not over(near).contains(0):
        return _refuse(f"E[{name}^2] is infinite: {name} has a pole near {name[-2]} = {at:.6g}", where)
    return _refuse(f"E[{name}^2] could not be shown to be finite: {name} near {name[-2]} = {at:.6g}", where)


def _with_quotients(expr: sympy.Expr) -> sympy.Expr:
    """tan, cot, sec, csc as quotients of sine and cosine."""
    sine, cosine = sympy.sin, sympy.cos
    for function, quotient in (
        (sympy.tan, lambda w: sine(w) / cosine(w)),
        (sympy.cot, lambda w: cosine(w) / sine(w)),
        (sympy.sec, lambda w: 1 / cosine(w)),
        (sympy.csc, lambda w: 1 / sine(w)),
    ):
        expr = expr.replace(function, quotient)
    return expr
