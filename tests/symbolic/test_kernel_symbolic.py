"""Formulas of k0, k1 and of the orders in B."""

import math

import pytest
import sympy
from flint import arb, ctx
from sympy import Rational, acos, asin, cos, pi, sin, sqrt

from spikesym.errors import InputError
from spikesym.numeric.arb_eval import evaluate
from spikesym.symbolic.dual import dual_formula
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.kernel import (
    DualMoment,
    KernelFormulas,
    along_spike,
    at_spike,
    in_angle,
    in_inner_products,
    price_term,
)
from spikesym.symbolic.printing import display, latex
from spikesym.symbolic.symbols import NORM, NORMP, PP, QP, SP, THETA, A, B, D, P, Q, S, T


@pytest.fixture(autouse=True)
def _precision(_fresh_precision):
    ctx.prec = 250


def formulas(text):
    return KernelFormulas.of(make_function(text, "activation"))


def test_relu_k0_and_k1():
    relu = formulas("relu")
    assert (
        sympy.simplify(relu.k0() - NORM * NORMP * (sin(THETA) + (pi - THETA) * cos(THETA)) / (2 * pi * D))
        == 0
    )
    angle = acos(T / sqrt(P * PP))
    k1 = sqrt(P * PP) * (sqrt(1 - T**2 / (P * PP)) + (pi - angle) * T / sqrt(P * PP)) / (2 * pi * D)
    for p, pp, t in ((2, 3, 1), (1, 5, -2), (Rational(1, 2), 7, Rational(3, 2))):
        at = {P: p, PP: pp, T: t, D: 11}
        assert abs(evaluate(relu.kernel(), 200, at) - evaluate(k1, 200, at)) < arb(10) ** -50


def test_relu_first_order_as_in_the_paper():
    first = formulas("relu").order_in_angle(1)
    radial = (S**2 / NORM**2 + SP**2 / NORMP**2) * NORM * NORMP * sin(THETA) / (4 * pi)
    assert sympy.simplify(first - B / D * (S * SP * (pi - THETA) / (2 * pi) + radial)) == 0


def test_the_odd_part_of_a_positively_homogeneous_kernel_is_linear():
    k = formulas("leaky_relu(1/10)").k0()
    odd = (k - k.subs(THETA, pi - THETA)) / 2
    p, r = make_function("leaky_relu(1/10)", "activation").piecewise_linear_coefficients()
    assert sympy.simplify(odd - (p**2) * NORM * NORMP * cos(THETA) / D) == 0
    even = (k + k.subs(THETA, pi - THETA)) / 2
    expected = r**2 * 2 * (sin(THETA) + (pi / 2 - THETA) * cos(THETA)) / pi
    assert sympy.simplify(even - expected * NORM * NORMP / D) == 0


@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
def test_general_term_is_the_binomial_sum(order):
    expected = sum(
        math.comb(2 * order, j) * S**j * SP ** (2 * order - j) * DualMoment(j, 2 * order - j, Q, QP, T)
        for j in range(2 * order + 1)
    ) / (2**order * math.factorial(order))
    assert sympy.expand(price_term(order) - expected) == 0


@pytest.mark.parametrize("text", ["relu", "erf(z)", "he3", "sin(z)", "exp(-z**2)", "sign"])
@pytest.mark.parametrize("order", [1, 2])
def test_closed_orders_are_the_general_term(text, order):
    """The operator on the closed form, against the binomial sum of derivative duals that are derived one by one."""
    function = make_function(text, "activation")
    closed = along_spike(dual_formula(function), order)
    at = {Q: Rational(7, 5), QP: Rational(3, 4), T: Rational(-1, 3), S: Rational(4, 5), SP: Rational(-3, 7)}
    general = arb(0)
    for j in range(2 * order + 1):
        moment = evaluate(dual_formula(function, j, 2 * order - j, budget=60), 200, at)
        factor = (
            math.comb(2 * order, j)
            * at[S] ** j
            * at[SP] ** (2 * order - j)
            / (2**order * math.factorial(order))
        )
        general += moment * evaluate(factor, 200)
    assert abs(evaluate(closed, 200, at) - general) < arb(10) ** -40


