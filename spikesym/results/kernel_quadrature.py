"""Expectations of pairs of Gaussians from their definition, to 30 digits and more, for the checks of kernels.

Nothing of the kernel code is used: positively homogeneous functions in polar coordinates, entire functions by the
trapezoidal rule in the plane, point masses by conditioning.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import mpmath
from flint import arb, ctx
from mpmath import mp, mpf

#: decimal digits of the working precision here
DIGITS = 50
_BITS = 150
_REACH = 13.0


@lru_cache(maxsize=512)
def polar(
    first: Callable[[mpf], mpf], second: Callable[[mpf], mpf], degree: int, q: mpf, qp: mpf, t: mpf
) -> mpf:
    """E f(U) h(U') for f, h positively homogeneous, of degrees that add up to ``degree``, with a kink at zero.

    U = sqrt(q) r cos(a) and U' = sqrt(q') r cos(a - theta) with r^2 exponential and a uniform; the integral over r is a
    gamma function, and the one over a is split where either cosine changes sign.
    """
    with mp.workdps(DIGITS):
        theta = mpmath.acos(t / mpmath.sqrt(q * qp))
        half = mp.pi / 2
        ends = sorted(
            {-half, half, theta - half, theta + half - 2 * mp.pi, 3 * half, theta + half, theta + 3 * half}
        )
        start = -half
        ends = [a for a in ends if start <= a <= start + 2 * mp.pi]

        def integrand(a: mpf) -> mpf:
            return first(mpmath.sqrt(q) * mpmath.cos(a)) * second(mpmath.sqrt(qp) * mpmath.cos(a - theta))

        radial = mpmath.mpf(2) ** (mpf(degree) / 2) * mpmath.gamma(1 + mpf(degree) / 2)
        return radial * mpmath.quad(integrand, ends) / (2 * mp.pi)


def trapezoid(first: Callable[[arb], arb], second: Callable[[arb], arb], q: arb, qp: arb, t: arb) -> arb:
    """E f(U) h(U') for entire functions of order two at most, by the trapezoidal rule.

    Its error is exp(-2 pi^2/(h^2 (1 + 2 q))), 1e-36 here, from the growth exp(q y^2) of such functions along imaginary directions.
    """
    old = ctx.prec
    ctx.prec = _BITS
    try:
        root, root_p = q.sqrt(), qp.sqrt()
        rho = t / (root * root_p)
        rest = (1 - rho * rho).sqrt()
        step = float((2 * arb.pi() ** 2 / (85 * (1 + 2 * q.max(qp)))).sqrt())
        count = math.ceil(_REACH / step)
        nodes = [arb(step) * k for k in range(-count, count + 1)]
        weights = [(-x * x / 2).exp() for x in nodes]
        total = arb(0)
        for x, w in zip(nodes, weights, strict=True):
            inner = arb(0)
            for y, v in zip(nodes, weights, strict=True):
                inner += v * second(root_p * (rho * x + rest * y))
            total += w * first(root * x) * inner
        return total * arb(step) ** 2 / (2 * arb.pi())
    finally:
        ctx.prec = old


@lru_cache(maxsize=512)
def at_zero(second: Callable[[mpf], mpf], q: mpf, qp: mpf, t: mpf) -> mpf:
    """E delta(U) h(U'): the density of U at 0 times the mean of h under the conditional law of U'."""
    with mp.workdps(DIGITS):
        deviation = mpmath.sqrt(qp - t * t / q)
        density = 1 / mpmath.sqrt(2 * mp.pi * q)

        def integrand(y: mpf) -> mpf:
            return second(deviation * y) * mpmath.exp(-y * y / 2) / mpmath.sqrt(2 * mp.pi)

        return density * mpmath.quad(integrand, [-16, -4, 0, 4, 16])


def relu(x: mpf) -> mpf:
    """max(x, 0)."""
    return max(x, mpf(0))


def step(x: mpf) -> mpf:
    """1 for x > 0, else 0."""
    return mpf(1) if x > 0 else mpf(0)


def relu_kernel(q: mpf, qp: mpf, t: mpf) -> mpf:
    """E relu(U) relu(U') from the definition."""
    return polar(relu, relu, 2, q, qp, t)


def close(value: mpf, expected: mpf, digits: int = 30) -> tuple[bool, float]:
    """Whether two numbers agree to this many digits, and their relative difference."""
    with mp.workdps(DIGITS):
        scale = max(abs(expected), mpf(10) ** -60)
        difference = abs(value - expected) / scale
        return bool(difference < mpf(10) ** -digits), float(difference)
