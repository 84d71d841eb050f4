"""One panel of a Gauss–Legendre rule for all Hermite moments at once, with a proved error bound.

For F analytic in the Bernstein ellipse E_rho of [-1, 1] with |F| <= M there, the n-point rule errs by at
most (64/15) M rho^(-2n) / (1 - rho^(-2)): the Chebyshev coefficients are at most 2 M rho^(-j), the rule is
exact to degree 2n - 1, odd ones cancel, and each even one costs at most 2 + 2/15.

Hermite polynomials are bounded off the real axis by Mehler's sum, for any 0 < r < 1:
|He_k(x + iy)|^2 / k! <= r^(-k) (1 - r^2)^(-1/2) exp(r x^2/(1 + r) + r y^2/(1 - r)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from flint import acb, arb, ctx

#: precision of bounds on ellipses
BOUND_BITS = 64
_COLUMNS = 6
_RADII = (1.35, 1.7, 2.3, 3.2, 4.6, 7.0, 11.0)
_START = 3
_MEHLER = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998)
#: doubles carry the logarithms of bounds; this exceeds their rounding
_SLACK = 1e-6

RealFunction = Callable[[arb], arb]
ComplexFunction = Callable[..., acb]


@dataclass(frozen=True)
class Chart:
    """An analytic integrand F in a local coordinate u, with x = origin + side * u.

    ``extra_bits`` of precision are spent on F where its expression cancels for small u.
    """

    real: RealFunction
    complex: ComplexFunction
    origin: arb
    side: int
    is_plain: bool = True
    extra_bits: int = 0


@dataclass(frozen=True)
class MehlerBound:
    """log |He_k(z) phi(z)| <= base(k) - x^2/(2(1 + r)) + y^2/(2(1 - r)) for z = x + iy and k < count."""

    r: float

    def log_factor(self, k: int) -> float:
        """The part that depends on the degree, for orthonormal He_k."""
        if k == 0 and self.r == 0:
            return -0.5 * math.log(2 * math.pi)
        return -0.5 * math.log(2 * math.pi) - 0.5 * k * math.log(self.r) - 0.25 * math.log1p(-self.r * self.r)

    def log_weight(self, x: float, y: float) -> float:
        """The part that depends on the point; |x| may be replaced by a lower bound, |y| by an upper one."""
        return -x * x / (2 * (1 + self.r)) + y * y / (2 * (1 - self.r))


def mehler_bound(count: int, x: float, y: float) -> MehlerBound:
    """The best bound of the family near x + iy for degrees below ``count``.

    Examples
    --------
    >>> bound = mehler_bound(11, 3.0, 0.5)
    >>> bound.r, round(bound.log_factor(10) + bound.log_weight(3.0, 0.5), 2)
    (0.8, -1.42)
    """
    if count == 1:
        return MehlerBound(0.0)
    bounds = (MehlerBound(r) for r in _MEHLER)
    return min(bounds, key=lambda m: m.log_factor(count - 1) + m.log_weight(x, y))


@lru_cache(maxsize=256)
def nodes(n: int, bits: int) -> list[tuple[arb, arb]]:
    """Nodes and weights of the n-point rule on [-1, 1], as balls.

    Examples
    --------
    >>> sum(float(w) * float(t) ** 2 for t, w in nodes(4, 80))  # doctest: +ELLIPSIS
    0.66666666666666...
    """
    old = ctx.prec
    ctx.prec = bits
    try:
        half = [arb.legendre_p_root(n, i, weight=True) for i in range((n + 1) // 2)]
    finally:
        ctx.prec = old
    mirrored = half[: n // 2]
    return [*half, *((-t, w) for t, w in mirrored)]


@lru_cache(maxsize=64)
def _columns(rho: float) -> list[tuple[acb, float, float, float]]:
    """Boxes that cover the upper half of E_rho: the box, its left and right end, its height."""
    a, b = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
    cuts = [math.pi * j / _COLUMNS for j in range(_COLUMNS + 1)]
    boxes = []
    for high, low in zip(cuts[1:], cuts[:-1], strict=True):
        top = 1.0 if low <= math.pi / 2 <= high else max(math.sin(low), math.sin(high))
        grown = 1 + 1e-12
        left, right, height = a * math.cos(high), a * math.cos(low), b * top * grown
        left, right = left - 1e-12, right + 1e-12
        box = acb(arb((left + right) / 2, (right - left) / 2 * grown), arb(height / 2, height / 2 * grown))
        boxes.append((box, left, right, height))
    return boxes


def _size(n: int) -> int:
    """Round a number of nodes up to the sizes that are kept."""
    step = 2 if n <= 24 else 4 if n <= 48 else 8 if n <= 128 else 16
    return max(4, -(-n // step) * step)


@dataclass(frozen=True)
class Rule:
    """A rule for one panel: number of nodes, and the logarithm of its error for orthonormal He_k."""

    n: int
    log_error: float
    bound: MehlerBound

    def error(self, k: int) -> arb:
        """Bound of the error for orthonormal He_k."""
        return arb(self.log_error + self.bound.log_factor(k) + _SLACK).exp().upper()


def choose_rule(
    chart: Chart, low: arb, high: arb, count: int, log_tolerance: float, most: int
) -> Rule | None:
    """The cheapest rule for this panel with at most ``most`` nodes, or None: bisect then.

    ``log_tolerance`` is the logarithm of the absolute error that each orthonormal moment may have.
    """
    best: Rule | None = None
    index, step = _START, 0
    while 0 <= index < len(_RADII):
        rule = _rule_for(chart, low, high, count, log_tolerance, _RADII[index])
        if rule is None or (best is not None and rule.n >= best.n):
            if step > 0 or best is not None:
                break
            step = -1
        else:
            best = rule
            step = step or 1
        index += step
    return best if best is not None and best.n <= most else None


def _rule_for(chart: Chart, low: arb, high: arb, count: int, log_tolerance: float, rho: float) -> Rule | None:
    old = ctx.prec
    ctx.prec = BOUND_BITS + chart.extra_bits
    try:
        middle, half = (low + high) / 2, (high - low) / 2
        at, length = float((chart.origin + chart.side * middle).mid()), float(half.upper())
        # near a singular end the length may be below all doubles
        log_length = float(half.log().upper())
        height = (rho - 1 / rho) / 2 * length
        nearest = max(0.0, abs(at) - (rho + 1 / rho) / 2 * length - 1e-9)
        mehler = mehler_bound(count, nearest, height)
        largest = -math.inf
        for box, left, right, top in _columns(rho):
            value = chart.complex(middle + half * box, analytic=True).abs_upper()
            if not value.is_finite():
                return None
            near = (
                0.0
                if left * right < 0 and abs(at) <= length * 20
                else _nearest(at, chart.side, length, left, right)
            )
            size = log_upper(value) + mehler.log_weight(near, top * length * (1 + 1e-9))
            largest = max(largest, size)
    finally:
        ctx.prec = old
    if largest == -math.inf:
        return Rule(4, -math.inf, mehler)
    constant = largest + math.log(64 / 15) + log_length - math.log1p(-(rho**-2))
    excess = constant + mehler.log_factor(count - 1) - log_tolerance
    n = _size(max(1, math.ceil(excess / (2 * math.log(rho)))))
    return Rule(n, constant - 2 * n * math.log(rho), mehler)


def _nearest(at: float, side: int, length: float, left: float, right: float) -> float:
    """A lower bound of |x| on the column: x = at + side * length * [left, right], loosened for rounding."""
    ends = (at + side * length * left, at + side * length * right)
    low, high = min(ends), max(ends)
    if low <= 0 <= high:
        return 0.0
    return max(0.0, min(abs(low), abs(high)) * (1 - 1e-9) - 1e-9)


def log_upper(value: arb) -> float:
    """An upper bound of log of a nonnegative ball as a double; -inf for zero."""
    upper = value.upper()
    if not upper > 0:
        return -math.inf
    return float(upper.log().upper()) + _SLACK


def add_panel(chart: Chart, low: arb, high: arb, rule: Rule, totals: list[arb], bits: int) -> None:
    """Add the rule's sums of F He_k phi over the panel to ``totals`` (monic He_k, degrees 0, 1, ...)."""
    middle, half = (low + high) / 2, (high - low) / 2
    density = half / (2 * arb.pi()).sqrt()
    count = len(totals)
    for t, w in nodes(rule.n, bits):
        u = middle + half * t
        x = chart.origin + chart.side * u
        with ctx.workprec(bits + chart.extra_bits):
            value = chart.real(u)
        current = value * w * density * (-x * x / 2).exp()
        totals[0] += current
        previous = arb(0)
        for k in range(1, count):
            previous, current = current, x * current - (k - 1) * previous
            totals[k] += current
