"""Exact Gaussian expectations against tables made by quadrature of the definition, and against the definition."""

import json
import math
import time
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, exp, pi, sqrt

from spikesym.errors import InputError, NotIntegrableError
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.moments import (
    coefficient_formula,
    exact_coefficient,
    exact_coefficients,
    exact_expectation,
)
from spikesym.symbolic.symbols import K, X

REFERENCE = Path(__file__).parent.parent / "reference"
TABLE = json.loads((REFERENCE / "hermite_table.json").read_text())
EXACT = json.loads((REFERENCE / "exact_moments.json").read_text())
GOLDEN = json.loads((REFERENCE / "golden_links.json").read_text())

#: links of the table without closed form of their own; where parity gives a coefficient, it must be right
OPEN = {
    "log(abs(s))", "log(1+s**2)", "tanh(s)", "tanh(3*s)-s/2", "tanh(2*s+1)", "sigmoid(s)", "sigmoid(4*s-1)", "softplus(s)",
    "softplus(3*s)/3", "swish(s)", "abs(cos(s))", "atan(2*s)", "sqrt(1+s**2)", "exp(sin(2*s))",
}  # fmt: skip


def number(expr, digits=45):
    value = sympy.N(expr, digits, maxn=500)
    real, imag = value.as_real_imag()
    assert abs(imag) < Rational(1, 10**30)
    return mpmath.mpmathify(real)


@pytest.mark.parametrize("text", sorted(TABLE))
def test_twelve_coefficients_exactly(text):
    found = exact_coefficients(make_function(text, "link"), 12)
    if text not in OPEN:
        assert None not in found
    with mpmath.workdps(45):
        for k, (value, reference) in enumerate(zip(found, TABLE[text], strict=True)):
            if value is None:
                continue
            expected = mpmath.mpf(reference)
            if expected == 0:
                # what is zero must come out as zero, or be it to 30 digits
                assert value == 0 or abs(number(value)) < mpmath.mpf(10) ** -30
            else:
                assert abs(number(value) / expected - 1) < mpmath.mpf(10) ** -37, k


def test_what_symmetry_gives_where_no_form_is_known():
    for text, known in {"sigmoid(s)": [Rational(1, 2), None, 0, None, 0], "softplus(s)": [None, Rational(1, 2), None, 0, None],
                        "swish(s)": [None, Rational(1, 2), None, 0, None], "tanh(s)": [0, None, 0, None, 0],
                        "tanh(s) + s**2": [1, None, 2, None, 0]}.items():  # fmt: skip
        assert exact_coefficients(make_function(text, "link"), 5) == known


@pytest.mark.parametrize("text", sorted(GOLDEN))
def test_golden_moments_of_sympy_expressions(text):
    function = make_function(sympy.sympify(text), "link")
    with mpmath.workdps(40):
        for k, reference in enumerate(GOLDEN[text]):
            value = exact_coefficient(function, k)
            if value is None:
                assert text in ("tanh(x)", "1/(1+exp(-x))", "log(1+exp(x))", "Abs(cos(x))")
                continue
            assert abs(number(value) - mpmath.mpf(reference)) <= mpmath.mpf("0.6e-19") * max(
                1, abs(mpmath.mpf(reference))
            )


PRINTED = [
    ("relu", 2, "sqrt(2)/(2*sqrt(pi))"),
    ("relu", 1, "1/2"),
    ("abs", 0, "sqrt(2)/sqrt(pi)"),
    ("sign(s**2-1)", 0, "1 - 2*erf(sqrt(2)/2)"),
    ("gelu", 0, "1/(2*sqrt(pi))"),
    ("sin", 1, "exp(-1/2)"),
    ("cos(2*s+1)", 1, "-2*exp(-2)*sin(1)"),
    ("exp(s/2)", 3, "exp(1/8)/8"),
    ("erf(s+1)", 0, "erf(sqrt(3)/3)"),
    ("erf(abs(s))", 0, "2*atan(sqrt(2))/pi"),
    ("Phi(s)**2", 0, "1/3"),
    ("sin(s)*heaviside(s)", 0, "exp(-1/2)*erfi(sqrt(2)/2)/2"),
    ("sqrt(abs(s))", 0, "2**(1/4)*gamma(3/4)/sqrt(pi)"),
    ("1/(1+s**2)", 0, "sqrt(2)*sqrt(pi)*exp(1/2)*erfc(sqrt(2)/2)/2"),
    ("abs(s-b)", 0, "b*erf(sqrt(2)*b/2) + sqrt(2)*exp(-b**2/2)/sqrt(pi)"),
]


