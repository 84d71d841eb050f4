"""Independent numerical evaluation of the means in the derivation for activations p z + q|z|.

Everything here integrates the defining expectations: over the circle for a Gaussian pair, over the density of the
angle for a random direction. Links are judged through a cubic probe with random coefficients.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
import sympy

from .angle import PHI, quadrature
from .means import ZETA1, DirectionMean, GaussianMean, Link
from .symbols import C1, EG2, EG2S2, LATEX_NAMES, TAU2, D, S, X

#: the activation p z + q |z|
P_COEF = sympy.Symbol("p", real=True)
Q_COEF = sympy.Symbol("q", real=True)
#: E P(rho)^2 and E Q(rho)^2
EP2 = sympy.Symbol("P_2", nonnegative=True)
EQ2 = sympy.Symbol("Q_2", nonnegative=True)
LATEX_NAMES.update({EP2: r"\mathbb{E}[P(\rho)^{2}]", EQ2: r"\mathbb{E}[Q(\rho)^{2}]"})

_T = sympy.Symbol("t", real=True)
_R = sympy.Symbol("r", positive=True)
Point = dict[sympy.Symbol, Any]


def parameters(rng: random.Random) -> Point:
    """A random point: p, q, d, the angle, the noise and the coefficient of the probe link."""
    return {
        P_COEF: mpmath.mpf(rng.randint(1, 9)) / 7, Q_COEF: mpmath.mpf(rng.randint(1, 9)) / 5,
        D: mpmath.mpf(rng.randint(3, 12)), PHI: mpmath.mpf(rng.randint(-10, 10)) / 8,
        TAU2: mpmath.mpf(rng.randint(1, 9)) / 3, X: mpmath.mpf(rng.randint(1, 9)) / 4,
    }  # fmt: skip


def probe(point: Point) -> sympy.Expr:
    """The link to judge with: 1 + x s + s^2/3 + s^3/11."""
    x = sympy.nsimplify(point[X], rational=True)
    return 1 + x * S + S**2 / 3 + S**3 / 11


@lru_cache(maxsize=8)
def _nodes(dps: int) -> list[tuple[Any, Any]]:
    """Gauss-Legendre nodes and weights on [-1, 1], enough for entire functions on an arc of the circle."""
    with mpmath.workdps(dps):
        nodes: list[tuple[Any, Any]] = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).calc_nodes(
            4, mpmath.mp.prec
        )
    return nodes


def integral(function: Callable[[Any], Any], breaks: Sequence[Any]) -> Any:
    """Integral of a function that is entire between the break points."""
    total = mpmath.mpf(0)
    for low, high in pairwise(breaks):
        half, middle = (high - low) / 2, (high + low) / 2
        if half:
            total += half * mpmath.fsum(w * function(middle + half * x) for x, w in _nodes(mpmath.mp.dps))
    return total


def direction(function: Callable[[Any], Any], d: Any) -> Any:
    """Mean over the density cos(phi)^(d-2) of the angle of a random direction."""
    half = mpmath.pi / 2
    breaks = [-half, mpmath.mpf(0), half]
    weight = integral(lambda t: mpmath.cos(t) ** (d - 2), breaks)
    return integral(lambda t: function(t) * mpmath.cos(t) ** (d - 2), breaks) / weight


def pair(node: GaussianMean, point: Point) -> Callable[[Any], Any]:
    """Mean over the Gaussian pair (s, zeta) as a function of the angle, by quadrature over the circle.

    The integrand is a polynomial in s and zeta, with signs of s and of sin(phi) s + cos(phi) zeta.
    """
    integrand = node.integrand.replace(
        Link, lambda order, s: sympy.diff(probe(point), S, int(order)).subs(S, s)
    )
    polar = integrand.subs({S: _R * sympy.cos(_T), ZETA1: _R * sympy.sin(_T)}, simultaneous=True)
    polar = polar.replace(sympy.sign, lambda u: sympy.sign(u.subs(_R, 1)))  # the radius is positive
    polar = sympy.Poly(sympy.expand(polar), _R)
    names = (P_COEF, Q_COEF, D, TAU2)
    values = [point[k] for k in names]
    pieces = [
        (
            mpmath.mpf(2) ** (mpmath.mpf(k) / 2) * mpmath.gamma(mpmath.mpf(k) / 2 + 1),
            sympy.lambdify((_T, PHI, *names), c, "mpmath", cse=True),
        )
        for (k,), c in polar.terms()
    ]
    half = mpmath.pi / 2

    def mean(phi: Any) -> Any:
        breaks = [-half, -phi, half, mpmath.pi - phi, 3 * half]
        return integral(lambda t: mpmath.fsum(r * f(t, phi, *values) for r, f in pieces), breaks) / (
            2 * mpmath.pi
        )

    return mean


def circle(expr: sympy.Expr, point: Point) -> Any:
    """A mean over the Gaussian pair at the angle of the point."""
    return pair(expr, point)(point[PHI])


def defined(expr: sympy.Expr, point: Point) -> Any:
    """A mean over direction and data, ``DirectionMean(GaussianMean(...) ** k, phi)``."""
    if not isinstance(expr, DirectionMean):
        raise ValueError("a mean over the direction is needed")
    base, power = expr.integrand.as_base_exp()
    inner = pair(base, point)
    return direction(lambda t: inner(t) ** int(power), point[D])


def line(expr: sympy.Expr, point: Point) -> Any:
    """A mean over one Gaussian variable by quadrature on either side of zero."""
    inner = sympy.lambdify((S, P_COEF, Q_COEF, D), expr.integrand, "mpmath")
    values = [point[k] for k in (P_COEF, Q_COEF, D)]
    return mpmath.quad(lambda s: inner(s, *values) * mpmath.npdf(s), [-18, -6, 0, 6, 18])


def angle(expr: sympy.Expr, point: Point) -> Any:
    """A mean over the angle of two weights."""
    return quadrature(
        expr.integrand.subs({k: sympy.nsimplify(point[k], rational=True) for k in (P_COEF, Q_COEF)}), point[D]
    )


def conditional_point(rng: random.Random) -> Point:
    """A random value of s and an angle."""
    return {S: mpmath.mpf(rng.randint(-20, 20)) / 9, PHI: mpmath.mpf(rng.randint(1, 12)) / 9}


def conditional(expr: sympy.Expr, point: Point) -> Any:
    """A mean over zeta given s, with the jump at zeta = -tan(phi) s."""
    function = sympy.lambdify((ZETA1, S, PHI), expr.integrand, "mpmath")
    cut = -mpmath.tan(point[PHI]) * point[S]
    inside = max(min(cut, mpmath.mpf(24)), mpmath.mpf(-24))
    breaks = sorted({mpmath.mpf(-25), mpmath.mpf(0), mpmath.mpf(25), inside})
    return mpmath.quad(lambda t: function(t, point[S], point[PHI]) * mpmath.npdf(t), breaks)


def with_link_data(expr: sympy.Expr, point: Point) -> Any:
    """Evaluate with E P^2, E Q^2, c_1, E g^2, E g^2 s^2 of the probe link, from their one-dimensional definitions."""
    link = sympy.lambdify(S, probe(point), "mpmath")

    def mean(function: Callable[[Any], Any]) -> Any:
        return integral(
            lambda s: function(s) * mpmath.npdf(s),
            [mpmath.mpf(k) for k in (-15, -9, -6, -4, -2, 0, 2, 4, 6, 9, 15)],
        )

    def projected(function: Callable[[Any, Any], Any]) -> Any:
        # s = r cos(phi), so that the narrow functions of tan(phi) s stay resolved as phi -> pi/2
        def given(phi: Any) -> Any:
            c = mpmath.cos(phi)
            breaks = [mpmath.mpf(k) * c for k in (-15, -9, -6, -4, -2, 0, 2, 4, 6, 9, 15)]
            breaks = sorted(
                {mpmath.mpf(-15), *breaks, mpmath.mpf(15)} | {mpmath.mpf(k) for k in (-6, -3, 3, 6)}
            )
            return integral(lambda s: function(s, mpmath.tan(phi)) * mpmath.npdf(s), breaks) ** 2

        return direction(given, point[D])

    wanted = {
        EP2: lambda: projected(lambda s, k: s * link(s) * mpmath.ncdf(k * s)),
        EQ2: lambda: projected(lambda s, k: link(s) * mpmath.npdf(k * s)),
        C1: lambda: mean(lambda s: s * link(s)),
        EG2: lambda: mean(lambda s: link(s) ** 2),
        EG2S2: lambda: mean(lambda s: (s * link(s)) ** 2),
    }
    values = {k: f() if expr.has(k) else mpmath.mpf(0) for k, f in wanted.items()}
    values.update({k: point[k] for k in (P_COEF, Q_COEF, TAU2, D)})
    return sympy.lambdify(list(values), expr, "mpmath")(*values.values())
