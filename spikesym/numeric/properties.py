"""What a link or an activation is: its parity, its Lipschitz constant, its bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from flint import arb

from ..budget import within
from ..errors import CertificationError, InputError
from ..symbolic.symbols import X
from .arb_eval import compile
from .integrand import Integrand, end_ball, function_integrand
from .supremum import Unbounded, supremum
from .value import Value

_PARITY_BUDGET = 0.6
#: how far point masses are looked for where break points are infinitely many
_COVER = 12.0
_QUICK_BITS = 12


@dataclass(frozen=True)
class Bound:
    """A certified constant, or None with the reason why there is none."""

    value: Value | None
    reason: str


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

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> relu = make_function("relu(s-1)", "link")
    >>> first_point_mass(relu, 1), first_point_mass(relu, 2)
    (None, 1)
    """
    if function.expr is None:
        return None
    radius = None if function.has_finite_breakpoints else _COVER
    try:
        atoms = function.derivative(derivative, radius).atoms
    except InputError:
        return None
    points = [atom.point for atom in atoms if atom.weight != 0]
    return min(points, key=lambda point: abs(float(end_ball(point, 0.0)))) if points else None


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