@pytest.mark.parametrize(("text", "k", "printed"), PRINTED)
def test_results_print_as_one_would_write_them(text, k, printed):
    assert str(exact_coefficient(make_function(text, "link"), k)) == printed


def test_the_second_derivative_of_relu_has_its_delta():
    relu = sympy.Piecewise((X, X > 0), (0, True))
    assert exact_coefficient(relu, 2) == exact_expectation(relu, {2: 1}) == 1 / sqrt(2 * pi)
    for power in (1, 2, 3, 5):
        step = make_function(sympy.Heaviside(sympy.Symbol("s")) ** power, "link")
        assert exact_expectation(step, {1: 1}) == 1 / sqrt(2 * pi)


def test_the_tenth_orthonormal_coefficient_of_relu():
    value = exact_coefficient(sympy.Max(0, X), 10) / sqrt(sympy.factorial(10))
    assert abs(sympy.N(value, 20) - sympy.Float("0.0219896262793997507", 20)) < 1e-19


def test_removable_singularities():
    mean = exact_coefficient(make_function("abs(s - b)", "link"), 0)
    (b,) = mean.free_symbols
    assert mean.subs(b, 0) == sqrt(2) / sqrt(pi)
    assert exact_coefficient(make_function("abs(s - b)", "link", {"b": Fraction(0)}), 0) == sqrt(2) / sqrt(pi)


# ---- other expectations --------------------------------------------------------------------------------------

#: E[f^2], E[f^2 x^2], E[f'^2], E[x f f'], E[f^2 He_3], E[f' x^2], as in the script of the table
PRODUCTS = [
    ({0: 2}, 1),
    ({0: 2}, X**2),
    ({1: 2}, 1),
    ({0: 1, 1: 1}, X),
    ({0: 2}, X**3 - 3 * X),
    ({1: 1}, X**2),
]


@pytest.mark.parametrize("text", sorted(EXACT["products"]))
def test_expectations_of_products(text):
    function = make_function(text, "link")
    for (factors, weight), reference in zip(PRODUCTS, EXACT["products"][text], strict=True):
        value = exact_expectation(function, factors, weight)
        assert value is not None
        with mpmath.workdps(45):
            assert abs(number(value) - mpmath.mpf(reference)) < mpmath.mpf(10) ** -28 * (
                1 + abs(mpmath.mpf(reference))
            )


@pytest.mark.parametrize("text", sorted(EXACT["products"]))
def test_second_derivatives_with_point_masses_by_parts(text):
    """E[f f''] = E[x f f'] - E[f'^2], and E[f^(n)] = c_n."""
    function = make_function(text, "link")
    with mpmath.workdps(30):
        mixed = exact_expectation(function, {0: 1, 2: 1})
        parts = [exact_expectation(function, {0: 1, 1: 1}, X), exact_expectation(function, {1: 2})]
        if mixed is not None:
            assert abs(number(mixed) - number(parts[0]) + number(parts[1])) < mpmath.mpf(10) ** -25
        for n in range(4):
            mean = exact_expectation(function, {n: 1})
            assert abs(number(mean) - number(exact_coefficient(function, n))) < mpmath.mpf(10) ** -25


