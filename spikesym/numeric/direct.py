"""The integral operator of k1 by direct integration of its closed form: no harmonics of k1, no Gram matrix.

This is the independent formulation that the spectrum is checked against. Around the point x the sphere is described by
the polar angle psi to x and the coordinate xi of the tangential direction along the plane of x and w*; in these the
arc-cosine kernel is analytic up to psi = 0 and psi = pi, so Gauss rules converge exponentially.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from flint import arb, ctx, fmpq

from .sphere import gauss_rule_balls, gegenbauer_index

#: a function of t (coordinate along w*) on the sphere
Profile = Callable[[arb], arb]


def kernel_relu(A: arb, B: arb, d: int, t: arb, other: arb, cosine: arb) -> arb:
    """k1(x, x') for unit vectors with coordinates t, ``other`` along w* and inner product ``cosine``.

    sqrt(p p') (sin theta + (pi - theta) cos theta) / (2 pi d), p = A + B t^2, cos theta = (A x.x' + B t t')/sqrt(p p').

    Examples
    --------
    >>> print(kernel_relu(arb(1), arb(0), 2, arb(0), arb(0), arb(1)).str(5, radius=False))
    0.25000
    """
    product = (A + B * t * t) * (A + B * other * other)
    inner = A * cosine + B * t * other
    # sin theta from the difference of squares, and the angle from both: acos alone loses half the digits near 0 and pi
    squared = product - inner * inner
    sine = squared.sqrt() if squared > 0 else arb(0)
    theta = arb.atan2(sine, inner)
    pi = arb.pi()
    return (sine + (pi - theta) * inner) / (2 * pi * d)


def action(
    d: int, A: arb, B: arb, t: arb, profile: Profile, sector: int = 0, nodes: tuple[int, int] = (60, 40)
) -> arb:
    """(T f)(x)/Y_l at the unit vector x with <x, w*> = t, for f = |x| profile(t) Y_l(x_perp), at the current precision.

    Parameters
    ----------
    d : int
        At least 2.
    A, B : arb
        The covariance A I + B w* w*^T.
    t : arb
        Strictly between -1 and 1.
    profile : callable
        Function of t'; for the sector l it contains the factor (1 - t'^2)^(l/2).
    sector : int
        Degree l of the harmonic Y_l of the directions orthogonal to w*.
    nodes : (int, int)
        Gauss nodes in psi and in xi.

    Returns
    -------
    arb
        A number with the error of the rule, which is not enclosed; compare two rules.

    Examples
    --------
    >>> with ctx.workprec(120):
    ...     linear = action(3, arb(2), arb(5), arb(0.3), lambda t: t) / arb(0.3)
    ...     print(linear.mid().str(25, radius=False))  # (A + B)/(4 d)
    0.5833333333333333333333333
    """
    bits = ctx.prec
    side = (1 - t * t).sqrt()
    polar = _rule(nodes[0], fmpq(1, 2), bits)
    tangent = [(arb(-1), arb(0.5)), (arb(1), arb(0.5))] if d == 2 else _rule(nodes[1], fmpq(d - 3, 2), bits)
    total, mass = arb(0), arb(0)
    half_pi = arb.pi() / 2
    for node, weight in polar:
        sine, cosine = (half_pi * (1 + node)).sin_cos()
        density = weight * sine ** (d - 2)
        mass += density
        inner = arb(0)
        for xi, share in tangent:
            other = t * cosine + xi * sine * side
            value = kernel_relu(A, B, d, t, other, cosine) * profile(other)
            if sector:
                second = side * cosine - xi * t * sine
                value *= _legendre(sector, second / (1 - other * other).sqrt(), d - 1)
            inner += share * value
        total += density * inner
    return (d * total / mass).mid()


def matrix_element(
    d: int,
    A: arb,
    B: arb,
    left: Profile,
    right: Profile,
    sector: int = 0,
    nodes: tuple[int, int, int] = (24, 60, 40),
) -> arb:
    """<psi, T psi'> for two functions of one sector: the three-dimensional integral of k1, at the current precision.

    ``left`` and ``right`` are normalised profiles q(t), the sector's factor (1 - t^2)^(l/2) included; ``nodes`` counts
    the Gauss nodes in t, psi and xi.
    """
    rule = _rule(nodes[0], fmpq(d - 2, 2), ctx.prec)
    return sum(
        (w * left(t) * action(d, A, B, t, right, sector, nodes[1:]) for t, w in rule),
        arb(0),
    )


@lru_cache(maxsize=64)
def _rule(count: int, index: fmpq, bits: int) -> list[tuple[arb, arb]]:
    nodes, weights = gauss_rule_balls(count, arb(index), bits)
    return list(zip(nodes, weights, strict=True))


def _legendre(degree: int, t: arb, dimension: int) -> arb:
    """P_degree(t; dimension) with value 1 at 1; dimension 1 has the two points t = +-1."""
    previous, current = arb(0), arb(1)
    for k in range(degree):
        if k == 0:
            previous, current = current, t
        else:
            previous, current = (
                current,
                ((2 * k + dimension - 2) * t * current - k * previous) / (k + dimension - 2),
            )
    return current


def profile(d: int, sector: int, degree: int) -> Profile:
    """q_{degree,sector} as a function of t, at the precision of the call.

    Examples
    --------
    >>> q = profile(3, 0, 1)
    >>> print(q(arb(0.5)).str(10, radius=False))
    0.8660254038
    """
    from .sphere import beta_squared

    def q(t: arb) -> arb:
        index = gegenbauer_index(d, sector)
        previous, current, before = arb(0), arb(1), arb(0)
        for k in range(degree - sector):
            beta = beta_squared(k + 1, index).sqrt()
            previous, current, before = current, (t * current - before * previous) / beta, beta
        norm = arb(1)
        for i in range(sector):
            # E (1 - t^2)^l = ((d-1)/2)_l / (d/2)_l
            norm *= fmpq(d - 1 + 2 * i, d + 2 * i)
        return current * (1 - t * t) ** sector_half(sector) / norm.sqrt()

    def sector_half(order: int) -> arb:
        return arb(fmpq(order, 2))

    return q
