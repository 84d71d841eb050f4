"""Independent numerical evaluation of the means in the derivation for activations p z + q|z|.

Everything here integrates the defining expectations: over the circle for a Gaussian pair, over the density of the
angle for a random direction. Links are judged through a cubic probe with random coefficients.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy
from scipy.special import ndtr

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


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def _grid(breaks: Sequence[Any]) -> tuple[Any, Any]:
    """Gauss-Legendre nodes and weights on consecutive panels, enough for functions that are entire on each."""
    pairs = [((b - a) / 2 * _NODES + (a + b) / 2, (b - a) / 2 * _WEIGHTS) for a, b in pairwise(breaks)]
    return np.concatenate([x for x, _ in pairs], axis=-1), np.concatenate([w for _, w in pairs], axis=-1)


def direction(function: Callable[[Any], Any], d: Any) -> Any:
    """Mean of an array function over the density cos(phi)^(d-2) of the angle of a random direction."""
    nodes, weights = _grid([-np.pi / 2, -np.pi / 4, 0.0, np.pi / 4, np.pi / 2])
    weights = weights * np.cos(nodes) ** (int(d) - 2)
    return np.sum(weights * function(nodes)) / np.sum(weights)


def pair(node: GaussianMean, point: Point) -> Callable[[Any], Any]:
    """Mean over the Gaussian pair (s, zeta) as a function of the angle, by quadrature over the circle.

    The integrand is a polynomial in s and zeta, with signs of s and of sin(phi) s + cos(phi) zeta.
    """
    integrand = node.integrand.replace(
        Link, lambda order, s: sympy.diff(probe(point), S, int(order)).subs(S, s)
    )
    polar = integrand.subs({S: _R * sympy.cos(_T), ZETA1: _R * sympy.sin(_T)}, simultaneous=True)
    polar = polar.replace(sympy.sign, lambda u: sympy.sign(u.subs(_R, 1)))  # the radius is positive
    names = (P_COEF, Q_COEF, D, TAU2)
    values = [float(point[k]) for k in names]
    pieces = []
    for (k,), c in sympy.Poly(sympy.expand(polar), _R).terms():
        radial = 2.0 ** (k / 2) * math.gamma(k / 2 + 1)
        pieces.append((radial, sympy.lambdify((_T, PHI, *names), c, "numpy", cse=True)))

    def mean(phi: Any) -> Any:
        angles = np.atleast_1d(np.asarray(phi, dtype=float))[:, None]
        half = np.pi / 2
        nodes, weights = _grid(
            [-half + 0 * angles, -angles, half + 0 * angles, np.pi - angles, 3 * half + 0 * angles]
        )
        total = sum(r * f(nodes, angles, *values) for r, f in pieces)
        return np.sum(weights * total, axis=1) / (2 * np.pi)

    return mean


def circle(expr: sympy.Expr, point: Point) -> Any:
    """A mean over the Gaussian pair at the angle of the point."""
    return float(pair(expr, point)(float(point[PHI]))[0])


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
    link = sympy.lambdify(S, probe(point), "numpy")
    cuts = np.array([-15.0, -9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9, 15])

    def density(s: Any) -> Any:
        return np.exp(-s * s / 2) / np.sqrt(2 * np.pi)

    def mean(function: Callable[[Any], Any]) -> Any:
        nodes, weights = _grid(list(cuts))
        return np.sum(weights * function(nodes) * density(nodes))

    def projected(function: Callable[[Any, Any], Any]) -> Any:
        def given(phi: Any) -> Any:
            # panels on the scale of 1/kappa near zero and on the scale of s farther out
            c = np.cos(phi)[:, None]
            panels = [*(x * c for x in cuts[:6]), 0 * c, *(x * c for x in cuts[7:])]
            outer = [c * 0 + x for x in cuts]
            breaks = np.sort(np.concatenate([*panels, *outer], axis=1), axis=1)
            nodes, weights = _grid([breaks[:, k : k + 1] for k in range(breaks.shape[1])])
            kappa = np.tan(phi)[:, None]
            return np.sum(weights * function(nodes, kappa) * density(nodes), axis=1) ** 2

        return direction(given, point[D])

    wanted: dict[sympy.Symbol, Callable[[], Any]] = {
        EP2: lambda: projected(lambda s, k: s * link(s) * ndtr(k * s)),
        EQ2: lambda: projected(lambda s, k: link(s) * density(k * s)),
        C1: lambda: mean(lambda s: s * link(s)),
        EG2: lambda: mean(lambda s: link(s) ** 2),
        EG2S2: lambda: mean(lambda s: (s * link(s)) ** 2),
    }
    values = {k: f() if expr.has(k) else 0.0 for k, f in wanted.items()}
    values.update({k: float(point[k]) for k in (P_COEF, Q_COEF, TAU2, D)})
    return float(sympy.lambdify(list(values), expr, "numpy")(*values.values()))
