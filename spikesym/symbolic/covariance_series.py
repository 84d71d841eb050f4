"""The means behind A and B as Hermite series: for every activation and link, both initialisations.

A mean of a function of s times a function of the preactivation nu (rho s + sqrt(1 - rho^2) zeta) is a power series in
rho (Mehler). Its coefficients are Hermite coefficients of a few products of g and of sigma, the latter as functions of
the norm nu; around nu = 1 these differentiate into one another (heat equation), which gives the expansion in 1/d.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import sympy
from sympy.core.function import ArgumentIndexError

from .covariance_steps import MOMENTS, powers_of_zeta, rotated
from .derivation import Derivation, Step, equal_exactly
from .means import (
    COMPANION,
    NU,
    ZETA1,
    Activation,
    GaussianMean,
    Link,
    TestModel,
    exact_mean,
    random_test_model,
)
from .symbols import C0, C1, EDSIGMA2, EG2, EG2S2, LATEX_NAMES, MU1, MU2, RHO, TAU2, D, S, X

#: the products whose Hermite coefficients enter, by family name
FAMILIES = {
    "c": Link(0, X),
    "gamma": Link(0, X) ** 2,
    "mu": Activation(0, X),
    "delta": Activation(1, X) ** 2,
    "pi": Activation(0, X) ** 2,
    "omega": Activation(0, X) ** 2 * Activation(1, X) ** 2,
}
_OWN_SYMBOLS = {
    ("c", 0): C0, ("c", 1): C1, ("mu", 1): MU1, ("mu", 2): MU2,
    ("gamma", 0): EG2, ("gamma", 2): EG2S2 - EG2, ("delta", 0): EDSIGMA2,
}  # fmt: skip
_HERMITE_OF = {
    "gamma": r"\mathbb{{E}}[g^{{2}}\mathrm{{He}}_{{{k}}}]",
    "delta": r"\mathbb{{E}}[\sigma'^{{2}}\mathrm{{He}}_{{{k}}}]",
    "pi": r"\mathbb{{E}}[\sigma^{{2}}\mathrm{{He}}_{{{k}}}]",
    "omega": r"\mathbb{{E}}[\sigma^{{2}}\sigma'^{{2}}\mathrm{{He}}_{{{k}}}]",
}
_KEPT = {(family, k): sympy.Symbol(f"{family}_{k}", real=True) for family in FAMILIES for k in range(80)}
for (_family, _k), _symbol in _KEPT.items():
    if _family in _HERMITE_OF:
        LATEX_NAMES.setdefault(_symbol, _HERMITE_OF[_family].format(k=_k))


def coefficient(family: str, k: int) -> sympy.Expr:
    """The symbol of E[F He_k] for a family F; those of the theory keep their names (c_1, mu_1, E g^2, ...).

    Examples
    --------
    >>> coefficient("c", 1), coefficient("c", 3), coefficient("gamma", 2)
    (c_1, c_3, -G_2 + G_22)
    """
    known = _OWN_SYMBOLS.get((family, k))
    if known is not None:
        return known
    return _KEPT.get((family, k)) or sympy.Symbol(f"{family}_{k}", real=True)


def family_of(symbol: sympy.Symbol) -> tuple[str, int] | None:
    """The family and degree that a symbol stands for; E g^2 s^2 counts as the second moment of its family.

    Examples
    --------
    >>> family_of(C1), family_of(coefficient("mu", 5)), family_of(D)
    (('c', 1), ('mu', 5), None)
    """
    if symbol == EG2S2:
        return ("gamma", 2)
    for key, own in _OWN_SYMBOLS.items():
        if symbol == own:
            return key
    family, _, degree = symbol.name.partition("_")
    return (family, int(degree)) if family in FAMILIES and degree.isdigit() else None


class Profile(sympy.Function):
    """h_k(nu) = E[F^(k)(nu z)] of a family F: ``Profile(Symbol(family), k, nu)``; at nu = 1 it is E[F He_k]."""

    nargs = 3

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Heat equation: dh_k/dnu = nu h_{k+2}."""
        if argindex != 3:
            raise ArgumentIndexError(self, argindex)
        family, k, norm = self.args
        return norm * self.func(family, k + 2, norm)


def _profile(family: str, k: int, norm: sympy.Expr) -> sympy.Expr:
    return Profile(sympy.Symbol(family), sympy.Integer(k), norm)


def _hermite(base: Any, power: int, k: int) -> sympy.Expr:
    """E[s^power F(s) He_k(s)] from E[F He_j]: s He_k = He_{k+1} + k He_{k-1}."""
    if k < 0:
        return sympy.Integer(0)
    if power == 0:
        result: sympy.Expr = base(k)
        return result
    return _hermite(base, power - 1, k + 1) + (k * _hermite(base, power - 1, k - 1) if k else 0)


def _family_of(factor: sympy.Expr, table: dict[sympy.Expr, tuple[str, int]]) -> tuple[str, int]:
    if factor not in table:
        raise ValueError(f"no family for {factor}")
    return table[factor]


_IN_PREACTIVATION: dict[sympy.Expr, tuple[str, int]] = {
    Activation(1, X): ("mu", 1),
    Activation(1, X) ** 2: ("delta", 0),
    Activation(0, X) * Activation(1, X): ("pi", 1),  # (sigma^2)' / 2
    Activation(0, X) ** 2 * Activation(1, X) ** 2: ("omega", 0),
}
_SCALE = {("pi", 1): sympy.Rational(1, 2)}
_IN_DATA: dict[sympy.Expr, tuple[str, int]] = {
    Link(0, X): ("c", 0), Link(0, X) ** 2: ("gamma", 0), Activation(0, X): ("mu", 0), Activation(0, X) ** 2: ("pi", 0),
}  # fmt: skip


