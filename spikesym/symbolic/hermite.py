"""Hermite coefficients c_k = E[f He_k] in closed form for symbolic k.

Polynomial pieces: after deg + 1 derivatives only point masses are left, and E[delta_b^(j) He_i] = phi(b) He_{i+j}(b).
Exponentials and Gaussians: from the generating function of He_k. erf: by its derivative. A factor x: by
x He_k = He_{k+1} + k He_{k-1}. Degrees at which the general form does not hold are listed in a Piecewise.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import sympy
from sympy import I, Integer, Rational, cos, pi, sqrt

from ..errors import InputError
from .distributions import derivative
from .gaussian_terms import NoClosedForm, Shape, Terms, terms_of
from .pieces import pieces
from .roots import IsolatedRoot
from .symbols import K

_MAX_EXCEPTIONS = 40
_CHECKED = 6
_DIGITS = 40


def coefficient_formula(expr: sympy.Expr, exact: Callable[[int], sympy.Expr | None]) -> sympy.Expr | None:
    """c_k for symbolic k of an expression in ``X``, or None; ``exact`` gives c_k for a number k.

    The formula is compared with ``exact`` at small k; where it differs, those k become cases.

    Examples
    --------
    >>> from spikesym.symbolic.moments import coefficient_formula as of
    >>> from spikesym.symbolic.symbols import X
    >>> of(sympy.sin(X)), of(X**2)
    (exp(-1/2)*sin(pi*k/2), Piecewise((1, Eq(k, 0)), (2, Eq(k, 2)), (0, True)))
    """
    try:
        general, first = _general(expr)
    except (NoClosedForm, InputError):
        return None
    cases = []
    for k in range(first + _CHECKED):
        value = exact(k)
        if value is None:
            return None
        if not _agrees(general, k, value):
            if k >= first:
                return None
            cases.append((value, sympy.Eq(K, k)))
    return sympy.Piecewise(*cases, (general, True)) if cases else general


def _agrees(general: sympy.Expr, k: int, value: sympy.Expr) -> bool:
    """Whether the general form gives ``value`` at k, to 30 digits and at random values of parameters."""
    try:
        difference = general.subs(K, k) - value
    except (ValueError, ZeroDivisionError):
        return False
    if difference.has(sympy.nan, sympy.zoo, sympy.hermite_prob):
        return False
    if difference == 0:
        return True
    free = sorted(difference.free_symbols, key=str)
    draw = random.Random(k)
    for _ in range(3 if free else 1):
        values = {v: Rational(draw.randint(-300, 300) or 1, 211) for v in free}
        gap, size = (sympy.N(e.subs(values), _DIGITS) for e in (difference, value))
        if not gap.is_number or not abs(gap) < Rational(1, 10**30) * (1 + abs(size)):
            return False
    return True


def _general(expr: sympy.Expr) -> tuple[sympy.Expr, int]:
    """The general form, and from which k on it must hold."""
    parts = [(p, terms_of(p.expr)) for p in pieces(expr)]
    if any(p.lower.atoms(IsolatedRoot) for p, _ in parts):
        raise NoClosedForm("break point without closed form")
    smooth = [{key: c for key, c in terms.items() if not key[0].is_one} for _, terms in parts]
    if any(s != smooth[0] for s in smooth):
        raise NoClosedForm("different exponentials on the pieces")
    degree = 0
    for _, terms in parts:
        for (shape, power), _c in terms.items():
            if not power.is_Integer:
                raise NoClosedForm("roots")
            if shape.is_one:
                degree = max(degree, int(power))
    if degree > _MAX_EXCEPTIONS:
        raise NoClosedForm("degree")
    general, first = Integer(0), degree + 1
    for (shape, power), coefficient in _without_conjugates(smooth[0]):
        term, from_k = _shifted(shape, int(power), coefficient)
        general, first = general + term, max(first, from_k)
    return _simplified(general) + _from_point_masses(expr, degree + 1), first


def _simplified(general: sympy.Expr) -> sympy.Expr:
    """Gamma functions of arguments that differ by an integer written by the lowest of them."""
    general = sympy.simplify(general)
    arguments = {g.args[0] for g in general.atoms(sympy.gamma) if g.has(K)}
    if len(arguments) < 2:
        return general
    lowest = min(arguments, key=lambda u: u.subs(K, 0))

    def lowered(u: sympy.Expr) -> sympy.Expr:
        steps = sympy.expand(u - lowest)
        return (
            sympy.rf(lowest, steps).expand(func=True) * sympy.gamma(lowest)
            if steps.is_Integer
            else sympy.gamma(u)
        )

    return sympy.factor_terms(sympy.simplify(sympy.factor_terms(general.replace(sympy.gamma, lowered))))


def _from_point_masses(expr: sympy.Expr, order: int) -> sympy.Expr:
    """E of the point masses of f^(order) times He_{k - order}."""
    result = Integer(0)
    if len(pieces(expr)) == 1:
        return result
    for atom in derivative(expr, order).atoms:
        density = sympy.exp(-(atom.point**2) / 2) / sqrt(2 * pi)
        result += atom.weight * density * hermite_at(K - order + atom.order, atom.point)
    return sympy.expand(result, func=False)


def hermite_at(k: sympy.Expr, point: sympy.Expr) -> sympy.Expr:
    """He_k(point) for symbolic k; at 0 by the gamma function, which vanishes by itself for odd k.

    Examples
    --------
    >>> hermite_at(K, Integer(0)).subs(K, 4), hermite_at(K, Integer(0)).subs(K, 3)
    (3, 0)
    """
    if point == 0:
        return (
            2 ** (k / 2)
            * sympy.gamma((k + 1) / 2)
            * sympy.expand_trig(cos(sympy.expand(pi * k / 2)))
            / sqrt(pi)
        )
    return sympy.hermite_prob(k, point)


# ---- terms on the whole line ---------------------------------------------------------------------------------


def _without_conjugates(terms: Terms) -> list[tuple[tuple[Shape, sympy.Expr], sympy.Expr]]:
    """Terms with real exponents, and one of each pair of complex ones."""
    chosen = []
    for (shape, power), c in terms.items():
        frequency = sympy.im(shape.alpha) if shape.alpha.has(I) else Integer(0)
        if frequency.could_extract_minus_sign():
            continue
        chosen.append(((shape, power), c))
    return chosen


def _shifted(shape: Shape, power: int, coefficient: sympy.Expr) -> tuple[sympy.Expr, int]:
    """c_k of coefficient x^power shape(x), and from which k on."""
    base, first = _base(shape, coefficient)
    for _ in range(power):
        base = base.subs(K, K + 1) + K * base.subs(K, K - 1)
        first += 1
    return base, first


def _base(shape: Shape, coefficient: sympy.Expr) -> tuple[sympy.Expr, int]:
    if shape.pole is not None or len(shape.gates) > 1:
        raise NoClosedForm("shape")
    if shape.gates:
        if shape.alpha != 0 or shape.gamma != 0:
            raise NoClosedForm("erf with an exponential")
        factor, inner = shape.without_gate(0)
        general, first = _base(inner, coefficient * factor)
        return general.subs(K, K - 1), first + 1
    alpha, gamma = shape.alpha, shape.gamma
    if gamma == 0:
        if not alpha.has(I):
            return coefficient * alpha**K * sympy.exp(alpha**2 / 2), 0
        return _wave(alpha, coefficient), 0
    precision = 1 + 2 * gamma
    if not precision.is_positive or alpha.has(I):
        raise NoClosedForm("Gaussian")
    head = coefficient * sympy.exp(alpha**2 / (2 * precision)) / sqrt(precision)
    ratio = 2 * gamma / precision
    if alpha == 0:
        # (ratio)^(k/2) He_k(0), which is even in k also for a negative ratio
        if ratio.is_nonnegative:
            return head * ratio ** (K / 2) * hermite_at(K, Integer(0)), 0
        if ratio.is_negative:
            return head * (-ratio) ** (K / 2) * hermite_at(K, Integer(0)) * cos(pi * K / 2), 0
        raise NoClosedForm("Gaussian of open sign")
    if not ratio.is_nonnegative:
        raise NoClosedForm("growing Gaussian with a drift")
    return head * ratio ** (K / 2) * hermite_at(K, alpha / (precision * sqrt(ratio))), 0


def _wave(alpha: sympy.Expr, coefficient: sympy.Expr) -> sympy.Expr:
    """c alpha^k exp(alpha^2/2) plus its conjugate."""
    growth, frequency = alpha.as_real_imag()
    constant = sympy.expand(coefficient * sympy.exp(I * growth * frequency), complex=True)
    if not frequency.is_real or constant.free_symbols:
        raise NoClosedForm("wave with parameters")
    size, phase = sympy.simplify(sympy.Abs(constant)), sympy.simplify(sympy.arg(constant))
    head = 2 * size * sympy.exp((growth**2 - frequency**2) / 2)
    if growth == 0:
        # (i w)^k = w^k exp(i pi k/2) for either sign of w
        return head * frequency**K * sympy.expand_trig(cos(pi * K / 2 + phase))
    modulus, angle = sympy.sqrt(growth**2 + frequency**2), sympy.atan2(frequency, growth)
    return head * modulus**K * cos(K * angle + phase)