@pytest.mark.parametrize("text", ["relu", "erf(z)", "gelu", "max(-1, min(1, z))"])
def test_k1_at_the_spiked_law(text):
    """k1 in |x|, |x'|, s, s', theta is k1 in p, p', t; at B = 0 it is order 0."""
    found = formulas(text)
    at = {
        NORM: 2,
        NORMP: Rational(3, 2),
        S: Rational(1, 2),
        SP: Rational(-1, 3),
        THETA: 1,
        D: 5,
        A: Rational(6, 5),
    }
    for b in (0, Rational(7, 2)):
        here = {**at, B: b}
        p, pp, t = (evaluate(D * at_spike(v), 200, here) for v in (Q, QP, T))
        explicit = evaluate(found.k1(), 200, here)
        assert abs(explicit - evaluate(found.kernel(), 200, {P: p, PP: pp, T: t, D: 5})) < arb(10) ** -40
        if b == 0:
            assert abs(explicit - evaluate(found.order_in_angle(0), 200, here)) < arb(10) ** -40


def test_orders_in_the_angle_are_orders_in_the_covariance():
    relu = formulas("relu")
    at = {
        NORM: 2,
        NORMP: Rational(3, 2),
        S: Rational(1, 2),
        SP: Rational(-1, 3),
        THETA: 1,
        D: 5,
        A: Rational(6, 5),
        B: 3,
    }
    law = {Q: A * NORM**2 / D, QP: A * NORMP**2 / D, T: A * NORM * NORMP * cos(THETA) / D}
    for order in (1, 2, 3):
        plain = relu.order(order).subs(law, simultaneous=True) * (B / D) ** order
        assert abs(evaluate(plain, 300, at) - evaluate(relu.order_in_angle(order), 300, at)) < arb(10) ** -50


def test_polynomial_expansions_stop():
    """he2 has degree two: order 3 and beyond vanish, and the orders add up to k1 exactly."""
    found = formulas("z**2 - 1")
    assert found.order(3) == 0
    moved = {Q: Q + B / D * S**2, QP: QP + B / D * SP**2, T: T + B / D * S * SP}
    total = sum(found.order(r) * (B / D) ** r for r in range(3))
    assert sympy.expand(found.dual.subs(moved, simultaneous=True) - total) == 0


def test_without_closed_form_the_orders_are_general():
    found = formulas("tanh(z)")
    assert not found.closed
    assert found.order(1) == price_term(1)
    assert found.kernel() == DualMoment(0, 0, P / D, PP / D, T / D)


@pytest.mark.parametrize("order", [-1, 13])
def test_orders_out_of_range_are_refused(order):
    with pytest.raises(InputError, match="order"):
        formulas("relu").order(order)


def test_angles_only_where_they_belong():
    assert in_angle(T * asin(T / sqrt(Q * QP)) + pi * T / 2) == NORM * NORMP * (pi - THETA) * cos(THETA) / D
    assert in_angle(1 / sqrt(Q * QP - T**2)) == D / (NORM * NORMP * sin(THETA))
    assert in_inner_products(T) == T / D


def test_latex_is_that_of_a_paper():
    assert latex(price_term(1)).count(r"\mathbb{E}") == 3
    assert r"\sigma''(U)\,\sigma(U')" in latex(price_term(1))
    assert r"\sigma^{(3)}(U)" in latex(price_term(2))
    shown = display("k_0", formulas("relu").k0())
    assert r"\lVert x\rVert" in shown
    assert r"\left(\pi - \theta\right)" in shown
    assert r"\Phi_{2}" in latex(formulas("max(-1, min(1, z))").kernel())
