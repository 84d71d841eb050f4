"""Hermite coefficients of several functions at many scales at once, by one composite Gauss-Legendre rule (no proof).

Used where an outer quadrature is not certified either; the accuracy is judged by the caller from two rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import sympy
from flint import arb, arb_mat, ctx

from ..symbolic.symbols import X
from .arb_eval import compile
from .quadrature import end_ball


@lru_cache(maxsize=16)
def _rule(order: int, bits: int) -> tuple[tuple[arb, arb], ...]:
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return tuple(arb.legendre_p_root(order, k, weight=True) for k in range(order))


def sampled_moments(
    function: Any,
    of_expr: Mapping[str, Callable[[sympy.Expr], sympy.Expr]],
    norms: Sequence[tuple[arb, Any]],
    count: int,
    bits: int,
    order: int,
) -> dict[str, list[tuple[arb, ...]]]:
    """E[F(nu z) He_k(z)] for k < count: by function name, then by norm.

    Parameters
    ----------
    function : ScalarFunction
        With finitely many break points in any bounded interval.
    of_expr : mapping
        Names, and maps from the expression of the function to that of F.
    norms : sequence of (ball, exact)
        Scales nu.
    count, bits, order : int
        Number of coefficients, working precision, nodes per panel of width one.
    """
    old = ctx.prec
    ctx.prec = bits + 40
    try:
        radius = math.ceil(math.sqrt(2 * bits * math.log(2) + 4 * count)) + 1
        found: dict[str, list[tuple[arb, ...]]] = {name: [] for name in of_expr}
        scale = [arb(math.factorial(k)).sqrt() for k in range(count)]
        known: tuple[Any, ...] | None = None
        for norm, _ in norms:
            if known is None or len(known[3]) > 1:
                # without break points the panels do not depend on the norm
                nodes, weights, owners, pieces = _panels(function, norm, radius, order)
                known = (nodes, weights, owners, pieces, _hermite_table(nodes, weights, count))
            nodes, _, owners, pieces, table = known
            compiled = [{n: compile(f(p.expr), (X,), real=True) for n, f in of_expr.items()} for p in pieces]
            for name in of_expr:
                values = [compiled[o][name](norm * z) for z, o in zip(nodes, owners, strict=True)]
                product = arb_mat([[v.mid() for v in values]]) * table
                found[name].append(tuple((product[0, k] * scale[k]).mid() for k in range(count)))
        return found
    finally:
        ctx.prec = old


def _panels(
    function: Any, norm: arb, radius: int, order: int
) -> tuple[list[arb], list[arb], list[int], list[Any]]:
    """Nodes, weights times the Gaussian density, and the piece that each node lies in."""
    pieces = list(function.pieces(float((norm * radius).upper()) + 1e-9))
    rule = _rule(order, ctx.prec)
    nodes, weights, owners = [], [], []
    root = (2 * arb.pi()).sqrt()
    for index, piece in enumerate(pieces):
        low = (end_ball(piece.lower, -1e9) / norm).max(arb(-radius))
        high = (end_ball(piece.upper, 1e9) / norm).min(arb(radius))
        if not low < high:
            continue
        parts = max(1, math.ceil(float(high - low)))
        for part in range(parts):
            a, b = low + (high - low) * part / parts, low + (high - low) * (part + 1) / parts
            for x, w in rule:
                z = ((a + b) / 2 + (b - a) / 2 * x).mid()
                nodes.append(z)
                weights.append((w * (b - a) / 2 * (-z * z / 2).exp() / root).mid())
                owners.append(index)
    return nodes, weights, owners, pieces


def _hermite_table(nodes: list[arb], weights: list[arb], count: int) -> arb_mat:
    """weight * He_k(z)/sqrt(k!), one row per node."""
    rows = []
    roots = [arb(k).sqrt().mid() for k in range(count)]
    inverse = [arb(1), *((1 / arb(k).sqrt()).mid() for k in range(1, count))]
    for z, w in zip(nodes, weights, strict=True):
        row = [w, (w * z).mid()]
        for k in range(1, count - 1):
            # orthonormal: sqrt(k + 1) h_{k+1} = z h_k - sqrt(k) h_{k-1}, which keeps its accuracy
            row.append(((z * row[k] - roots[k] * row[k - 1]) * inverse[k + 1]).mid())
        rows.append(row[:count])
    return arb_mat(rows)
