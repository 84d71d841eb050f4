"""Certified means over the direction of a weight: E F(rho)^2, rho a coordinate of a uniform point of the sphere in R^d.

Two ways, both with a proved error. As a power series in rho with the moments (1/2)_k/(d/2)_k and a Cauchy-Schwarz bound
on the rest, where d is large enough for few terms. Otherwise by the trapezoidal rule in u = artanh(rho): F is bounded
on the unit disc, tanh maps the strip |Im u| < pi/4 into it, and the rule converges exponentially for every d.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flint import arb, arb_poly, ctx

Dimension = int
#: F at rho = tanh(u): maps u (a ball) and a number of bits to a ball
NodeFunction = Callable[[arb, int], arb]


@dataclass(frozen=True)
class PowerSeries:
    """F(rho) = sqrt(w) sum_k t_k rho^k with w = 1 or 1 - rho^2 (``companion``).

    ``rest`` bounds sqrt(w) times the part left out: |rest of F| <= rest * |rho|^start.
    """

    terms: Sequence[arb]
    rest: arb
    start: int
    companion: bool = False


def direction_moments(count: int, d: Dimension) -> list[arb]:
    """E rho^(2k) for k < count, at the current precision."""
    moments = [arb(1)]
    for k in range(count - 1):
        moments.append(moments[-1] * (2 * k + 1) / (d + 2 * k))
    return moments


def mean_square_by_series(series: PowerSeries, d: Dimension, bits: int) -> arb:
    """E F(rho)^2 from the power series; the bound on the rest is in the radius.

    Examples
    --------
    >>> linear = PowerSeries([arb(0), arb(1)], arb(0), 2)
    >>> print(mean_square_by_series(linear, 4, 60).str(6, radius=False))
    0.250000
    """
    old = ctx.prec
    ctx.prec = bits + 20
    try:
        count = len(series.terms)
        moments = direction_moments(count + series.start + 2, d)
        weights = moments
        if series.companion:
            # E (1 - rho^2) rho^2k = (d - 1)/(d + 2k) E rho^2k
            weights = [m * (d - 1) / (d + 2 * k) for k, m in enumerate(moments)]
        square = arb_poly(list(series.terms)) ** 2
        coefficients = square.coeffs()
        total = sum((coefficients[i] * weights[i // 2] for i in range(0, len(coefficients), 2)), arb(0))
        crossed = sum((abs(t) * moments[(k + series.start) // 2] for k, t in enumerate(series.terms)), arb(0))
        error = 2 * series.rest * crossed + series.rest**2 * moments[series.start]
        return total + arb(0, error.upper())
    finally:
        ctx.prec = old


def series_suffices(count: int, start: int, d: Dimension, bits: int) -> bool:
    """Whether a series cut at ``start`` can reach 2**-bits: the moment that bounds the cross terms is that small."""
    half = (start + 1) // 2
    log_moment = math.lgamma(half + 0.5) - math.lgamma(0.5) + math.lgamma(d / 2) - math.lgamma(half + d / 2)
    return log_moment < -bits * math.log(2) and count > 0


def trapezoid_nodes(power: float, bits: int) -> tuple[float, float, int]:
    """Step h, half-width a of the strip and number of nodes for an integrand |G| <= sech(u)^power, to 2**-bits."""
    target = bits * math.log(2)
    best = (0.0, 0.0)
    for i in range(1, 300):
        a = math.pi / 4 * 2.0 ** (-i / 16)
        h = 2 * math.pi * a / (target - power * math.log(math.cos(a)))
        best = max(best, (h, a))
    h, a = best
    # log cosh(u) >= u - log 2, and >= u^2/2 - u^4/12 near zero: solve power * log cosh(u) = target
    low, high = 0.0, target / power + 1.0 + math.sqrt(2 * target / power)
    for _ in range(80):
        middle = (low + high) / 2
        value = power * (middle + math.log1p(math.exp(-2 * middle)) - math.log(2))
        low, high = (middle, high) if value < target else (low, middle)
    return h, a, math.ceil(high / h) + 1


def mean_square_by_trapezoid(
    function: NodeFunction, bound2: Callable[[float], arb], d: Dimension, bits: int
) -> arb:
    """E F(rho)^2 for F(-rho)^2 = F(rho)^2, analytic in |Im u| < pi/4 (rho = tanh u).

    Parameters
    ----------
    function : callable
        F at a real u, to a number of bits relative to its bound.
    bound2 : callable
        Maps a half-width a to a bound of |F(u)|^2 on the strip |Im u| <= a.
    d, bits : int
        Dimension; accuracy 2**-bits relative to the bound.
    """
    old = ctx.prec
    ctx.prec = bits + 40
    try:
        power = d - 1
        step, a, count = trapezoid_nodes(float(power), bits + 4)
        h = arb(step)
        total, largest = arb(0), bound2(a).upper()
        for j in range(count + 1):
            u = h * j
            weight = (1 / u.cosh()) ** power
            lost = max(0, -int(float((weight.log() / arb(2).log()).mid())))
            value = function(u, max(16, bits + 12 - lost))
            total += value * value * weight * (1 if j == 0 else 2)
        # int sech^power = sqrt(pi) Gamma(power/2)/Gamma((power+1)/2) =: Z
        mass = _mass(power)
        # trapezoidal rule: 2 N/(exp(2 pi a/h) - 1) with N = bound2 cos(a)^-power Z the integral along the edges of the strip
        edge = largest * arb(a).cos() ** (-power) * mass
        discretisation = 2 * edge / ((2 * arb.pi() * arb(a) / h).exp() - 1)
        # nodes left out: sech^power decreases at least geometrically with rate tanh from the last one on
        last = h * count
        cut = 2 * largest * (1 / last.cosh()) ** power / (power * last.tanh())
        return (total * h + arb(0, (discretisation + cut).upper())) / mass
    finally:
        ctx.prec = old


def _mass(power: int) -> arb:
    """Integral of sech(u)^power over the line: sqrt(pi) Gamma(power/2) / Gamma((power+1)/2)."""
    return arb.pi().sqrt() / (arb(power) / 2).rising(arb(1) / 2)
