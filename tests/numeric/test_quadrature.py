"""Certified quadrature: the true value lies in the ball, the ball is small, and what cannot be bounded is refused."""

import json
import math
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb, ctx
from sympy import Rational, erf, exp, log, oo, sin, sqrt, tanh

from spikesym.errors import CertificationError, InputError, NotIntegrableError
from spikesym.numeric.gauss_legendre import MehlerBound, mehler_bound, nodes
from spikesym.numeric.growth import growth_at_infinity, order_at_point
from spikesym.numeric.orders import Undecided
from spikesym.numeric.quadrature import Integrand, PlainPiece, function_integrand, hermite_moments
from spikesym.numeric.sampled import sampled_moments
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.symbols import X

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "hermite_table.json").read_text())


def moments_of(text, count, bits, power=1):
    return hermite_moments(function_integrand(make_function(text, "link"), lambda e: e**power), count, bits)


@pytest.mark.parametrize("text", sorted(TABLE))
def test_the_reference_value_lies_in_the_ball(text):
    """40 digits by tanh-sinh in mpmath, all break points typed by hand; twelve degrees."""
    balls = moments_of(text, 12, 150)
    ctx.prec = 300
    scale = max(abs(float(v)) / math.sqrt(math.factorial(k)) for k, v in enumerate(TABLE[text]))
    for k, (ball, value) in enumerate(zip(balls, TABLE[text], strict=True)):
        size = scale * math.sqrt(math.factorial(k))
        assert ball.rad() < size * 1e-42
        # the table is rounded to 40 digits
        rounding = arb(0, max(abs(float(value)), size * 1e-3) * 1e-39)
        assert ball.overlaps(arb(value) + rounding)


def test_balls_shrink_with_the_precision_and_stay_nested():
    """What was proved with few bits is not contradicted by what is proved with many."""
    for text in ("tanh(3*s)-s/2", "log(abs(s))", "exp(s**2/8)"):
        last = None
        for bits in (60, 100, 160):
            ball = moments_of(text, 6, bits)[4]
            ctx.prec = 400
            assert ball.rad() < arb(2) ** (12 - bits)
            assert last is None or last.overlaps(ball)
            last = ball


def test_fifty_digits_of_tanh():
    value = moments_of("tanh", 2, 190)[1]
    with mpmath.workdps(70):
        exact = mpmath.quad(
            lambda x: 2 * x * mpmath.tanh(x) * mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi),
            range(0, 22),
        )
        text = mpmath.nstr(exact, 60)
    ctx.prec = 300
    assert abs(value - arb(text)) < arb("1e-52")


CLOSED = [
    (exp(X / 3), lambda k: exp(Rational(1, 18)) * Rational(1, 3) ** k),
    (sin(2 * X), lambda k: (0, 1, 0, -1)[k % 4] * exp(-2) * 2**k),
    (X**5, lambda k: {1: 15, 3: 10, 5: 1}.get(k, 0)),
]


@pytest.mark.parametrize(("expr", "formula"), CLOSED, ids=lambda v: str(v)[:12])
def test_high_degrees_against_closed_forms(expr, formula):
    balls = hermite_moments(Integrand.of_expression(expr), 201, 120)
    ctx.prec = 400
    for k in (0, 1, 7, 50, 111, 200):
        value = arb(str(sympy.N(formula(k), 60)))
        assert balls[k].overlaps(value * (1 + arb(0, 1e-55)))
        assert balls[k].rad() < arb(math.factorial(k)).sqrt() * 1e-33


def test_a_hundred_coefficients_obey_parseval():
    """sum c_k^2/k! approaches E[tanh^2] from below, at the rate of the strip of analyticity."""
    balls = moments_of("tanh", 100, 132)
    square = moments_of("tanh", 1, 132, power=2)[0]
    ctx.prec = 200
    rests = []
    for count in (26, 50, 100):
        part = sum((balls[k] ** 2 / math.factorial(k) for k in range(1, count, 2)), arb(0))
        rests.append(square - part)
        assert rests[-1] > 0
    slopes = [math.log(float(a / b)) for a, b in pairwise(rests)]
    # log rest ~ -pi sqrt(2 k)/ ... : the poles lie at distance pi/2
    predicted = [math.pi * (math.sqrt(b) - math.sqrt(a)) for a, b in ((26, 50), (50, 100))]
    for slope, rate in zip(slopes, predicted, strict=True):
        assert abs(slope - rate) < 0.25 * rate


