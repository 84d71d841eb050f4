"""Statements about the expansion in the spike: Price's theorem, and the first-order term of k1 for any activation."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import sympy
from mpmath import mp, mpf
from sympy import Rational, Symbol

from ..symbolic.dual import dual_formula, gaussian_mean
from ..symbolic.functions import make_function
from ..symbolic.kernel import DualMoment, price_term
from ..symbolic.symbols import QP, SP, K, Q, S, T, X
from .kernel_common import FEATURES, PAPER, SOURCE, as_mpf, compare, fraction, latex_of, number
from .kernel_quadrature import DIGITS, relu_kernel
from .registry import Check, Formulas, Outcome, Statement, register

#: variance in every direction, and the added variance along the unit vector u
GAMMA1 = Symbol("gamma_1", positive=True)
GAMMA2 = Symbol("gamma_2", positive=True)

#: activations on which the expansion is tried, one of each kind: kinked, smooth, oscillating, polynomial
_TRIED = ("relu", "erf(z)", "sin(z)", "z**3 - z")
#: sizes of the spike: a wrong factor of 1 + 1e-6 in the first order shows at these
_SIZES = tuple(Fraction(1, 10**k) for k in (8, 10, 12))
_BITS = 700


@cache
def _dual(activation: str, i: int, j: int) -> sympy.Expr:
    found = dual_formula(make_function(activation, "activation"), i, j, budget=60)
    if found is None:
        raise ArithmeticError(f"no closed form for {activation}")
    return found


def _closed(expr: sympy.Expr, activation: str) -> sympy.Expr:
    """Every E[sigma^(i) sigma^(j)] of an expression in closed form."""

    def closed(i: sympy.Expr, j: sympy.Expr, *law: sympy.Expr) -> sympy.Expr:
        at = dict(zip((Q, QP, T), law, strict=True))
        return _dual(activation, int(i), int(j)).subs(at, simultaneous=True)

    return expr.replace(DualMoment, closed)


def slopes(terms: list[sympy.Expr], activation: str, seed: int) -> tuple[float, list[float]]:
    """Slope of log |remainder| against log size of the spike, and the remainders.

    The remainder is the dual at (q + l s^2, q' + l s'^2, t + l s s') less its value at l = 0 and less l^r times the
    r-th of the given terms, r = 1, 2, ...; the dual is the closed form that its own statement checks.
    """
    rng = random.Random(f"rest:{activation}:{seed}")
    a, b = fraction(rng, 0.5, 2), fraction(rng, 0.5, 2)
    q, qp, t = a * a, b * b, fraction(rng, -0.7, 0.7) * a * b
    s, s_p = fraction(rng, 0.4, 1.5), -fraction(rng, 0.4, 1.5)
    base: dict[sympy.Symbol, Any] = {Q: q, QP: qp, T: t, S: s, SP: s_p}
    dual = _dual(activation, 0, 0)
    with mp.workdps(200):
        start = number(dual, base, _BITS)
        coefficients = [number(_closed(term, activation), base, _BITS) for term in terms]
        rests = []
        for size in _SIZES:
            moved = {Q: q + size * s * s, QP: qp + size * s_p * s_p, T: t + size * s * s_p}
            step = mpf(size.numerator) / size.denominator
            expansion = sum(c * step**r for r, c in enumerate(coefficients, 1))
            rests.append(abs(number(dual, moved, _BITS) - start - expansion))
        logs = [mpmath.log(r) if r else mpf(-1000) for r in rests]
        slope = (logs[0] - logs[-1]) / mpmath.log(mpf(_SIZES[-1].denominator) / _SIZES[0].denominator)
    return float(slope), [float(r) for r in rests]


# ---- first -----------------------------------------------------------------------------------------------------


def _first_formulas() -> Formulas:
    return {"S": 2 * price_term(1)}


def _remainder_is_quadratic(activation: str) -> Check:
    def run(forms: Formulas, seed: int) -> Outcome:
        slope, rests = slopes([forms["S"] / 2], activation, seed)
        return Outcome(
            abs(slope - 2) < 1e-3, f"|R| ~ (B/d)^{slope:.6f} for {activation}, down to {rests[-1]:.1e}"
        )

    return Check(f"order of the remainder, {activation}", "numeric", run)


def _first_by_sampling(forms: Formulas, seed: int) -> Outcome:
    """S of tanh' relatives cannot hide: the first-order term of relu against sampled features with weights.

    E over N(0, (I + l w w^T)/d) is E over N(0, I/d) weighted by the likelihood ratio, whose derivative in l at 0 is
    (<w*, w>^2 d - 1)/2: one sample gives the derivative of the kernel in B without a difference.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(33,)))
    d, count = 5, 400_000
    x, y = rng.normal(size=(2, d))
    w = rng.normal(size=(count, d)) / np.sqrt(d)
    score = (w[:, 0] ** 2 * d - 1) / 2
    products = np.maximum(w @ x, 0) * np.maximum(w @ y, 0) * score
    law = {
        Q: Fraction(x @ x) / d,
        QP: Fraction(y @ y) / d,
        T: Fraction(x @ y) / d,
        S: Fraction(x[0]),
        SP: Fraction(y[0]),
    }
    exact = float(number(_closed(forms["S"], "relu"), law)) / (2 * d)
    z = (products.mean() - exact) / (products.std(ddof=1) / np.sqrt(count))
    return Outcome(abs(z) < 5, f"derivative in B at 0 from {count} weighted features: z = {z:.2f}")


