"""Statements about Gaussian data: Hermite coefficients in closed form, Stein's identity, Parseval's sums.

The formulas come from generating functions and point masses (``symbolic.moments``); the checks integrate
the defining expectations with proved errors, or sum the series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Any

import mpmath
import sympy
from flint import arb, ctx
from sympy import Abs, Heaviside, Integer, Piecewise, Symbol, sign

from ..numeric.arb_eval import evaluate
from ..numeric.quadrature import function_integrand, hermite_moments
from ..symbolic.functions import make_function
from ..symbolic.moments import coefficient_formula, exact_coefficient, exact_expectation
from ..symbolic.printing import latex
from ..symbolic.symbols import K, X
from .registry import Check, Formulas, Outcome, Statement, register

_BITS = 160
_MEASURE_BITS = 400
_ACCURACY = 1e-35
_DEGREES = 7
_TERMS = 44
_SOURCE = "derived in spikesym.symbolic.moments; classical"

#: parameters of the families, and the values at which they are checked
A_ = Symbol("a", real=True)
B_ = Symbol("b", real=True)
_POINTS = (Fraction(3, 7), Fraction(-5, 4))


@dataclass(frozen=True)
class Family:
    """c_(step k + offset) of a function for k = 0, 1, ...; ``parameter`` may be free in it."""

    text: str
    step: int
    offset: int
    parameter: Symbol | None = None

    def formula(self) -> sympy.Expr:
        """The general case of the closed form, for the degrees of this family."""
        found = coefficient_formula(make_function(self.text, "link"))
        if found is None:
            raise ValueError(f"no closed form in symbolic k for {self.text}")
        general = found.args[-1][0] if isinstance(found, Piecewise) else found
        return sympy.simplify(general.subs(K, self.step * K + self.offset))

    def points(self) -> list[dict[Symbol, Fraction]]:
        """Parameter values for the check."""
        return [{}] if self.parameter is None else [{self.parameter: value} for value in _POINTS]


@lru_cache(maxsize=256)
def _moments(text: str, values: tuple[tuple[str, Fraction], ...], power: int, derivative: int) -> list[arb]:
    """Certified E[(f^(derivative))^power He_k] for the degrees that the checks use."""
    function = make_function(text, "link", dict(values))
    integrand = function_integrand(function, lambda e: e.diff(X, derivative) ** power)
    return hermite_moments(integrand, 2 * _DEGREES + 2, _BITS)


def _measured(
    text: str, point: Mapping[Symbol, Fraction], k: int, power: int = 1, derivative: int = 0
) -> arb:
    values = tuple(sorted((v.name, value) for v, value in point.items()))
    return _moments(text, values, power, derivative)[k]


class _Comparison:
    """Collects how far numbers are from balls, relative to their size."""

    def __init__(self) -> None:
        self.worst, self.passed, self.count, self.where = 0.0, True, 0, ""

    def add(self, value: arb, ball: arb, where: str) -> None:
        """One comparison; both are balls, and their difference must contain zero and be small."""
        old, ctx.prec = ctx.prec, _MEASURE_BITS
        try:
            gap = (value - ball) / abs(ball).max(arb(1) / 1000)
        finally:
            ctx.prec = old
        size = float(gap.abs_upper()) if gap.is_finite() else float("inf")
        self.count += 1
        if not gap.contains(0) or not size < _ACCURACY:
            self.passed = False
            self.where = self.where or f", first failure at {where}"
        self.worst = max(self.worst, size)

    def outcome(self) -> Outcome:
        """Passed only if there was something to compare."""
        detail = f"{self.count} numbers, largest relative difference {self.worst:.1e}{self.where}"
        return Outcome(self.passed and self.count > 0, detail)


# ---- closed forms of the coefficients ------------------------------------------------------------------------


def _check_families(families: Mapping[str, Family], formulas: Formulas, seed: int) -> Outcome:
    """Each formula at k = 0, ..., 6 against the certified integral of its definition."""
    comparison = _Comparison()
    for name, family in families.items():
        for point in family.points():
            for k in range(_DEGREES):
                value = evaluate(formulas[name], _BITS, {K: k, **point})
                ball = _measured(family.text, point, family.step * k + family.offset)
                comparison.add(value, ball, f"{name}, k = {k}")
    return comparison.outcome()


def _check_finite_degrees(families: Mapping[str, Family], formulas: Formulas, seed: int) -> Outcome:
    """Each formula at k = 0, ..., 6 against the recurrence on truncated moments, degree by degree."""
    comparison = _Comparison()
    for name, family in families.items():
        for point in family.points():
            values = {v.name: value for v, value in point.items()}
            function = make_function(family.text, "link", values)
            for k in range(_DEGREES):
                exact = exact_coefficient(function, family.step * k + family.offset)
                if exact is None:
                    return Outcome(False, f"no closed form at {name}, k = {k}")
                value = evaluate(formulas[name], _BITS, {K: k, **point})
                comparison.add(value, evaluate(exact, _MEASURE_BITS), f"{name}, k = {k}")
    return comparison.outcome()


def _evaluate_family(families: Mapping[str, Family], name: str, k: int, **parameters: Fraction) -> float:
    """A coefficient as a float: ``name`` of the formula, its index k, values of the parameters."""
    values = {symbol: parameters[symbol.name] for symbol in (A_, B_) if symbol.name in parameters}
    return float(evaluate(families[name].formula(), _BITS, {K: k, **values}).mid())


def _latex(formulas: Formulas) -> dict[str, str]:
    return {name: latex(expr) for name, expr in formulas.items()}


def _register_families(identifier: str, text: str, families: dict[str, Family]) -> None:
    register(
        Statement(
            id=identifier,
            statement=text,
            assumptions=(
                "s ~ N(0, 1)",
                "He_k the probabilists' Hermite polynomials",
                "c_k = E[g(s) He_k(s)]",
            ),
            source=_SOURCE,
            formulas=cache(lambda: {name: family.formula() for name, family in families.items()}),
            evaluate=partial(_evaluate_family, families),
            latex=_latex,
            checks=(
                Check("certified quadrature of E[g He_k]", "numeric", partial(_check_families, families)),
                Check("degree by degree", "symbolic", partial(_check_finite_degrees, families)),
            ),
        )
    )


_register_families(
    "hermite-relu",
    "Hermite coefficients of the ReLU, |s|, ReLU^2 and gelu for every degree; those not listed are c_1 = 1/2, or zero.",
    {
        "relu_2k": Family("relu", 2, 0),
        "abs_2k": Family("abs(s)", 2, 0),
        "relu2_2k+3": Family("relu(s)**2", 2, 3),
        "gelu_2k": Family("gelu", 2, 0),
    },
)
_register_families(
    "hermite-step",
    "Hermite coefficients of sign and step functions for every degree at least one.",
    {
        "sign_2k+1": Family("sign(s)", 2, 1),
        "heaviside_2k+1": Family("heaviside(s)", 2, 1),
        "heaviside_at_b_k+1": Family("heaviside(s-b)", 1, 1, B_),
    },
)
_register_families(
    "hermite-erf-exp-trig",
    "Hermite coefficients of exp(a s), sin(a s), cos(a s), erf(a s) and exp(-a^2 s^2) for every degree.",
    {
        "exp_k": Family("exp(a*s)", 1, 0, A_),
        "sin_2k+1": Family("sin(a*s)", 2, 1, A_),
        "cos_2k": Family("cos(a*s)", 2, 0, A_),
        "erf_2k+1": Family("erf(a*s)", 2, 1, A_),
        "gauss_2k": Family("exp(-a**2*s**2)", 2, 0, A_),
    },
)


# ---- Stein's identity ----------------------------------------------------------------------------------------

#: function with a free break point b: its expression, its text, how often it is differentiated
_STEIN: dict[str, tuple[sympy.Expr, str, int]] = {
    "jump": ((X**3 + 2 * X) * Heaviside(X - B_), "(s**3+2*s)*heaviside(s-b)", 1),
    "sign": (X * sign(X - B_), "s*sign(s-b)", 1),
    "kink": (Abs(X - B_), "abs(s-b)", 2),
    "jump_twice": ((X**2 + 1) * Heaviside(X - B_), "(s**2+1)*heaviside(s-b)", 2),
}


@cache
def _stein_formulas() -> dict[str, sympy.Expr]:
    """E of the derivative as a distribution, from its regular part and its point masses."""
    found = {name: exact_expectation(expr, {order: 1}) for name, (expr, _, order) in _STEIN.items()}
    return {name: value for name, value in found.items() if value is not None}


def _check_stein(formulas: Formulas, seed: int) -> Outcome:
    """E[g^(i)] against the certified integral of g He_i, which has no derivative in it."""
    comparison = _Comparison()
    for name, (_, text, order) in _STEIN.items():
        for value in _POINTS:
            ball = _measured(text, {B_: value}, order)
            comparison.add(evaluate(formulas[name], _BITS, {B_: value}), ball, f"{name}, b = {value}")
    return comparison.outcome()


register(
    Statement(
        id="stein",
        statement="E[g^(i)] = c_i = E[g He_i], with the derivatives in the sense of distributions: "
        "point masses at jumps and kinks count.",
        assumptions=("s ~ N(0, 1)", "g piecewise smooth with finite E[g^2]"),
        source=_SOURCE + " (Stein 1972)",
        formulas=_stein_formulas,
        evaluate=lambda name, b: float(evaluate(_stein_formulas()[name], _BITS, {B_: Fraction(b)}).mid()),
        latex=_latex,
        checks=(Check("certified quadrature of E[g He_i]", "numeric", _check_stein),),
    )
)


# ---- Parseval's sums -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Series:
    """sum over k of a term is E[(f^(derivative))^2], less what the term leaves out."""

    family: Family
    derivative: int
    left_out: int | None = None

    def degree(self) -> sympy.Expr:
        """The degree of the coefficient in the term, as an expression in K."""
        return self.family.step * K + self.family.offset

    def term(self) -> sympy.Expr:
        """c_j^2/(j - derivative)!, j the degree."""
        return sympy.simplify(self.family.formula() ** 2 / sympy.factorial(self.degree() - self.derivative))

    def total(self) -> sympy.Expr:
        """What the series sums to."""
        function = make_function(self.family.text, "link")
        whole = exact_expectation(function, {self.derivative: 2})
        left = exact_coefficient(function, self.left_out) if self.left_out is not None else Integer(0)
        if whole is None or left is None:
            raise ValueError(f"no closed form of the sum for {self.family.text}")
        rest = left**2 / sympy.factorial((self.left_out or 0) - self.derivative) if left != 0 else Integer(0)
        return sympy.expand(whole - rest)


def _series_formulas(series: Mapping[str, Series]) -> dict[str, sympy.Expr]:
    terms = {f"{name}_term": s.term() for name, s in series.items()}
    return {**terms, **{f"{name}_sum": s.total() for name, s in series.items()}}


def _check_sums(series: Mapping[str, Series], formulas: Formulas, seed: int) -> Outcome:
    """Each series summed by Levin's transformation against the closed form of its sum, to 20 digits."""
    worst, details = 0.0, []
    with mpmath.workdps(40):
        for name in series:
            summed = _levin_sum(formulas[f"{name}_term"])
            expected = _as_mpf(evaluate(formulas[f"{name}_sum"], _BITS))
            gap = float(abs(summed - expected) / abs(expected))
            worst = max(worst, gap)
            details.append(f"{name} {mpmath.nstr(summed, 12)}")
    return Outcome(worst < 1e-20, f"{', '.join(details)}; largest relative difference {worst:.1e}")