def test_singular_ends_are_certified():
    """E|x|^p = 2^(p/2) Gamma((p+1)/2)/sqrt(pi), also for p < 0 and next to the border of integrability."""
    for p in (Rational(1, 2), Rational(-1, 3), Rational(-9, 20), Rational(3, 2)):
        pieces = [PlainPiece(-oo, 0, (-X) ** p), PlainPiece(0, oo, X**p)]
        ball = hermite_moments(Integrand(lambda radius, pieces=pieces: pieces, (-X) ** p, X**p), 1, 100)[0]
        value = 2 ** (p / 2) * sympy.gamma((p + 1) / 2) / sqrt(sympy.pi)
        ctx.prec = 200
        assert ball.overlaps(arb(str(sympy.N(value, 50))) + arb(0, 1e-48))
        assert ball.rad() < 1e-27


def _slope_of_quotient(t):
    """The derivative of (exp(t) - 1)/t, by its series next to zero."""
    if abs(t) > 0.25:
        return ((t - 1) * mpmath.exp(t) + 1) / t**2
    return mpmath.fsum(t**n * (n + 1) / mpmath.factorial(n + 2) for n in range(40))


#: link, what is integrated, the same in mpmath, break points
CANCELLING = [
    ("(exp(s)-1)/s", lambda e: e.diff(X) ** 2, lambda t: _slope_of_quotient(t) ** 2, [0]),
    (
        "sqrt(abs(tanh(s)-1/2))",
        lambda e: e,
        lambda t: mpmath.sqrt(abs(mpmath.tanh(t) - 0.5)),
        [mpmath.log(3) / 2],
    ),
    ("sqrt(cosh(s)-1)", lambda e: e, lambda t: mpmath.sqrt(2) * abs(mpmath.sinh(t / 2)), [0]),
    ("exp(-1/s**2)", lambda e: e, lambda t: mpmath.exp(-(t**-2)), [0]),
]


@pytest.mark.parametrize(("text", "of_piece", "function", "cuts"), CANCELLING, ids=[c[0] for c in CANCELLING])
def test_expressions_that_cancel_next_to_a_singular_point(text, of_piece, function, cuts):
    """Removable singularities, roots of differences, essential zeros."""
    ball = hermite_moments(function_integrand(make_function(text, "link"), of_piece), 1, 70)[0]
    with mpmath.workdps(50):
        ends = sorted(
            {mpmath.mpf(c) for c in range(-20, 21)} | {mpmath.log(3) / 2 if cuts[0] else mpmath.mpf(0)}
        )
        value = mpmath.quad(lambda t: function(t) * mpmath.npdf(t), ends)
        text = mpmath.nstr(value, 30)
    ctx.prec = 150
    assert ball.rad() < 1e-17
    assert ball.overlaps(arb(text) + arb(0, 1e-20))


@pytest.mark.parametrize(
    ("expr", "word"),
    [
        (exp(X**2), "tail"),
        (sympy.gamma(1 + X**2), "growth of gamma"),
        (1 / (X - 3), "not analytic near x = 3"),
    ],
)
def test_what_cannot_be_bounded_is_refused(expr, word):
    with pytest.raises(CertificationError, match=word):
        hermite_moments(Integrand.of_expression(expr), 2, 60)


# ---- the bounds behind it ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 5, 40])
def test_mehler_bound_holds_off_the_axis(k, rng):
    """|He_k(z) phi(z)|/sqrt(k!) stays below the bound, which is not far above it on the real axis."""
    with mpmath.workdps(40):
        for x, y in zip(rng.uniform(-9, 9, 40), rng.uniform(0, 3, 40), strict=True):
            bound = mehler_bound(k + 1, abs(x), y)
            z = mpmath.mpc(x, y)
            previous, current = mpmath.mpf(0), mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
            for j in range(k):
                previous, current = current, (z * current - mpmath.sqrt(j) * previous) / mpmath.sqrt(j + 1)
            assert mpmath.log(abs(current)) <= bound.log_factor(k) + bound.log_weight(abs(x), y) + 1e-9
    assert MehlerBound(0.5).log_factor(3) > MehlerBound(0.9).log_factor(3) - 10


