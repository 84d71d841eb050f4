"""Statements about eigenvalue shifts and mixing: first order of every level, second order of the top, large d.

They are derived by perturbation theory with symbolic d. The checks take the certified eigenvalues of the exact
blocks at small b (or large d) and extrapolate: nothing of the perturbation series is used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

from flint import arb, ctx
from mpmath import mp, mpf

from ..numeric.spectrum import Chain, solve_chain
from ..symbolic.perturbation import first_order_formula, top_second_order
from ..symbolic.spectrum import large_d_ratio
from ..symbolic.sphere import SECTOR
from ..symbolic.symbols import ELL, D, b
from .kernel_common import PAPER, compare, latex_of, number
from .registry import Check, Formulas, Outcome, Statement, register
from .spectrum_blocks import as_mpf
from .spectrum_sphere import SOURCE

_LAW = "x ~ N(0, I)", "Gamma = A I + B w* w*^T, b = B/A", "ReLU"
_DIGITS = 60


@lru_cache(maxsize=64)
def _chain(d: int, sector: int, power: int, degrees: int) -> Chain:
    """Exact spectrum at b = 10^power."""
    with ctx.workprec(400):
        return solve_chain(d, sector, lambda bits: arb(10) ** power, degrees, _DIGITS)


def _ratio(d: int, sector: int, degree: int, power: int) -> mpf:
    with ctx.workprec(400), mp.workdps(80):
        chain = _chain(d, sector, power, 6)
        k = chain.degrees.index(degree)
        man, exp = (chain.values[k] / chain.base[k]).mid().man_exp()
        return mpf(int(man)) * mpf(2) ** int(exp)


def _limit(value: Callable[[int], mpf], power: int) -> mpf:
    """lim b -> 0 of a function of b that is smooth there, from b = 10^power and 10^(power-1), error O(b^2)."""
    with mp.workdps(80):
        return (10 * value(power - 1) - value(power)) / 9


# ---- first order -----------------------------------------------------------------------------------------------


@cache
def _first_forms() -> Formulas:
    return {"shift": first_order_formula()}


def _first_by_differences(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    for d, sector, degree in ((3, 0, 0), (7, 0, 2), (50, 0, 4), (50, 1, 2), (11, 2, 4), (10**6, 0, 2)):

        def slope(power: int, d: int = d, sector: int = sector, degree: int = degree) -> mpf:
            return (_ratio(d, sector, degree, power) - 1) / mpf(10) ** power

        expected = _limit(slope, -12)
        pairs.append((number(forms["shift"], {D: d, ELL: degree, SECTOR: sector}), expected))
    return compare(pairs, "exact eigenvalues at b = 1e-12 and 1e-13", digits=15)


register(
    Statement(
        id="first-order-all",
        statement="Every eigenvalue shifts by b [(d+2)/2 (beta_r^2 + beta_(r+1)^2) - 1/2] to first order, r = ell - l.",
        assumptions=_LAW,
        source=SOURCE + "first-order perturbation of the blocks",
        formulas=_first_forms,
        evaluate=lambda d, degree, sector: number(
            _first_forms()["shift"], {D: d, ELL: degree, SECTOR: sector}
        ),
        latex=latex_of,
        checks=(Check("exact eigenvalues at small b", "numeric", _first_by_differences),),
    )
)

# ---- the top eigenvalue and its eigenfunction ------------------------------------------------------------------


@cache
def _top_forms() -> Formulas:
    return dict(top_second_order())


def _top_by_differences(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    for d in (3, 20, 10**6):

        def first(power: int, d: int = d) -> mpf:
            return (_ratio(d, 0, 0, power) - 1) / mpf(10) ** power

        def second(power: int, d: int = d) -> mpf:
            # the slope of the slope: the exact first order is not used
            return 2 * (first(power) - first(power - 1)) / (mpf(10) ** power - mpf(10) ** (power - 1)) / 2

        def mixing(power: int, d: int = d) -> mpf:
            with ctx.workprec(400):
                weights = _chain(d, 0, power, 6).weights[0]
                size = (weights[2] / weights[0]).sqrt()
            return as_mpf(size) / mpf(10) ** power

        at = {D: d}
        with mp.workdps(80):
            pairs.append((number(forms["c_1"], at), _limit(first, -12)))
            pairs.append((number(forms["c_2"], at), second(-12)))
            pairs.append((number(forms["mixing"], at), mixing(-14)))
    return compare(pairs, "exact eigenpairs at small b", digits=10)


register(
    Statement(
        id="top",
        statement="lambda_0(b)/lambda_0(0) = 1 + b/d + b^2 (d-1)/(2 d^3) + O(b^3); its eigenfunction has b times this mixing of Y_2.",
        assumptions=_LAW,
        source=SOURCE + PAPER + ", top eigenfunction",
        formulas=_top_forms,
        evaluate=lambda d: {name: number(v, {D: d}) for name, v in _top_forms().items()},
        latex=latex_of,
        checks=(Check("exact eigenpairs at small b", "numeric", _top_by_differences),),
    )
)

# ---- large d ---------------------------------------------------------------------------------------------------


@cache
def _large_forms() -> Formulas:
    return {"ratio": large_d_ratio()}


def _large_by_extrapolation(forms: Formulas, seed: int) -> Outcome:
    """Exact ratios at b = 1 and d = 10^8, 10^9, extrapolated in 1/d, error O(1/d^2)."""
    pairs = []
    for sector, degree in ((0, 2), (0, 4), (1, 2), (2, 4)):
        with mp.workdps(80):
            limit = (10 * _ratio(10**9, sector, degree, 0) - _ratio(10**8, sector, degree, 0)) / 9
        pairs.append((number(forms["ratio"], {ELL: degree, SECTOR: sector, b: 1}), limit))
    return compare(pairs, "exact eigenvalues at d = 1e8 and 1e9", digits=11)


register(
    Statement(
        id="large-d",
        statement="As d grows at fixed b, lambda_(ell,l)(b)/lambda_ell(0) tends to (1+b)^(ell-l).",
        assumptions=(*_LAW, "b fixed, d -> infinity"),
        source=SOURCE + "pivots of the Gram matrix in the Hermite basis",
        formulas=_large_forms,
        evaluate=lambda degree, sector, strength: (1 + strength) ** (degree - sector),
        latex=latex_of,
        checks=(Check("extrapolation in 1/d", "numeric", _large_by_extrapolation),),
    )
)
