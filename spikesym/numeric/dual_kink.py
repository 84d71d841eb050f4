"""Fast and stable evaluation of the dual activations of polynomials with a kink or jump at zero.

Each pair of monomials gives q^(a/2) q'^(b/2) f(theta), where f is read off the closed form: a polynomial in the
cosine times the angle, a sum of powers of the sine, and a polynomial. Where these cancel (near theta = pi for
ReLU: sin + (pi - theta) cos), f is summed as a power series in pi - theta, made from the same closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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

_COS, _SIN, _ANGLE = sympy.symbols("cos sin angle")
_SERIES_TERMS = 60
#: ratio of the sizes of the terms to the sum beyond which a form counts as cancelling
_CANCELLATION = 4.0


@dataclass(frozen=True)
class AngularFunction:
    """f(theta) = A(cos) asin(cos) + sum_n S_n(cos) sin^n, in float64.

    ``arc`` holds the coefficients of A, lowest first; ``sines`` maps n to those of S_n.
    """

    arc: tuple[float, ...]
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
        total = np.zeros_like(cosine)
        for power, coefficients in self.sines:
            part = _horner(coefficients, cosine)
            if power:
                with np.errstate(divide="ignore"):
                    part = part * sine**power
            total += part
        if self.arc:
            total += _horner(self.arc, cosine) * np.arctan2(cosine, sine)
        return total

    def direct_of_cosine(self, cosine: Array, sine: Array) -> Array:
        """The closed form in the float type given, away from theta = 0 and pi; lean, for matrices."""
        total = np.zeros_like(cosine)
        for power, coefficients in self.sines:
            part = _horner(coefficients, cosine)
            for _ in range(abs(power)):
                part = part * sine if power > 0 else part / sine
            total += part
        if self.arc:
            part = np.arcsin(cosine)
            part *= _horner(self.arc, cosine)
            total += part
        return total

    def series(self, rest: Array) -> Array:
        """The power series in ``rest`` = pi - theta."""
        order, coefficients = self._series
        return _horner(coefficients, rest * rest if self._even_steps else rest) * rest**order

    @cached_property
    def series_below(self) -> float:
        """Width of the neighbourhood of pi in which the series is used; 0 if the closed form never cancels there."""
        if any(n < 0 for n, _ in self.sines):
            return 0.0
        width = 0.0
        for candidate in (0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75):
            cosine, sine = np.array([-np.cos(candidate)]), np.array([np.sin(candidate)])
            size = sum(_sizes(c, cosine) * sine**n for n, c in self.sines)
            if self.arc:
                size = size + _sizes(self.arc, cosine) * np.abs(np.arctan2(cosine, sine))
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
        """Leading order and coefficients of the expansion at theta = pi, from truncated exact power series."""
        coefficients = _expand_at_pi(self.expr)
        order = next((k for k, c in enumerate(coefficients) if c != 0), 0)
        return order, tuple(float(evaluate(c, 80).mid()) for c in coefficients[order:])


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
    on_circle = formula.subs({Q: 1, QP: 1}, simultaneous=True)
    expr = on_circle.replace(asin, lambda a: _ANGLE).subs(1 - T**2, _SIN**2)
    expr = sympy.expand(sympy.powdenest(expr, force=True)).subs(T, _COS)
    expr = sympy.expand(expr.subs(sqrt(_SIN**2), _SIN))
    by_angle = sympy.collect(expr, _ANGLE, evaluate=False)
    if set(by_angle) - {Integer(1), _ANGLE}:
        raise ArithmeticError(f"not linear in the angle: {formula}")
    sines = sympy.collect(by_angle.get(Integer(1), Integer(0)), _SIN, evaluate=False)
    parts = []
    for factor, polynomial in sines.items():
        power = 0 if factor == 1 else int(factor.as_base_exp()[1])
        parts.append((power, _coefficients(polynomial)))
    arc = by_angle.get(_ANGLE, Integer(0))
    return AngularFunction(_coefficients(arc) if arc != 0 else (), tuple(sorted(parts)), expr)


def _coefficients(polynomial: sympy.Expr) -> tuple[float, ...]:
    listed = sympy.Poly(polynomial, _COS).all_coeffs()[::-1]
    return tuple(float(evaluate(c, 80).mid()) for c in listed)


def _expand_at_pi(expr: sympy.Expr) -> list[sympy.Expr]:
    """Taylor coefficients in x, where cos = -cos x, sin = sin x and asin(cos) = x - pi/2."""
    x = sympy.Symbol("x")
    n = _SERIES_TERMS
    ring, gen = sympy.ring(x, sympy.QQ)
    cosine = ring.from_dict(
        {(k,): sympy.QQ((-1) ** (k // 2), int(sympy.factorial(k))) for k in range(0, n, 2)}
    )
    sine = ring.from_dict({(k,): sympy.QQ((-1) ** (k // 2), int(sympy.factorial(k))) for k in range(1, n, 2)})
    total: list[sympy.Expr] = [Integer(0)] * n
    shifted = sympy.expand(expr.subs(_ANGLE, _ANGLE - pi / 2))
    polynomial = sympy.Poly(shifted, _COS, _SIN, _ANGLE)
    for (i, j, k), coefficient in polynomial.terms():
        series = _truncated([-cosine] * i + [sine] * j + [gen] * k, ring, n)
        for (power,), value in series.terms():
            total[power] += coefficient * sympy.Rational(int(value.numerator), int(value.denominator))
    return [sympy.expand(c) for c in total]


def _truncated(factors: Sequence[Any], ring: Any, n: int) -> Any:
    product = ring(1)
    for factor in factors:
        product = product * factor
        product = ring.from_dict({m: c for m, c in product.items() if m[0] < n})
    return product


def _horner(coefficients: Sequence[float], x: Array) -> Array:
    total = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total *= x
        if c:
            total += c
    return total


def _sizes(coefficients: Sequence[float], x: Array) -> Array:
    """Sum of the sizes of the terms of a polynomial."""
    return _horner([abs(c) for c in coefficients], np.abs(x))


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
        groups: dict[tuple[int, int], sympy.Expr] = {}
        for first in terms:
            for second in terms:
                formula = pair_formula([first], i, j, other=[second])
                if formula != 0:
                    key = (first.power - i, second.power - j)
                    groups[key] = groups.get(key, Integer(0)) + formula
        functions = ((a, b, angular_function(f)) for (a, b), f in groups.items())
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
        total = np.zeros_like(cosine)
        with np.errstate(divide="ignore", invalid="ignore"):
            for a, b, function in self.parts:
                part = function.direct_of_cosine(cosine, sine)
                if a:
                    part *= (root ** float(a)).astype(cosine.dtype)[:, None]
                if b:
                    part *= (root_p ** float(b)).astype(cosine.dtype)[None, :]
                total += part
        return total


def step_at_zero() -> Gate:
    """The gate 1{z > 0}."""
    return Gate(Integer(1), Integer(0), Integer(0))
