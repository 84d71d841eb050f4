"""Closed forms of dual activations: against 30-digit references, Price's theorem, and special cases."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
import sympy
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, exp, pi, sqrt

from spikesym.numeric.arb_eval import evaluate
from spikesym.numeric.dual_ball import bivariate_normal_ball, formula_ball
from spikesym.symbolic.dual import dual_formula, gaussian_mean, pair_formula, polynomial_dual
from spikesym.symbolic.dual_engine import BivariateNormal
from spikesym.symbolic.dual_simplify import present
from spikesym.symbolic.dual_terms import Atom, NoClosedForm, decompose, derivative, terms_of
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.symbols import QP, Q, T, X

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "dual_values.json").read_text())
ACTIVATIONS = sorted({row["activation"] for row in REFERENCE})


@pytest.fixture(autouse=True)
def _precision(_fresh_precision):
    ctx.prec = 250


def formula(text, i=0, j=0):
    found = dual_formula(make_function(text, "activation"), i, j, budget=60)
    assert found is not None, f"no closed form for {text}"
    return found


def within(ball, text, digits=30):
    """Whether the ball meets the decimal to this many digits (absolutely, where it is zero)."""
    ctx.prec = 250
    expected = arb(text)
    difference = abs(ball - expected)
    return bool(difference < arb(10) ** -digits * abs(expected).max(arb(10) ** -digits))


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_closed_forms_against_the_reference(activation):
    rows = [r for r in REFERENCE if r["activation"] == activation]
    inside = [r for r in rows if Fraction(r["q"]) * Fraction(r["qp"]) > Fraction(r["t"]) ** 2]
    assert len([r for r in inside if r["i"] == 0]) >= 19
    for row in inside:
        closed = formula(activation, row["i"], row["j"])
        ball = formula_ball(closed, Fraction(row["q"]), Fraction(row["qp"]), Fraction(row["t"]), 500)
        assert within(ball, row["value"]), (row, ball.str(40))


@pytest.mark.parametrize("activation", ["relu", "leaky_relu(1/10)", "sign", "max(z,0)**2", "erf(z)", "gelu"])
def test_derivative_in_t_is_the_dual_of_derivatives(activation):
    for i, j in ((0, 0), (1, 0), (1, 1)):
        difference = sympy.diff(formula(activation, i, j), T) - formula(activation, i + 1, j + 1)
        assert sympy.simplify(present(difference)) == 0


@pytest.mark.parametrize(
    "activation", ["relu", "max(z,0)**2", "sign", "gelu", "exp(-z**2)", "max(-1,min(1,z))"]
)
def test_derivative_in_q_raises_the_first_order_by_two(activation):
    rng = [(Rational(7, 5), Rational(3, 4), Rational(1, 3)), (Rational(1, 2), Rational(2), Rational(-3, 5))]
    for i, j in ((0, 0), (0, 1), (1, 1)):
        left, right = 2 * sympy.diff(formula(activation, i, j), Q), formula(activation, i + 2, j)
        for q, qp, t in rng:
            at = {Q: q, QP: qp, T: t}
            assert abs(evaluate(left, 200, at) - evaluate(right, 200, at)) < arb(10) ** -40


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_swapping_the_variables_swaps_the_orders(activation):
    left = formula(activation, 1, 0).subs({Q: QP, QP: Q}, simultaneous=True)
    right = formula(activation, 0, 1)
    at = {Q: Rational(7, 5), QP: Rational(3, 4), T: Rational(1, 3)}
    assert abs(evaluate(left, 200, at) - evaluate(right, 200, at)) < arb(10) ** -40


def test_relu_as_in_the_literature():
    assert formula("relu", 1, 1) == sympy.asin(T / (sqrt(Q) * sqrt(QP))) / (2 * pi) + Rational(1, 4)
    assert formula("relu", 2, 0) == sqrt(Q * QP - T**2) / (2 * pi * Q)
    assert formula("relu", 2, 2) == 1 / (2 * pi * sqrt(Q * QP - T**2))
    assert formula("relu", 2, 1) == sqrt(2) / (4 * sqrt(pi) * sqrt(Q))


def test_steps_are_idempotent_and_keep_their_point_mass():
    for text in ("heaviside(z)**3", "sign(z)/2 + 1/2", "heaviside(z)"):
        assert sympy.simplify(formula(text, 1, 1) - 1 / (2 * pi * sqrt(Q * QP - T**2))) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("identity", T),
        ("he3", 6 * T**3 + 9 * T * (Q - 1) * (QP - 1)),
        ("exp(z)", exp((Q + QP) / 2 + T)),
        ("sin(z)", exp(-Q / 2 - QP / 2) * sympy.sinh(T)),
        ("exp(-z**2/2)", 1 / sqrt((1 + Q) * (1 + QP) - T**2)),
        ("z*heaviside(z) + min(z, 0)", T),
        ("abs(z)*sign(z)", T),
    ],
)
def test_simple_closed_forms(text, expected):
    assert sympy.simplify(formula(text) - expected) == 0


def test_free_parameters_stay():
    a = make_function("erf(a*z)", "activation").parameters[0]
    closed = formula("erf(a*z)")
    assert closed.free_symbols == {Q, QP, T, a}
    assert sympy.simplify(closed.subs(a, 2) - formula("erf(2*z)")) == 0


@pytest.mark.parametrize(
    "text", ["tanh(z)", "softplus", "sqrt(abs(z))", "abs(cos(z))", "erf(z)**2", "1/(1 + z**2)"]
)
def test_no_closed_form_is_said(text):
    assert dual_formula(make_function(text, "activation")) is None


def test_a_callable_has_no_closed_form():
    assert dual_formula(make_function(lambda x: x, "activation")) is None


def test_the_budget_is_kept():
    assert (
        dual_formula(make_function("max(z, 0)**9*exp(z) + max(z-1, 0)**9", "activation"), budget=1e-3) is None
    )


def test_terms_and_their_derivatives():
    (term,) = terms_of(3 * X**2 * exp(-X))
    assert (term.coefficient, term.power, term.alpha, term.gate) == (3, 2, -1, None)
    with pytest.raises(NoClosedForm):
        terms_of(sympy.tanh(X))
    kinked = decompose(make_function("max(z - 1, 0)", "activation"))
    first = derivative(kinked)
    assert not [p for p in first if isinstance(p, Atom)]
    assert [(p.weight, p.point) for p in derivative(first) if isinstance(p, Atom)] == [(1, 1)]


def test_cross_duals_of_two_functions():
    relu, identity = (decompose(make_function(t, "activation")) for t in ("relu", "identity"))
    assert sympy.simplify(pair_formula(relu, 0, 0, other=identity) - T / 2) == 0
    assert pair_formula(relu, 1, 0, other=identity) == sqrt(2) * T / (2 * sqrt(pi) * sqrt(Q))


def test_bivariate_normal_derivatives_and_limits():
    h, k, r = sympy.symbols("h k r", real=True)
    at = {h: Rational(1, 3), k: Rational(-1, 2), r: Rational(2, 5)}
    step = Rational(1, 10**12)
    for symbol in (h, k, r):
        up, down = (BivariateNormal(h, k, r).subs({**at, symbol: at[symbol] + s * step}) for s in (1, -1))
        difference = (evaluate(up, 300) - evaluate(down, 300)) / (2 * arb(10) ** -12)
        assert (
            abs(difference - evaluate(sympy.diff(BivariateNormal(h, k, r), symbol).subs(at), 300))
            < arb(10) ** -20
        )
    ctx.prec = 120
    # P(V < h, V' < k) -> Phi(min(h, k)) as r -> 1, and 0 for h + k < 0 as r -> -1
    assert (
        abs(bivariate_normal_ball(arb("0.3"), arb("0.4"), 1 - arb(10) ** -12) - arb("0.61791142218895267"))
        < 1e-10
    )
    assert abs(bivariate_normal_ball(arb("-0.3"), arb("0.2"), -1 + arb(10) ** -12)) < 1e-10
    # continuous across the two methods
    low, high = (
        bivariate_normal_ball(arb("0.7"), arb("-0.4"), arb("0.95") + s * arb(10) ** -20) for s in (-1, 1)
    )
    assert abs(low - high) < arb(10) ** -19


coefficients = st.lists(st.integers(-5, 5), min_size=1, max_size=6)
rationals = st.fractions(min_value="1/10", max_value=3, max_denominator=20)


def as_rational(value):
    return Rational(value.numerator, value.denominator)


@given(coefficients, rationals, rationals, st.fractions(-1, 1, max_denominator=20))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_polynomials_by_moments(coefficients, q, qp, rho):
    """Against the expansion of E (sum a_k U^k)(sum a_l U'^l) with U' = rho' U + rest, moments of U and the rest."""
    q, qp, rho = map(as_rational, (q, qp, rho))
    t = rho * Rational(1, 2) * sympy.Min(q, qp)
    polynomial = sum(c * X**k for k, c in enumerate(coefficients))
    expected = sympy.Integer(0)
    for k, a in enumerate(coefficients):
        for m, b in enumerate(coefficients):
            for i in range(m + 1):
                outer = gaussian_mean(X ** (k + i), q) if (k + i) % 2 == 0 else 0
                inner = gaussian_mean(X ** (m - i), qp - t**2 / q) if (m - i) % 2 == 0 else 0
                expected += a * b * sympy.binomial(m, i) * (t / q) ** i * outer * inner
    assert sympy.simplify(polynomial_dual(polynomial).subs({Q: q, QP: qp, T: t}) - expected) == 0


@given(st.integers(-4, 4), st.integers(-4, 4), rationals, rationals)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_uncorrelated_variables_factor(p, r, q, qp):
    """At t = 0 the dual of p z + r |z| + 1 is the product of the means."""
    closed = formula(f"({p})*z + ({r})*abs(z) + 1")
    q, qp = as_rational(q), as_rational(qp)
    mean, mean_p = (1 + r * sqrt(2 * v / pi) for v in (q, qp))
    assert sympy.simplify(closed.subs({Q: q, QP: qp, T: 0}) - mean * mean_p) == 0


@given(st.integers(-4, 4), st.integers(-4, 4), st.integers(-2, 2), rationals)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_equal_variables_give_the_second_moment(p, r, c, q):
    """E (p z + r |z| + c)^2 = (p^2 + r^2) q + 2 r c sqrt(2 q/pi) + c^2."""
    closed = formula(f"({p})*z + ({r})*abs(z) + ({c})*sign(z)")
    q = as_rational(q)
    expected = (p**2 + r**2) * q + c**2 + 2 * p * c * sqrt(2 * q / pi)
    assert sympy.simplify(closed.subs({Q: q, QP: q, T: q}) - expected) == 0