@pytest.mark.parametrize(("text", "factors"), [("sign(s)", {1: 2}), ("relu", {2: 2}), ("heaviside(s)", {0: 1, 1: 1}),
                                               ("heaviside(s)", {0: 1, 2: 1}), ("sign(s-1)", {1: 1, 2: 1})])  # fmt: skip
def test_products_of_point_masses_are_refused(text, factors):
    with pytest.raises(NotIntegrableError):
        exact_expectation(make_function(text, "link"), factors)


def test_refusals():
    with pytest.raises(InputError, match="degree"):
        exact_coefficient(X, -1)
    with pytest.raises(InputError, match="polynomial"):
        exact_expectation(X, {0: 1}, sympy.exp(X))
    assert exact_coefficient(make_function(math.tanh, "link"), 1) is None
    assert exact_coefficient(make_function("exp(s**2/2)", "link"), 0) is None


# ---- parameters ----------------------------------------------------------------------------------------------

VALUES = [
    (Rational(7, 5), Rational(2, 3)),
    (Rational(-4, 5), Rational(1, 2)),
    (Rational(3, 7), Rational(-6, 5)),
]


@pytest.mark.parametrize("text", sorted(EXACT["parameters"]))
def test_parameters_of_either_sign(text):
    function = make_function(text, "link")
    forms = exact_coefficients(function, 5)
    assert None not in forms
    for (a, b), references in zip(VALUES, EXACT["parameters"][text], strict=True):
        values = {v: {"a": a, "b": b}[v.name] for v in function.parameters}
        for form, reference in zip(forms, references, strict=True):
            with mpmath.workdps(45):
                assert abs(number(form.subs(values)) - mpmath.mpf(reference)) < mpmath.mpf(10) ** -27


def _hermite(k, x):
    previous, current = 0 * x, 0 * x + 1
    for j in range(k):
        previous, current = current, x * current - j * previous
    return current


def test_an_open_sign_gives_no_form():
    assert exact_coefficient(make_function("exp(-a*s**2)", "link"), 0) is None
    assert exact_coefficient(make_function("heaviside(s-a)*heaviside(s)", "link"), 0) is None


# ---- high degrees and formulas -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", sorted(EXACT["high"]))
def test_high_degrees(text):
    function = make_function(text, "link")
    for k, reference in zip((150, 151), EXACT["high"][text], strict=True):
        with mpmath.workdps(60):
            value = number(exact_coefficient(function, k), 60) / mpmath.sqrt(mpmath.factorial(150))
            assert abs(value - mpmath.mpf(reference)) < mpmath.mpf(10) ** -28 * (
                1 + abs(mpmath.mpf(reference))
            )


