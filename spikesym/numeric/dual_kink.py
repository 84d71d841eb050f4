"""Fast and stable evaluation of the dual activations of polynomials with a kink or jump at zero.

Each pair of monomials gives q^(a/2) q'^(b/2) f(theta), where f is read off the closed form: a polynomial in the
cosine times the angle, a sum of powers of the sine, and a polynomial. Where these cancel (near theta = pi for
ReLU: sin + (pi - theta) cos), f is summed as a power series in pi - theta, made from the same closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import factorial
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray
from sympy import Integer, asin, pi, sqrt

from ..symbolic.dual import pair_formula
from ..symbolic.dual_terms import Gate, Term, is_homogeneous_kink
from ..symbolic.symbols import QP, Q, T
from .arb_eval import evaluate

Array = NDArray[Any]

#: cosine and sine of the angle, and the arcsine of the cosine
COS, SIN, ARC = sympy.symbols("cos sin arc")
_SERIES_TERMS = 60
#: ratio of the sizes of the terms to the sum beyond which a form counts as cancelling
_CANCELLATION = 4.0


@dataclass(frozen=True)
class AngularFunction:
    """f(theta) = asin(cos) sum_n A_n(cos) sin^n + sum_n S_n(cos) sin^n, in float64.

    ``arcs`` and ``sines`` hold pairs of n and the coefficients of A_n and S_n, lowest first.
    """

    arcs: tuple[tuple[int, tuple[float, ...]], ...]
    sines: tuple[tuple[int, tuple[float, ...]], ...]
    expr: sympy.Expr

    def __call__(self, cosine: Array, sine: Array) -> Array:
        """Values at angles given by cosine and sine; the sine must be accurate where it is small."""
        value = self.direct(cosine, sine)
        limit = self.series_below
        if limit > 0:
            near = cosine < np.cos(np.pi - limit)
            if near.any():
                value = np.asarray(value)
                value[near] = self.series(np.arctan2(sine[near], -cosine[near]))
        return value

    def direct(self, cosine: Array, sine: Array) -> Array:
        """The closed form as it stands."""
        total = _sum_of_powers(self.sines, cosine, sine)
        if self.arcs:
            total += _sum_of_powers(self.arcs, cosine, sine) * np.arctan2(cosine, sine)
        return total

    def direct_of_cosine(self, cosine: Array, sine: Array) -> Array:
        """The closed form in the float type given, away from theta = 0 and pi; few passes, for matrices."""
        arc = np.arcsin(cosine) if self.arcs else None
        parts = []
        for powers, times in ((self.arcs, arc), (self.sines, None)):
            for power, coefficients in powers:
                factor = None if power == 0 else sine if power == 1 else sine ** cosine.dtype.type(power)
                parts.append(
                    (coefficients, times if factor is None else factor if times is None else factor * times)
                )
        total = None
        for coefficients, factor in parts:
            if factor is None:
                part = _horner(coefficients, cosine)
            elif len(coefficients) == 1:
                part = factor * cosine.dtype.type(coefficients[0])
            else:
                part = _horner(coefficients, cosine)
                part *= factor
            total = part if total is None else np.add(total, part, out=total)
        return np.zeros_like(cosine) if total is None else total

    def series(self, rest: Array) -> Array:
        """The power series in ``rest`` = pi - theta."""
        order, coefficients = self._series
        return _horner(coefficients, rest * rest if self._even_steps else rest) * rest**order

    @cached_property
    def series_below(self) -> float:
        """Width of the neighbourhood of pi in which the series is used; 0 if the closed form never cancels there."""
        if any(n < 0 for n, _ in (*self.sines, *self.arcs)):
            return 0.0
        width = 0.0
        for candidate in (0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75):
            cosine, sine = np.array([-np.cos(candidate)]), np.array([np.sin(candidate)])
            arc = np.abs(np.arctan2(cosine, sine))
            size = sum(_sizes(c, cosine) * sine**n for n, c in self.sines)
            size = size + sum(_sizes(c, cosine) * sine**n for n, c in self.arcs) * arc
            if float(size[0]) > _CANCELLATION * float(abs(self.series(np.array([candidate])))[0]):
                width = candidate
        return width

    @cached_property
    def _even_steps(self) -> bool:
        _, coefficients = self._raw_series
        return not any(coefficients[1::2])

    @cached_property
    def _series(self) -> tuple[int, tuple[float, ...]]:
        order, coefficients = self._raw_series
        return order, coefficients[::2] if self._even_steps else coefficients

    @cached_property
    def _raw_series(self) -> tuple[int, tuple[float, ...]]:
        """Leading order and coefficients of the expansion at theta = pi, from exact power series."""
        by_constant = _expand_at_pi(self.expr)
        # constants such as 1 and 1/pi are independent over the rationals: a sum vanishes if each part does
        order = next((k for k in range(_SERIES_TERMS) if any(s[k] for s in by_constant.values())), 0)
        total = np.zeros(_SERIES_TERMS - order)
        for constant, series in by_constant.items():
            total += float(evaluate(constant, 80).mid()) * np.array([float(c) for c in series[order:]])
        return order, tuple(total.tolist())


def angular_function(formula: sympy.Expr) -> AngularFunction:
    """The angular function of a closed form in q, q', t that is homogeneous in q and in q'.

    Examples
    --------
    >>> relu = [Term(Integer(1), 1, gate=Gate(Integer(1), Integer(0), Integer(0)))]
    >>> f = angular_function(pair_formula(relu, 0, 0))
    >>> tiny = np.array([1e-9])
    >>> float(f(-np.cos(tiny), np.sin(tiny))[0] / (tiny[0]**3 / (6 * np.pi)))
    1.0
    """
    return of_circle(on_circle(formula))


def on_circle(formula: sympy.Expr) -> sympy.Expr:
    """A closed form in q, q', t at q = q' = 1, in ``COS``, ``SIN`` and ``ARC`` = asin(cos)."""
    at_one = formula.subs({Q: 1, QP: 1}, simultaneous=True)
    expr = at_one.replace(asin, lambda a: ARC).subs(1 - T**2, SIN**2)
    expr = sympy.expand(sympy.powdenest(expr, force=True)).subs(T, COS)
    return sympy.expand(expr.subs(sqrt(SIN**2), SIN))


def of_circle(expr: sympy.Expr) -> AngularFunction:
    """The angular function of an expression in ``COS``, ``SIN``, ``ARC`` that is linear in the last."""
    by_angle = sympy.collect(sympy.expand(expr), ARC, evaluate=False)
    if set(by_angle) - {Integer(1), ARC}:
        raise ArithmeticError(f"not linear in the angle: {expr}")
    arcs, sines = (_powers_of_sine(by_angle.get(factor, Integer(0))) for factor in (ARC, Integer(1)))
    return AngularFunction(arcs, sines, expr)


def _powers_of_sine(expr: sympy.Expr) -> tuple[tuple[int, tuple[float, ...]], ...]:
    parts = []
    for factor, polynomial in sympy.collect(expr, SIN, evaluate=False).items():
        power = 0 if factor == 1 else int(factor.as_base_exp()[1])
        if polynomial != 0:
            parts.append((power, _coefficients(polynomial)))
    return tuple(sorted(parts))


def _coefficients(polynomial: sympy.Expr) -> tuple[float, ...]:
    listed = sympy.Poly(polynomial, COS).all_coeffs()[::-1]
    return tuple(float(evaluate(c, 80).mid()) for c in listed)


def _expand_at_pi(expr: sympy.Expr) -> dict[sympy.Expr, list[Fraction]]:
    """Taylor coefficients in x, where cos = -cos x, sin = sin x, asin(cos) = x - pi/2; by irrational constant."""
    totals: dict[sympy.Expr, list[Fraction]] = {}
    polynomial = sympy.Poly(sympy.expand(expr.subs(ARC, ARC - pi / 2)), COS, SIN, ARC)
    for (i, j, k), coefficient in polynomial.terms():
        for term in sympy.Add.make_args(sympy.expand(coefficient)):
            rational, constant = term.as_coeff_Mul()
            factor = Fraction(int(rational.p), int(rational.q)) * (-1) ** i
            total = totals.setdefault(constant, [Fraction(0)] * _SERIES_TERMS)
            series = _power_series(i, j)
            for power in range(_SERIES_TERMS - k):
                total[power + k] += factor * series[power]
    return totals


@cache
def _power_series(i: int, j: int) -> tuple[Fraction, ...]:
    """Taylor coefficients of cos(x)^i sin(x)^j."""
    if i == j == 0:
        return (Fraction(1), *[Fraction(0)] * (_SERIES_TERMS - 1))
    parity = 0 if i else 1
    factor = [
        Fraction((-1) ** (k // 2), factorial(k)) if k % 2 == parity else Fraction(0)
        for k in range(_SERIES_TERMS)
    ]
    rest = _power_series(i - 1, j) if i else _power_series(i, j - 1)
    product = [Fraction(0)] * _SERIES_TERMS
    for m, a in enumerate(factor):
        if a:
            for n in range(_SERIES_TERMS - m):
                if rest[n]:
                    product[m + n] += a * rest[n]
    return tuple(product)


def _sum_of_powers(parts: Sequence[tuple[int, tuple[float, ...]]], cosine: Array, sine: Array) -> Array:
    total = np.zeros_like(cosine)
    for power, coefficients in parts:
        part = _horner(coefficients, cosine)
        if power:
            with np.errstate(divide="ignore"):
                part = part * sine**power
        total += part
    return total


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    if len(coefficients) == 1:
        return np.full_like(x, coefficients[0])
    total = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        if c:
            total += c
        total *= x
    if coefficients[0]:
        total += coefficients[0]
    return np.asarray(total)


def _sizes(coefficients: Sequence[float], x: Array) -> Array:
    """Sum of the sizes of the terms of a polynomial."""
    return _horner([abs(c) for c in coefficients], np.abs(x))


def by_degree(terms: Sequence[Term], i: int = 0, j: int = 0) -> dict[tuple[int, int], sympy.Expr]:
    """Closed forms of E[f^(i)(U) f^(j)(U')] for kinked polynomials, by their degrees in sqrt(q) and sqrt(q')."""
    groups: dict[tuple[int, int], sympy.Expr] = {}
    for first in terms:
        for second in terms:
            formula = pair_formula([first], i, j, other=[second])
            if formula != 0:
                key = (first.power - i, second.power - j)
                groups[key] = groups.get(key, Integer(0)) + formula
    return groups


@dataclass(frozen=True)
class KinkDual:
    """E[f^(i)(U) f^(j)(U')] as a sum of q^(a/2) q'^(b/2) times functions of the angle.

    ``parts`` holds (a, b, function). Zero variances are limits with independent directions (cosine 0).
    """

    parts: tuple[tuple[int, int, AngularFunction], ...]

    @classmethod
    def of(cls, terms: Sequence[Term], i: int, j: int) -> KinkDual | None:
        """From the terms of the activation; None unless it is a polynomial with a kink or jump at zero."""
        if not is_homogeneous_kink(terms) or any(t.coefficient.free_symbols for t in terms):
            return None
        functions = ((a, b, angular_function(f)) for (a, b), f in by_degree(terms, i, j).items())
        return cls(tuple(p for p in functions if p[2].expr != 0))

    def __call__(self, q: Array, qp: Array, t: Array, delta: Array) -> Array:
        """Values at float64 arrays of one shape; ``delta`` is q q' - t^2, accurate where it is small."""
        root, root_p = np.sqrt(q), np.sqrt(qp)
        scale = root * root_p
        zero = scale == 0
        safe = np.where(zero, 1.0, scale)
        cosine = np.where(zero, 0.0, np.clip(t / safe, -1.0, 1.0))
        sine = np.where(zero, 1.0, np.minimum(np.sqrt(delta) / safe, 1.0))
        return self.at_angle(root, root_p, cosine, sine)

    def at_angle(self, root: Array, root_p: Array, cosine: Array, sine: Array) -> Array:
        """Values from standard deviations and an angle."""
        total = np.zeros(np.shape(cosine))
        for a, b, function in self.parts:
            with np.errstate(divide="ignore"):
                total += root ** float(a) * root_p ** float(b) * function(cosine, sine)
        return total

    def of_cosine(self, cosine: Array, sine: Array, root: Array, root_p: Array) -> Array:
        """Values on a block from cosines (n, m) and norms (n,), (m,), in the float type of the cosines."""
        total = None
        with np.errstate(divide="ignore", invalid="ignore"):
            for a, b, function in self.parts:
                part = function.direct_of_cosine(cosine, sine)
                if a:
                    part *= (root ** float(a)).astype(cosine.dtype)[:, None]
                if b:
                    part *= (root_p ** float(b)).astype(cosine.dtype)[None, :]
                total = part if total is None else np.add(total, part, out=total)
        return np.zeros_like(cosine) if total is None else total


def step_at_zero() -> Gate:
    """The gate 1{z > 0}."""
    return Gate(Integer(1), Integer(0), Integer(0))
