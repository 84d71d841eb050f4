r"""The squared overlap of Gamma_batch's top eigenvector with w* to order 1/d, for activations p z + q|z|.

Two corrections to alpha c_1^2/(alpha c_1^2 + E y^2). The vector v = X^T y/n fluctuates: its overlap is U^2/(U^2 + V W) in law,
U = mean(y s), V = mean(y^2), W = chi^2_(d-1)/n. And the top eigenvector is v turned by the rest of C, to first order

    R = (1/n) (E sigma'^2 - mu_1^2 - mu_2^2) T + (mu_2^2/d) M^2,   T = mean(y^2 x x^T),  M = mean(y x x^T),

the diagonal and the term k = 1 of K' = sum_k mu_(k+1)^2 rho^k/k!; the others are smaller. For p z + q|z| K' depends on the angle
only, so the lengths of the samples add nothing.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Rational, Symbol

from .covariance_judges import P_COEF, Q_COEF
from .quenched import LABEL4
from .surrogate import kinked_coefficients
from .symbols import ALPHA, C0, C1, LATEX_NAMES, MU2

#: moments of a label y = g(s) + eps: E y^2, E y s^2, E y^2 s, E y^2 s^2, E y^3 s
LABEL2 = Symbol("Y_2", positive=True)
LABEL1_S2 = Symbol("Y_12", real=True)
LABEL2_S = Symbol("Y_21", real=True)
LABEL2_S2 = Symbol("Y_22", positive=True)
LABEL3_S = Symbol("Y_31", real=True)
LATEX_NAMES.update(
    {
        LABEL2: r"\mathbb{E}[y^{2}]",
        LABEL1_S2: r"\mathbb{E}[ys^{2}]",
        LABEL2_S: r"\mathbb{E}[y^{2}s]",
        LABEL2_S2: r"\mathbb{E}[y^{2}s^{2}]",
        LABEL3_S: r"\mathbb{E}[y^{3}s]",
    }
)


def vector_correction() -> sympy.Expr:
    """d times the correction of E U^2/(U^2 + V W) to its limit, by the second-order expansion in the fluctuations.

    Examples
    --------
    >>> from sympy import Rational
    >>> at = {C1: 1, LABEL2: 1, LABEL2_S2: 3, LABEL4: 3, LABEL3_S: 3, ALPHA: 1}
    >>> vector_correction().subs(at)
    1/4
    """
    u, v, w = sympy.symbols("u v w", positive=True)
    overlap = u**2 / (u**2 + v * w)
    # n times covariances, and d times the shift and the variance of W
    second = {
        (u, u): (LABEL2_S2 - C1**2) / ALPHA,
        (v, v): (LABEL4 - LABEL2**2) / ALPHA,
        (u, v): 2 * (LABEL3_S - C1 * LABEL2) / ALPHA,
        (w, w): 2 / ALPHA**2,
    }
    total = -sympy.diff(overlap, w) / ALPHA
    for (first, other), covariance in second.items():
        total += Rational(1, 2) * sympy.diff(overlap, first, other) * covariance
    return sympy.factor(total.subs({u: C1, v: LABEL2, w: 1 / ALPHA}))


def turned_forms() -> dict[str, sympy.Expr]:
    """Limits of <w*, T v>, <v, T v>, <w*, M^2 v>, <v, M^2 v>.

    By <x_k, v> = y_k/alpha + c_1 s_k + noise of variance E y^2/alpha that does not know y_k, x_k.
    """
    noise = LABEL2 / ALPHA
    # b = y (y/alpha + c_1 s + c_0) multiplies x_perp in M v; its mean products with y s and with itself
    with_signal = LABEL3_S / ALPHA + C1 * LABEL2_S2 + C0 * LABEL2_S
    own = (
        LABEL4 / ALPHA**2
        + C1**2 * LABEL2_S2
        + C0**2 * LABEL2
        + 2 * C1 * LABEL3_S / ALPHA
        + 2 * C0 * C1 * LABEL2_S
        + 2 * C0 * LABEL3 / ALPHA
    )
    along = LABEL2_S / ALPHA + C1 * LABEL1_S2
    return {
        "T_w": LABEL3_S / ALPHA + C1 * LABEL2_S2,
        "T_v": LABEL4 / ALPHA**2 + 2 * C1 * LABEL3_S / ALPHA + C1**2 * LABEL2_S2 + LABEL2 * noise,
        "M_w": LABEL1_S2 * along + with_signal / ALPHA,
        "M_v": along**2 + own / ALPHA + noise**2,
    }


#: E y^3
LABEL3 = Symbol("Y_3", real=True)
LATEX_NAMES[LABEL3] = r"\mathbb{E}[y^{3}]"


def turning_correction() -> sympy.Expr:
    """d times the change of the squared overlap when the rest R of C turns v, to first order."""
    forms = turned_forms()
    mu2 = kinked_coefficients()[MU2]
    # E sigma'^2 - mu_1^2 = q^2 for sigma' = p + q sign
    single, pair = (Q_COEF**2 - mu2**2) / ALPHA, mu2**2
    length2 = C1**2 + LABEL2 / ALPHA
    turned = single * (forms["T_w"] - C1 * forms["T_v"] / length2) + pair * (
        forms["M_w"] - C1 * forms["M_v"] / length2
    )
    return 2 * C1 * turned / (P_COEF**2 * length2**2)


@lru_cache(maxsize=1)
def overlap_correction() -> sympy.Expr:
    """d (E <u, w*>^2 - limit) as n, d grow in proportion, for activations p z + q|z|."""
    return vector_correction() + turning_correction()