@pytest.mark.parametrize("n", [4, 7, 24])
def test_gauss_legendre_nodes_integrate_polynomials(n):
    ctx.prec = 120
    for degree in (0, 2, 2 * n - 2):
        total = sum((w * t**degree for t, w in nodes(n, 120)), arb(0))
        assert (total - arb(2) / (degree + 1)).contains(0)
    total = sum((w * t ** (2 * n) for t, w in nodes(n, 120)), arb(0))
    assert not (total - arb(2) / (2 * n + 1)).contains(0)


GROWTHS = [
    exp(4 * X / 3) / (1 + exp(4 * X / 3)) - exp(sqrt(2) * X) / (2 + exp(sqrt(2) * X)),
    X**3 * sin(X) - 2,
    log(1 + exp(2 * X)),
    exp(X / 2 - sqrt(1 + X**2)),
    X * (1 + erf(X / sqrt(2))) / 2,
    tanh(X) * X**2 / (1 + X**2),
    sympy.Max(X, X**2 - 3) * sympy.Abs(sympy.cos(X)),
    (1 + X**2) ** Rational(1, 3) + sympy.atan(X),
    exp(X * sin(X) / 3),
    log(sympy.cosh(X)) - sympy.asinh(X),
    sympy.erfc(X) * exp(X**2 / 3),
    sympy.Piecewise((exp(X), X < 1), (X**2, True)),
]


@pytest.mark.parametrize("expr", GROWTHS, ids=str)
@pytest.mark.parametrize("side", [-1, 1])
def test_growth_bounds_hold_at_every_point_beyond_the_start(expr, side):
    order = growth_at_infinity(expr, X, side, 8.0)
    value = sympy.lambdify(X, expr, "mpmath")
    ctx.prec = 200
    with mpmath.workdps(50):
        for t in (8, 9.5, 13, 27, 64, 211):
            ratio = arb(mpmath.nstr(value(mpmath.mpf(side * t)), 40)) / order.scale(arb(t))
            slack = arb(0, 1e-12) * (1 + abs(ratio))
            assert (ratio + slack).overlaps(order.range.ball())


def test_orders_at_points():
    u = X
    assert order_at_point(sin(u) / u, u, sympy.Integer(0), 1, 0.125).p == 0
    assert order_at_point((1 - sympy.cos(u)) / u**2, u, sympy.Integer(0), 1, 0.125).is_two_sided
    assert order_at_point(1 / (u**2 - 2), u, sqrt(2), -1, 0.125).p == 1
    assert order_at_point(sqrt(sin(u)), u, sympy.pi, -1, 0.125).p == Rational(-1, 2)
    with pytest.raises(Undecided):
        growth_at_infinity(sympy.tan(X), X, 1, 8.0)


# ---- Python callables ----------------------------------------------------------------------------------------

CALLABLES = [
    ("tanh(s)", np.tanh),
    ("relu", lambda x: np.maximum(x, 0)),
    ("heaviside(s-3/10)", lambda x: (x > 0.3) * 1.0),
    ("abs(cos(s))", lambda x: np.abs(np.cos(x))),
    ("sqrt(abs(s))", lambda x: np.sqrt(np.abs(x))),
    ("exp(s/2)", lambda x: np.exp(x / 2)),
]


@pytest.mark.parametrize(("text", "function"), CALLABLES, ids=[t for t, _ in CALLABLES])
def test_two_rules_agree_with_the_table_within_their_radius(text, function):
    for k, (ball, value) in enumerate(zip(sampled_moments(function, 12), TABLE[text], strict=True)):
        assert abs(float(ball.mid()) - float(value)) <= float(ball.rad())
        assert float(ball.rad()) < 1e-12 * math.sqrt(math.factorial(k))


def test_a_callable_that_takes_mpmath_numbers_gives_more_digits():
    ball = sampled_moments(np.tanh, 2, precise=mpmath.tanh)[1]
    ctx.prec = 150
    assert abs(ball.mid() - arb(TABLE["tanh(s)"][1])) < 1e-18


def test_bad_callables_are_refused():
    with pytest.raises(InputError, match="value at"):
        sampled_moments(lambda x: np.where(x > 1, np.nan, x), 1)
    with pytest.raises(NotIntegrableError, match="does not decay"):
        sampled_moments(lambda x: np.exp(x * x / 2), 1)
