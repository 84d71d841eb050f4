"""The generalised hypergeometric function of exact parameters in Arb; 2F1 also by its own series."""

from __future__ import annotations

from typing import Any

import sympy
from flint import acb, arb, ctx

from .arb_functions import Op, cut_above, not_a_number, real_part

Ball = Any

_MAX_SERIES_TERMS = 20000


def hypergeometric(node: sympy.hyper, real: bool) -> Op:
    """The generalised hypergeometric function of exact parameters; 2F1 also by its own series."""
    ap, bq = tuple(node.ap), tuple(node.bq)
    p, q = len(ap), len(bq)
    flags = {}
    if (p, q) == (2, 1):
        a, b, c = ap[0], ap[1], bq[0]
        pairs = {"ab": a - b, "ac": a - c, "bc": b - c, "abc": a + b - c}
        flags = {name: difference.is_integer is True for name, difference in pairs.items()}

    def op(analytic: bool, *balls: Ball) -> Ball:
        upper, lower, z = list(balls[:p]), list(balls[p : p + q]), balls[-1]
        if analytic and p == q + 1 and cut_above(1)(acb(z)):
            return not_a_number()
        if (p, q) == (1, 1):
            return z.hypgeom_1f1(upper[0], lower[0])
        if (p, q) != (2, 1):
            return z.hypgeom(upper, lower)
        try:
            value = z.hypgeom_2f1(upper[0], upper[1], lower[0], **flags)
        except ValueError:
            value = type(z)(arb.nan())
        return value if value.is_finite() else _series_2f1(upper[0], upper[1], lower[0], z)

    return op


def _series_2f1(a: Ball, b: Ball, c: Ball, z: Ball) -> Ball:
    """2F1 by Gauss's series for |z| < 1, with a geometric bound of the tail.

    From term k on the ratio of successive terms is at most (1 + |a|/k)(1 + |b|/k) |z| / ((1 - |c|/k)^+ ...);
    for real c > 0 it is at most (k + |a|)(k + |b|) |z| / ((k + c)(k + 1)), a bound that is checked to
    stay below its limit by monotonicity of each factor.
    """
    size, c_real = z.abs_upper(), real_part(c)
    undefined = type(z)(arb.nan())
    if not size < 1 or not c_real > 0:
        return undefined
    total, term = type(z)(1), type(z)(1)
    tolerance = arb(2) ** (-ctx.prec)
    for k in range(_MAX_SERIES_TERMS):
        term = term * (a + k) * (b + k) / ((c + k) * (k + 1)) * z
        total = total + term
        if not term.abs_upper() < tolerance * total.abs_lower() and term.abs_upper() > 0:
            continue
        # each factor (j + |a|)/(j + c), (j + |b|)/(j + 1) moves monotonically to 1 as j grows
        j = k + 1
        first = ((abs(a) + j) / (c_real + j)).max(arb(1))
        second = ((abs(b) + j) / (1 + arb(j))).max(arb(1))
        ratio = (first * second * size).upper()
        if ratio < 1:
            tail = (term.abs_upper() * ratio / (1 - ratio)).upper()
            return total + (arb(0, tail) if isinstance(z, arb) else acb(arb(0, tail), arb(0, tail)))
    return undefined
