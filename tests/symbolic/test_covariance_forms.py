"""The derived formulas of A and B: structure, limits, consistency between independent routes."""

import random
from fractions import Fraction

import pytest
import sympy
from sympy import Rational

from spikesym.gaussian import gaussian_data
from spikesym.numeric.arb_eval import evaluate
from spikesym.symbolic.brute_force import BruteForce
from spikesym.symbolic.covariance import exact_homogeneous, leading, rank_one, with_activation
from spikesym.symbolic.covariance_expansion import expansion, leading_formulas
from spikesym.symbolic.covariance_judges import EP2, EQ2, P_COEF, Q_COEF
from spikesym.symbolic.covariance_links import link_forms
from spikesym.symbolic.covariance_phases import phase, spike_count
from spikesym.symbolic.covariance_series import coefficient
from spikesym.symbolic.covariance_steps import (
    MOMENTS,
    general_derivation,
    model_values,
    rotated,
    second_moment,
)
from spikesym.symbolic.means import TestModel, exact_mean, random_test_model
from spikesym.symbolic.symbols import (
    ALPHA,
    BETA,
    C0,
    C1,
    EDSIGMA2,
    EG2,
    EG2S2,
    ETA,
    ETA0,
    KAPPA4,
    MU1,
    MU2,
    TAU2,
    VARSIGMA,
    ZETA,
    D,
    M,
    N,
    X,
)  # fmt: skip


def test_leading_formulas_as_in_the_literature():
    A, B = leading().A, leading().B
    scale = VARSIGMA**2 * ETA**2 / M**2
    assert sympy.expand(A - 1 - scale * (D / N * (EG2 + TAU2) * EDSIGMA2 + C0**2 * MU2**2)) == 0
    assert sympy.expand(B - scale * D * MU1**2 * C1**2) == 0


def test_rank_one_has_the_activation_and_the_link_coefficient_apart():
    # the product of two coefficients of one and the same function would be off by (c_1/mu_1)^2
    B = rank_one().B
    expected = VARSIGMA**2 * ETA**2 * D / M**2 * MU1**2 * (C1**2 * (1 - 1 / N) + (EG2S2 - EG2) / N)
    assert sympy.expand(B - expected) == 0


@pytest.mark.parametrize(("residual", "init"), [("full", "gaussian"), ("labels", "sphere")])
def test_general_formula_equals_the_trained_network_exactly(residual, init):
    """The whole chain at once: the derived A + B and A equal the exact moments of the network, as rational numbers."""
    rng = random.Random(f"{residual}{init}")
    model = random_test_model(rng, init=init, sizes=(rng.choice([2, 3]), 2, 2))
    model = TestModel(**{**model.__dict__, "residual": residual})
    network = BruteForce(model)
    for along, direction in (("along", 0), ("across", 1)):
        value = exact_mean(general_derivation().results[along], model).subs(model_values(model))
        assert value == network.gamma(direction)


def test_off_diagonal_second_moment_vanishes():
    """The form A I + B w* w*^T: the two axes are uncorrelated."""
    model = TestModel(**{**random_test_model(random.Random(5), sizes=(3, 2, 2)).__dict__})
    network = BruteForce(model)
    trained = [network.trained(c) for c in range(3)]
    assert network.mean(trained[0] * trained[1]) == 0
    assert network.mean(trained[1] * trained[2]) == 0
    assert network.mean(trained[1] ** 2) == network.mean(trained[2] ** 2)


def test_identity_activation_is_the_rank_one_surrogate_for_labels():
    exact = with_activation(exact_homogeneous(False), sympy.Integer(1), sympy.Integer(0))
    for name in ("A", "B"):
        difference = getattr(exact, name) - getattr(rank_one(), name).subs(MU1, 1)
        assert sympy.simplify(difference) == 0


