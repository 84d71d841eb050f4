"""The Gaussian data of links and activations: values, zeros, refusals, budget, warnings."""

import json
import time
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb, ctx
from sympy import Abs, Heaviside, Integer, Max, Piecewise, Rational, Symbol, erf, exp, pi, sign, sqrt

from spikesym.errors import InputError, NotIntegrableError
from spikesym.expectations import Expectations
from spikesym.gaussian import GaussianData, gaussian_data
from spikesym.numeric.value import Value
from spikesym.symbolic.functions import make_function

TABLE = json.loads((Path(__file__).parent / "reference" / "hermite_table.json").read_text())
GOLDEN = json.loads((Path(__file__).parent / "reference" / "golden_links.json").read_text())
x = Symbol("x")
DENSITY = 1 / sqrt(2 * pi)


def link(source, **options):
    return gaussian_data(source, "link", **options)


@pytest.mark.parametrize("text", sorted(TABLE))
def test_twelve_coefficients_of_every_link_to_all_printed_digits(text):
    values = link(text).coefficients(12)
    for k, (value, reference) in enumerate(zip(values, TABLE[text], strict=True)):
        assert value.certified
        with mpmath.workdps(60):
            expected = mpmath.nstr(mpmath.mpf(reference), 30)
            printed = mpmath.nstr(mpmath.mpf(value.text(30)), 30)
        assert printed == expected, f"c_{k} ({value.method})"


@pytest.mark.parametrize("text", sorted(GOLDEN))
def test_golden_values_as_sympy_expressions(text):
    """Three moments of links written in SymPy, with its plain symbol x, to twenty digits."""
    data = link(sympy.sympify(text))
    for k, reference in enumerate(GOLDEN[text]):
        ctx.prec = 200
        ball = data.coefficient(k).enclosure(22)
        assert abs(ball - arb(reference)) <= arb("0.6e-19") * max(1, abs(float(reference)))


# ---- derivatives are distributions ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "order", "mean"),
    [
        ("relu", 2, DENSITY),
        (Max(0, x), 2, DENSITY),
        (Piecewise((x, x > 0), (0, True)), 2, DENSITY),
        (x * Heaviside(x), 2, DENSITY),
        ("abs(s)", 2, 2 * DENSITY),
        ("max(0, s-1)", 2, DENSITY * exp(Rational(-1, 2))),
        ("max(-1, min(1, s))", 2, Integer(0)),
        ("sign(s)", 1, 2 * DENSITY),
        ("relu(s)**2", 3, 2 * DENSITY),
        (Heaviside(x) ** 2, 1, DENSITY),
        (Heaviside(x) ** 3, 1, DENSITY),
        (sign(x) ** 3, 1, 2 * DENSITY),
        (x * sign(x) ** 2, 1, Integer(1)),
    ],
)
def test_no_point_mass_is_lost(source, order, mean):
    value = link(source).derivative_mean(order)
    assert sympy.simplify(value.exact - mean) == 0


def test_second_moments_of_derivatives():
    assert link("relu").derivative_second_moment.exact == Rational(1, 2)
    assert link("leaky_relu(s, 1/10)").derivative_second_moment.exact == Rational(101, 200)
    assert link("tanh").derivative_second_moment.text(20) == _tanh_derivative_square()
    with pytest.raises(NotIntegrableError, match="infinite: jumps at s = 0"):
        _ = link("sign").derivative_second_moment
    with pytest.raises(NotIntegrableError, match="grows like"):
        _ = link("sqrt(abs(s))").derivative_second_moment
    with pytest.raises(NotIntegrableError, match="point mass"):
        link("relu").expectation(2, derivative=2)


def _tanh_derivative_square():
    with mpmath.workdps(40):
        value = mpmath.quad(
            lambda t: 2 * mpmath.sech(t) ** 4 * mpmath.exp(-t * t / 2) / mpmath.sqrt(2 * mpmath.pi),
            range(0, 16),
        )
        return mpmath.nstr(value, 20)


@pytest.mark.parametrize("text", ["tanh(s)", "s**3-s", "sin(2*s+1)"])
@pytest.mark.parametrize(("i", "j"), [(0, 1), (0, 2), (1, 2), (0, 3)])
def test_mixed_expectations_of_smooth_functions(text, i, j):
    """By parts in the package; here the product is integrated as it stands."""
    data = link(text)
    expr, s = data.function.expr, sympy.Symbol("x", real=True)
    product = sympy.lambdify(s, expr.diff(s, i) * expr.diff(s, j), "mpmath")
    with mpmath.workdps(30):
        reference = mpmath.quad(lambda t: product(t) * mpmath.npdf(t), range(-16, 17))
        assert mpmath.almosteq(mpmath.mpf(data.mixed(i, j).text(20)), reference, 1e-18, 1e-18)


def test_mixed_expectations_with_point_masses():
    relu = gaussian_data("relu", "activation")
    assert relu.mixed(0, 2).exact == 0  # sigma delta vanishes
    assert sympy.simplify(relu.mixed(1, 2).exact - DENSITY / 2) == 0  # half of the density
    assert sympy.simplify(relu.mixed(0, 1).exact - DENSITY) == 0


