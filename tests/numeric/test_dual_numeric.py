"""Dual activations in floating point and as balls: against 30-digit references, at the edges, with their bounds."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from spikesym.errors import CertificationError, InputError
from spikesym.gaussian import gaussian_data
from spikesym.numeric.angles import discriminant, pair_angles
from spikesym.numeric.dual import CLOSED, dual
from spikesym.numeric.dual_compile import bivariate_normal
from spikesym.numeric.dual_series import HermiteTable, line, plane, series
from spikesym.symbolic.functions import make_function

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "dual_values.json").read_text())
ACTIVATIONS = sorted({row["activation"] for row in REFERENCE})
KINKED = {
    "relu", "leaky_relu(1/10)", "abs", "sign", "heaviside", "max(z, 0)**2", "max(z, 0)**3",
    "he4", "z**3 - 2*z**2 + z - 1",
}  # fmt: skip
SMOOTH = ("tanh(z)", "sigmoid", "softplus", "swish")
_CACHE = {}


def activation(text, i=0, j=0):
    if (text, i, j) not in _CACHE:
        _CACHE[text, i, j] = dual(text, i, j, budget=60)
    return _CACHE[text, i, j]


def rows_of(text):
    return [r for r in REFERENCE if r["activation"] == text]


def angle_of(row):
    """The discriminant of a row in exact arithmetic, for rows whose t is not a double."""
    q, qp, t = (Fraction(row[n]) for n in ("q", "qp", "t"))
    return float(q * qp - t**2)


@pytest.mark.parametrize("text", ACTIVATIONS)
def test_floats_against_the_reference(text):
    for row in rows_of(text):
        if row["kind"] == "derivative":
            continue
        q, qp, t = (np.array([float(row[n])]) for n in ("q", "qp", "t"))
        value = activation(text).at(q, qp, t, np.array([angle_of(row)]))[0]
        expected = float(row["value"])
        scale = np.sqrt(np.maximum(activation(text)(q, q, q) * activation(text)(qp, qp, qp), 0))[0]
        # relative for functions with a kink at zero only; else relative to the second moments
        bound = 1e-12 * abs(expected) if text in KINKED else 4e-14 * (scale + 1)
        assert abs(value - expected) <= bound + 1e-40, (row, value)


@pytest.mark.parametrize("text", ACTIVATIONS)
def test_derivative_duals_in_floats(text):
    for row in rows_of(text):
        if row["kind"] == "derivative":
            value = activation(text, row["i"], row["j"])(*(float(row[n]) for n in ("q", "qp", "t")))
            assert abs(value - float(row["value"])) < 1e-13 * (1 + abs(float(row["value"]))), (row, value)


@pytest.mark.parametrize("text", ACTIVATIONS)
def test_balls_on_the_boundary(text):
    seen = 0
    for row in rows_of(text):
        if Fraction(row["q"]) * Fraction(row["qp"]) == Fraction(row["t"]) ** 2 and row["i"] == 0:
            ball = activation(text).ball(*(Fraction(row[n]) for n in ("q", "qp", "t")), 150)
            ctx.prec = 150
            assert abs(ball - arb(row["value"])) < arb(10) ** -30, (row, ball)
            seen += 1
    assert seen == 5


@pytest.mark.parametrize("text", ["relu", "erf(3*z/2)", "max(-1, min(1, z))"])
def test_float32_stays_float32(text):
    q, qp, t = (np.array(v, dtype=np.float32) for v in ([1.0, 2.0, 0.5], [1.0, 0.5, 0.5], [0.3, -0.9, 0.5]))
    single = activation(text)(q, qp, t)
    assert single.dtype == np.float32
    double = activation(text)(*(v.astype(np.float64) for v in (q, qp, t)))
    assert np.all(np.abs(single - double) <= np.abs(double) * np.finfo(np.float32).eps)


def test_the_textbook_form_loses_digits_and_this_one_does_not():
    """sin + (pi - theta) cos at theta = pi - 1e-4 is 3.333...e-13; at 1e-9 from 0 and pi likewise."""
    relu, slope = activation("relu"), activation("relu", 1, 1)
    mpmath.mp.dps = 60
    for angle in (
        mpmath.mpf("1e-9"),
        mpmath.mpf("1e-4"),
        mpmath.pi - mpmath.mpf("1e-4"),
        mpmath.pi - mpmath.mpf("1e-9"),
    ):
        q, qp, t, delta = (
            np.array([float(v)]) for v in (1, 4, 2 * mpmath.cos(angle), 4 * mpmath.sin(angle) ** 2)
        )
        k = 2 * (mpmath.sin(angle) + (mpmath.pi - angle) * mpmath.cos(angle)) / (2 * mpmath.pi)
        assert abs(relu.at(q, qp, t, delta)[0] / float(k) - 1) < 1e-12
        assert abs(slope.at(q, qp, t, delta)[0] / float((mpmath.pi - angle) / (2 * mpmath.pi)) - 1) < 1e-12
    # at cos(theta) = 1 the derivative is 1/2, and values above 1 by rounding are no trouble
    assert slope(1.0, 1.0, 1.0) == 0.5
    t = np.nextafter(np.float32(1), np.float32(2))
    assert not np.isnan(relu(np.float32(1), np.float32(1), t))


@given(
    st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(-1, 1), st.integers(-100, 100)
)  # fmt: skip
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_discriminant_is_exact_up_to_rounding(q, qp, rho, exponent):
    q, qp = float(np.ldexp(q, exponent)), float(np.ldexp(qp, -exponent // 2))
    t = rho * np.sqrt(q) * np.sqrt(qp)
    exact = Fraction(q) * Fraction(qp) - Fraction(t) ** 2
    value = float(discriminant(np.array(q), np.array(qp), np.array(t)))
    assert abs(value - max(float(exact), 0.0)) <= 1e-15 * abs(float(exact))


def test_the_discriminant_under_total_cancellation():
    rng = np.random.default_rng(np.random.SeedSequence(5))
    for _ in range(200):
        q = rng.uniform(0.5, 2)
        t = q + rng.integers(-3, 4) * np.spacing(q)
        qp = q + rng.integers(-3, 4) * np.spacing(q)
        exact = Fraction(q) * Fraction(qp) - Fraction(t) ** 2
        assert float(discriminant(*map(np.array, (q, qp, t)))) == pytest.approx(
            max(float(exact), 0), rel=1e-12, abs=0
        )


@pytest.mark.parametrize("d", [2, 3, 50, 1000])
def test_angles_of_nearly_parallel_rows(d):
    rng = np.random.default_rng(np.random.SeedSequence((6, d)))
    X = rng.normal(size=(6, d))
    Y = X * np.array([1, -2, 3e-5, -7e4, 1, -1])[:, None]
    Y = Y + np.abs(Y).max(axis=1)[:, None] * np.array([1e-9, 1e-9, 1e-5, 1e-12, 0, 0])[:, None] * rng.normal(
        size=(6, d)
    )
    _, sine = pair_angles(X, Y)
    for x, y, found in zip(X, Y, sine, strict=True):
        xx, yy, xy = (
            sum(Fraction(a) * Fraction(b) for a, b in zip(u, v, strict=True))
            for u, v in ((x, x), (y, y), (x, y))
        )
        mpmath.mp.dps = 80
        ratio = (xx * yy - xy * xy) / (xx * yy)
        exact = mpmath.sqrt(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert abs(found - exact) <= 1e-12 * exact


def test_the_bivariate_normal_against_mpmath():
    mpmath.mp.dps = 25
    rng = np.random.default_rng(np.random.SeedSequence(7))
    for k in range(40):
        h, g = (0.0 if k % 7 == s else v for s, v in enumerate(2 * rng.normal(size=2)))
        r = (rng.uniform(-1, 1), 1 - 1e-7, -1 + 1e-7)[0 if k % 5 else k % 2 + 1]
        s = mpmath.sqrt(1 - mpmath.mpf(r) ** 2)
        angle = mpmath.asin(r)
        body = mpmath.quad(
            lambda a, h=h, g=g: mpmath.exp(
                -(h * h - 2 * h * g * mpmath.sin(a) + g * g) / (2 * mpmath.cos(a) ** 2)
            ),
            mpmath.linspace(0, angle, 9),
        )
        exact = mpmath.ncdf(h) * mpmath.ncdf(g) + body / (2 * mpmath.pi)
        u, v = (mpmath.mpf(g) - mpmath.mpf(r) * h) / s, (mpmath.mpf(h) - mpmath.mpf(r) * g) / s
        value = bivariate_normal(*(np.array(float(x)) for x in (h, g, r, u, v)))
        assert abs(value - exact) < 2e-15


@pytest.mark.parametrize("text", SMOOTH)
def test_series_within_their_bound_of_the_certified_value(text):
    laws = [
        (1, 1, 0.3),
        (0.25, 2, -0.5),
        (3, 0.75, 1.25),
        (0.5, 0.5, 0.49),
        (2, 2, -1.75),
        (1, 1, 1),
        (1, 1, 0),
    ]
    found = activation(text).evaluate(*map(np.array, zip(*laws, strict=True)))
    assert "series" in found.method
    for (q, qp, t), value, bound in zip(laws, found.values, found.bound, strict=True):
        ball = activation(text).ball(q, qp, t, 64)
        assert abs(value - float(ball.mid())) <= bound + 1e-14
        assert bound < 1e-12


def test_a_certified_series_against_the_plane():
    """tanh and its derivative at 25 digits, against the trapezoidal rule in the plane."""
    mpmath.mp.dps = 30
    q, qp, t = mpmath.mpf(1), mpmath.mpf("0.5"), mpmath.mpf("0.25")
    rho = t / mpmath.sqrt(q * qp)
    rest = mpmath.sqrt(1 - rho**2)
    ctx.prec = 150
    h = mpmath.mpf("0.13")
    nodes = [h * k for k in range(-88, 89)]
    for i, f in ((0, mpmath.tanh), (1, lambda x: mpmath.sech(x) ** 2)):
        weights = [mpmath.npdf(x) for x in nodes]
        outer = [f(mpmath.sqrt(q) * x) for x in nodes]
        total = mpmath.mpf(0)
        for x, w, a in zip(nodes, weights, outer, strict=True):
            total += (
                w
                * a
                * sum(
                    v * f(mpmath.sqrt(qp) * (rho * x + rest * y)) for y, v in zip(nodes, weights, strict=True)
                )
            )
        ball = activation("tanh(z)", i, i).ball(1, Fraction(1, 2), Fraction(1, 4), 90)
        # poles of tanh at distance pi/2 limit the rule to exp(-2 pi (pi/2)/h) = 1e-33
        assert abs(float(ball.mid()) - float(total * h**2)) < 1e-15
        assert abs(ball - arb(mpmath.nstr(total * h**2, 28))) < 1e-23


def test_closed_forms_that_lose_digits_are_replaced():
    """elu at q = 30 and 2000: terms of exp(q) cancel, or overflow; the series and Arb do not."""
    elu = activation("Piecewise((z, z > 0), (exp(z) - 1, True))")
    for q, qp, t in ((30.0, 20.0, 5.0), (30.0, 30.0, -29.5), (2000.0, 1500.0, 100.0)):
        found = elu.evaluate(q, qp, t)
        assert "series" in found.method
        exact = float(elu.ball(q, qp, t, 3500).mid())
        assert abs(found.values - exact) <= found.bound + 1e-13 * abs(exact)
        assert found.bound <= 1e-10 * abs(exact)


def test_kinked_functions_without_closed_form():
    """sqrt|z|: E |U U'|^(1/2) = 2F1(-1/4, -1/4; 1/2; rho^2) (E |z|^(1/2))^2 for unit variances."""
    mean = mpmath.mpf(2) ** mpmath.mpf("0.25") * mpmath.gamma(mpmath.mpf("0.75")) / mpmath.sqrt(mpmath.pi)
    for rho in (0.0, 0.5, -0.9, 1.0):
        expected = mean**2 * mpmath.hyp2f1(-0.25, -0.25, 0.5, rho**2)
        found = activation("sqrt(abs(z))").evaluate(1.0, 1.0, np.array([rho]))
        assert abs(found.values[0] - expected) < 1e-12
        assert abs(found.values[0] - expected) <= found.bound[0] + 1e-14


