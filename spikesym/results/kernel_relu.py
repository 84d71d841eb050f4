"""Statements for ReLU: k0, k1 and the first-order kernel S in closed form."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from operator import mul
from typing import Any

import mpmath
import numpy as np
import sympy
from mpmath import mp, mpf
from sympy import Rational, pi, sqrt

from ..symbolic.functions import make_function
from ..symbolic.kernel import KernelFormulas, along_spike, at_spike, in_angle
from ..symbolic.symbols import NORM, NORMP, PP, QP, SP, THETA, A, B, D, P, Q, S, T
from .kernel_common import FEATURES, PAPER, SOURCE, as_mpf, compare, fraction, latex_of, laws, number
from .kernel_quadrature import DIGITS, at_zero, polar, relu, relu_kernel, step
from .registry import Check, Formulas, Outcome, Statement, register

# ---- k0 for ReLU -----------------------------------------------------------------------------------------------


@cache
def _relu() -> KernelFormulas:
    return KernelFormulas.of(make_function("relu", "activation"))


def _k0_formulas() -> Formulas:
    formulas = _relu()
    assert formulas.dual is not None
    return {"dual": formulas.dual, "k0": formulas.k0()}


def _dual_by_definition(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    for q, qp, t in laws(seed, 5):
        pairs.append((number(forms["dual"], {Q: q, QP: qp, T: t}), relu_kernel(*map(as_mpf, (q, qp, t)))))
    return compare(pairs, "E relu(U) relu(U') in polar coordinates")


def _k0_by_definition(forms: Formulas, seed: int) -> Outcome:
    rng = random.Random(f"k0:{seed}")
    pairs = []
    for d in (2, 7, 100):
        x, y = (fraction(rng, 0.1, 5) for _ in range(2))
        angle = fraction(rng, 0.05, 3.1)
        with mp.workdps(DIGITS):
            q, qp, t = as_mpf(x * x / d), as_mpf(y * y / d), as_mpf(x * y / d) * mpmath.cos(as_mpf(angle))
            expected = relu_kernel(q, qp, t)
        pairs.append((number(forms["k0"], {NORM: x, NORMP: y, THETA: angle, D: d}), expected))
    return compare(pairs, "E relu(<w, x>) relu(<w, x'>) in polar coordinates")


def _price_characterises(forms: Formulas, seed: int) -> Outcome:
    """The dual solves d^2/dt^2 = density of (U, U') at 0, with the values of independent variables at t = 0."""
    dual = forms["dual"]
    density = 1 / (2 * pi * sqrt(Q * QP - T**2))
    curvature = sympy.simplify(sympy.diff(dual, T, 2) - density)
    mean = sqrt(Q) / sqrt(2 * pi)
    start = sympy.simplify(dual.subs(T, 0) - mean * mean.subs(Q, QP))
    slope = sympy.simplify(sympy.diff(dual, T).subs(T, 0) - Rational(1, 4))
    passed = curvature == 0 and start == 0 and slope == 0
    return Outcome(passed, f"residuals {curvature}, {start}, {slope}")


def _evaluator_agrees(forms: Formulas, seed: int) -> Outcome:
    """The float64 matrix against the formula, at nearly parallel, opposite and very unequal vectors too."""
    from ..numeric.kernel import Kernel

    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(31,)))
    X = rng.normal(size=(5, 6))
    Y = np.concatenate([rng.normal(size=(3, 6)), X[:1] * 1000 + 1e-3, -X[1:2] + 1e-5])
    matrix = Kernel("relu").matrix(X, Y)
    worst = 0.0
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            q, qp, t = (sum((Fraction(a) * Fraction(b) for a, b in zip(u, v, strict=True)), Fraction(0)) / 6
                        for u, v in ((x, x), (y, y), (x, y)))  # fmt: skip
            exact = number(forms["dual"], {Q: q, QP: qp, T: t}, 400)
            worst = max(worst, float(abs((mpf(float(matrix[i, j])) - exact) / exact)))
    return Outcome(worst < 1e-12, f"float64 matrix within {worst:.1e} of the formula at 25 pairs")


register(
    Statement(
        id="k0-relu",
        statement="For ReLU and w ~ N(0, I/d), E relu(<w,x>) relu(<w,x'>) = |x||x'| [sin + (pi - theta) cos]/(2 pi d).",
        assumptions=("w ~ N(0, I/d)",),
        source=SOURCE + "Cho and Saul 2009",
        formulas=cache(_k0_formulas),
        evaluate=lambda X, Y=None: _kernel("relu").matrix(X, Y),
        latex=latex_of,
        checks=(
            Check("dual, definition", "numeric", _dual_by_definition),
            Check("k0, definition", "numeric", _k0_by_definition),
            Check("Price's theorem", "symbolic", _price_characterises),
            Check("float64 matrix", "numeric", _evaluator_agrees),
        ),
    )
)


def _kernel(activation: str, **parameters: Any) -> Any:
    from ..numeric.kernel import Kernel

    return Kernel(activation, **parameters)


# ---- k1 for ReLU -----------------------------------------------------------------------------------------------


def _k1_formulas() -> Formulas:
    return {"k1": _relu().kernel(), "p": sympy.expand(D * at_spike(Q)), "t": sympy.expand(D * at_spike(T))}


