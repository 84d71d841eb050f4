"""A canonical form for dual activations: one coefficient for each transcendental factor and each radical."""

from __future__ import annotations

import itertools

import sympy
from sympy import I, Integer, asin, erf, exp

from .dual_engine import BivariateNormal, root, tidy
from .symbols import QP, Q, T

_TRANSCENDENTAL = (asin, erf, exp, BivariateNormal, sympy.sinh, sympy.cosh, sympy.Abs, sympy.sign)
_VARIABLES = (Q, QP, T)

#: the discriminant q q' - t^2; the roots of q and q', the sign of t, and sqrt(q q') - |t|
DELTA = sympy.Symbol("Delta", positive=True)
ROOT, ROOTP = sympy.symbols("root rootp", positive=True)
SIGN = sympy.Symbol("sigma_t", real=True)
GAP = sympy.Symbol("gap", positive=True)


def normalise(expr: sympy.Expr) -> sympy.Expr:
    """Radicals and arguments of functions in lowest terms, from the inside out."""
    return expr.replace(_needs_care, _with_care)


def _needs_care(e: sympy.Basic) -> bool:
    radical = isinstance(e, sympy.Pow) and e.exp.is_Rational and e.exp.q == 2
    return (radical or isinstance(e, exp | erf | asin | BivariateNormal)) and e.has(*_VARIABLES)


def _with_care(e: sympy.Expr) -> sympy.Expr:
    if isinstance(e, sympy.Pow):
        return root(e.base) ** e.exp.p if not e.base.is_Symbol else e
    return e.func(*(tidy(a) for a in e.args))


def present(expr: sympy.Expr) -> sympy.Expr:
    """The canonical form.

    Examples
    --------
    >>> w = sympy.sqrt(Q * QP - T**2)
    >>> present((T**2 / w + w) / Q)
    qp/sqrt(q*qp - t**2)
    """
    groups: dict[tuple[sympy.Expr, sympy.Expr], list[sympy.Expr]] = {}
    for term in products(normalise(expr)):
        factor, radical, coefficient = _split(term)
        groups.setdefault((factor, radical), []).append(coefficient)
    total = Integer(0)
    for (factor, radical), coefficients in groups.items():
        total += tidy(sympy.Add(*coefficients)) * factor * radical
    return total


def products(expr: sympy.Expr) -> list[sympy.Expr]:
    """The sum as products, multiplying out only what holds a radical or a transcendental function.

    SymPy's ``expand`` would also multiply out denominators, which hides common factors.
    """
    if _is_rational(expr):
        return [expr]
    if isinstance(expr, sympy.Add):
        return [product for term in expr.args for product in products(term)]
    if isinstance(expr, sympy.Mul):
        lists = [products(factor) for factor in expr.args]
        return [sympy.Mul(*choice) for choice in itertools.product(*lists)]
    if isinstance(expr, sympy.Pow) and expr.exp.is_Integer and expr.exp > 1 and not _is_rational(expr.base):
        parts = products(expr.base)
        return [sympy.Mul(*choice) for choice in itertools.product(parts, repeat=int(expr.exp))]
    return [expr]


def _is_rational(expr: sympy.Expr) -> bool:
    return bool(expr.is_rational_function(*_VARIABLES))