def test_line_and_plane_agree_with_the_series():
    table = HermiteTable(np.tanh)
    q, qp, t = 1.0, 0.5, 0.3
    exact = series(table, table, *(np.array([v]) for v in (q, qp, t))).values[0]
    cosine = t / np.sqrt(q * qp)
    assert plane(table, table, q, qp, cosine, np.sqrt(1 - cosine**2))[0] == pytest.approx(exact, rel=1e-13)
    at_end = series(table, table, np.array([1.0]), np.array([1.0]), np.array([-1.0])).values[0]
    assert line(table, table, 1.0, 1.0, -1.0)[0] == pytest.approx(at_end, rel=1e-13)


@pytest.mark.parametrize("text", ["tanh(z)", "erf(z)", "relu", "max(-1, min(1, z))", "gelu", "sign"])
def test_no_nan_where_variances_vanish_or_vectors_are_parallel(text):
    q = np.array([0.0, 0.0, 1.0, 1.0, 3.0, 0.1, 1e-300, 1e300])
    qp = np.array([0.0, 2.0, 0.0, 1.0, 3.0, 0.1, 1.0, 1e-300])
    for i, j in ((0, 0), (1, 1)):
        values = activation(text, i, j)(q, qp, np.sqrt(q) * np.sqrt(qp))
        assert not np.isnan(values).any()
        assert not np.isnan(activation(text, i, j)(q, qp, -np.sqrt(q) * np.sqrt(qp))).any()


