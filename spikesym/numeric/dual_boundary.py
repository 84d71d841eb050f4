"""Certified dual activations on the boundary t^2 = q q', where the pair is one Gaussian times signs.

Closed forms of the interior have removable singularities there; the expectation is one-dimensional and is computed
as such: point masses by evaluation, the rest by certified quadrature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sympy
from flint import arb

from ..errors import CertificationError
from ..symbolic.symbols import X
from .arb_eval import evaluate
from .quadrature import Integrand, PlainPiece, function_integrand, hermite_moments

if TYPE_CHECKING:
    from ..symbolic.functions import ScalarFunction


def boundary_ball(
    function: ScalarFunction, i: int, j: int, q: sympy.Expr, qp: sympy.Expr, t: sympy.Expr, bits: int
) -> arb:
    """E[f^(i)(sqrt(q) z) f^(j)(+-sqrt(q') z)], the sign being that of t.

    A variance of zero puts that factor at the point 0, where a jump counts half. Raises
    :class:`~spikesym.errors.CertificationError` where two point masses meet or a point mass meets a jump.
    """
    sign = -1 if t.is_negative else 1
    if not function.has_finite_breakpoints:
        return _without_masses(function, i, j, sympy.sqrt(q), sign * sympy.sqrt(qp), bits)
    first = _Scaled(function, i, sympy.sqrt(q))
    second = _Scaled(function, j, sign * sympy.sqrt(qp))
    points = _sorted({*first.points, *second.points})
    pieces = []
    for low, high in zip([-sympy.oo, *points], [*points, sympy.oo], strict=True):
        inside = _between(low, high)
        pieces.append(PlainPiece(low, high, first.at(inside) * second.at(inside)))
    start = max((abs(float(p)) for p in points), default=0.0)
    integrand = Integrand(lambda radius: pieces, pieces[0].expr, pieces[-1].expr, start)
    total = hermite_moments(integrand, 1, bits)[0]
    for one, other in ((first, second), (second, first)):
        for point, weight in one.masses:
            if any(sympy.expand(point - p) == 0 for p, _ in other.masses):
                raise CertificationError(f"infinite: two point masses meet at z = {point}")
            density = sympy.exp(-(point**2) / 2) / sympy.sqrt(2 * sympy.pi)
            total += evaluate(weight * density * other.limit(point), bits)
    return total


def _without_masses(
    function: ScalarFunction, i: int, j: int, scale: sympy.Expr, scale_p: sympy.Expr, bits: int
) -> arb:
    """The product as one function, for infinitely many break points; no derivatives."""
    if i or j:
        raise CertificationError("derivatives with infinitely many break points on the boundary t^2 = q q'")
    from ..symbolic.functions import make_function

    expr = function.symbolic()
    product = expr.subs(X, scale * X) * expr.subs(X, scale_p * X)
    if not product.has(X):
        return evaluate(product, bits)
    return hermite_moments(function_integrand(make_function(product, "activation"), lambda e: e), 1, bits)[0]


class _Scaled:
    """z -> f^(order)(scale z): pieces in z, and point masses (point, weight)."""

    def __init__(self, function: ScalarFunction, order: int, scale: sympy.Expr) -> None:
        self.scale, self.order = scale, order
        self.pieces: Sequence[Any] = function.pieces()
        breaks = [sympy.sympify(p.lower) for p in self.pieces[1:]]
        self.exprs = [sympy.diff(p.expr, X, order) for p in self.pieces]
        self.points: list[sympy.Expr] = [] if scale == 0 else [b / scale for b in breaks]
        self.breaks = breaks
        self.masses = self._masses()

    def _masses(self) -> list[tuple[sympy.Expr, sympy.Expr]]:
        """A jump of f^(order - 1) is a point mass of f^(order); jumps of lower derivatives are derivatives of masses."""
        masses = []
        for number, b in enumerate(self.breaks):
            left, right = self.pieces[number].expr, self.pieces[number + 1].expr
            for derivative in range(self.order):
                jump = sympy.simplify((sympy.diff(right - left, X, derivative)).subs(X, b))
                if jump == 0:
                    continue
                if self.scale == 0 and b != 0:
                    continue
                if derivative < self.order - 1 or self.scale == 0:
                    raise CertificationError(f"infinite: a point mass, or a derivative of one, at z = {b}")
                masses.append((b / self.scale, jump / abs(self.scale)))
        return masses

    def at(self, z: sympy.Expr) -> sympy.Expr:
        """The expression (in X, scaled) that holds near the point z."""
        if self.scale == 0:
            return self.limit(z)
        number = sum(bool(self.scale * z > b) for b in self.breaks)
        return self.exprs[number].subs(X, self.scale * X)

    def limit(self, z: sympy.Expr) -> sympy.Expr:
        """The value at z; at a break point the mean of both sides, which is the limit from the interior at z = 0."""
        argument = self.scale * z
        for number, b in enumerate(self.breaks):
            if sympy.expand(argument - b) == 0:
                left, right = (self.exprs[n].subs(X, b) for n in (number, number + 1))
                if argument != 0 and sympy.simplify(left - right) != 0:
                    raise CertificationError(f"undefined: a point mass meets a jump at z = {b}")
                return (left + right) / 2
        number = sum(bool(argument > b) for b in self.breaks)
        return self.exprs[number].subs(X, argument)


def _sorted(points: set[sympy.Expr]) -> list[sympy.Expr]:
    ordered = sorted(points, key=float)
    kept: list[sympy.Expr] = []
    for point in ordered:
        if not kept or sympy.expand(point - kept[-1]) != 0:
            kept.append(point)
    return kept


def _between(low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
    if low == -sympy.oo:
        return sympy.Integer(0) if high == sympy.oo else high - 1
    return low + 1 if high == sympy.oo else (low + high) / 2
