"""Exact Gaussian expectations of a link or an activation, from its pieces and point masses.

Nothing here calls ``integrate``: pieces are sums of terms (polynomial, exponential, Gaussian, sine, error function)
whose moments over an interval follow from recurrences. What has no such form gives None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import sympy
from sympy import I, Integer, oo

from ..errors import InputError, NotIntegrableError
from .distributions import Atom, derivative
from .functions import ScalarFunction
from .gaussian_integrals import Combination, add_to, moments, total
from .gaussian_terms import NoClosedForm, Terms, terms_of
from .hermite import coefficient_formula as _formula
from .parity import polynomial_parts
from .pieces import Piece, pieces
from .roots import IsolatedRoot
from .symbols import X

__all__ = [
    "coefficient_formula",
    "exact_coefficient",
    "exact_coefficients",
    "exact_expectation",
    "piece_terms",
]

Function = Any  # ScalarFunction or SymPy expression in X

_MAX_K = 1000


def exact_coefficient(f: Function, k: int) -> sympy.Expr | None:
    """E[f(x) He_k(x)] for x ~ N(0, 1) in closed form, or None.

    f is taken to be integrable; :func:`spikesym.gaussian.gaussian_data` decides that. Free parameters are
    real; where the form depends on their sign and this is open, None.

    Examples
    --------
    >>> exact_coefficient(sympy.Max(0, X), 2)
    sqrt(2)/(2*sqrt(pi))
    >>> exact_coefficient(sympy.erf(X), 1), exact_coefficient(sympy.tanh(X), 1)
    (2*sqrt(3)/(3*sqrt(pi)), None)
    """
    if not 0 <= k <= _MAX_K:
        raise InputError(f"degree {k}", "k", f"closed forms are given for 0 <= k <= {_MAX_K}")
    expr = _expression(f)
    if expr is None:
        return None
    found = _coefficient(expr, k)
    return found if found is not None else _by_parity(expr, k)


def exact_coefficients(f: Function, count: int) -> list[sympy.Expr | None]:
    """c_0, ..., c_(count-1); see :func:`exact_coefficient`."""
    return [exact_coefficient(f, k) for k in range(count)]


def exact_expectation(
    f: Function, factors: Mapping[int, int] | None = None, weight: sympy.Expr | int = 1
) -> sympy.Expr | None:
    """E[weight(x) prod_i (f^(i)(x))^(n_i)] for ``factors`` {i: n_i}, derivatives as distributions; or None.

    ``weight`` is a polynomial in ``X``. E[f^2] is ``{0: 2}``, E[f'^2] ``{1: 2}``, E[f f''] ``{0: 1, 2: 1}``.

    Raises
    ------
    NotIntegrableError
        Where point masses meet (E[f'^2] of a function with a jump), so that the expectation is infinite
        or undefined.

    Examples
    --------
    >>> relu = sympy.Max(0, X)
    >>> [exact_expectation(relu, n) for n in ({0: 2}, {1: 2}, {0: 1, 2: 1}, {2: 1})]
    [1/2, 1/2, 0, sqrt(2)/(2*sqrt(pi))]
    """
    expr = _expression(f)
    factors = {i: n for i, n in (factors or {0: 1}).items() if n}
    weight = sympy.sympify(weight)
    if not weight.is_polynomial(X):
        raise InputError(
            f"not a polynomial: {weight}", "weight", "give a polynomial in the canonical variable x"
        )
    if expr is None:
        return None
    try:
        parts = {i: derivative(expr, i) for i in factors}
    except NotIntegrableError:
        raise
    except InputError:
        return None
    result: Combination = {}
    try:
        for atom, remaining in _meetings({i: d.atoms for i, d in parts.items()}, factors):
            _add_atom(result, expr, atom, remaining, weight)
        product = [
            Piece(
                p.lower,
                p.upper,
                weight * sympy.Mul(*(parts[i].pieces[j].expr ** n for i, n in factors.items())),
            )
            for j, p in enumerate(next(iter(parts.values())).pieces)
        ]
        _add_pieces(result, product, 0)
    except NoClosedForm:
        return None
    return _presented(result)


def coefficient_formula(f: Function) -> sympy.Expr | None:
    """c_k in closed form for symbolic k (``symbols.K``), or None; see :mod:`~spikesym.symbolic.hermite`.

    Examples
    --------
    >>> coefficient_formula(sympy.exp(2 * X))
    2**k*exp(2)
    """
    expr = _expression(f)
    if expr is None:
        return None
    return _formula(expr, lambda k: exact_coefficient(expr, k))


def piece_terms(expr: sympy.Expr) -> list[tuple[Piece, Terms]] | None:
    """The pieces with their terms, or None when some piece has no closed form."""
    try:
        return [(p, terms_of(p.expr)) for p in pieces(expr)]
    except (NoClosedForm, InputError):
        return None


# ---- from pieces ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _coefficient(expr: sympy.Expr, k: int) -> sympy.Expr | None:
    try:
        parts = _merged_pieces(expr)
        result: Combination = {}
        _add_pieces(result, parts, k)
    except NoClosedForm:
        return None
    return _presented(result)


@lru_cache(maxsize=256)
def _merged_pieces(expr: sympy.Expr) -> tuple[Piece, ...]:
    try:
        return pieces(expr)
    except InputError:
        raise NoClosedForm("break points") from None


def _expression(f: Function) -> sympy.Expr | None:
    return f.expr if isinstance(f, ScalarFunction) else sympy.sympify(f)


def _add_pieces(result: Combination, parts: Iterable[Piece], k: int) -> None:
    """Add the integrals of the pieces times He_k phi."""
    inner: Combination = {}
    names: dict[sympy.Expr, sympy.Symbol] = {}
    for piece in parts:
        if piece.lower.atoms(IsolatedRoot) or piece.upper.atoms(IsolatedRoot):
            raise NoClosedForm(
                f"break point {piece.lower if piece.lower.atoms(IsolatedRoot) else piece.upper}"
            )
        if piece.expr == 0:
            continue
        lower, upper, sign, terms = _oriented(piece, k)
        lower, upper = _named(lower, names), _named(upper, names)
        for (shape, power), coefficient in terms.items():
            add_to(inner, sign * coefficient, moments(shape, lower, upper).integral(k, power))
    back = {symbol: point for point, symbol in names.items()}
    for key, c in inner.items():
        add_to(result, Integer(1), {key.xreplace(back): c.xreplace(back)} if back else {key: c})


def _named(end: sympy.Expr, names: dict[sympy.Expr, sympy.Symbol]) -> sympy.Expr:
    """A symbol in place of an end that is slow to compute with (a root of a polynomial, a logarithm)."""
    if not end.has(sympy.CRootOf, sympy.erfinv, sympy.log, sympy.asin, sympy.acos, sympy.atan):
        return end
    return names.setdefault(end, sympy.Symbol(f"end{len(names)}", real=True))


def _oriented(piece: Piece, k: int) -> tuple[sympy.Expr, sympy.Expr, int, Terms]:
    """The piece as it is, or mirrored where roots of -x make the left half-line a function of |x|."""
    if not any(
        not p.exp.is_Integer and not p.exp.has(X) and p.base.has(X) for p in piece.expr.atoms(sympy.Pow)
    ):
        return piece.lower, piece.upper, 1, _terms(piece.expr)
    half_line = sympy.Symbol("x", positive=True)
    if piece.lower == 0 and piece.upper == oo:
        mirror, sign = half_line, 1
    elif piece.lower == -oo and piece.upper == 0:
        mirror, sign = -half_line, (-1) ** k
    else:
        raise NoClosedForm("a root on an interval")
    terms = terms_of(sympy.powdenest(piece.expr.subs(X, mirror)), half_line)
    return Integer(0), oo, sign, terms


@lru_cache(maxsize=1024)
def _terms(expr: sympy.Expr) -> Terms:
    return terms_of(expr)


def _presented(result: Combination) -> sympy.Expr:
    """One expression; conjugate exponentials become sines and cosines of constants, erf(iy) becomes erfi."""
    value = total(result)
    if not value.has(I):
        return value

    def polar(e: sympy.exp) -> sympy.Expr:
        size, angle = e.args[0].as_real_imag()
        return sympy.exp(size) * (sympy.cos(angle) + I * sympy.sin(angle))

    def imaginary(u: sympy.Expr) -> sympy.Expr:
        real, imag = u.as_real_imag()
        return I * sympy.erfi(imag) if real == 0 else sympy.erf(u)

    value = value.replace(lambda e: isinstance(e, sympy.exp) and e.args[0].has(I), polar)
    return sympy.expand(value.replace(sympy.erf, imaginary))


# ---- point masses --------------------------------------------------------------------------------------------


def _meetings(
    atoms: Mapping[int, tuple[Atom, ...]], factors: Mapping[int, int]
) -> Iterable[tuple[Atom, dict[int, int]]]:
    """Each point mass with the other factors that it multiplies."""
    for i, found in atoms.items():
        for atom in found:
            if factors[i] > 1 or any(
                j != i and a.point == atom.point for j, other in atoms.items() for a in other
            ):
                raise NotIntegrableError(
                    f"a product of point masses at {atom.point}",
                    "expectation",
                    "take a function without jumps",
                )
            yield atom, {j: n for j, n in factors.items() if j != i}


def _add_atom(
    result: Combination, expr: sympy.Expr, atom: Atom, remaining: Mapping[int, int], weight: sympy.Expr
) -> None:
    """Add weight * <delta^(order), u phi> = (-1)^order weight (u phi)^(order)(point)."""
    value: sympy.Expr = weight
    for i, n in remaining.items():
        value *= _continuous_at(expr, i, atom) ** n
    density = sympy.exp(-(X**2) / 2) / sympy.sqrt(2 * sympy.pi)
    term = (-1) ** atom.order * atom.weight * (value * density).diff(X, atom.order).subs(X, atom.point)
    if atom.point.atoms(IsolatedRoot):
        raise NoClosedForm(f"point mass at {atom.point}")
    add_to(result, Integer(1), {term: Integer(1)} if term != 0 else {})


def _continuous_at(expr: sympy.Expr, order: int, atom: Atom) -> sympy.Expr:
    """The factor f^(order) around a point mass, which must be smooth enough there for it."""
    around = derivative(expr, order).pieces
    left = next(p for p in around if p.upper == atom.point).expr
    right = next(p for p in around if p.lower == atom.point).expr
    for m in range(atom.order + 1):
        gap = sympy.simplify((right - left).diff(X, m).subs(X, atom.point))
        if gap != 0:
            raise NotIntegrableError(
                f"a point mass meets a jump at {atom.point}", "expectation", "take a function without jumps"
            )
    return right


# ---- symmetry ------------------------------------------------------------------------------------------------


def _by_parity(expr: sympy.Expr, k: int) -> sympy.Expr | None:
    """c_k where the part of f of the parity of k is a polynomial, as 1/2 is for the sigmoid."""
    part = polynomial_parts(expr)[k % 2]
    return None if part is None else _coefficient(part, k)