def test_a_jump_at_zero_counts_half_for_a_zero_variance():
    assert activation("heaviside")(0.0, 1.0, 0.0) == 0.25
    assert activation("sign")(0.0, 1.0, 0.0) == 0.0
    assert float(activation("heaviside").ball(0, 1, 0, 64).mid()) == 0.25


def test_point_masses_that_meet_are_infinite():
    assert np.isinf(activation("sign", 1, 1)(1.0, 1.0, 1.0))
    with pytest.raises(CertificationError, match="infinite"):
        activation("sign", 1, 1).ball(1, 1, 1, 64)
    with pytest.raises(CertificationError, match="infinite"):
        activation("relu", 2, 2).ball(1, 4, -2, 64)


@pytest.mark.parametrize("text", ["relu", "gelu", "tanh(z)", "max(-1, min(1, z))"])
@given(q=st.fractions("1/8", 3, max_denominator=16), qp=st.fractions("1/8", 3, max_denominator=16))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_uncorrelated_and_equal_variables(text, q, qp):
    """t = 0 gives the product of the means, equal variables the second moment; by another module's expectations."""

    def scaled(v):
        root = f"(sqrt({v}))"
        return gaussian_data(
            make_function(text, "activation").expr.subs("x", 0) if v == 0 else _at_scale(text, root),
            "activation",
        )

    first, second = scaled(q), scaled(qp)
    product = activation(text).ball(q, qp, 0, 80)
    mean = first.coefficient(0).ball(100) * second.coefficient(0).ball(100)
    assert abs(product - mean) < 1e-15
    assert abs(activation(text).ball(q, q, q, 80) - first.second_moment.ball(100)) < 1e-15
    assert abs(activation(text)(float(q), float(qp), 0.0) - float(mean.mid())) < 1e-14


