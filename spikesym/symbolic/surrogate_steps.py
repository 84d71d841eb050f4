"""The steps to the distance of the surrogate's kernel from k1, each judged on kernels in closed form.

Judges: polynomial activations in exact rational arithmetic, and |z| by differentiating E|U||U'| in the strength of the spike
at 60 digits. Neither uses Price's theorem.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import mpmath
import sympy
from sympy import Integer, Symbol

from .covariance_judges import Q_COEF
from .derivation import Derivation, Step, equal_exactly, random_rational, same_at
from .dual import dual_formula
from .functions import make_function
from .kernel import DualMoment
from .means import GaussianMean, exact_mean
from .quenched_steps import polynomial_moments
from .surrogate import (
    EPS,
    FIRST,
    OMEGA,
    QUARTIC,
    SECOND,
    excess,
    gaussian_average,
    kinked_excess,
    mu,
    on_independent,
    second_order,
    surrogate_formulas,
)
from .symbols import C1, EG2, EG2S2, LATEX_NAMES, QP, SP, TAU2, Q, S, T, X

#: <v, x> and <v, x'>
ALONG_X, ALONG_XP = sympy.symbols("a b", real=True)
_ORDER = {r: Symbol(f"k_{r}", real=True) for r in (2, 3)}
_EXCESS, _SQUARE = Symbol("Delta_2", real=True), Symbol("Delta_22", positive=True)
_THIRD, _FINITE = Symbol("Delta_3", real=True), Symbol("Delta_f", real=True)
LATEX_NAMES.update(
    {
        ALONG_X: r"\langle v,x\rangle",
        ALONG_XP: r"\langle v,x'\rangle",
        _EXCESS: r"[\epsilon^{2}]\,(k_1^{*}-k_1)",
        _SQUARE: r"\mathbb{E}_{s,s'}\bigl([\epsilon^{2}]\,(k_1^{*}-k_1)\bigr)^{2}",
        _THIRD: r"[\epsilon^{3}]\,(k_1^{*}-k_1)",
        _FINITE: r"[\epsilon^{2}/n]\,(k_1^{*}-k_1)",
        **{symbol: rf"[\epsilon^{{{r}}}]\,k(\Gamma_b)" for r, symbol in _ORDER.items()},
    }
)


def _draw_polynomial(rng: random.Random) -> dict[Any, Any]:
    point: dict[Any, Any] = {s: random_rational(rng) for s in (ALONG_X, ALONG_XP, S, SP, C1)}
    point[OMEGA] = random_rational(rng) ** 2
    point[X] = sum((random_rational(rng) * X**k for k in range(5)), Integer(0))
    return point


def _dual(polynomial: sympy.Expr, q: sympy.Expr, qp: sympy.Expr, t: sympy.Expr) -> sympy.Expr:
    """E sigma(U) sigma(U') of a polynomial, by counting pairings: k pairs across, the rest within each factor."""
    terms = sympy.Poly(polynomial, X).terms()
    total = Integer(0)
    for (i,), c in terms:
        for (j,), cp in terms:
            for k in range(min(i, j) + 1):
                if (i - k) % 2 == 0 and (j - k) % 2 == 0:
                    across = sympy.binomial(i, k) * sympy.binomial(j, k) * sympy.factorial(k)
                    within = sympy.factorial2(i - k - 1) * sympy.factorial2(j - k - 1)
                    total += c * cp * across * within * t**k * q ** ((i - k) // 2) * qp ** ((j - k) // 2)
    return total


@lru_cache(maxsize=8)
def _coefficient(polynomial: sympy.Expr, order: int) -> sympy.Expr:
    """Coefficient of eps^order in the kernel at q = 1 + eps a^2, q' = 1 + eps b^2, t = eps a b."""
    a, b = ALONG_X, ALONG_XP
    value = _dual(polynomial, 1 + EPS * a**2, 1 + EPS * b**2, EPS * a * b)
    return sympy.Poly(sympy.expand(value), EPS).coeff_monomial(EPS**order)


def _order_defined(order: int) -> Any:
    return lambda expr, point: _coefficient(point[X], order).subs(point)


def _at_polynomial(expr: sympy.Expr, point: dict[Any, Any]) -> sympy.Expr:
    moments = polynomial_moments(point[X], 7)
    values = {mu(k): moments[k] for k in range(7)}
    return expr.subs(values).subs({k: v for k, v in point.items() if k != X})


def _excess_defined(expr: sympy.Expr, point: dict[Any, Any]) -> sympy.Expr:
    """E over the noise of the batch of the coefficient, less the coefficient at the mean covariance."""
    g, gp = sympy.symbols("g gp", real=True)
    root = sympy.sqrt(point[OMEGA])
    a, b = (point[C1] * point[s] + root * noise for s, noise in ((S, g), (SP, gp)))
    mean = gaussian_average(_coefficient(point[X], 2).subs({ALONG_X: a, ALONG_XP: b}), g, gp)
    signal = {s: point[C1] * point[s] for s in (S, SP)}
    at_mean = _dual(
        point[X],
        1 + EPS * (signal[S] ** 2 + point[OMEGA]),
        1 + EPS * (signal[SP] ** 2 + point[OMEGA]),
        EPS * signal[S] * signal[SP],
    )
    return mean - sympy.Poly(sympy.expand(at_mean), EPS).coeff_monomial(EPS**2)


def _square_defined(expr: sympy.Expr, point: dict[Any, Any]) -> sympy.Expr:
    values = {k: v for k, v in point.items() if k in (C1, OMEGA)}
    moments = polynomial_moments(point[X], 7)
    square = excess(2).subs({mu(k): moments[k] for k in range(7)}).subs(values) ** 2
    return exact_mean(GaussianMean(sympy.expand(square), S, SP))


def _draw_covariance(rng: random.Random) -> dict[Any, Any]:
    q, qp = (mpmath.mpf(rng.randint(3, 20)) / 7 for _ in range(2))
    return {Q: q, QP: qp, T: mpmath.sqrt(q * qp) * mpmath.mpf(rng.randint(-6, 6)) / 7}


def _closed(expr: sympy.Expr, point: Mapping[Any, Any]) -> Any:
    """Dual moments of |z| by their closed forms."""
    absolute = make_function("abs", "activation")

    def closed(i: sympy.Integer, j: sympy.Integer, *law: sympy.Expr) -> sympy.Expr:
        formula = dual_formula(absolute, int(i), int(j))
        assert formula is not None
        return formula

    written = expr.replace(DualMoment, closed)
    values = {k: sympy.Float(str(v), mpmath.mp.dps) for k, v in point.items()}
    return mpmath.mpmathify(written.subs(values).evalf(mpmath.mp.dps))


def _draw_kink(rng: random.Random) -> dict[Any, Any]:
    names = (S, SP, C1, OMEGA, Q_COEF, EG2, TAU2)
    point: dict[Any, Any] = {s: mpmath.mpf(rng.randint(2, 9)) / rng.choice([3, 5, 7]) for s in names}
    point[EG2S2] = 3 * point[EG2] + mpmath.mpf(1) / 7
    return point


def _abs_kernel(q: Any, qp: Any, t: Any) -> Any:
    """E|U||U'|."""
    root = mpmath.sqrt(q * qp)
    c = t / root
    return 2 / mpmath.pi * root * (mpmath.sqrt(1 - c * c) + c * mpmath.asin(c))


def _hermite_nodes(count: int) -> list[tuple[Any, Any]]:
    """Gauss-Hermite nodes and weights for N(0, 1), exact for degrees below 2 count."""
    x = Symbol("x")
    polynomial = sympy.Poly(sympy.expand(sympy.hermite_prob(count, x)), x)
    nodes = mpmath.polyroots(
        [mpmath.mpf(int(c)) for c in polynomial.all_coeffs()], maxsteps=500, extraprec=200
    )
    before = sympy.lambdify(x, sympy.expand(sympy.hermite_prob(count - 1, x)), "mpmath")
    return [(r, mpmath.factorial(count) / (count * before(r)) ** 2) for r in nodes]


def _third_defined(expr: sympy.Expr, point: Mapping[Any, Any]) -> Any:
    """Third derivative in eps of the mean kernel less the kernel of the mean."""
    s, sp, c, omega = (point[k] for k in (S, SP, C1, OMEGA))
    nodes, root = _hermite_nodes(4), mpmath.sqrt(omega)

    def difference(eps: Any) -> Any:
        total = -_abs_kernel(
            1 + eps * (c**2 * s**2 + omega), 1 + eps * (c**2 * sp**2 + omega), eps * c**2 * s * sp
        )
        for g, w in nodes:
            for gp, wp in nodes:
                a, b = c * s + root * g, c * sp + root * gp
                total += w * wp * _abs_kernel(1 + eps * a * a, 1 + eps * b * b, eps * a * b)
        return total

    return point[Q_COEF] ** 2 * mpmath.diff(difference, 0, 3) / 6


def _finite_defined(expr: sympy.Expr, point: Mapping[Any, Any]) -> Any:
    """First derivative in 1/n of the second order in eps: U fluctuates, and the noise across w* has variance V(1 - s^2/d)."""
    s, sp, c, omega = (point[k] for k in (S, SP, C1, OMEGA))
    label2, variance = point[EG2] + point[TAU2], point[EG2S2] + point[TAU2] - point[C1] ** 2
    with mpmath.workdps(2 * mpmath.mp.dps + 20):
        nodes = _hermite_nodes(4)

    def second_order_at(h: Any) -> Any:
        # covariance of the noise along x, x' given |x|^2 = |x'|^2 = d and x _|_ x'
        first, second, cross = omega - h * label2 * s * s, omega - h * label2 * sp * sp, -h * label2 * s * sp
        lower = mpmath.sqrt(first)
        mixed = cross / lower
        rest = mpmath.sqrt(second - mixed**2)
        u2 = c**2 + h * variance

        def difference(eps: Any) -> Any:
            total = -_abs_kernel(
                1 + eps * (u2 * s**2 + first), 1 + eps * (u2 * sp**2 + second), eps * (u2 * s * sp + cross)
            )
            for v, wv in nodes:
                u = c + mpmath.sqrt(h * variance) * v
                for g, w in nodes:
                    for gp, wp in nodes:
                        a, b = u * s + lower * g, u * sp + mixed * g + rest * gp
                        total += wv * w * wp * _abs_kernel(1 + eps * a * a, 1 + eps * b * b, eps * a * b)
            return total

        return mpmath.diff(difference, 0, 2) / 2

    with mpmath.workdps(2 * mpmath.mp.dps + 20):
        # Richardson: the error is of the second order in the step
        step = mpmath.mpf(10) ** -22
        value = (second_order_at(step) - second_order_at(2 * step) / 4) * 2 / step
    return point[Q_COEF] ** 2 * value


@lru_cache(maxsize=1)
def surrogate_derivation() -> Derivation:
    """From Price's theorem to the squared norms of :func:`.surrogate.surrogate_formulas`.

    Examples
    --------
    >>> [step.rule.split(":")[0] for step in surrogate_derivation()][0]
    "Price's theorem along v, order 2"
    """
    price = {
        r: on_independent(
            sympy.expand((ALONG_X * FIRST + ALONG_XP * SECOND) ** (2 * r) / (2**r * sympy.factorial(r)))
        )
        for r in _ORDER
    }
    law = (Q, QP, T)
    vanishing = [
        (
            Q * DualMoment(i + 2, j, *law),
            -QP * DualMoment(i, j + 2, *law) - 2 * T * DualMoment(i + 1, j + 1, *law),
        )
        for i, j in ((2, 0), (1, 1))
    ]
    kinked = kinked_excess()
    steps = [
        Step(
            f"Price's theorem along v, order {r}: x and x' typical, |x|^2 = |x'|^2 = d, <x, x'> = 0",
            _ORDER[r],
            price[r],
            equal_exactly(_draw_polynomial, _order_defined(r), _at_polynomial),
        )
        for r in _ORDER
    ]
    steps.append(
        Step(
            "mean over the noise of the batch, less the same order at the mean covariance",
            _EXCESS,
            excess(2),
            equal_exactly(_draw_polynomial, _excess_defined, _at_polynomial),
        )
    )
    steps.append(
        Step(
            "mean square over s, s': the Hilbert-Schmidt norm",
            _SQUARE,
            second_order(),
            equal_exactly(_draw_polynomial, _square_defined, _at_polynomial),
        )
    )
    steps.extend(
        Step(
            "homogeneous activations: the mean Laplacian of what is homogeneous of degree 0 vanishes (here for |z|)",
            before,
            after,
            same_at(_draw_covariance, _closed, _closed),
        )
        for before, after in vanishing
    )
    steps.append(
        Step(
            "p z + q|z|: the third order in eps",
            _THIRD,
            kinked["third"] * QUARTIC,
            same_at(_draw_kink, _third_defined, points=1),
        )
    )
    steps.append(
        Step(
            "p z + q|z|: the second order in eps at finite n",
            _FINITE,
            kinked["finite"] * QUARTIC,
            same_at(_draw_kink, _finite_defined, points=1),
        )
    )
    return Derivation("Distance of the surrogate's kernel from k1", tuple(steps), surrogate_formulas())
