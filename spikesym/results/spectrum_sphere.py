"""Statements about k0 on the sphere: multiplicities, Funk-Hecke coefficients, eigenvalues at B = 0."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import mpmath
from mpmath import mp, mpf

from ..symbolic.funk_hecke import relu_coefficient
from ..symbolic.spectrum import base_eigenvalue
from ..symbolic.sphere import beta_squared_formula, multiplicity_formula
from ..symbolic.symbols import ELL, A, D, K
from .kernel_common import PAPER, compare, latex_of, number
from .registry import Check, Formulas, Outcome, Statement, register

SOURCE = "derived in spikesym.symbolic.sphere, funk_hecke and spectrum; "

_DIGITS = 40


def legendre(degree: int, d: int, t: mpf) -> mpf:
    """P_degree(t; d) by the three-term recurrence of the zonal harmonics, P_degree(1) = 1."""
    before, now = mpf(0), mpf(1)
    for k in range(degree):
        before, now = now, t if k == 0 else ((2 * k + d - 2) * t * now - k * before) / (k + d - 2)
    return now


@lru_cache(maxsize=256)
def zonal_mean(kind: str, degree: int, d: int) -> mpf:
    """Mean over the sphere of relu(t) P_degree(t), or of the arc-cosine profile times P_degree, by quadrature.

    The polar angle is the variable: the density is sin^(d-2), without a singularity at d = 2.
    """

    def profile(angle: mpf) -> mpf:
        if kind == "relu":
            return mpmath.cos(angle)
        return mpmath.sin(angle) + (mp.pi - angle) * mpmath.cos(angle)

    with mp.workdps(_DIGITS):
        end = mp.pi / 2 if kind == "relu" else mp.pi
        cuts = mpmath.linspace(0, end, 5)
        weighted = mpmath.quad(
            lambda x: profile(x) * legendre(degree, d, mpmath.cos(x)) * mpmath.sin(x) ** (d - 2), cuts
        )
        return weighted / mpmath.quad(lambda x: mpmath.sin(x) ** (d - 2), mpmath.linspace(0, mp.pi, 9))


# ---- multiplicities --------------------------------------------------------------------------------------------


@cache
def _multiplicity_forms() -> Formulas:
    return {"N": multiplicity_formula()}


def branched(d: int, degree: int) -> int:
    """N(d, degree) by branching: the harmonics of R^d restrict to those of R^(d-1) of every degree up to it."""
    if d == 2:
        return 1 if degree == 0 else 2
    return sum(branched(d - 1, k) for k in range(degree + 1))


def _by_branching(forms: Formulas, seed: int) -> Outcome:
    wrong = [
        (d, degree)
        for d in (2, 3, 4, 7)
        for degree in range(2, 8)
        if forms["N"].subs({D: d, ELL: degree}) != branched(d, degree)
    ]
    return Outcome(not wrong, f"24 multiplicities counted by branching; different at {wrong}")


register(
    Statement(
        id="multiplicity",
        statement="The harmonics of degree ell in R^d have dimension N(d, ell) = C(d+ell-1, ell) - C(d+ell-3, ell-2).",
        assumptions=("d >= 2", "ell >= 2 in this form"),
        source=SOURCE + "any text on spherical harmonics",
        formulas=_multiplicity_forms,
        evaluate=lambda degree, d: _evaluate_multiplicity(degree, d),
        latex=latex_of,
        checks=(Check("branching", "numeric", _by_branching),),
    )
)


def _evaluate_multiplicity(degree: int, d: int) -> Any:
    from sympy import Integer

    from ..symbolic.sphere import multiplicity

    return multiplicity(degree, Integer(d))


# ---- recurrence of the associated functions --------------------------------------------------------------------


@cache
def _recurrence_forms() -> Formulas:
    from ..symbolic.sphere import LAMBDA

    return {"beta^2": beta_squared_formula().subs(LAMBDA, (D - 2) / 2)}


def _by_moments(forms: Formulas, seed: int) -> Outcome:
    """beta_k^2 = |pi_k|^2/|pi_(k-1)|^2 of the monic polynomials, from Hankel determinants of exact moments."""
    import sympy

    pairs = []
    for d in (3, 5, 12):
        moments = [sympy.Integer(1)]
        for j in range(1, 9):
            # E t^(2j) = E t^(2j-2) (2j-1)/(d+2j-2), from the ratio of Gaussian moments E z^(2j) / E |x|^(2j)
            moments.append(moments[-1] * sympy.Rational(2 * j - 1, d + 2 * j - 2))

        for k in (1, 2, 3, 5):
            below = _hankel(moments, k - 1)
            expected = _hankel(moments, k + 1) * below / _hankel(moments, k) ** 2
            with mp.workdps(_DIGITS):
                pairs.append((number(forms["beta^2"], {D: d, K: k}), mpf(int(expected.p)) / int(expected.q)))
    return compare(pairs, "Hankel determinants of the moments")


def _hankel(moments: list[Any], size: int) -> Any:
    """det(E t^(i+j)), i, j < size; ``moments`` holds the even ones."""
    import sympy

    entries = [[0 if (i + j) % 2 else moments[(i + j) // 2] for j in range(size)] for i in range(size)]
    return sympy.Matrix(size, size, [e for row in entries for e in row]).det()


register(
    Statement(
        id="gegenbauer-recurrence",
        statement="Orthonormal zonal functions satisfy t q_k = beta_(k+1) q_(k+1) + beta_k q_(k-1) with this beta_k^2.",
        assumptions=("d >= 3, or k >= 2 (the value at d = 2, k = 1 is the limit 1/2)",),
        source=SOURCE + "generating function of the Gegenbauer polynomials",
        formulas=_recurrence_forms,
        evaluate=lambda k, d: number(_recurrence_forms()["beta^2"], {D: d, K: k}),
        latex=latex_of,
        checks=(Check("moments", "numeric", _by_moments),),
    )
)

# ---- Funk-Hecke and k0 -----------------------------------------------------------------------------------------


@cache
def _funk_hecke_forms() -> Formulas:
    return {"a_ell": relu_coefficient()}


def _coefficients_by_quadrature(forms: Formulas, seed: int) -> Outcome:
    pairs = [
        (number(forms["a_ell"], {D: d, ELL: ell}), zonal_mean("relu", ell, d))
        for d in (2, 3, 10)
        for ell in (0, 1, 2, 6)
    ]
    return compare(pairs, "E[relu(t) P_ell(t)] by quadrature in the polar angle")


register(
    Statement(
        id="funk-hecke-relu",
        statement="a_ell = E[relu(t) P_ell(t)] over the sphere; zero for odd ell >= 3.",
        assumptions=("t is a coordinate of a uniform point of the sphere in R^d",),
        source=SOURCE + "Bach 2017",
        formulas=_funk_hecke_forms,
        evaluate=lambda ell, d: number(_funk_hecke_forms()["a_ell"], {D: d, ELL: ell}),
        latex=latex_of,
        checks=(Check("quadrature", "numeric", _coefficients_by_quadrature),),
    )
)


@cache
def _iso_forms() -> Formulas:
    return {"lambda_ell": base_eigenvalue()}


def _k0_integrated(forms: Formulas, seed: int) -> Outcome:
    """The eigenvalue from k0 itself: A/(2 pi) E[(sin + (pi - theta) cos) P_ell(cos)], no Funk-Hecke coefficient."""
    pairs = []
    for d, ell, a in ((2, 0, 1), (2, 4, 3), (3, 1, 2), (3, 2, 1), (10, 0, 5), (10, 6, 1), (31, 2, 1)):
        with mp.workdps(_DIGITS):
            expected = a * zonal_mean("arc-cosine", ell, d) / (2 * mp.pi)
        pairs.append((number(forms["lambda_ell"], {D: d, ELL: ell, A: a}), expected))
    return compare(pairs, "k0 integrated against |x| P_ell")


register(
    Statement(
        id="iso",
        statement="Eigenfunctions of k0 for ReLU are |x| Y(x/|x|), Y a harmonic of degree ell, with eigenvalue A d a_ell^2.",
        assumptions=("x ~ N(0, I)", "Gamma = A I"),
        source=SOURCE + PAPER + ", eigenfunctions of T0",
        formulas=_iso_forms,
        evaluate=lambda ell, d, a=1: number(_iso_forms()["lambda_ell"], {D: d, ELL: ell, A: a}),
        latex=latex_of,
        checks=(Check("kernel integrated", "numeric", _k0_integrated),),
    )
)