def _at_scale(text, root):
    import sympy

    expr = make_function(text, "activation").symbolic()
    (x,) = expr.free_symbols
    return expr.subs(x, sympy.sympify(root) * x)


@pytest.mark.parametrize("text", ["tanh(z)", "softplus"])
def test_derivative_in_t_without_closed_form(text):
    h = Fraction(1, 2**20)
    for q, qp, t in ((1, 1, Fraction(1, 4)), (2, Fraction(1, 2), Fraction(-1, 2))):
        up, down = (activation(text).ball(q, qp, t + s * h, 110) for s in (1, -1))
        slope = (up - down) / (2 * float(h))
        # central differences: the error is h^2/6 times a third derivative below 1
        assert abs(slope - activation(text, 1, 1).ball(q, qp, t, 110)) < 1e-12


def test_a_callable_is_evaluated_and_not_certified():
    by_callable, by_text = dual(np.tanh), activation("tanh(z)")
    q, qp, t = np.array([1.0, 2.0]), np.array([1.0, 0.5]), np.array([0.25, -0.5])
    assert np.allclose(by_callable(q, qp, t), by_text(q, qp, t), rtol=1e-13)
    with pytest.raises(CertificationError, match="callable"):
        by_callable.ball(1, 1, 0, 64)


def test_the_method_is_said():
    assert activation("relu").evaluate(1.0, 1.0, 0.5).method == CLOSED
    assert "series" in activation("tanh(z)").evaluate(1.0, 1.0, 0.5).method
    value = activation("relu").value(1, 1, Fraction(1, 2))
    assert value.method == CLOSED
    assert value.text(20) == "0.30449889052211467904"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((-1.0, 1.0, 0.0), "negative variance"),
        ((1.0, 1.0, 1.5), "not a covariance"),
        (("a", 1.0, 0.0), "not real"),
    ],
)
def test_impossible_laws_are_refused(arguments, what):
    with pytest.raises(InputError, match=what):
        activation("relu")(*arguments)


def test_impossible_exact_laws_and_free_parameters_are_refused():
    with pytest.raises(InputError, match="negative variance"):
        activation("relu").ball(-1, 1, 0, 64)
    with pytest.raises(InputError, match="not a covariance"):
        activation("relu").ball(1, 1, 2, 64)
    with pytest.raises(InputError, match="free parameters a"):
        dual("erf(a*z)")(1.0, 1.0, 0.5)
    with pytest.raises(InputError, match="order"):
        dual("relu", -1, 0)


def test_arrays_broadcast_without_being_copied_out():
    q, qp = np.array([1.0, 2.0])[:, None], np.array([1.0, 0.5, 3.0])[None, :]
    for text in ("relu", "erf(3*z/2)", "tanh(z)"):
        matrix = activation(text)(q, qp, 0.1 * np.ones((2, 3)))
        assert matrix.shape == (2, 3)
        assert matrix[1, 2] == pytest.approx(float(activation(text)(2.0, 3.0, 0.1)), rel=1e-13)
