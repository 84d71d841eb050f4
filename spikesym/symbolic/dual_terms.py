"""Activations as sums of terms whose Gaussian expectations close.

A term is c z^k exp(-gamma z^2 + alpha z) times at most one *gate*: the probability that a z + b + noise is
positive, which is a step function (no noise), or Phi(a z + b) (unit noise), hence erf. Pieces that meet at
break points are glued with steps, so that a kinked function is a sum of terms too, and its derivative is
one plus point masses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sympy
from sympy import Integer

from .symbols import X

if TYPE_CHECKING:
    from .functions import ScalarFunction

_ZERO = Integer(0)
_TRIGONOMETRIC = (sympy.sin, sympy.cos, sympy.sinh, sympy.cosh)


class NoClosedForm(Exception):
    """The function is not a finite sum of terms whose dual activation closes."""


@dataclass(frozen=True)
class Gate:
    """The probability of ``slope * z + offset + sqrt(noise) * xi > 0`` over xi ~ N(0, 1)."""

    slope: sympy.Expr
    offset: sympy.Expr
    noise: sympy.Expr


@dataclass(frozen=True)
class Term:
    """c z^power exp(-gamma z^2 + alpha z) gate(z)."""

    coefficient: sympy.Expr
    power: int = 0
    gamma: sympy.Expr = _ZERO
    alpha: sympy.Expr = _ZERO
    gate: Gate | None = None

    @property
    def is_monomial(self) -> bool:
        """Whether the term is c z^power and nothing else."""
        return self.gamma == 0 and self.alpha == 0 and self.gate is None

    def at(self, point: sympy.Expr) -> sympy.Expr:
        """Value of the term without its gate."""
        monomial = Integer(1) if self.power == 0 else point**self.power
        return self.coefficient * monomial * sympy.exp(-self.gamma * point**2 + self.alpha * point)


@dataclass(frozen=True)
class Atom:
    """A point mass ``weight * delta(z - point)``."""

    weight: sympy.Expr
    point: sympy.Expr


Part = Term | Atom


def terms_of(expr: sympy.Expr) -> list[Term]:
    """The terms of an analytic expression in ``X``; raises :class:`NoClosedForm`.

    Examples
    --------
    >>> terms_of(3 * X**2 * sympy.exp(-X))
    [Term(coefficient=3, power=2, gamma=0, alpha=-1, gate=None)]
    """
    rewritten = expr.replace(lambda e: isinstance(e, _TRIGONOMETRIC), lambda e: e.rewrite(sympy.exp))
    rewritten = rewritten.replace(sympy.erfc, lambda u: 1 - sympy.erf(u))
    expanded = sympy.expand(rewritten, power_exp=False)
    return add_up(term for product in sympy.Add.make_args(expanded) for term in _terms_of_product(product))


def _terms_of_product(product: sympy.Expr) -> list[Term]:
    coefficient, power, exponent = Integer(1), 0, _ZERO
    gate: Gate | None = None
    for factor in sympy.Mul.make_args(product):
        if not factor.has(X):
            coefficient *= factor
            continue
        base, order = factor.as_base_exp()
        if base == X and order.is_Integer and order > 0:
            power += int(order)
        elif isinstance(factor, sympy.exp):
            exponent += factor.args[0]
        elif base is sympy.E or (not base.has(X) and base.is_positive):
            exponent += order * sympy.log(base)
        elif isinstance(factor, sympy.erf) and gate is None:
            gate = _erf_gate(factor.args[0])
        else:
            raise NoClosedForm(f"factor {factor}")
    constant, alpha, square = _quadratic(exponent)
    plain = Term(coefficient * sympy.exp(constant), power, -square, alpha)
    if gate is None:
        return [plain]
    # erf(a z + b) = 2 Phi(sqrt(2) (a z + b)) - 1
    return [
        replace(plain, coefficient=2 * plain.coefficient, gate=gate),
        replace(plain, coefficient=-plain.coefficient),
    ]


def _quadratic(exponent: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr]:
    """Coefficients of 1, z, z^2 of the exponent."""
    try:
        polynomial = sympy.Poly(sympy.expand(exponent), X)
    except sympy.PolynomialError:
        raise NoClosedForm(f"exponent {exponent}") from None
    if polynomial.degree() > 2 or any(c.has(X) for c in polynomial.all_coeffs()):
        raise NoClosedForm(f"exponent {exponent}")
    c = polynomial.coeff_monomial
    return c(1), c(X), c(X**2)


def _erf_gate(argument: sympy.Expr) -> Gate:
    constant, slope, square = _quadratic(argument)
    if square != 0 or not (slope.is_real and constant.is_real):
        raise NoClosedForm(f"erf of {argument}")
    return Gate(sympy.sqrt(2) * slope, sympy.sqrt(2) * constant, Integer(1))


def add_up(terms: Iterable[Term]) -> list[Term]:
    """Add up terms that differ only in the coefficient; drop those that vanish."""
    total: dict[Term, sympy.Expr] = {}
    for term in terms:
        key = replace(term, coefficient=Integer(1))
        total[key] = total.get(key, _ZERO) + term.coefficient
    expanded = ((key, sympy.expand(c)) for key, c in total.items())
    return [replace(key, coefficient=c) for key, c in expanded if c != 0]


def decompose(function: ScalarFunction) -> list[Term]:
    """The terms of a function: those of its first piece, and at each break point those of the change, gated.

    Raises :class:`NoClosedForm` for a Python callable, for infinitely many break points, and for pieces
    that are not sums of terms.
    """
    if function.expr is None or not function.has_finite_breakpoints:
        raise NoClosedForm("no finite list of analytic pieces")
    pieces = function.pieces()
    previous = terms_of(pieces[0].expr)
    terms = list(previous)
    for piece in pieces[1:]:
        current = terms_of(piece.expr)
        step = Gate(Integer(1), -sympy.sympify(piece.lower), _ZERO)
        change = add_up([*current, *(replace(t, coefficient=-t.coefficient) for t in previous)])
        if any(t.gate is not None for t in change):
            raise NoClosedForm("a change of erf terms at a break point")
        terms += [replace(t, gate=step) for t in change]
        previous = current
    return add_up(terms)


def derivative(terms: Iterable[Term]) -> list[Part]:
    """The derivative in the sense of distributions: terms, and point masses where the function jumps."""
    regular: list[Term] = []
    atoms: list[Atom] = []
    for term in terms:
        if term.power > 0:
            regular.append(replace(term, coefficient=term.coefficient * term.power, power=term.power - 1))
        if term.alpha != 0:
            regular.append(replace(term, coefficient=term.coefficient * term.alpha))
        if term.gamma != 0:
            regular.append(
                replace(term, coefficient=-2 * term.coefficient * term.gamma, power=term.power + 1)
            )
        gate = term.gate
        if gate is None:
            continue
        if gate.noise == 0:
            point = -gate.offset / gate.slope
            atoms.append(Atom(term.at(point), point))
        else:
            scale, a, b = 1 / (2 * gate.noise), gate.slope, gate.offset
            density = a * sympy.exp(-(b**2) * scale) / sympy.sqrt(2 * sympy.pi * gate.noise)
            regular.append(
                Term(
                    term.coefficient * density,
                    term.power,
                    term.gamma + scale * a**2,
                    term.alpha - 2 * scale * a * b,
                )
            )
    weights: dict[sympy.Expr, sympy.Expr] = {}
    for atom in atoms:
        weights[atom.point] = weights.get(atom.point, _ZERO) + atom.weight
    simplified = ((point, sympy.expand(weight)) for point, weight in weights.items())
    return [*add_up(regular), *(Atom(weight, point) for point, weight in simplified if weight != 0)]


def is_homogeneous_kink(terms: Iterable[Term]) -> bool:
    """Whether the function is a polynomial plus a polynomial times the step at zero."""
    for term in terms:
        plain = term.gamma == 0 and term.alpha == 0
        gate = term.gate
        if not plain or (gate is not None and (gate.noise != 0 or gate.offset != 0)):
            return False
    return True