# ---- moments of the square -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "s_g"),
    [("s", Integer(1)), ("s**2", Integer(6)), ("relu", Rational(1, 2))],
)
def test_half_the_mean_curvature_of_the_square(text, s_g):
    assert link(text).s_g.exact == s_g


@pytest.mark.parametrize("text", ["heaviside(s+1)*heaviside(1-s)", "exp(-s**2/2)"])
def test_localised_links_have_negative_s_g(text):
    assert float(link(text).s_g) < 0


def test_second_moments():
    data = link("2*s**2+3*s+4*sin(2*s)")
    g = lambda t: 2 * t**2 + 3 * t + 4 * mpmath.sin(2 * t)  # noqa: E731
    with mpmath.workdps(30):
        for value, weight in ((data.second_moment, lambda t: 1), (data.second_moment_x2, lambda t: t * t)):
            reference = mpmath.quad(lambda t: g(t) ** 2 * weight(t) * mpmath.npdf(t), range(-16, 17))  # noqa: B023
            assert mpmath.almosteq(mpmath.mpf(value.text(20)), reference, 1e-18)


def test_expectations_with_polynomials():
    data = link("tanh")
    direct = data.expectation(1, polynomial=x**3 - 2 * x)
    ctx.prec = 120
    expected = data.coefficient(3).enclosure(25) + data.coefficient(1).enclosure(25)
    assert abs(direct.enclosure(25) - expected) < 1e-22
    assert data.expectation(0, polynomial=x**4).exact == 3
    assert link("s").expectation(4).exact == 3
    with pytest.raises(InputError):
        data.expectation(-1)


def test_slow_hermite_decay_is_exact_not_sampled():
    """Values on which Gauss-Hermite nodes or samples are wrong by percents."""
    ctx.prec = 120
    tenth = link("relu").coefficient(10).enclosure(30) / arb(int(sympy.factorial(10))).sqrt()
    assert abs(tenth - arb("0.0219896262793997507")) < 1e-18
    assert link("heaviside(s-3/10)").coefficient(0).text(18) == "0.382088577811047363"
    assert link("he8(s)/sqrt(40320)").second_moment.exact == 1


def test_closed_forms_have_their_limits_at_special_parameters():
    """E|s - b| at b = 0 is no 0/0, neither from the text nor in the closed form with b left free."""
    expected = "0.797884560802865356"
    assert link("abs(s-b)", parameters={"b": 0}).coefficient(0).text(18) == expected
    exact = link("abs(s-b)").coefficient(0).exact
    assert Value(exact=exact.subs(Symbol("b", real=True), 0)).text(18) == expected


def test_a_hundred_coefficients_of_tanh_to_thirty_digits_take_no_two_seconds():
    data = GaussianData(make_function("tanh", "link"))
    start = time.process_time()
    values = data.coefficients(100)
    for value in values[1::2]:
        assert float(value.enclosure(30).rad()) < float(abs(value.enclosure(30)).upper()) * 1e-30
    assert time.process_time() - start < 2


# ---- parity, information exponent, Parseval ------------------------------------------------------------------


def test_zero_by_parity_is_exact():
    values = link("tanh(3*s)-s/2").coefficients(12)
    assert [v.exact == 0 for v in values] == [True, False] * 6
    assert all(v.is_zero is (k % 2 == 0) for k, v in enumerate(values))


@pytest.mark.parametrize(
    ("text", "k", "certified"),
    [
        ("relu", 1, True),
        ("tanh", 1, True),
        ("he2(s)", 2, True),
        ("abs(s)", 2, True),
        ("he3(s)", 3, True),
        ("softplus(s)-s/2", 2, True),
        ("he5(s) + he6(s)", 5, True),
        ("he30(s)/10**15", 30, True),
        ("s**4-6*s**2", 4, True),
    ],
)
def test_information_exponent(text, k, certified):
    found = link(text).information_exponent
    assert (found.k, found.certified) == (k, certified)
    assert f"c_{k}" in found.detail


def test_information_exponent_of_a_constant_and_of_what_cannot_be_proved():
    constant = link("3").information_exponent
    assert constant.k is None
    assert constant.certified
    # c_1 of tanh(s) - c s vanishes to the digits of c only: not zero, and that is proved
    c1 = link("tanh").coefficient(1).text(30)
    almost = link(f"tanh(s)-{c1}*s").information_exponent
    assert almost.k == 1
    assert almost.certified
    # to sixty digits it is zero within the radius, which is said
    c1 = link("tanh").coefficient(1).text(70)
    unproved = link(f"tanh(s)-{c1}*s").information_exponent
    assert unproved.k == 3
    assert not unproved.certified
    assert "zero within radius 1e-50" in unproved.detail