register(
    Statement(
        id="first",
        statement=(
            "k1 = k0^(A) + (B/2d) S + R with S = s'^2 E[sigma sigma''] + 2 s s' E[sigma' sigma'] + s^2 E[sigma'' sigma] "
            "and R of order (B/d)^2."
        ),
        assumptions=(
            FEATURES,
            "sigma with a Gaussian second moment; derivatives in the sense of distributions",
        ),
        source=SOURCE + PAPER,
        formulas=cache(_first_formulas),
        evaluate=lambda activation, X, Y=None, A=1.0, B=0.0, w=None: _expansion(activation, A, B, w).order(
            1, X, Y
        ),
        latex=latex_of,
        checks=(
            *(_remainder_is_quadratic(a) for a in _TRIED),
            Check("weighted features", "montecarlo", _first_by_sampling),
        ),
    )
)


def _expansion(activation: Any, A: float, B: float, w: Any) -> Any:
    from ..numeric.kernel import Kernel
    from ..numeric.kernel_expansion import Expansion

    return Expansion(Kernel(activation, A=A, B=B, w=w))


# ---- price -----------------------------------------------------------------------------------------------------


def _price_formulas() -> Formulas:
    """The coefficient of the 2j-th derivative (j is the symbol k), from d/d gamma_2 E = E[second derivative]/2.

    Successive terms of the series in gamma_2 have the ratio gamma_2/(2j).
    """
    index = Symbol("i", integer=True, positive=True)
    coefficient = sympy.product(GAMMA2 / (2 * index), (index, 1, K))
    return {"coefficient": sympy.powsimp(coefficient.doit())}


def _monomials(forms: Formulas, seed: int) -> Outcome:
    """Powers of <v, w>, with |v|^2 = n and <u, v> = a: an identity of polynomials, degree by degree."""
    n, a = Symbol("n", positive=True), Symbol("a", real=True)
    wrong = []
    for half_degree in range(5):
        power = X ** (2 * half_degree)
        exact = gaussian_mean(power, GAMMA1 * n + GAMMA2 * a**2) if half_degree else sympy.Integer(1)
        series = sum(
            forms["coefficient"].subs(K, j)
            * a ** (2 * j)
            * gaussian_mean(sympy.diff(power, X, 2 * j), GAMMA1 * n)
            for j in range(half_degree + 1)
        )
        if sympy.expand(series - exact) != 0:
            wrong.append(2 * half_degree)
    return Outcome(not wrong, f"degrees 0 to 8, wrong: {wrong}")