def test_exact_relu_formula_in_the_form_of_the_literature():
    """R with J_d, as published formulas are written; here they come out of the derivation."""
    half = Rational(1, 2)
    pair = with_activation(exact_homogeneous(True), half, half)
    J = (sympy.pi**2 / 4 + sympy.polygamma(1, D / 2) / 2 + (D - 1) * (D + 2) / D**2) / (4 * sympy.pi**2)
    R = -(VARSIGMA**2) * ETA / M**2 + VARSIGMA**4 * ETA**2 / M**4 * (
        KAPPA4 * ((D + 2) / (2 * N) + (1 - 1 / N) / 4) + (M - 1) * ((D + 2) / (4 * N) + (1 - 1 / N) * J)
    )
    scale = D * VARSIGMA**2 * ETA**2 / M**2
    A = 1 + scale * ((EG2 + TAU2) / (2 * N) + (1 - 1 / N) * EQ2 / (D - 1)) + R
    total = 1 + scale * ((EG2S2 + TAU2) / (2 * N) + (1 - 1 / N) * EP2) + R
    assert sympy.simplify(sympy.expand(pair.A - A)) == 0
    assert sympy.simplify(sympy.expand(pair.A + pair.B - total)) == 0


def test_closed_means_of_the_relu_link():
    forms = link_forms(sympy.Max(0, X))
    psi = sympy.polygamma(1, D / 2)
    EP = Rational(1, 16) + (psi / 2 + 2 * (D - 1) / D**2 + (D - 1) / (D * (D + 2))) / (4 * sympy.pi**2)
    assert sympy.simplify(forms.EP2 - EP) == 0
    assert sympy.simplify(forms.EQ2 - (D**2 - 1) / (4 * sympy.pi**2 * D * (D + 2))) == 0


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("Max(0, x)", "polynomial on either side of zero"),
        ("Piecewise((x, x > 0), (0, True))", "polynomial on either side of zero"),
        ("Heaviside(x)", "polynomial on either side of zero"),
        ("x**3 - x", "polynomial on either side of zero"),
        ("exp(x/3)", "exponential polynomial"),
        ("sin(x)", "exponential polynomial"),
        ("exp(-x**2/2)", "exponential polynomial"),
        ("tanh(x)", "odd"),
        ("erf(x)", "odd"),
    ],
)
def test_families_of_links(text, family):
    expr = sympy.sympify(text, locals={"x": X})
    assert link_forms(expr).family == family


@pytest.mark.parametrize(
    "text", ["Max(0, x - 1)", "exp(-Abs(x))", "1/(1 + x**2)", "log(1 + exp(x))", "exp(x**2/3)"]
)
def test_links_without_closed_form_are_refused(text):
    assert link_forms(sympy.sympify(text, locals={"x": X})) is None


# ---- the expansion -----------------------------------------------------------------------------------------------


def _polynomial_values(model):
    """Every coefficient symbol of a quadratic network, exactly."""
    from spikesym.symbolic.covariance_series import FAMILIES
    from spikesym.symbolic.means import GaussianMean

    values = {}
    for family, base in FAMILIES.items():
        expr = sympy.expand(model.resolve(base))
        for k in range(40):
            moment = exact_mean(GaussianMean(sympy.diff(expr, X, k), X)) if k <= 8 else 0
            symbol = coefficient(family, k)
            if symbol.is_Symbol:
                values[symbol] = moment
    values[EG2S2] = exact_mean(GaussianMean(sympy.expand(X**2 * model.link**2), X))
    return values


