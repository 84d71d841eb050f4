"""What a link or an activation is: square integrable or not, its parity, its Lipschitz constant, its bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from flint import acb, arb, ctx

from ..budget import within
from ..errors import CertificationError, InputError, NotIntegrableError
from ..symbolic.symbols import X
from .arb_eval import compile
from .orders import Undecided
from .orders import sign as exponent_sign
from .quadrature import Integrand, end_ball, function_integrand, is_regular, point_order, tail_growth
from .supremum import Unbounded, supremum
from .value import Value

_PARITY_BUDGET = 0.6
_COVER = 12.0
_FINEST = 2.0**-34
_BESIDE = 2.0**-12
_MOST_INTERVALS = 4000
_QUICK_BITS = 12
_REMEDY = "give a function g with finite E[g(s)^2] for s ~ N(0, 1)"


@dataclass(frozen=True)
class Bound:
    """A certified constant, or None with the reason why there is none."""

    value: Value | None
    reason: str


# ---- square integrability ------------------------------------------------------------------------------------


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
    """The same for a function given by its pieces; ``name`` is what errors call it."""
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
            if trend := exponent_sign(exponent):
                return trend < 0
        return exponent_sign(p + 1) < 0
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
    flat = order.a == 0 and order.b == 0
    # with t = 1/|x - x0| the integral of t^(2p) dx is that of t^(2p - 2) dt
    if flat and _decays(order.b, order.a, 2 * order.p - 2):
        return
    at = f"{name[-2]} = {end}"
    if not order.is_two_sided:
        raise _refuse(f"E[{name}^2] could not be shown to be finite at {at}", where)
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


# ---- parity --------------------------------------------------------------------------------------------------


def parity(function: Any) -> str | None:
    """``"even"`` or ``"odd"`` where that is proved symbolically, else None.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> parity(make_function("tanh(3*s) - s/2", "link")), parity(make_function("abs(s)", "link"))
    ('odd', 'even')
    >>> parity(make_function("relu", "link")) is None
    True
    """
    if function.expr is None:
        return None
    candidates = {"even": 1, "odd": -1}
    # parameters get some admissible values here: one counterexample is enough
    guesses = {v: sympy.Rational(7 + 3 * i, 11 + i) for i, v in enumerate(function.parameters)}
    value = compile(function.expr.xreplace(guesses), (X,), real=True)
    for point in (arb("0.7310585"), arb("1.6180339"), arb("2.7182818"), arb("0.1414213")):
        there, here = value(-point), value(point)
        for name, sign in list(candidates.items()):
            gap = there - sign * here
            if gap.is_finite() and not gap.contains(0):
                del candidates[name]
    for name, sign in candidates.items():
        proved, _ = within(_PARITY_BUDGET, partial(_is_symmetric, function, sign), False)
        if proved:
            return name
    return None


def _is_symmetric(function: Any, sign: int) -> bool:
    """Whether f(-x) = sign f(x), piece by mirrored piece (values at break points do not count)."""
    whole = function.expr.subs(X, -X) - sign * function.expr
    if whole == 0 or sympy.expand(whole) == 0:
        return True
    if not function.has_finite_breakpoints:
        return _vanishes(whole)
    pieces = list(function.pieces())
    for piece, mirror in zip(pieces, reversed(pieces), strict=True):
        if sympy.simplify(piece.lower + mirror.upper) not in (0, sympy.nan):
            return False
        if not _vanishes(piece.expr.subs(X, -X) - sign * mirror.expr):
            return False
    return True


def _vanishes(expr: sympy.Expr) -> bool:
    """Whether an analytic expression is identically zero: directly, or by its derivative and one value."""
    if _reduces_to_zero(expr):
        return True
    if _reduces_to_zero(expr.diff(X)):
        return any(expr.subs(X, point).is_zero for point in (0, 1))
    return bool(sympy.simplify(expr) == 0)


def _reduces_to_zero(expr: sympy.Expr) -> bool:
    if expr == 0 or sympy.expand(expr) == 0:
        return True
    numerator = sympy.fraction(sympy.together(expr.rewrite(sympy.exp)))[0]
    return bool(sympy.expand(sympy.powsimp(sympy.expand(numerator))) == 0)


# ---- Lipschitz constant and bound ----------------------------------------------------------------------------


def bound(function: Any) -> Bound:
    """sup |f|, certified, or the reason why f is not bounded.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> bound(make_function("tanh", "link")).value.text(12)
    '1'
    >>> bound(make_function("relu", "link")).reason
    'unbounded: grows without bound as x -> +infinity'
    """
    return _certified_supremum(function, lambda e: e, "unbounded")


def lipschitz(function: Any) -> Bound:
    """The Lipschitz constant sup |f'|, certified, or the reason why f is not Lipschitz.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> lipschitz(make_function("tanh(3*s) - s/2", "link")).value.text(12)
    '2.5'
    >>> lipschitz(make_function("sign", "link")).reason
    'not Lipschitz: jumps at x = 0'
    """
    jump = first_point_mass(function, 1)
    if jump is not None:
        return Bound(None, f"not Lipschitz: jumps at x = {jump}")
    return _certified_supremum(function, lambda e: e.diff(X), "not Lipschitz: the derivative")


def first_point_mass(function: Any, derivative: int) -> Any | None:
    """Where the derivative of this order has a point mass, or None (looked for around zero).

    None too where one-sided limits are infinite: there the derivative is no function plus point masses,
    which its growth at that point tells.
    """
    if function.expr is None:
        return None
    radius = None if function.has_finite_breakpoints else _COVER
    try:
        atoms = function.derivative(derivative, radius).atoms
    except InputError:
        return None
    return next((atom.point for atom in atoms if atom.weight != 0), None)


def _certified_supremum(function: Any, of_piece: Callable[[sympy.Expr], sympy.Expr], word: str) -> Bound:
    if function.expr is None:
        return Bound(None, "not decided for a Python callable")
    if function.parameters:
        return Bound(None, "not decided with free parameters")
    integrand = function_integrand(function, of_piece)
    try:
        supremum(integrand, 60)
    except Unbounded as error:
        return Bound(None, f"{word}: {error}" if word == "unbounded" else f"{word} {error}")
    except CertificationError:
        return _loose_bound(integrand)
    return Bound(Value(encloser=lambda bits: supremum(integrand, bits - 8), method="certified supremum"), "")


def _loose_bound(integrand: Integrand) -> Bound:
    """An upper bound where the supremum itself could not be had to many digits."""
    try:
        ball = supremum(integrand, _QUICK_BITS)
    except Unbounded as error:
        return Bound(None, f"unbounded: {error}")
    except CertificationError as error:
        return Bound(None, f"not decided: {error}")
    upper = ball.upper()
    return Bound(Value(encloser=lambda bits: upper, method="upper bound of the supremum"), "")
