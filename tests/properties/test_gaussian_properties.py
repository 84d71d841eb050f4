"""Laws that the Gaussian data of every function obey, on functions drawn from the language."""

import math
from itertools import pairwise

import pytest
from flint import arb, ctx
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sympy import Abs, Heaviside, Max, Rational, cos, erf, exp, log, sin, sqrt, tanh

from spikesym.errors import NotIntegrableError
from spikesym.gaussian import gaussian_data
from spikesym.numeric.properties import first_point_mass
from spikesym.numeric.quadrature import function_integrand, hermite_moments
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.symbols import X

FAST = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
BITS = 110

numbers = st.builds(Rational, st.integers(-6, 6), st.integers(1, 4))
slopes = numbers.filter(lambda a: a != 0)


def _atoms(a, b):
    u = a * X + b
    return [
        u,
        u**2 - 1,
        tanh(u),
        erf(u),
        sin(u),
        cos(u),
        exp(u / 3),
        log(1 + exp(u)),
        Abs(u),
        Max(0, u),
        Heaviside(u),
        1 / (1 + u**2),
        exp(-(u**2)),
        sqrt(1 + u**2),
    ]


atoms = st.builds(lambda a, b, i: _atoms(a, b)[i], slopes, numbers, st.integers(0, 13))
#: sums and products, in which kinks and jumps meet smooth parts
functions = st.one_of(
    atoms,
    st.builds(lambda f, g, c: f + c * g, atoms, atoms, slopes),
    st.builds(lambda f, g: f * g, atoms, atoms),
).filter(lambda f: f.has(X))
#: without jumps, so that the ordinary derivative is the whole derivative
continuous = functions.filter(lambda f: not f.has(Heaviside))


def balls(expr, count, of_piece=lambda e: e):
    return hermite_moments(function_integrand(make_function(expr, "link"), of_piece), count, BITS)


def assert_equal(left, right, what):
    """Two balls for one number overlap, and are small enough for that to mean something."""
    with ctx.workprec(400):
        size = 1 + abs(left)
        assert left.overlaps(right), what
        assert arb(left.rad()) < size * 1e-22
        assert arb(right.rad()) < size * 1e-22


@FAST
@given(functions)
def test_bessel_inequality_and_its_certified_residual(expr):
    """The residual of Parseval's sum is never negative and never grows."""
    data = gaussian_data(expr, "link", budget=2.0)
    rests = [data.parseval_residual(count).ball(BITS) for count in (1, 3, 8)]
    for rest in rests:
        assert not rest < 0
    for earlier, later in pairwise(rests):
        assert not later > earlier


@FAST
@given(functions, functions, slopes)
def test_linearity(f, g, c):
    whole = f + c * g
    if not whole.has(X):
        return
    for k, (a, b, s) in enumerate(zip(balls(f, 5), balls(g, 5), balls(whole, 5), strict=True)):
        with ctx.workprec(300):
            assert_equal(a + arb(int(c.p)) / int(c.q) * b, s, f"c_{k}")


@FAST
@given(continuous)
def test_stein_mean_of_the_derivative_is_the_first_coefficient(expr):
    """E[f'] = c_1, E[f' He_k] = c_(k+1): one side integrates the derivative, the other the function."""
    derivative, coefficients = balls(expr, 4, lambda e: e.diff(X)), balls(expr, 5)
    for k in range(4):
        assert_equal(derivative[k], coefficients[k + 1], f"E f' He_{k}")


@FAST
@given(functions)
def test_multiplication_by_x_shifts_by_the_recurrence(expr):
    """c_k(x f) = c_(k+1)(f) + k c_(k-1)(f)."""
    c = balls(expr, 7)
    for k, shifted in enumerate(balls(X * expr, 6)):
        with ctx.workprec(300):
            expected = c[k + 1] + (k * c[k - 1] if k else 0)
        assert_equal(shifted, expected, f"c_{k}(x f)")


@FAST
@given(functions)
def test_reflection_changes_the_sign_of_odd_degrees(expr):
    for k, (a, b) in enumerate(zip(balls(expr, 6), balls(expr.subs(X, -X), 6), strict=True)):
        with ctx.workprec(300):
            reflected = -b if k % 2 else b
        assert_equal(a, reflected, f"c_{k}")


@FAST
@given(functions)
def test_what_is_shown_agrees_with_the_definition(expr):
    """Closed forms, parity and quadrature all give the coefficient that the definition integrates to."""
    data = gaussian_data(expr, "link", budget=2.0)
    for k, ball in enumerate(balls(expr, 6)):
        assert data.coefficient(k).ball(200).overlaps(ball), f"c_{k} ({data.coefficient(k).method})"
    square = balls(expr, 3, lambda e: e**2)
    assert data.second_moment.ball(200).overlaps(square[0])
    with ctx.workprec(300):
        assert data.second_moment_x2.ball(200).overlaps(square[2] + square[0])
        assert data.s_g.ball(200).overlaps(square[2] / 2)


@FAST
@given(functions)
def test_second_moment_of_the_derivative_sums_the_shifted_series(expr):
    """E[f'^2] is at least any partial sum of c_(k+1)^2/k!; with jumps it is refused."""
    data = gaussian_data(expr, "link", budget=2.0)
    if first_point_mass(data.function, 1) is not None:
        assert expr.has(Heaviside)
        with pytest.raises(NotIntegrableError, match="jumps"):
            _ = data.derivative_second_moment
        return
    square = data.derivative_second_moment.ball(BITS)
    with ctx.workprec(200):
        part = sum((data.coefficient(k + 1).ball(BITS) ** 2 / math.factorial(k) for k in range(6)), arb(0))
    assert not square < part


@FAST
@given(numbers, numbers, st.integers(0, 6))
def test_shifted_steps_have_hermite_coefficients(b, a, k):
    """E[H(s - b) He_k] = phi(b) He_(k-1)(b): the point mass at b."""
    data = gaussian_data(Heaviside(X - b) + a * X, "link")
    value = data.coefficient(k + 1)
    with ctx.workprec(200):
        at = arb(int(b.p)) / int(b.q)
        previous, current = arb(0), arb(1)
        for j in range(k):
            previous, current = current, at * current - j * previous
        expected = current * (-at * at / 2).exp() / (2 * arb.pi()).sqrt()
        expected += arb(int(a.p)) / int(a.q) if k == 0 else 0
    assert value.ball(180).overlaps(expected)


def test_the_laws_can_fail():
    with pytest.raises(AssertionError):
        assert_equal(balls(tanh(X), 2)[1], balls(tanh(X * Rational(1001, 1000)), 2)[1], "different functions")
