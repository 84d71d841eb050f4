"""Statement about dual activations: closed forms of one activation of each kind, against their definition."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import mpmath
from flint import arb, ctx
from mpmath import mp, mpf

from ..symbolic.dual import dual_formula
from ..symbolic.functions import make_function
from ..symbolic.symbols import QP, Q, T
from .kernel_common import SOURCE, as_mpf, compare, fraction, latex_of, laws, number
from .kernel_quadrature import polar, trapezoid
from .registry import Check, Formulas, Outcome, Statement, register

#: homogeneous functions, as Python sees them, with their degree
_HOMOGENEOUS: dict[str, tuple[Callable[[mpf], mpf], int]] = {
    "leaky_relu(1/10)": (lambda x: x if x > 0 else x / 10, 1),
    "max(z, 0)**2": (lambda x: x * x if x > 0 else mpf(0), 2),
    "sign": (mpmath.sign, 0),
}
#: entire functions in ball arithmetic
_ENTIRE: dict[str, Callable[[arb], arb]] = {
    "erf(z)": lambda x: x.erf(),
    "sin(z)": lambda x: x.sin(),
    "exp(z/2)": lambda x: (x / 2).exp(),
    "exp(-z**2)": lambda x: (-x * x).exp(),
    "he3": lambda x: x**3 - 3 * x,
    "gelu": lambda x: x * (-x / arb(2).sqrt()).erfc() / 2,
}


def _formulas() -> Formulas:
    forms = {}
    for text in (*_HOMOGENEOUS, *_ENTIRE):
        found = dual_formula(make_function(text, "activation"), budget=60)
        if found is None:
            raise ArithmeticError(f"no closed form for {text}")
        forms[text] = found
    return forms


@lru_cache(maxsize=256)
def _expected(text: str, q: Any, qp: Any, t: Any) -> mpf:
    if text in _HOMOGENEOUS:
        function, degree = _HOMOGENEOUS[text]
        return polar(function, function, 2 * degree, *map(as_mpf, (q, qp, t)))
    entire = _ENTIRE[text]
    old = ctx.prec
    ctx.prec = 180
    try:
        value = trapezoid(entire, entire, *(arb(v.numerator) / v.denominator for v in (q, qp, t)))
        man, exp = value.mid().man_exp()
    finally:
        ctx.prec = old
    with mp.workdps(50):
        return mpf(int(man)) * mpf(2) ** int(exp)


def _by_definition(forms: Formulas, seed: int) -> Outcome:
    pairs = []
    rng = random.Random(f"dual:{seed}")
    for text, formula in forms.items():
        a, b = fraction(rng, 0.3, 1), fraction(rng, 0.3, 1)
        moderate = (a * a, b * b, fraction(rng, -0.9, 0.9) * a * b)
        for q, qp, t in laws(seed, 3) if text in _HOMOGENEOUS else [moderate]:
            pairs.append((number(formula, {Q: q, QP: qp, T: t}), _expected(text, q, qp, t)))
    return compare(pairs, "E sigma(U) sigma(U') by polar coordinates or the trapezoidal rule")


def _value(activation: Any, q: Any, qp: Any, t: Any) -> Any:
    from ..numeric.dual import dual

    return dual(activation)(q, qp, t)


register(
    Statement(
        id="dual",
        statement="Closed forms of E sigma(U) sigma(U') for kinked, sigmoidal, oscillating, Gaussian and polynomial activations.",
        assumptions=("U, U' centred Gaussians of variances q, q' and covariance t, t^2 < q q'",),
        source=SOURCE + "for ReLU powers Cho and Saul 2009, for erf Williams 1997",
        formulas=cache(_formulas),
        evaluate=_value,
        latex=latex_of,
        checks=(Check("definition", "numeric", _by_definition),),
    )
)
