"""Certified means over the direction: both methods against each other, against closed forms, and against quadrature."""

import mpmath
import pytest
from flint import arb, ctx

from spikesym.gaussian import gaussian_data
from spikesym.numeric.direction_means import (
    PowerSeries,
    direction_moments,
    mean_square_by_series,
    mean_square_by_trapezoid,
    trapezoid_nodes,
)
from spikesym.numeric.link_means import _DirectionMeans, link_means

DIMENSIONS = (2, 3, 10, 60, 10**4, 10**9)


def _relu_part(u, bits):
    """P - c_1/2 of the ReLU link, (phi + sin cos)/(2 pi)."""
    return (u.sinh().atan() + u.tanh() / u.cosh()) / (2 * arb.pi())


@pytest.mark.parametrize("d", DIMENSIONS)
def test_trapezoid_encloses_the_closed_form(d):
    ctx.prec = 200
    ball = mean_square_by_trapezoid(_relu_part, lambda a: arb(3) / 8, d, 120)
    n = arb(d)
    psi = arb("0") + _trigamma(d)
    closed = (psi / 2 + 2 * (n - 1) / n**2 + (n - 1) / (n * (n + 2))) / (4 * arb.pi() ** 2)
    assert ball.overlaps(closed)
    assert float(ball.rad()) < 2.0**-110


def _trigamma(d):
    """psi_1(d/2) by its recurrence and asymptotic series at 60 digits."""
    with mpmath.workdps(60):
        return arb(mpmath.nstr(mpmath.psi(1, mpmath.mpf(d) / 2), 58, min_fixed=-100, max_fixed=100))


@pytest.mark.parametrize("d", DIMENSIONS)
def test_moments_of_a_coordinate(d):
    ctx.prec = 100
    moments = direction_moments(4, d)
    expected = 1 / arb(d)
    assert moments[1].overlaps(expected)
    assert moments[2].overlaps(arb(3) / (arb(d) * (arb(d) + 2)))


def test_rest_of_a_series_is_in_the_radius():
    """Cutting a series whose rest is bounded keeps the true mean in the ball."""
    ctx.prec = 120
    d, count = 40, 8
    terms = [arb(1) / 2**k for k in range(60)]
    whole = mean_square_by_series(PowerSeries(terms, arb(0), 61), d, 100)
    for companion in (False, True):
        cut = mean_square_by_series(PowerSeries(terms[:count], arb(2) / 2**count, count, companion), d, 100)
        exact = mean_square_by_series(PowerSeries(terms, arb(0), 61, companion), d, 100)
        assert cut.contains(exact)
        assert float(cut.rad()) < 1e-3
    assert float(whole.rad()) < 1e-28


@pytest.mark.parametrize("link", ["abs(s-1)", "1/(1+s**2)", "exp(-abs(s))"])
def test_series_and_trapezoid_agree(link):
    """Two certified methods with nothing in common but the link."""
    ctx.prec = 200
    computed = _DirectionMeans(gaussian_data(link, "link"), None, 120)
    bits = 80
    count = computed._count(bits)
    assert count is not None
    by_series = [
        mean_square_by_series(getattr(computed, f"_{w}_series")(count, bits), 120, bits) for w in ("p", "q")
    ]
    computed._count = lambda bits: None
    by_rule = [computed._mean(w, bits) for w in ("P", "Q")]
    for a, b in zip(by_series, by_rule, strict=True):
        assert a.overlaps(b)
        assert float((a - b).abs_upper()) < 1e-20


@pytest.mark.parametrize("link", ["exp(s/2)", "cos(2*s+1)", "relu"])
def test_nodes_from_the_link_and_from_closed_forms_agree(link):
    from spikesym.symbolic.covariance_links import link_forms

    data = gaussian_data(link, "link")
    bare, closed = _DirectionMeans(data, None, 5), _DirectionMeans(data, link_forms(data.function.expr), 5)
    ctx.prec = 110
    for u in (arb(1) / 4, arb(2), arb(9)):
        for which in "PQ":
            a, b = bare._node(which, u, 80), closed._node(which, u, 80)
            assert a.overlaps(b)
            assert float((a - b).abs_upper()) < 1e-22


@pytest.mark.parametrize("power", [1.0, 2.0, 9.0, 1e4, 1e9])
def test_the_rule_needs_few_nodes(power):
    step, width, count = trapezoid_nodes(power, 110)
    assert 0 < width <= 0.7854
    assert step > 0
    assert count < 2000 / min(power, 50.0) + 60


def test_dimensions_to_a_billion():
    values = [float(link_means(gaussian_data("abs(s-1)", "link"), d).EP2) for d in (10**6, 10**9)]
    c1 = float(gaussian_data("abs(s-1)", "link").coefficient(1))
    # E P^2 = c_1^2/4 + O(1/d)
    assert values[0] - c1**2 / 4 == pytest.approx(1000 * (values[1] - c1**2 / 4), rel=1e-4)
