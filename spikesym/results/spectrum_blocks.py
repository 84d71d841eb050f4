"""Statements about the exact blocks of k1: entries linear in B, the linear eigenspace, an entry with a 2F1."""

from __future__ import annotations

from functools import cache
from typing import Any

from flint import arb, ctx, fmpq
from mpmath import mp, mpf
from sympy import Expr

from ..numeric.arb_eval import evaluate
from ..symbolic.spectrum import block_entry, linear_eigenvalues, top_block
from ..symbolic.symbols import A, B, D, b
from .kernel_common import PAPER, compare, latex_of, number
from .registry import Check, Formulas, Outcome, Statement, register
from .spectrum_sphere import SOURCE

_LAW = "x ~ N(0, I)", "Gamma = A I + B w* w*^T with A > 0, B >= 0", "ReLU"


def as_mpf(ball: arb) -> mpf:
    """Midpoint of a ball at 45 digits."""
    with mp.workdps(45):
        man, exp = ball.mid().man_exp()
        return mpf(int(man)) * mpf(2) ** int(exp)


# ---- linear eigenspace -----------------------------------------------------------------------------------------


@cache
def _linear_forms() -> Formulas:
    return dict(linear_eigenvalues())


def _operator_applied(forms: Formulas, seed: int) -> Outcome:
    """T applied to <x, w*> and to a linear function orthogonal to it, by direct integration of k1."""
    from ..numeric.direct import action, profile

    pairs = []
    for d, a, spike in ((3, 2, 5), (5, 3, 7)):
        with ctx.workprec(150):
            t = arb(fmpq(3, 10))
            across = profile(d, 1, 1)
            star = action(d, arb(a), arb(spike), t, lambda t: t, 0, (44, 28)) / t
            perp = action(d, arb(a), arb(spike), t, across, 1, (44, 28)) / across(t)
        at = {D: d, A: a, B: spike}
        pairs += [
            (number(forms["psi_star"], at), as_mpf(star)),
            (number(forms["psi_perp"], at), as_mpf(perp)),
        ]
    return compare(pairs, "k1 integrated against linear functions", digits=25)


register(
    Statement(
        id="linear",
        statement="Linear functions stay eigenfunctions to all orders in B: (A+B)/(4d) along w*, A/(4d) orthogonal to it.",
        assumptions=_LAW,
        source=SOURCE + PAPER + ", linear eigenfunctions",
        formulas=_linear_forms,
        evaluate=lambda d, a, spike: {
            k: number(v, {D: d, A: a, B: spike}) for k, v in _linear_forms().items()
        },
        latex=latex_of,
        checks=(Check("kernel integrated", "numeric", _operator_applied),),
    )
)

# ---- the top of the zonal block --------------------------------------------------------------------------------


@cache
def _top_forms() -> Formulas:
    return dict(top_block())


def _gaussian_moments(forms: Formulas, seed: int) -> Outcome:
    """E |w|^2 q q' with q_0 = 1, q_1 and q_2 polynomials in w_1 and |w|: second moments of w ~ N(0, Gamma) suffice."""
    pairs = []
    for d, a, spike in ((2, 1, 3), (7, 2, 5), (1000, 3, 11)):
        along, norm = mpf(a + spike), mpf(a * d + spike)
        with mp.workdps(45):
            # q_2 = (d t^2 - 1)/c with c^2 = E (d t^2 - 1)^2 = 3 d/(d+2) - 1
            c = mp.sqrt(mpf(3 * d) / (d + 2) - 1)
            expected = {"G_00": norm, "G_11": d * along, "G_02": (d * along - norm) / c}
        pairs += [(number(forms[k], {D: d, A: a, B: spike}), v) for k, v in expected.items()]
    return compare(pairs, "moments of N(0, Gamma)")


register(
    Statement(
        id="top-block",
        statement="The entries G_00, G_02 and G_11 of the zonal Gram matrix are exactly linear in B.",
        assumptions=_LAW,
        source=SOURCE + "Gram form of the blocks, Pfaff's transformation",
        formulas=_top_forms,
        evaluate=lambda d, a, spike: {k: number(v, {D: d, A: a, B: spike}) for k, v in _top_forms().items()},
        latex=latex_of,
        checks=(Check("second moments", "numeric", _gaussian_moments),),
    )
)

# ---- entries of the blocks -------------------------------------------------------------------------------------

_ENTRIES = {"M_00": (0, 0, 0), "M_02": (0, 2, 0), "M_22": (2, 2, 0), "M_22, sector 1": (2, 2, 1)}


@cache
def _entry_forms() -> Formulas:
    return {name: block_entry(*where) for name, where in _ENTRIES.items()}


def _entries_integrated(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    for name, (degree, other, sector) in _ENTRIES.items():
        for d in (3,) if sector == 0 else (4,):
            expected = _integrated(d, degree, other, sector)
            pairs.append((_entry(forms[name], d), expected))
    return compare(pairs, "the triple integral of k1", digits=16)


@cache
def _integrated(d: int, degree: int, other: int, sector: int) -> Any:
    from ..numeric.direct import matrix_element, profile

    with ctx.workprec(90):
        left, right = profile(d, sector, degree), profile(d, sector, other)
        return as_mpf(matrix_element(d, arb(2), arb(1), left, right, sector, (20, 30, 20)))


def _entry(expr: Expr, d: int) -> mpf:
    from sympy import Integer, Rational

    return as_mpf(evaluate(expr.subs({D: Integer(d), A: Integer(2), b: Rational(1, 2)}), 200))


register(
    Statement(
        id="blocks",
        statement="In each sector T is the matrix M = a_ell a_ell' G with G = E_w[|w|^2 q_ell q_ell'], w ~ N(0, Gamma): 2F1's.",
        assumptions=_LAW,
        source=SOURCE + "Funk-Hecke and Euler's integral",
        formulas=_entry_forms,
        evaluate=lambda name, d: _entry(_entry_forms()[name], d),
        latex=latex_of,
        checks=(Check("triple integral", "numeric", _entries_integrated),),
    )
)