def _check_integrals(series: Mapping[str, Series], formulas: Formulas, seed: int) -> Outcome:
    """Each sum against the certified integral of the square, each term against the certified coefficient."""
    comparison = _Comparison()
    for name, s in series.items():
        text, left = s.family.text, s.left_out
        square = _measured(text, {}, 0, power=2, derivative=s.derivative)
        if left is not None:
            with ctx.workprec(_MEASURE_BITS):
                square = square - _squared(text, left, s.derivative)
        comparison.add(evaluate(formulas[f"{name}_sum"], _BITS), square, f"{name}_sum")
        for k in range(_DEGREES - 1):
            ball = _squared(text, int(s.degree().subs(K, k)), s.derivative)
            comparison.add(evaluate(formulas[f"{name}_term"], _BITS, {K: k}), ball, f"{name}_term, k = {k}")
    return comparison.outcome()


def _squared(text: str, degree: int, derivative: int) -> arb:
    with ctx.workprec(_MEASURE_BITS):
        ball = _measured(text, {}, degree)
        return ball * ball / arb(int(sympy.factorial(degree - derivative)))


def _levin_sum(term: sympy.Expr) -> Any:
    """Levin's u-transformation of the first terms; it cancels digits, so it works with three times as many."""
    with mpmath.workdps(90):
        transformation = mpmath.levin(method="levin", variant="u")
        terms = [_as_mpf(evaluate(term, mpmath.mp.prec, {K: k})) for k in range(_TERMS)]
        value, _ = transformation.update(terms)
        return value