def _exponentials(forms: Formulas, seed: int) -> Outcome:
    """exp(<v, w>): the sum of the series against exp((gamma_1 |v|^2 + gamma_2 a^2)/2)."""
    rng = random.Random(f"price:{seed}")
    pairs = []
    for _ in range(2):
        gamma1, gamma2, n, a = (fraction(rng, 0.2, 1.5) for _ in range(4))
        with mp.workdps(DIGITS):
            mean = mpmath.exp(as_mpf(gamma1 * n) / 2)
            series = sum(
                number(forms["coefficient"], {GAMMA2: gamma2, K: j}) * as_mpf(a) ** (2 * j) * mean
                for j in range(40)
            )
            pairs.append((series, mpmath.exp(as_mpf(gamma1 * n + gamma2 * a * a) / 2)))
    return compare(pairs, "exp((gamma_1 |v|^2 + gamma_2 <u, v>^2)/2)")


def _kinks(forms: Formulas, seed: int) -> Outcome:
    """relu(<v, w>) relu(<v', w>): three orders, their point masses included, against quadrature of the expectation."""
    rng = random.Random(f"kinks:{seed}")
    q, qp, s, s_p = (fraction(rng, 0.5, 1.5) for _ in range(4))
    q, qp = q * q, qp * qp
    t = fraction(rng, -0.6, 0.6)
    law: dict[sympy.Symbol, Any] = {Q: q, QP: qp, T: t, S: s, SP: s_p}
    rests = []
    sizes = (Fraction(1, 10**4), Fraction(1, 10**6))
    with mp.workdps(DIGITS):
        for size in sizes:
            moved = (q + size * s * s, qp + size * s_p * s_p, t + size * s * s_p)
            total = relu_kernel(*map(as_mpf, moved))
            for j in range(3):
                derivative = _directional(j)
                value = number(forms["coefficient"], {GAMMA2: size, K: j}) * number(
                    _closed(derivative, "relu"), law
                )
                total -= value
            rests.append(abs(total))
        slope = float(mpmath.log(rests[0] / rests[1]) / mpmath.log(100)) if all(rests) else 0.0
    return Outcome(abs(slope - 3) < 0.01, f"|remainder after three terms| ~ gamma_2^{slope:.4f}")


@cache
def _directional(j: int) -> sympy.Expr:
    """E of the 2j-th derivative of sigma(U) sigma(U') along (s, s'), by the binomial formula of Leibniz."""
    return sympy.Add(
        *(
            sympy.binomial(2 * j, i) * S**i * SP ** (2 * j - i) * DualMoment(i, 2 * j - i, Q, QP, T)
            for i in range(2 * j + 1)
        )
    )


def _agrees_with_term(forms: Formulas, seed: int) -> Outcome:
    """The orders of the kernel's expansion are the coefficient times the binomial sum."""
    wrong = [
        j
        for j in range(5)
        if sympy.expand(price_term(j) - forms["coefficient"].subs({K: j, GAMMA2: 1}) * _directional(j)) != 0
    ]
    return Outcome(not wrong, f"orders 0 to 4, wrong: {wrong}")


register(
    Statement(
        id="price",
        statement=(
            "E over N(0, gamma_1 I + gamma_2 u u^T) is the sum over j of (gamma_2/2)^j/j! times E over N(0, gamma_1 I) of "
            "the 2j-th derivative along u, in the sense of distributions."
        ),
        assumptions=(
            "gamma_1 > 0",
            "the function has Gaussian expectations; for kinked functions a formal series",
        ),
        source=SOURCE + "Price 1958; " + PAPER,
        formulas=cache(_price_formulas),
        evaluate=lambda j, gamma2: float(Rational(str(gamma2)) ** j / (2**j * sympy.factorial(j))),
        latex=latex_of,
        checks=(
            Check("monomials", "symbolic", _monomials),
            Check("exponentials", "numeric", _exponentials),
            Check("kinks", "numeric", _kinks),
            Check("orders of k1", "symbolic", _agrees_with_term),
        ),
    )
)