def _split(term: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    """The transcendental factor, the radical (powers 1/2 and -1/2) and the rational rest of a product."""
    factor = radical = coefficient = Integer(1)
    exponent = Integer(0)
    for part in sympy.Mul.make_args(term):
        base, order = part.as_base_exp()
        if isinstance(part, exp) and (part.has(*_VARIABLES) or not part.has(I)):
            exponent += part.args[0]
        elif not part.has(*_VARIABLES):
            coefficient *= part
        elif isinstance(base, _TRANSCENDENTAL):
            factor *= part
        elif order.is_Rational and order.q == 2:
            # odd powers share one radical, so that w and 1/w = w/w^2 are added up
            half = sympy.Rational(1, 2) if base.is_Symbol and order > 0 else -sympy.Rational(1, 2)
            radical *= base**half
            coefficient *= base ** (order - half)
        else:
            coefficient *= part
    return factor * exp(tidy(exponent)), radical, coefficient


def hyperbolic(expr: sympy.Expr) -> sympy.Expr:
    """A real sum of exponentials, some with complex exponents, in real functions.

    The real part of each term is taken, since the imaginary parts cancel in the sum. Then pairs of exponentials whose
    exponents differ in the sign of their odd part in t become cosh and sinh, which keeps the relative accuracy at
    small t.
    """
    by_exponent: dict[sympy.Expr, sympy.Expr] = {}
    for term in products(expr):
        exponent, coefficient = Integer(0), Integer(1)
        for part in sympy.Mul.make_args(term):
            if isinstance(part, exp) and part.has(*_VARIABLES):
                exponent += part.args[0]
            else:
                coefficient *= part
        exponent, coefficient = _real_part(tidy(exponent), coefficient)
        by_exponent[exponent] = by_exponent.get(exponent, Integer(0)) + coefficient
    total = Integer(0)
    while by_exponent:
        exponent, coefficient = by_exponent.popitem()
        mirrored = tidy(exponent.subs(T, -T))
        even, odd = tidy((exponent + mirrored) / 2), tidy((exponent - mirrored) / 2)
        if odd == 0 or mirrored not in by_exponent:
            total += _factored(coefficient) * exp(exponent)
            continue
        other = by_exponent.pop(mirrored)
        if odd.could_extract_minus_sign():
            odd, coefficient, other = -odd, other, coefficient
        plus, minus = _factored(coefficient + other), _factored(coefficient - other)
        total += exp(even) * (plus * sympy.cosh(odd) + minus * sympy.sinh(odd))
    return total


def _real_part(exponent: sympy.Expr, coefficient: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """The real part of coefficient * exp(exponent), as a real coefficient and a real exponent."""
    if not exponent.has(I) and not coefficient.has(I):
        return exponent, coefficient
    growth, phase = sympy.expand(exponent).as_real_imag()
    real, imaginary = sympy.expand_complex(coefficient).as_real_imag()
    phase = tidy(phase)
    rotated = real if phase == 0 else real * sympy.cos(phase) - imaginary * sympy.sin(phase)
    return tidy(growth), sympy.expand(rotated)


def _factored(expr: sympy.Expr) -> sympy.Expr:
    if _is_rational(expr):
        return tidy(expr)
    return sympy.factor_terms(sympy.expand(expr)) if expr.has(sympy.sin, sympy.cos) else expr


def in_discriminant(expr: sympy.Expr) -> sympy.Expr:
    """Sums in q, q', t^2 that become sums of positive terms in q, q' and ``DELTA`` = q q' - t^2 are written so.

    Evaluated in floating point such a sum has no cancellation as t approaches +-sqrt(q q').

    Examples
    --------
    >>> in_discriminant(sympy.sqrt(1 + 2 * Q + 2 * QP + 4 * Q * QP - 4 * T**2))
    sqrt(4*Delta + 2*q + 2*qp + 1)
    """
    return expr.replace(lambda e: isinstance(e, sympy.Add) and _is_rational(e) and e.has(T), _positive_sum)


def _positive_sum(expr: sympy.Expr) -> sympy.Expr:
    rewritten = sympy.expand(expr.subs(T**2, Q * QP - DELTA))
    if rewritten.has(T):
        return expr
    signs = {term.as_coeff_Mul()[0].is_positive for term in sympy.Add.make_args(rewritten)}
    return rewritten if len(signs) == 1 and None not in signs else expr


def in_gap(expr: sympy.Expr) -> sympy.Expr:
    """Differences such as q - t and q + q' - 2 t in ``ROOT``, ``ROOTP``, ``SIGN`` and ``GAP``, free of cancellation.

    As t^2 approaches q q' they are divided by the discriminant, or its root, which vanishes faster than their rounding
    errors would; t = sign (root root' - gap) keeps them consistent with it.

    Examples
    --------
    >>> in_gap(sympy.exp(-(Q + QP - 2 * T))).subs(SIGN, 1)
    exp(-2*gap - (root - rootp)**2)
    >>> in_gap(Q + T)
    -gap*sigma_t + root*(root + rootp*sigma_t)
    """
    return expr.replace(lambda e: isinstance(e, sympy.Add) and e.has(T) and _is_rational(e), _linear_in_roots)


def _linear_in_roots(expr: sympy.Expr) -> sympy.Expr:
    form = sympy.Poly(expr, Q, QP, T)
    if form.total_degree() != 1 or form.coeff_monomial(1) != 0:
        return expr
    a, c, m = (form.coeff_monomial(v) for v in (Q, QP, T))
    if c == 0 and a != 0:
        return ROOT * (a * ROOT + m * SIGN * ROOTP) - m * SIGN * GAP
    if a == 0 and c != 0:
        return ROOTP * (c * ROOTP + m * SIGN * ROOT) - m * SIGN * GAP
    if (a * c).is_positive and sympy.expand(m**2 - 4 * a * c) == 0:
        orientation = sympy.sign(a)
        aligned = m / (2 * sympy.sqrt(a * c)) * orientation
        square = (sympy.sqrt(abs(a)) * ROOT + aligned * SIGN * sympy.sqrt(abs(c)) * ROOTP) ** 2
        return orientation * square - m * SIGN * GAP
    return expr