def _as_mpf(ball: arb) -> Any:
    man, exp = ball.mid().man_exp()
    return mpmath.ldexp(mpmath.mpf(int(man)), int(exp))


def _register_series(identifier: str, text: str, series: dict[str, Series]) -> None:
    formulas = cache(partial(_series_formulas, series))
    register(
        Statement(
            id=identifier,
            statement=text,
            assumptions=(
                "s ~ N(0, 1)",
                "c_k = E[f He_k]",
                "the function whose square is meant has no point masses",
            ),
            source=_SOURCE + " (Parseval)",
            formulas=formulas,
            evaluate=lambda name: float(evaluate(formulas()[f"{name}_sum"], _BITS).mid()),
            latex=_latex,
            checks=(
                Check("series summed", "numeric", partial(_check_sums, series)),
                Check("certified quadrature of squares", "numeric", partial(_check_integrals, series)),
            ),
        )
    )


_register_series(
    "parseval",
    "E[f^2] = sum over k of c_k^2/k!: terms and sums over k for ReLU (less c_1^2), sign and exp(-s^2/2).",
    {
        "relu": Series(Family("relu", 2, 0), 0, left_out=1),
        "sign": Series(Family("sign(s)", 2, 1), 0),
        "gauss": Series(Family("exp(-s**2/2)", 2, 0), 0),
    },
)
_register_series(
    "dsigma-series",
    "E[sigma'^2] = sum over k of mu_(k+1)^2/k!: terms and sums for ReLU (less mu_1^2), ReLU^2 (less mu_2^2) and erf.",
    {
        "relu": Series(Family("relu", 2, 2), 1, left_out=1),
        "relu2": Series(Family("relu(s)**2", 2, 1), 1, left_out=2),
        "erf": Series(Family("erf(s)", 2, 1), 1),
    },
)
