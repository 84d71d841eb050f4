"""Links and activations as objects, and their NumPy functions against SymPy and mpmath."""

import math
import pickle
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy

from spikesym.errors import InputError, ParseError
from spikesym.symbolic.compile import compile_numpy
from spikesym.symbolic.functions import derivative_almost_everywhere, idempotent_steps, make_function
from spikesym.symbolic.hermite_series import hermite_coefficients, orthonormal_hermite
from spikesym.symbolic.scaled import ScaledEvaluator
from spikesym.symbolic.symbols import X
from spikesym.symbolic.vocabulary import HermiteProb, hermite_polynomial

TEXTS = [
    "relu", "leaky_relu(0.1)", "abs", "sign", "heaviside", "erf", "erfc", "Phi", "tanh", "sigmoid", "softplus", "gelu",
    "swish", "elu", "hardtanh", "identity", "sin", "cos(2*s+1)", "exp(s/2)", "2**s", "exp(-0.3*s**2)", "he7", "he20(s)",
    "he5(2*s)", "he40(s)", "s**40", "log(cosh(s))", "(exp(s)-exp(-s))/(exp(s)+exp(-s))", "sqrt(abs(s))", "abs(s)**1.5",
    "1/(1+s**2)", "Piecewise((log(s),s>1),(sqrt(1-s),True))", "3/2", "heaviside(s)**3*sign(s-1)**2",
    "max(tanh(s),s/2-1,-1/2)", "atan(s)", "asinh(s)*sinh(s/3)", "s/(1+abs(s))", "log(abs(s))", "abs(s**3-3*s+1)",
    "erf(s)**3", "1-erf(s)", "exp(s)-1", "log(1+s**2)", "s*exp(s)/(1+exp(s))", "min(s, 1, s**2)",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_compiled_function_and_derivative_against_sympy(text, rng):
    function = make_function(text, "link")
    points = rng.normal(size=12) * 2.5
    for compiled, expr in (
        (function.numpy(), function.expr),
        (function.derivative_numpy(), derivative_almost_everywhere(function.expr)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            values = compiled(points)
        for x, value in zip(points, values, strict=True):
            here = sympy.Rational(float(x))
            expected = float(sympy.N(expr.subs(X, here), 25))
            # conditioning: what a rounding of the argument does to the value
            slope = float(sympy.N(derivative_almost_everywhere(expr).subs(X, here), 15))
            assert abs(value - expected) <= 1e-13 * (abs(expected) + abs(x * slope)) + 1e-15


@pytest.mark.parametrize("text", TEXTS)
def test_derivative_against_differences_in_40_digits(text, rng):
    function = make_function(text, "link")
    with mpmath.workdps(40):
        for x in rng.normal(size=4) * 1.7:
            f = lambda u: mpmath.mpmathify(sympy.N(function.expr.subs(X, sympy.Rational(str(u))), 40))  # noqa: E731
            u, h = mpmath.mpf(float(x)), mpmath.mpf(10) ** -10
            slope = (f(u + h) - f(u - h)) / (2 * h)
            assert float(function.derivative_numpy()(x)) == pytest.approx(float(slope), rel=1e-9, abs=1e-12)


FAR = [
    ("tanh", -1, 1),
    ("(exp(s)-exp(-s))/(exp(s)+exp(-s))", -1, 1),
    ("sigmoid", 0, 1),
    ("exp(s)/(1+exp(s))", 0, 1),
    ("swish", 0, 800),
    ("softplus", 0, 800),
    ("gelu", 0, 800),
    ("elu", -1, 800),
    ("log(cosh(s))", 800 - math.log(2), 800 - math.log(2)),
    ("exp(-s**2)", 0, 0),
    ("erf", -1, 1),
    ("Phi", 0, 1),
    ("exp(s)*exp(-s)", 1, 1),
    ("exp(2*s)/cosh(s)**2", 0, 4),
    ("max(exp(s), 1)/(1+exp(s))", 1, 1),
    ("s*exp(s)/(1+exp(s))", 0, 800),
]


@pytest.mark.parametrize(("text", "left", "right"), FAR)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_far_out_there_is_no_overflow(text, left, right, kind):
    function = make_function(text, "link")
    far = np.array([-800.0, 800.0], kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values, slopes = function.numpy()(far), function.derivative_numpy()(far)
    assert values == pytest.approx(np.array([left, right], kind), rel=1e-6, abs=1e-12)
    assert values.dtype == slopes.dtype == kind
    assert np.isfinite(slopes).all()


def test_derivatives_far_out():
    slopes = {text: make_function(text, "activation").derivative_numpy()(np.array([-800.0, 800.0])) for text in
              ("tanh", "sigmoid", "softplus", "swish", "gelu")}  # fmt: skip
    for text, expected in {
        "tanh": (0, 0),
        "sigmoid": (0, 0),
        "softplus": (0, 1),
        "swish": (0, 1),
        "gelu": (0, 1),
    }.items():
        assert slopes[text] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "text", ["relu", "3", "sigmoid", "he20(s)", "Piecewise((s, s>0), (1, True))", "sign(s)"]
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_shape_and_type_are_kept(text, kind):
    function = make_function(text, "link")
    for compiled in (function.numpy(), function.derivative_numpy()):
        for shape in ((), (3,), (2, 3), (2, 0), (40000, 2)):
            out = compiled(np.ones(shape, kind))
            assert np.shape(out) == shape
            assert out.dtype == kind
        assert compiled(2).dtype == np.float64
        assert compiled(np.array([1, 2], np.int64)).dtype == np.float64


def test_integers_do_not_overflow():
    he40 = make_function("he40", "link").numpy()
    assert he40(5) == pytest.approx(1.5681257243296727e26, rel=1e-13)
    assert he40(np.array([5]))[0] == pytest.approx(1.5681257243296727e26, rel=1e-13)


def test_high_hermite_degrees_keep_their_digits():
    he100 = make_function("he100(s)", "link").numpy()
    assert he100(4.3) == pytest.approx(9.972972573424412395e79, rel=1e-12)
    assert make_function(sympy.hermite_prob(100, sympy.Symbol("t")), "link").numpy()(4.3) == pytest.approx(
        9.972972573424412395e79, rel=1e-12
    )
    assert orthonormal_hermite(304, 1.0) == pytest.approx(0.0461343833965666, rel=1e-12)
    # the degree where the polynomial itself is out of range, with its norm in the expression
    normalised = HermiteProb(304, X) / sympy.sqrt(sympy.factorial(304))
    assert compile_numpy(normalised)(np.array([1.0]))[0] == pytest.approx(0.0461343833965666, rel=1e-12)


def test_orthonormal_hermite_against_mpmath(rng):
    points = rng.normal(size=5) * 3
    with mpmath.workdps(60):
        for k in (0, 1, 2, 17, 150):
            values = orthonormal_hermite(k, points)
            for x, value in zip(points, values, strict=True):
                exact = mpmath.hermite(k, mpmath.mpf(x) / mpmath.sqrt(2)) * mpmath.mpf(2) ** (
                    -mpmath.mpf(k) / 2
                )
                exact /= mpmath.sqrt(mpmath.factorial(k))
                assert abs(value - exact) < 1e-13 * (k + 1)


def test_hermite_polynomials_and_series():
    for k in (0, 1, 5, 12):
        assert sympy.expand(hermite_polynomial(k, X) - sympy.hermite_prob(k, X)) == 0
    polynomial = sympy.Poly(3 * X**7 - X**4 + X / 3 + 2, X)
    series = hermite_coefficients(polynomial)
    assert (
        sympy.expand(sum(c * hermite_polynomial(k, X) for k, c in enumerate(series)) - polynomial.as_expr())
        == 0
    )
    assert HermiteProb(6, X).diff(X) == 6 * HermiteProb(5, X)


def test_dead_branches_are_not_evaluated():
    text = "Piecewise((log(s), s > 1), (sqrt(1 - s), s < 0), (1/s, True))"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = make_function(text, "link").numpy()(np.array([-3.0, 0.5, math.e]))
    assert values == pytest.approx([2, 2, 1])


@pytest.mark.parametrize("power", [1, 2, 3, 7])
def test_steps_are_idempotent(power):
    s = sympy.Symbol("s")
    function = make_function(sympy.Heaviside(s) ** power, "link")
    assert function.expr == sympy.Heaviside(X)
    # E[(d/ds) H^p] is the density at 0, whatever p
    assert function.derivative().atoms[0].weight == 1
    expected = sympy.sign(X) if power % 2 else 1
    assert idempotent_steps(sympy.sign(X) ** power) == expected


def test_sympy_symbols_are_renamed_by_name():
    for symbol in (sympy.Symbol("x"), sympy.Symbol("x", real=True), sympy.Symbol("t", positive=True), X):
        assert make_function(sympy.tanh(symbol) + 1, "link").expr == sympy.tanh(X) + 1
    mixed = sympy.Symbol("x") * sympy.Symbol("x", real=True)
    assert make_function(mixed, "link").expr == X**2


def test_several_symbols_need_a_variable_by_name_or_values():
    a, s, u, v = sympy.symbols("a s u v")
    assert make_function(sympy.tanh(a * s), "link").parameters == (sympy.Symbol("a", real=True),)
    assert make_function(sympy.tanh(a * u), "link", {"a": Fraction(2)}).expr == sympy.tanh(2 * X)
    with pytest.raises(InputError, match="several symbols: u, v"):
        make_function(u * v, "link")
    with pytest.raises(InputError, match="several symbols"):
        make_function(sympy.tanh(a * s), "link", allow_parameters=False)


def test_floats_in_sympy_expressions_become_the_rationals_they_print_as():
    assert make_function(sympy.Symbol("t") * 0.3, "link").expr == X * sympy.Rational(3, 10)


@pytest.mark.parametrize(
    "source",
    [
        sympy.I * X, sympy.gamma(X), sympy.DiracDelta(X), sympy.Integral(sympy.exp(X), X), sympy.zoo, sympy.nan, sympy.oo,
        object(), [1, 2], sympy.Function("f")(X), sympy.Eq(X, 0), None,
    ],
)  # fmt: skip
def test_what_the_theory_has_no_calculus_for_is_refused(source):
    with pytest.raises(InputError, match="--link"):
        make_function(source, "link")


@pytest.mark.parametrize(
    "text", ["sqrt(s)", "log(s)", "s**(1/3)", "asin(s)", "Piecewise((s, s > 0))", "log(sin(s))"]
)
def test_functions_that_are_not_real_are_refused(text):
    with pytest.raises(InputError, match="not a real number at s = "):
        make_function(text, "link")


def test_callables():
    function = make_function(np.tanh, "activation")
    assert function.expr is None
    assert not function.has_finite_breakpoints
    x = np.linspace(-2, 2, 7, dtype=np.float32)
    assert function.numpy()(x).dtype == np.float32
    assert function.derivative_numpy()(0.3) == pytest.approx(1 - math.tanh(0.3) ** 2, rel=1e-10)
    scalar_only = make_function(lambda v: math.erf(v) if v > 0 else 0.0, "link")
    assert scalar_only.numpy()(np.array([[-1.0, 0.5]])) == pytest.approx(np.array([[0, math.erf(0.5)]]))
    constant = make_function(lambda v: 2.0, "link")
    assert constant.numpy()(np.zeros((2, 2))).shape == (2, 2)
    with pytest.raises(InputError, match="Python callable"):
        function.breakpoints()
    with pytest.raises(InputError, match="returned shape"):
        make_function(lambda v: np.array([1.0, 2.0, 3.0]), "link").numpy()(np.zeros(2))
    assert make_function(sympy.tanh, "link").expr == sympy.tanh(X)


def test_free_parameters_have_no_numbers():
    function = make_function("tanh(a*s)", "link")
    with pytest.raises(InputError, match="free parameters a"):
        function.numpy()
    assert make_function("tanh(a*s)", "link", {"a": Fraction(2)}).numpy()(0.25) == pytest.approx(
        math.tanh(0.5)
    )


def test_objects_are_values():
    one, two = make_function("tanh", "link"), make_function("tanh", "link")
    assert one == two
    assert hash(one) == hash(two)
    assert make_function(one, "link") is one
    one.numpy()
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert again.numpy()(0.5) == one.numpy()(0.5)
    compiled = pickle.loads(pickle.dumps(one.numpy()))
    assert compiled(0.5) == one.numpy()(0.5)


@pytest.mark.parametrize(
    ("text", "coefficients"),
    [
        ("relu", (sympy.Rational(1, 2), sympy.Rational(1, 2))),
        ("abs", (0, 1)),
        ("identity", (1, 0)),
        ("leaky_relu(0.1)", (sympy.Rational(11, 20), sympy.Rational(9, 20))),
        ("max(z/10, z)", (sympy.Rational(11, 20), sympy.Rational(9, 20))),
        ("Piecewise((-z, z < 0), (2*z, True))", (sympy.Rational(1, 2), sympy.Rational(3, 2))),
        ("sqrt(z**2)", (0, 1)),
        ("z*sign(z)", (0, 1)),
        ("tanh", None),
        ("relu(z - 1)", None),
        ("relu(z) + 1", None),
        ("relu(z)**2", None),
        ("abs(cos(z))", None),
    ],
)
def test_homogeneous_functions_are_recognised(text, coefficients):
    assert make_function(text, "activation").piecewise_linear_coefficients() == coefficients


def test_scaled_evaluation_agrees_where_nothing_overflows(rng):
    points = rng.normal(size=20) * 3
    for text in TEXTS:
        function = make_function(text, "link")
        scaled = ScaledEvaluator(function._stable)(points)
        assert scaled == pytest.approx(function.numpy()(points), rel=1e-7, abs=1e-9), text


def test_errors_of_texts_name_the_option():
    with pytest.raises(ParseError, match="--activation"):
        make_function("tanhh(z)", "activation")