@pytest.mark.parametrize("init", ["gaussian", "sphere"])
def test_expansion_against_exact_means_of_quadratic_networks(init):
    """The remainder after order R falls as d^-(R+1): exact rational A and B at large d, step eta_0 sqrt(d)."""
    order = 1
    model = random_test_model(random.Random(17), init=init)
    alpha, beta, eta0 = Rational(3, 2), Rational(4, 3), Rational(5, 2)
    found = expansion(order, init, True)
    constants = {
        ALPHA: alpha, BETA: beta, ETA0: eta0, TAU2: model.tau2, VARSIGMA: model.varsigma, KAPPA4: model.kappa4,
        **_polynomial_values(model),
    }  # fmt: skip
    scaled = {"A": [], "B": []}
    for root in (6 * 10**5, 6 * 10**6):  # n and m are integers
        size = sympy.Integer(root) ** 2
        sizes = {"d": size, "n": alpha * size, "m": beta * size, "eta": eta0 * root}
        large = TestModel(**{**model.__dict__, **sizes, "residual": "full"})
        values = model_values(large)
        across = {
            s: exact_mean(rotated(k, "labels" not in k), large).subs(values) for k, s in MOMENTS.items()
        }
        along = {
            s: exact_mean(rotated(k, True), large).subs(values) for k, s in MOMENTS.items() if "labels" in k
        }
        a, total = (second_moment().subs({**values, **m}) for m in (across, {**across, **along}))
        for quantity, number in (("A", a - 1), ("B", total - a)):
            terms = {e.subs(ZETA, Rational(1, 2)): c.subs(constants) for e, c in found[quantity].items()}
            rest = number - sum(c * sympy.Integer(root) ** (2 * e) for e, c in terms.items())
            assert rest.is_Rational
            scaled[quantity].append(rest * sympy.Integer(root) ** (2 * (order + 1) - 2 * max(terms)))
    for quantity, (first, second) in scaled.items():
        # constant up to lower orders (half orders in A, from the term of the step itself): the remainder is of that order
        assert abs(first) > 1e-6, quantity
        assert abs(first - second) < 1e-4 * abs(first), quantity


def test_leading_terms_of_the_expansion_are_the_leading_formulas():
    head = expansion(0, "gaussian", True)
    back = {N: ALPHA * D, M: BETA * D, ETA: ETA0 * D**ZETA}
    for name, exponent in (("A", 2 * ZETA - 2), ("B", 2 * ZETA - 1)):
        formula = (leading_formulas()[name] - int(name == "A")).subs(back)
        assert sympy.simplify(formula - head[name][exponent] * D**exponent) == 0


def test_homogeneous_expansion_from_the_exact_formula():
    """Two routes to the coefficients of B for |z|: the Hermite series, and the closed formula expanded in 1/d."""
    link = sympy.Max(0, X)
    forms = link_forms(link)
    pair = with_activation(exact_homogeneous(True), sympy.Integer(0), sympy.Integer(1))
    exact = pair.B.subs(
        {EP2: forms.EP2, EQ2: forms.EQ2, C1: Rational(1, 2), EG2: Rational(1, 2), EG2S2: Rational(3, 2)}
    )
    at = {ALPHA: 2, BETA: Rational(3, 2), ETA0: 1, VARSIGMA: 1}
    values = {}
    g, sigma = gaussian_data("relu", "link"), gaussian_data("abs", "activation")
    found = expansion(2, "sphere", True)["B"]
    for term in found.values():
        for symbol in term.free_symbols:
            name, _, k = symbol.name.partition("_")
            if name == "c":
                values[symbol] = g.coefficient(int(k)).exact
            elif name == "mu":
                values[symbol] = sigma.coefficient(int(k)).exact
            elif name == "delta":
                values[symbol] = 0  # the slope squared is constant
    values.update({EG2: Rational(1, 2), EG2S2: Rational(3, 2), EDSIGMA2: 1, **at})
    rests = []
    for d in (10**6, 10**7):
        series = sum(c.subs(values) * sympy.Integer(d) ** e.subs(ZETA, 1) for e, c in found.items())
        number = evaluate(exact, 300, {D: d, N: 2 * d, M: 3 * d // 2, ETA: d, VARSIGMA: 1})
        rests.append(float((number - evaluate(series, 300)).mid()) * d**2)
    # terms d, 1, 1/d are taken off: what is left is of order d^-2, the same constant up to O(1/d)
    assert rests[0] == pytest.approx(rests[1], rel=1e-4)
    assert abs(rests[0]) > 1e-3


def test_phases():
    assert phase("1/2").name == "order one"
    assert phase("0.75").b_exponent == Fraction(1, 2)
    assert [spike_count(Fraction(z, 1000)) for z in (499, 501, 749, 751, 833, 834, 874, 876)] == [
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
    ]
    assert phase("1.2").spikes is None


def test_symbols_of_the_activation_are_not_left_behind():
    pair = with_activation(exact_homogeneous(True), Rational(11, 20), Rational(9, 20))
    assert not (pair.A + pair.B).has(P_COEF, Q_COEF)