def _spiked_points(seed: int, count: int) -> list[dict[str, Any]]:
    """Exact vectors x, x' in a few dimensions, A, B, w* the first axis."""
    rng = random.Random(f"spiked:{seed}")
    points = []
    for k in range(count):
        d = (2, 3, 6)[k % 3]
        x, y = ([fraction(rng, -2, 2) for _ in range(d)] for _ in range(2))
        a, b = fraction(rng, 0.5, 2), fraction(rng, 0.1, 8)

        def inner(u: list[Fraction], v: list[Fraction], a: Fraction = a, b: Fraction = b) -> Fraction:
            return a * sum(map(mul, u, v), Fraction(0)) + b * u[0] * v[0]

        points.append({"d": d, "x": x, "y": y, "a": a, "b": b, "inner": inner})
    return points


def _k1_by_definition(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    for point in _spiked_points(seed, 4):
        x, y, d, inner = (point[n] for n in ("x", "y", "d", "inner"))
        exact = {name: inner(u, v) for name, (u, v) in {"p": (x, x), "pp": (y, y), "t": (x, y)}.items()}
        expected = relu_kernel(*(as_mpf(v / d) for v in exact.values()))
        k1 = number(forms["k1"], {P: exact["p"], PP: exact["pp"], T: exact["t"], D: d})
        pairs.append((k1, expected))
        square, square_p, product = (sum(map(mul, u, v), Fraction(0)) for u, v in ((x, x), (y, y), (x, y)))
        norm, norm_p = (sympy.sqrt(Rational(v.numerator, v.denominator)) for v in (square, square_p))
        angle = sympy.acos(Rational(product.numerator, product.denominator) / (norm * norm_p))
        at = {NORM: norm, NORMP: norm_p, THETA: angle, S: x[0], SP: y[0], A: point["a"], B: point["b"]}
        pairs += [(number(forms[name], at), as_mpf(exact[name])) for name in ("p", "t")]
    return compare(pairs, "E relu(<w, x>) relu(<w, x'>), w ~ N(0, Gamma/d), in polar coordinates")


def _k1_by_sampling(forms: Formulas, seed: int) -> Outcome:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(32,)))
    worst, count = 0.0, 200_000
    for point in _spiked_points(seed + 1, 3):
        x, y, d, inner = (point[n] for n in ("x", "y", "d", "inner"))
        scale = np.full(d, float(point["a"]))
        scale[0] += float(point["b"])
        w = rng.normal(size=(count, d)) * np.sqrt(scale / d)
        products = np.maximum(w @ np.array(x, dtype=float), 0) * np.maximum(w @ np.array(y, dtype=float), 0)
        exact = float(number(forms["k1"], {P: inner(x, x), PP: inner(y, y), T: inner(x, y), D: d}))
        worst = max(worst, abs(products.mean() - exact) / (products.std(ddof=1) / np.sqrt(count)))
    return Outcome(worst < 5, f"largest |z| = {worst:.2f} over 3 pairs, {count} features")


register(
    Statement(
        id="relu-k1",
        statement="For ReLU, k1(x,x') = sqrt(pp') [sin + (pi - theta) cos]/(2 pi d), p = x^T Gamma x, cos = x^T Gamma x'/sqrt(pp').",
        assumptions=(FEATURES,),
        source=SOURCE + PAPER,
        formulas=cache(_k1_formulas),
        evaluate=lambda X, Y=None, A=1.0, B=0.0, w=None: _kernel("relu", A=A, B=B, w=w).matrix(X, Y),
        latex=latex_of,
        checks=(
            Check("definition", "numeric", _k1_by_definition),
            Check("sampled features", "montecarlo", _k1_by_sampling),
        ),
    )
)


# ---- the first-order term ---------------------------------------------------------------------------------------


def _s_formulas() -> Formulas:
    dual = _relu().dual
    assert dual is not None
    return {"S": in_angle(2 * along_spike(dual, 1))}


def _s_by_definition(forms: Formulas, seed: int) -> Outcome:
    """S = s'^2 E[s s''] + 2 s s' E[s' s'] + s^2 E[s'' s], each expectation from its definition."""
    rng = random.Random(f"S:{seed}")
    pairs = []
    for d in (2, 5, 50):
        x, y, s, s_p = (fraction(rng, 0.2, 4) for _ in range(4))
        s, s_p = s - 2, s_p - 2
        angle = fraction(rng, 0.05, 3.1)
        with mp.workdps(DIGITS):
            q, qp, t = as_mpf(x * x / d), as_mpf(y * y / d), as_mpf(x * y / d) * mpmath.cos(as_mpf(angle))
            expected = as_mpf(s_p**2) * at_zero(relu, qp, q, t) + as_mpf(s**2) * at_zero(relu, q, qp, t)
            expected += 2 * as_mpf(s * s_p) * polar(step, step, 0, q, qp, t)
        at = {NORM: x, NORMP: y, THETA: angle, S: s, SP: s_p, D: d}
        pairs.append((number(forms["S"], at), expected))
    return compare(pairs, "its three expectations")


register(
    Statement(
        id="relu-S",
        statement="For ReLU the first-order kernel is S = (pi - theta)/pi s s' + sin/(2 pi) (|x'|/|x| s^2 + |x|/|x'| s'^2).",
        assumptions=(FEATURES, "s = <w*, x>, s' = <w*, x'>"),
        source=SOURCE + PAPER,
        formulas=cache(_s_formulas),
        evaluate=lambda X, Y=None, w=None: _first_order("relu", X, Y, w),
        latex=latex_of,
        checks=(Check("definition", "numeric", _s_by_definition),),
    )
)


def _first_order(activation: str, X: Any, Y: Any, w: Any) -> Any:
    """S at A = 1, from the expansion with B = 2 d, where the first order is S."""
    from ..numeric.kernel_expansion import Expansion

    d = np.shape(X)[1]
    return Expansion(_kernel(activation, B=2.0 * d, w=w)).order(1, X, Y)