FORMULAS = [
    "relu", "abs", "sign", "heaviside", "max(0, s-1)", "hardtanh", "abs(s**2-1)", "s*abs(s)", "relu(s)**2", "erf(s)", "erf(s+1)",
    "Phi", "gelu", "exp(s/2)", "sin(s)", "cos(2*s+1)", "exp(s)*sin(s)", "s*sin(s)", "exp(-3*s**2/10)", "exp(s**2/8)",
    "s*exp(-s**2)", "exp(-(s-1)**2)", "sin(s) + relu(s)", "he3(s) + 2", "1", "gelu(s) - relu(s)", "s**2",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_formula_for_every_degree(text):
    function = make_function(text, "link")
    formula = coefficient_formula(function)
    assert formula is not None
    for k in (*range(9), 17, 30, 31):
        value = exact_coefficient(function, k)
        at_k = formula.subs(K, k)
        with mpmath.workdps(40):
            gap = abs(number(at_k) - number(value)) / mpmath.sqrt(mpmath.factorial(k))
            assert gap < mpmath.mpf(10) ** -30, k


@pytest.mark.parametrize(
    "text", ["erf(a*s)", "exp(a*s)", "sin(a*s)", "cos(a*s+1)", "abs(s-b)", "exp(-a**2*s**2)", "erf(a*s+b)"]
)
def test_formula_with_parameters(text):
    function = make_function(text, "link")
    formula = coefficient_formula(function)
    values = {v: Rational(-3, 7) if v.name == "a" else Rational(5, 4) for v in function.parameters}
    for k in (0, 1, 2, 5, 12, 13):
        found, expected = (
            number(e.subs(values)) for e in (formula.subs(K, k), exact_coefficient(function, k))
        )
        assert abs(found - expected) < mpmath.mpf(10) ** -28 * (1 + abs(expected))


def test_polynomials_are_zero_beyond_their_degree():
    formula = coefficient_formula(make_function("he3(s) + 2", "link"))
    assert [formula.subs(K, k) for k in (0, 1, 2, 3, 4, 50)] == [2, 0, 0, 6, 0, 0]


@pytest.mark.parametrize("text", ["tanh", "abs(cos(s))", "elu", "max(exp(s), 2+s)", "erf(s)**2"])
def test_no_formula_where_there_is_none(text):
    assert coefficient_formula(make_function(text, "link")) is None


# ---- identities ----------------------------------------------------------------------------------------------

SPLINES = st.lists(
    st.tuples(
        st.fractions(-3, 3, max_denominator=5), st.fractions(-2, 2, max_denominator=3), st.integers(0, 3)
    ),
    min_size=1,
    max_size=3,
)


def _spline(parts):
    return sympy.Add(
        *(
            Rational(str(a)) * sympy.Piecewise(((X - Rational(str(b))) ** n, Rational(str(b)) < X), (0, True))
            for a, b, n in parts
        )
    )


NODES, WEIGHTS = np.polynomial.legendre.leggauss(120)


@settings(max_examples=40, deadline=None)
@given(SPLINES, st.integers(0, 9))
def test_random_splines_against_quadrature(parts, k):
    expected = size = 0.0
    for a, b, n in parts:
        x = float(b) + 6 * (NODES + 1)
        values = float(a) * (x - float(b)) ** n * _hermite(k, x) * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        expected += 6 * float(WEIGHTS @ values)
        size += 6 * float(WEIGHTS @ abs(values))
    assert float(number(exact_coefficient(_spline(parts), k), 30)) == pytest.approx(
        expected, rel=1e-12, abs=1e-12 * size
    )


@settings(max_examples=12, deadline=None)
@given(SPLINES, SPLINES, st.fractions(-2, 2, max_denominator=7), st.integers(0, 8))
def test_linearity_and_mean_of_the_derivative(first, second, c, k):
    f, g, weight = _spline(first), _spline(second), Rational(str(c))
    together = exact_coefficient(f + weight * g, k)
    apart = exact_coefficient(f, k) + weight * exact_coefficient(g, k)
    assert abs(number(together - apart, 30)) < 1e-25
    assert abs(number(exact_expectation(f, {1: 1}) - exact_coefficient(f, 1), 30)) < 1e-25


def test_twelve_coefficients_are_fast():
    for text in (
        "relu",
        "gelu",
        "erf(s/3+1)",
        "cos(3*s+1)",
        "max(0, s-1/7)",
        "abs(s**2-3)",
        "sigmoid(s)",
        "exp(-abs(2*s))",
    ):
        function = make_function(text, "link")
        start = time.process_time()
        exact_coefficients(function, 12)
        assert time.process_time() - start < 2.5, text


def test_degrees_up_to_200_do_not_blow_up():
    start = time.process_time()
    values = exact_coefficients(make_function("max(0, s - 1/9)", "link"), 201)
    assert time.process_time() - start < 8
    assert max(len(str(v)) for v in values[2:]) < 1000
    # one point mass: c_200/c_2 = He_198(1/9)
    assert sympy.expand(values[200] / values[2] - _hermite(198, Rational(1, 9))) == 0


def test_exponentials_keep_their_generating_function():
    for k, value in enumerate(exact_coefficients(make_function("exp(a*s)", "link"), 6)):
        (a,) = value.free_symbols
        assert value == a**k * exp(a**2 / 2)
