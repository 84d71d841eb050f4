"""Shared by the statements about kernels: exact random points, numbers of 50 digits, comparisons."""

from __future__ import annotations

import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy
from mpmath import mp, mpf

from ..numeric.arb_eval import evaluate
from ..symbolic.printing import latex
from .kernel_quadrature import DIGITS, close
from .registry import Formulas, Outcome

SOURCE = "derived in spikesym.symbolic.dual and kernel by Stein's lemma and Price's theorem; "
PAPER = "Lobo et al. 2026 (arXiv 2605.17718)"
FEATURES = "w ~ N(0, Gamma/d), Gamma = A I + B w* w*^T with A > 0, A + B > 0"

_BITS = 200


def latex_of(formulas: Formulas) -> dict[str, str]:
    """LaTeX of every formula by name."""
    return {name: latex(expr) for name, expr in formulas.items()}


def number(expr: sympy.Expr, values: Mapping[sympy.Symbol, Any], bits: int = _BITS) -> mpf:
    """An expression at exact values, to 40 digits at least (or within 1e-40 of zero)."""
    ball = evaluate(sympy.sympify(expr), bits, values)
    if not ball.is_finite() or (ball.rel_accuracy_bits() < 130 and not ball.abs_upper() < 1e-40):
        raise ArithmeticError(f"no number: {expr} at {values}")
    with mp.workdps(max(DIGITS, int(bits * 0.3))):
        man, exp = ball.mid().man_exp()
        return mpf(int(man)) * mpf(2) ** int(exp)


def as_mpf(value: Fraction | int) -> mpf:
    """A rational as a number of 50 digits."""
    with mp.workdps(DIGITS):
        return mpf(Fraction(value).numerator) / Fraction(value).denominator


def fraction(rng: random.Random, low: float, high: float) -> Fraction:
    """A random rational in an interval."""
    return Fraction(rng.randrange(int(low * 1000), int(high * 1000)), 1000)


def laws(seed: int, count: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Random (q, q', t), with very unequal variances and correlations near 1 and -1 among them."""
    rng = random.Random(f"laws:{seed}")
    found = []
    for k in range(count):
        a, b = fraction(rng, 0.3, 3), fraction(rng, 0.3, 3) * (1, 1000)[k % 4 == 3]
        # squares, so that the correlation is rational too
        rho = (fraction(rng, -0.95, 0.95), 1 - Fraction(1, 10**6), -1 + Fraction(1, 10**4))[
            (0, 0, 1, 0, 2)[k % 5]
        ]
        found.append((a * a, b * b, rho * a * b))
    return found


def compare(pairs: list[tuple[mpf, mpf]], what: str, digits: int = 30) -> Outcome:
    """Whether all pairs of numbers agree to this many digits."""
    results = [close(value, expected, digits) for value, expected in pairs]
    largest = max(difference for _, difference in results)
    passed = all(ok for ok, _ in results)
    return Outcome(passed, f"largest relative difference {largest:.1e} from {what} at {len(pairs)} points")
