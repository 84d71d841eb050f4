"""A and B expanded in 1/d, for every link and activation: the leading formulas, their corrections, the phases in zeta.

The means of the second moment are Hermite series in rho whose coefficients are analytic in the squared norm
nu^2 = 1 + x. With E rho^2k = O(d^-k) and E x^r = O(d^-ceil(r/2)) only finitely many terms reach a given order.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy.polys.rings import PolyElement, PolyRing

from .covariance_series import Profile, as_series, coefficient
from .covariance_steps import FULL, MOMENTS, NU2, rotated, second_moment
from .means import COMPANION, NU, DirectionMean, NormMean, direction_moment, norm_moment
from .symbols import ALPHA, BETA, ETA, ETA0, KAPPA4, RHO, TAU2, VARSIGMA, ZETA, D, M, N

#: 1/d
EPSILON = sympy.Symbol("epsilon", positive=True)
_X1, _X2, _V1, _V2, _C = sympy.symbols("x_1 x_2 v_1 v_2 c_rho")
_GRADED = (RHO, _X1, _X2)
_ROOTS = {NU: _V1, NU2: _V2, COMPANION: _C}


@lru_cache(maxsize=512)
def _series(kind: str, k: int, order: int, init: str = "gaussian") -> sympy.Expr:
    """E rho^2k, or E x^k of x = nu^2 - 1, as a polynomial in 1/d."""
    if kind == "direction":
        exact = direction_moment(k, 1 / EPSILON)
    else:
        exact = sympy.Add(
            *[
                sympy.binomial(k, i) * (-1) ** (k - i) * norm_moment(i, 1 / EPSILON, init)
                for i in range(k + 1)
            ]
        )
    exact = sympy.cancel(sympy.expand_func(exact))
    return sympy.series(exact, EPSILON, 0, order + 1).removeO() if order >= 0 else sympy.Integer(0)


class _Graded:
    """Polynomials in rho, x_1, x_2 and coefficient symbols, cut at a weight (2 of rho or x are one order of 1/d)."""

    def __init__(self, symbols: list[sympy.Symbol], weight: int) -> None:
        self.ring = PolyRing([*_GRADED, _V1, _V2, _C, EPSILON, *symbols], sympy.QQ, sympy.lex)
        self.weight = weight
        self.generators = dict(zip(self.ring.symbols, self.ring.gens, strict=True))

    def cut(self, element: PolyElement) -> PolyElement:
        return self.ring.from_dict({k: c for k, c in element.items() if k[0] + k[1] + k[2] <= self.weight})

    def convert(self, expr: sympy.Expr) -> PolyElement:
        """An expression built with +, *, integer powers from generators and rationals."""
        if expr in _ROOTS:
            return self.generators[_ROOTS[expr]]
        if expr.is_Rational:
            return self.ring(sympy.QQ(expr.p, expr.q))
        if expr.is_Symbol:
            return self.generators[expr]
        if expr.is_Add:
            return sum((self.convert(a) for a in expr.args), self.ring(0))
        if expr.is_Mul:
            result = self.ring(1)
            for a in expr.args:
                result = self.cut(result * self.convert(a))
            return result
        if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
            base, result = self.convert(expr.base), self.ring(1)
            for _ in range(int(expr.exp)):
                result = self.cut(result * base)
            return result
        if expr.is_Pow and expr.base == 1 - RHO**2:
            return self.convert(COMPANION) ** int(2 * expr.exp)
        raise ValueError(f"not a polynomial: {expr}")

    def finish(self, element: PolyElement, init: str) -> PolyElement:
        """Replace nu^2 = 1 + x, (1 - rho^2) and average over rho, x_1, x_2."""
        order = self.weight // 2
        total = self.ring(0)
        for exponents, c in element.items():
            rho, x1, x2, v1, v2, companion = exponents[:6]
            if rho % 2:
                continue
            rest = self.ring.from_dict({(0,) * 6 + exponents[6:]: c})
            mean = self.ring(0)
            for i in range(companion // 2 + 1):
                mean += self._moment("direction", rho // 2 + i, order) * (
                    int(sympy.binomial(companion // 2, i)) * (-1) ** i
                )
            for power, root in ((x1, v1), (x2, v2)):
                if root % 2:
                    raise ValueError("odd power of the norm")
                mean *= sum(
                    (
                        self._moment("norm", power + i, order, init) * int(sympy.binomial(root // 2, i))
                        for i in range(root // 2 + 1)
                    ),
                    self.ring(0),
                )
            total += rest * mean
        return self.ring.from_dict({k: c for k, c in total.items() if k[6] <= order})

    def _moment(self, kind: str, k: int, order: int, init: str = "gaussian") -> PolyElement:
        return self.convert(sympy.expand(_series(kind, k, order, init)))


def _taylor(weight: int) -> Any:
    shift = {NU: _X1, NU2: _X2}

    def expand(family: sympy.Symbol, k: sympy.Integer, norm: sympy.Symbol) -> sympy.Expr:
        # dh_k/d(nu^2) = h_{k+2}/2
        terms = [
            coefficient(family.name, int(k) + 2 * r) * shift[norm] ** r / (2**r * sympy.factorial(r))
            for r in range(weight + 1)
        ]
        return sympy.Add(*terms)

    return expand


@lru_cache(maxsize=128)
def moment_expansion(name: str, along: bool, order: int, init: str) -> sympy.Expr:
    """A mean of :data:`~.covariance_steps.MOMENTS` as a polynomial in 1/d, to O(d^-order) included.

    Examples
    --------
    >>> moment_expansion("labels_two", False, 1, "gaussian")
    c_0**2*epsilon*mu_2**2
    """
    if order < 0:
        return sympy.Integer(0)
    if name == "initial":
        return EPSILON
    # d also stands inside some means (d - 1 or d - 2 coordinates of the data): one more order is needed there
    inside = order + int(
        name in ("labels_one", "own_one", "others_one") and not (along and name == "labels_one")
    )
    weight = 2 * inside
    prefactor, node = rotated(name, along).as_independent(NormMean, as_Add=False)
    series = as_series(node, weight)
    body = series.integrand.integrand if isinstance(series.integrand, DirectionMean) else series.integrand
    body = body.replace(Profile, _taylor(0 if init == "sphere" else weight))
    symbols = sorted(body.free_symbols - {RHO, NU, NU2, _X1, _X2}, key=str)
    graded = _Graded(symbols, weight)
    mean = graded.finish(graded.convert(body), init).as_expr().subs(D, 1 / EPSILON)
    factor = sympy.series(sympy.cancel(prefactor.subs(D, 1 / EPSILON)), EPSILON, 0, order + 3).removeO()
    return _cut(sympy.expand(factor * mean), order)


def _cut(expr: sympy.Expr, order: int) -> sympy.Expr:
    terms = sympy.Poly(expr, EPSILON, 1 / EPSILON).as_expr() if expr.has(1 / EPSILON) else expr
    return sympy.Add(
        *[t for t in sympy.Add.make_args(sympy.expand(terms)) if sympy.degree(t, EPSILON) <= order]
    )


#: by how many orders of 1/d each mean may be cut earlier, in A, relative to its leading correction
_LATER_A = {
    "cross": -1,
    "labels_one": 0,
    "labels_two": -1,
    "own_one": 2,
    "own_two": 1,
    "others_one": 1,
    "others_two": 0,
}


def _scaled(expr: sympy.Expr) -> sympy.Expr:
    """Put n = alpha d, m = beta d, eta = eta_0 d^zeta."""
    return sympy.expand(expr.subs({N: ALPHA * D, M: BETA * D, ETA: ETA0 * D**ZETA, EPSILON: 1 / D}))


@lru_cache(maxsize=32)
def expansion(order: int, init: str, full: bool) -> dict[str, dict[sympy.Expr, sympy.Expr]]:
    """A - 1 and B as sums of coefficient * d^exponent, by exponent (an expression in zeta), to ``order`` orders each.

    Returns ``{"A": {exponent: coefficient}, "B": {...}}``; B starts at d^(2 zeta - 1), A - 1 at d^(2 zeta - 2) and, for
    the full residual, also at d^(zeta - 2).

    Examples
    --------
    >>> leading = expansion(0, "gaussian", False)
    >>> leading["B"]
    {2*zeta - 1: c_1**2*eta_0**2*mu_1**2*varsigma**2/beta**2}
    """
    switch = {FULL: sympy.Integer(int(full))}
    across = second_moment().subs(switch)
    across = across.subs(
        {
            s: moment_expansion(k, "labels" not in k, order - _LATER_A.get(k, 0), init)
            for k, s in MOMENTS.items()
            if across.has(s)
        }
    )
    both = {
        along: second_moment().subs({FULL: 0}).subs(
            {
                s: moment_expansion(k, along, order - int(k == "labels_one"), init) if "labels" in k else 0
                for k, s in MOMENTS.items()
            }
        )
        for along in (True, False)
    }  # fmt: skip
    return {
        "A": _by_exponent(_scaled(across - 1), {2 * ZETA - 2: order, ZETA - 2: order}),
        "B": _by_exponent(_scaled(both[True] - both[False]), {2 * ZETA - 1: order}),
    }


def _by_exponent(expr: sympy.Expr, families: dict[sympy.Expr, int]) -> dict[sympy.Expr, sympy.Expr]:
    """Sort terms by the power of d; keep those within ``order`` orders of the head of their family."""
    found: dict[sympy.Expr, sympy.Expr] = {}
    for term in sympy.Add.make_args(expr):
        rest, power = term.as_independent(D, as_Add=False)
        exponent = sympy.expand(
            sympy.Add(*[f.as_base_exp()[1] for f in sympy.Mul.make_args(power) if f != 1])
        )
        if any(
            (head - exponent).is_Integer and 0 <= head - exponent <= order for head, order in families.items()
        ):
            found[exponent] = found.get(exponent, sympy.Integer(0)) + rest
    ordered = sorted(found, key=lambda e: (-e.coeff(ZETA), -e.subs(ZETA, 0)))
    return {e: _grouped(found[e]) for e in ordered if sympy.expand(found[e]) != 0}


def _grouped(expr: sympy.Expr) -> sympy.Expr:
    """Collect by alpha, beta and the scales of step and readout, with what all terms share in front."""
    scales = (ETA0, VARSIGMA, BETA, ALPHA, KAPPA4, TAU2)
    found: dict[sympy.Expr, list[sympy.Expr]] = {}
    for term in sympy.Add.make_args(sympy.expand(expr)):
        inside, outside = term.as_independent(*scales, as_Add=False)
        found.setdefault(outside, []).append(inside)
    return sympy.factor_terms(sympy.Add(*[outside * sympy.Add(*inside) for outside, inside in found.items()]))


@lru_cache(maxsize=2)
def leading_formulas() -> dict[str, sympy.Expr]:
    """A and B to leading order in their own d, n, m, for every link and activation.

    Examples
    --------
    >>> leading_formulas()["B"]
    c_1**2*d*eta**2*mu_1**2*varsigma**2/m**2
    """
    first = expansion(0, "gaussian", False)
    back = {ALPHA: N / D, BETA: M / D}
    result = {}
    for name, head in (("A", 2 * ZETA - 2), ("B", 2 * ZETA - 1)):
        scale = VARSIGMA**2 * ETA**2 / M**2
        power = D ** (head - 2 * ZETA)
        bracket = sympy.expand((first[name][head] * power * ETA**2 / ETA0**2).subs(back) / scale)
        # the two parts of A: one sample (with 1/n) and the mean of the link
        parts = sympy.collect(bracket, 1 / N, evaluate=False)
        result[name] = scale * sympy.Add(*[sympy.factor(c) * k for k, c in parts.items()])
    return {"A": 1 + result["A"], "B": result["B"]}
