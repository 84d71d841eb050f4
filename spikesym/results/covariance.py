"""Statements about A and B of Gamma = d E[w(1) w(1)^T] = A I + B w* w*^T: the surrogate, the leading order."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache, lru_cache, partial
from typing import Any

import mpmath
import sympy

from ..symbolic.covariance import leading, rank_one
from ..symbolic.covariance_steps import MOMENTS, model_values, rotated, second_moment
from ..symbolic.means import TestModel, exact_mean, random_test_model
from ..symbolic.symbols import C0, C1, EDSIGMA2, EG2, EG2S2, ETA, KAPPA4, MU1, MU2, TAU2, VARSIGMA, D, M, N, X
from . import covariance_checks as checks
from .covariance_common import ASSUMPTIONS, HALF, HUGE, SOURCE, evaluate_form, latex_of, seeded
from .covariance_exact import exact_relu_link
from .registry import Check, Formulas, Outcome, Statement, register

# ---- the rank-one surrogate --------------------------------------------------------------------------------------


def _check_surrogate(formulas: Formulas, seed: int) -> Outcome:
    """Exact rational means of the surrogate itself, monomial by monomial."""
    with mpmath.workdps(50):
        comparison = checks.Comparison()
        for k in range(2):
            model, total, across = checks.surrogate(2 * seed + k)
            link = model.link
            values = {
                **model_values(model),
                MU1: sympy.diff(model.activation, X), C1: checks.polynomial_moment(link, 1),
                EG2: checks.polynomial_moment(link**2), EG2S2: checks.polynomial_moment((X * link) ** 2),
            }  # fmt: skip
            a, b = (checks.ball(formulas[q], values) for q in ("A", "B"))
            comparison.add(a, mpmath.mpf(across.p) / across.q)
            comparison.add(b, mpmath.mpf((total - across).p) / (total - across).q)
        return comparison.outcome("exact means of random surrogates")


register(
    Statement(
        id="cov",
        statement="The paper's surrogate (the rank-one part of the gradient, slope mu_1 of the activation) has features of "
        "second moment A I + B w* w*^T, at every n, m, d; mu_1 is the coefficient of the activation, c_1 that of the link.",
        assumptions=(*ASSUMPTIONS, "gradient of the labels, sigma' replaced by its mean mu_1"),
        source=SOURCE,
        formulas=cache(lambda: {"A": rank_one().A, "B": rank_one().B}),
        evaluate=partial(evaluate_form, form="rank_one"),
        latex=latex_of,
        checks=(Check("polynomial links, monomial by monomial", "numeric", _check_surrogate),),
    )
)


# ---- leading order -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def polynomial_network(seed: int) -> tuple[Mapping[sympy.Symbol, Any], Any, Any]:
    """A quadratic network of 10^45 dimensions: its constants, and A and A + B from the exact means."""
    rng = random.Random(seed)
    model = random_test_model(rng, init="gaussian")
    n, m = sympy.Rational(rng.randint(2, 9), 3) * HUGE, sympy.Rational(rng.randint(2, 9), 3) * HUGE
    eta = sympy.Rational(rng.randint(1, 9), 2) * sympy.Integer(10) ** 23
    model = TestModel(**{**model.__dict__, "d": HUGE, "n": n, "m": m, "eta": eta, "residual": "labels"})
    values = model_values(model)
    moment = second_moment().subs(values)
    found = []
    for along in (False, True):
        means = {
            s: exact_mean(rotated(k, along), model).subs(values) for k, s in MOMENTS.items() if moment.has(s)
        }
        found.append(moment.subs(means))
    g, sigma = model.link, model.activation
    slope = sympy.diff(sigma, X)
    values.update(
        {
            C0: checks.polynomial_moment(g), C1: checks.polynomial_moment(g, 1), EG2: checks.polynomial_moment(g**2),
            MU1: checks.polynomial_moment(sigma, 1), MU2: checks.polynomial_moment(sigma, 2),
            EDSIGMA2: checks.polynomial_moment(slope**2),
        }
    )  # fmt: skip
    return values, found[0], found[1]


def _check_leading(quantity: str, formulas: Formulas, seed: int) -> Outcome:
    """At d = 10^45 the exact means of a random quadratic network agree to 30 digits."""
    with mpmath.workdps(120):
        comparison = checks.Comparison(digits=30)
        for k in range(2):
            values, across, along = polynomial_network(2 * seed + k)
            exact = across - 1 if quantity == "A" else along - across
            formula = formulas[quantity] - 1 if quantity == "A" else formulas[quantity]
            number = sympy.nsimplify(formula.subs(values), rational=True)
            ratio = sympy.Rational(sympy.nsimplify(exact, rational=True) / number)
            comparison.add(mpmath.mpf(ratio.p) / ratio.q, mpmath.mpf(1))
        return comparison.outcome("exact means at d = 1e45")


def _check_leading_relu(quantity: str, formulas: Formulas, seed: int) -> Outcome:
    """Against the exact formula of the ReLU network at d = 10^45."""
    with mpmath.workdps(60):
        comparison = checks.Comparison(digits=20)
        pair = exact_relu_link()
        for rng in seeded(seed, 2):
            values = {
                D: HUGE, N: rng.randint(2, 9) * HUGE, M: rng.randint(2, 9) * HUGE,
                ETA: rng.randint(2, 9) * sympy.Integer(10) ** 30,
                TAU2: sympy.Rational(rng.randint(1, 9), 10), VARSIGMA: sympy.Rational(rng.randint(2, 9), 4), KAPPA4: 3,
                C0: 1 / sympy.sqrt(2 * sympy.pi), C1: HALF, EG2: HALF, EG2S2: 3 * HALF,
                MU1: HALF, MU2: 1 / sympy.sqrt(2 * sympy.pi), EDSIGMA2: HALF,
            }  # fmt: skip
            shift = 1 if quantity == "A" else 0
            exact = pair[quantity] - shift
            comparison.add(
                checks.ball(sympy.expand(formulas[quantity]) - shift, values), checks.ball(exact, values)
            )
        return comparison.outcome("exact ReLU formula at d = 1e45")


for _name, _text in (
    ("A", "To leading order A = 1 + (varsigma^2 eta^2/m^2)[(d/n)(E g^2 + tau^2) E sigma'^2 + c_0^2 mu_2^2]."),
    ("B", "To leading order B = (varsigma^2 eta^2 d/m^2) mu_1^2 c_1^2."),
):
    register(
        Statement(
            id=f"{_name}-leading",
            statement=_text + " Corrections are of relative order 1/d at fixed n/d, m/d.",
            assumptions=(*ASSUMPTIONS, "n, m, d grow in proportion"),
            source=SOURCE + "; covariance_expansion",
            formulas=cache(lambda name=_name: {name: getattr(leading(), name)}),
            evaluate=partial(evaluate_form, name=_name, form="leading"),
            latex=latex_of,
            checks=(
                Check("exact means of quadratic networks", "numeric", partial(_check_leading, _name)),
                Check("exact ReLU formula", "numeric", partial(_check_leading_relu, _name)),
            ),
        )
    )


from . import covariance_batch, covariance_direction  # noqa: E402, F401 - they register their own statements