@pytest.mark.parametrize("text", ["tanh(s)", "softplus(s)", "relu(s)", "abs(s-1)"])
def test_parseval_residual_is_positive_and_falls(text):
    data = link(text)
    rests = [float(data.parseval_residual(count)) for count in (1, 4, 10)]
    assert rests[0] > rests[1] > rests[2] > 0
    square = float(data.second_moment)
    parts = sum(float(data.coefficient(k)) ** 2 / float(sympy.factorial(k)) for k in range(10))
    assert rests[2] == pytest.approx(square - parts, abs=1e-14)


def test_parseval_residual_of_a_polynomial_is_exactly_zero():
    assert link("s**3-2*s+1").parseval_residual(4).exact == 0
    assert link("s**3-2*s+1").parseval_residual(3).exact == 6


# ---- parameters, callables -----------------------------------------------------------------------------------


def test_free_parameters_leave_closed_forms():
    a = Symbol("a", real=True)
    data = link("exp(a*s)")
    assert sympy.simplify(data.coefficient(2).exact - a**2 * exp(a**2 / 2)) == 0
    assert not data.coefficient(2).has_number
    assert data.information_exponent.k == 1
    assert not data.information_exponent.certified
    assert "general a" in data.information_exponent.detail
    assert link("cos(a*s)").information_exponent.k == 2
    with pytest.raises(InputError, match="--set"):
        link("tanh(a*s)").coefficient(1)
    assert link("tanh(a*s)", parameters={"a": 3}).coefficient(1).text(15) == link("tanh(3*s)").coefficient(
        1
    ).text(15)


def test_a_callable_gives_estimates_that_say_so():
    data = link(np.tanh)
    value = data.coefficient(1)
    assert not value.certified
    assert "not certified" in value.method
    assert any("not certified" in w for w in data.warnings)
    assert abs(float(value) - 0.605705509602158825584) < 1e-13
    assert data.second_moment.text(10) == link("tanh").second_moment.text(10)
    assert abs(float(data.derivative_second_moment) - float(link("tanh").derivative_second_moment)) < 1e-9
    assert data.information_exponent.k == 1
    assert not data.information_exponent.certified
    assert data.coefficient_formula() is None


# ---- budget, warnings, safety --------------------------------------------------------------------------------


def test_an_attempt_that_overruns_is_stopped_and_said(monkeypatch):
    def forever(*arguments):
        while True:
            time.sleep(0.001)

    monkeypatch.setattr("spikesym.expectations.exact_coefficient", forever)
    data = GaussianData(make_function("relu", "link"), budget=0.2)
    start = time.perf_counter()
    values = data.coefficients(6)
    assert time.perf_counter() - start < 5
    assert [v.exact for v in values] == [None] * 6
    assert values[2].text(20) == "0.39894228040143267794"
    assert any("time budget of 0.2 s" in w for w in data.warnings)


def test_a_wrong_closed_form_is_caught(monkeypatch):
    monkeypatch.setattr("spikesym.expectations.exact_coefficient", lambda f, k: Rational(1, 3))
    data = GaussianData(make_function("relu", "link"))
    value = data.coefficient(2)
    assert value.exact is None
    assert value.text(20) == "0.39894228040143267794"
    assert any("disagrees" in w for w in data.warnings)


def test_a_closed_form_that_crashes_is_survived(monkeypatch):
    def crash(f, k):
        raise TypeError("Invalid comparison of non-real zoo")

    monkeypatch.setattr("spikesym.expectations.exact_coefficient", crash)
    data = GaussianData(make_function("abs(s**2-1)", "link"))
    assert data.coefficient(2).text(18) == "1.20500782760480321"
    assert any("TypeError" in w for w in data.warnings)


def test_results_cannot_be_changed_from_outside():
    data = link("tanh")
    data.coefficients(3).clear()
    data.warnings.append("nonsense")
    assert len(data.coefficients(3)) == 3
    assert "nonsense" not in data.warnings
    with pytest.raises(AttributeError):
        data.function = None
    with pytest.raises(AttributeError):
        data.coefficient(1).exact = 1


def test_data_are_cached_per_function():
    assert link("tanh") is link(sympy.tanh(x))
    assert link("tanh") is not gaussian_data("tanh", "activation")


def test_refusals_come_before_numbers():
    for text in ("exp(s**2/4)", "1/s", "tan(s)"):
        with pytest.raises(NotIntegrableError):
            link(text)
    with pytest.raises(InputError):
        link("tanh").coefficient(-1)


def test_expectations_name_what_they_could_not_close():
    source = Expectations(make_function("tanh", "activation"), 2.0)
    source.value(1, 0, 1)
    source.value(2, 1, 0)
    assert source.warnings == [
        "--activation: no closed form of mu_k in general; certified numbers are used",
        "--activation: no closed form of E[sigma'^2] in general; certified numbers are used",
    ]


def test_values_are_values():
    assert isinstance(link("gelu").coefficient(3), Value)
    assert link(Abs(x - 1)).coefficient(1).text(20) == "-0.68268949213708589717"
    assert link(erf(x)).coefficient_formula() is not None