def _split(term: sympy.Expr) -> tuple[sympy.Expr, int, sympy.Expr, sympy.Expr, sympy.Expr | None]:
    """Constant, power of s, function of s, function of the preactivation, and the norm inside the function of s."""
    constant, power = sympy.Integer(1), 0
    of_s, of_z, norm = sympy.Integer(1), sympy.Integer(1), None
    for factor in sympy.Mul.make_args(term):
        base, exponent = factor.as_base_exp()
        if not factor.has(S, ZETA1):
            constant *= factor
        elif base == S:
            power += int(exponent)
        elif isinstance(base, Activation) and base.has(ZETA1):
            of_z *= base.func(base.args[0], X) ** exponent
        elif isinstance(base, Activation):
            argument = base.args[1]
            norm = None if argument == S else sympy.cancel(argument / S)
            of_s *= base.func(base.args[0], X) ** exponent
        else:
            raise ValueError(f"unexpected factor {factor}")
    return constant, power, of_s, of_z, norm


def mehler(node: GaussianMean, terms: int) -> sympy.Expr:
    """A mean over (s, zeta) as a power series in rho up to rho^terms, with zeta removed by Stein's lemma."""
    total = sympy.Integer(0)
    for zeta_power, integrand in powers_of_zeta(node.integrand):
        for term in sympy.Add.make_args(sympy.expand(integrand, deep=False)):
            constant, power, of_s, of_z, norm = _split(term)
            if of_z == 1:
                raise ValueError("a mean without preactivation")
            family, shift = _family_of(of_z, _IN_PREACTIVATION)
            base = _data_coefficients(of_s, norm)
            series = [(sympy.Integer(1), 0)]
            if zeta_power == 1:
                series = [(COMPANION * NU, 1)]
            elif zeta_power == 2:
                series = [(sympy.Integer(1), 0), (COMPANION**2 * NU**2, 2)]
            for factor, more in series:
                for k in range(terms + 1):
                    in_z = NU**k * _profile(family, k + shift + more, NU) * _SCALE.get((family, shift), 1)
                    total += constant * factor * _hermite(base, power, k) * in_z * RHO**k / sympy.factorial(k)
    return total


def _data_coefficients(of_s: sympy.Expr, norm: sympy.Expr | None) -> Any:
    if of_s == 1:
        return lambda k: sympy.Integer(int(k == 0))
    family, _ = _family_of(of_s, _IN_DATA)
    if norm is None:
        return lambda k: coefficient(family, k)
    return lambda k: norm**k * _profile(family, k, norm)


def _single(node: GaussianMean) -> sympy.Expr:
    """A mean over one Gaussian variable s, the preactivation being nu s."""
    total = sympy.Integer(0)
    for term in sympy.Add.make_args(sympy.expand(node.integrand, deep=False)):
        constant, power, of_s, _, _ = _split(term)
        family, shift = _family_of(of_s, _IN_PREACTIVATION)

        def base(k: int, family: str = family, shift: int = shift) -> sympy.Expr:
            return NU**k * _profile(family, k + shift, NU)

        total += constant * _SCALE.get((family, shift), 1) * _hermite(base, power, 0)
    return total


def as_series(expr: sympy.Expr, terms: int) -> sympy.Expr:
    """Replace every Gaussian mean by its Hermite series up to rho^terms."""
    return expr.replace(
        GaussianMean,
        lambda *a: mehler(GaussianMean(*a), terms) if ZETA1 in a[1:] else _single(GaussianMean(*a)),
    )


# ---- test of the series on polynomials ---------------------------------------------------------------------------


def _with_polynomials(expr: sympy.Expr, model: TestModel) -> sympy.Expr:
    """Put a test model's polynomials: profiles become polynomials in the norm, coefficients become rationals."""

    def profile(family: sympy.Symbol, k: sympy.Integer, norm: sympy.Expr) -> sympy.Expr:
        base = model.resolve(FAMILIES[family.name])
        return exact_mean(GaussianMean(sympy.expand(sympy.diff(base, X, int(k)).subs(X, norm * X)), X))

    values = {}
    for symbol in expr.free_symbols:
        index = family_of(symbol)
        if index is not None and symbol != EG2S2:
            base = model.resolve(FAMILIES[index[0]])
            values[symbol] = exact_mean(GaussianMean(sympy.diff(base, X, index[1]), X))
    values[EG2S2] = exact_mean(GaussianMean(sympy.expand(X**2 * model.resolve(Link(0, X)) ** 2), X))
    expr = expr.replace(Profile, profile).subs(values)
    return expr.subs({D: model.d, TAU2: model.tau2})


@lru_cache(maxsize=1)
def series_derivation() -> Derivation:
    """Every mean of the second moment as a Hermite series, judged exactly on polynomial links and activations."""
    terms = 4  # enough for the quadratic test polynomials: their squares have degree 4

    def evaluate_mean(expr: sympy.Expr, model: TestModel) -> sympy.Expr:
        return exact_mean(expr, model).subs({D: model.d, TAU2: model.tau2})

    def evaluate_series(expr: sympy.Expr, model: TestModel) -> sympy.Expr:
        return exact_mean(_with_polynomials(expr, model), model)

    def sample(rng: random.Random) -> TestModel:
        return random_test_model(rng)

    steps = []
    for along in (True, False):
        for name in MOMENTS:
            if name == "initial" or (not along and "labels" not in name):
                continue
            before = rotated(name, along)
            steps.append(
                Step(
                    f"Hermite series ({name.replace('_', ', ')})",
                    before,
                    as_series(before, terms),
                    equal_exactly(sample, evaluate_mean, evaluate_series, points=1),
                )
            )
    return Derivation("the means as Hermite series", tuple(steps), {})
