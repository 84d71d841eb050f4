"""SymPy expressions evaluated in Arb: rigorous balls for constants, callables for rigorous integration.

An expression becomes a tape of ball operations. Subtrees without variables are evaluated once per
precision. In the complex domain, functions with branch cuts return a non-finite ball when they are asked
to be analytic on a ball that touches a cut, which is what ``flint.acb.integral`` needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import sympy
from flint import acb, arb, ctx, fmpq, fmpz, fmpz_poly
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from ..errors import CertificationError
from . import arb_functions as functions
from .arb_hypergeometric import hypergeometric

#: what a symbol may stand for: a number, a SymPy constant, a ball, or a function from bits to a ball
Bindable = Any

Ball = Any  # arb or acb
Op = Callable[..., Ball]

#: precisions for which a tape keeps its constants
_PRECISIONS = 12
_RELATIONS = {Lt: -1, Le: -1, Gt: 1, Ge: 1, Eq: 0, Ne: 0}


def evaluate(expr: sympy.Expr, bits: int, values: Mapping[sympy.Symbol, Bindable] | None = None) -> arb:
    """An Arb ball that contains the real constant ``expr``, computed with ``bits`` of working precision.

    ``values`` binds symbols without SymPy's ``subs`` (which would expand huge factorials); each value is
    a number, a SymPy constant, a ball, or a function from bits to a ball. Raises
    :class:`~spikesym.errors.CertificationError` for a node that has no rigorous evaluation and for an
    expression that is not real. Cancellation widens the ball; the caller asks again with more bits.

    Examples
    --------
    >>> from sympy import Symbol, gamma, pi, sqrt
    >>> d = Symbol("d", positive=True, integer=True)
    >>> ratio = evaluate(gamma((d + 1) / 2) / gamma(d / 2), 120, {d: 10**9})
    >>> print(ratio.str(20, radius=False))
    22360.679769407727021
    >>> print(evaluate(sqrt(pi), 64).str(15, radius=False))
    1.77245385090552
    """
    old = ctx.prec
    ctx.prec = bits
    try:
        bound = dict(values or {})
        symbols, expr = tuple(bound), sympy.sympify(expr)
        arguments = [_ball_of(value) for value in bound.values()]
        try:
            result = _tape(expr, symbols, True).run(tuple(arguments), False)
        except functions.NeedsComplex:
            result = arb.nan()
        if isinstance(result, arb) and result.is_finite():
            return result
        value = acb(_tape(expr, symbols, False).run(tuple(acb(a) for a in arguments), False))
        if not value.imag.contains(0):
            raise CertificationError(f"not a real number: {expr}")
        return value.real
    finally:
        ctx.prec = old


def _ball_of(value: Bindable) -> arb:
    """The ball of a number that a symbol stands for, at the current precision."""
    if isinstance(value, sympy.Basic):
        return evaluate(value, ctx.prec)
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value(ctx.prec)) if callable(value) else arb(value)


@lru_cache(maxsize=512)
def _tape(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...], real: bool) -> _Tape:
    return _Tape(expr, symbols, real, strict=False)


def compile(expr: sympy.Expr, variables: Sequence[sympy.Symbol], real: bool = False) -> Compiled:
    """A callable on balls for ``expr`` as a function of ``variables``.

    In the complex domain (the default) the callable takes ``acb`` arguments and the keyword ``analytic``:
    when that is true and the function may fail to be analytic on the ball, the result is not finite.
    ``Abs``, ``Max``, ``sign``, ``Piecewise`` and the like of a variable are refused there: split at the
    break points first. With ``real=True`` the arguments are ``arb`` and all of these are enclosed.

    Examples
    --------
    >>> from sympy import Symbol, tanh
    >>> x = Symbol("x", real=True)
    >>> f = compile(tanh(x), (x,))
    >>> print(acb.integral(lambda t, analytic: f(t, analytic=analytic), 0, 1).real.str(12, radius=False))
    0.433780830483
    """
    return _compiled(sympy.sympify(expr), tuple(variables), real)


@lru_cache(maxsize=512)
def _compiled(expr: sympy.Expr, variables: tuple[sympy.Symbol, ...], real: bool) -> Compiled:
    return Compiled(expr, variables, real)


class Compiled:
    """A compiled expression; see :func:`compile`."""

    def __init__(self, expr: sympy.Expr, variables: tuple[sympy.Symbol, ...], real: bool) -> None:
        self.expr, self.variables, self.real = expr, variables, real
        self._tape = _Tape(expr, variables, real, strict=True)

    def __call__(self, *arguments: Ball, analytic: bool = False) -> Ball:
        """The ball of the expression over the balls ``arguments``, at the current precision."""
        kind = arb if self.real else acb
        return self._tape.run(tuple(a if isinstance(a, kind) else kind(a) for a in arguments), analytic)


class _Tape:
    """Straight-line program of ball operations; one register for each distinct subexpression.

    ``strict`` refuses functions of a complex variable that are not analytic.
    """

    def __init__(
        self, expr: sympy.Expr, variables: tuple[sympy.Symbol, ...], real: bool, strict: bool
    ) -> None:
        self.real, self.strict = real, strict
        self.size = len(variables)
        self.variables = frozenset(variables)
        self.index: dict[Any, int] = {v: i for i, v in enumerate(variables)}
        self.varying = [True] * self.size
        self.constants: list[tuple[int, Op, tuple[int, ...]]] = []
        self.program: list[tuple[int, Op, tuple[int, ...]]] = []
        self.cache: dict[int, list[Ball]] = {}
        self.result = self.add(expr)

    def run(self, arguments: tuple[Ball, ...], analytic: bool) -> Ball:
        registers = self.cache.get(ctx.prec)
        if registers is None:
            registers = [None] * self.size
            for target, op, sources in self.constants:
                registers[target] = op(False, *[registers[i] for i in sources])
            if len(self.cache) >= _PRECISIONS:
                self.cache.clear()
            self.cache[ctx.prec] = registers
        registers = registers.copy()
        registers[: len(arguments)] = arguments
        for target, op, sources in self.program:
            registers[target] = op(analytic, *[registers[i] for i in sources])
        return registers[self.result]

    def add(self, node: sympy.Basic) -> int:
        """The register of a subexpression, compiled on first sight."""
        if node in self.index:
            return self.index[node]
        op, parts = self._operation(node)
        sources = tuple(self.add(part) for part in parts)
        target = self.size
        self.size += 1
        varies = any(self.varying[i] for i in sources)
        self.varying.append(varies)
        (self.program if varies else self.constants).append((target, op, sources))
        self.index[node] = target
        return target

    def _operation(self, node: sympy.Basic) -> tuple[Op, Sequence[sympy.Basic]]:
        if isinstance(node, sympy.Symbol):
            raise CertificationError(f"no value for the symbol {node}")
        if leaf := _leaf(node, self.real):
            return leaf, ()
        if isinstance(node, sympy.Add):
            return _add, node.args
        if isinstance(node, sympy.Mul):
            return _mul, node.args
        if isinstance(node, sympy.Pow):
            return functions.power(node, self.real)
        if isinstance(node, sympy.Piecewise):
            self._refuse_if_varying_complex(node)
            return self._piecewise(node)
        if isinstance(node, sympy.hyper):
            return hypergeometric(node, self.real), (*node.ap, *node.bq, node.argument)
        name = type(node).__name__
        if name in ("HermiteProb", "hermite_prob") and node.args[0].is_Integer:
            return functions.hermite(int(node.args[0])), (node.args[1],)
        if name in functions.REAL_ONLY:
            self._refuse_if_varying_complex(node)
            return _on_real_parts(functions.REAL_ONLY[name]), node.args
        found = (functions.REAL if self.real else functions.COMPLEX).get((name, len(node.args)))
        if found is None:
            raise CertificationError(f"no rigorous evaluation of {name} in {str(node)[:80]}")
        return found, node.args

    def _refuse_if_varying_complex(self, node: sympy.Basic) -> None:
        if self.strict and not self.real and node.free_symbols & self.variables:
            name = type(node).__name__
            raise CertificationError(
                f"{name} is not analytic; split {str(node)[:80]} at its break points first"
            )

    def _piecewise(self, node: sympy.Piecewise) -> tuple[Op, Sequence[sympy.Basic]]:
        """Branches that may hold are united; one that certainly holds ends the search."""
        parts: list[sympy.Basic] = []
        branches = []
        for branch, condition in node.args:
            test, needs = _condition(condition)
            branches.append((len(parts), test, len(parts) + 1, len(needs)))
            parts += [branch, *needs]

        def op(analytic: bool, *registers: Ball) -> Ball:
            union = None
            for value, test, start, count in branches:
                holds = test(registers[start : start + count])
                if holds is not False:
                    here = registers[value]
                    union = here if union is None else union.union(here)
                if holds is True:
                    return union
            return _nan_like(registers[0])

        return op, parts


def _leaf(node: sympy.Basic, real: bool) -> Op | None:
    """The operation of a number that stands alone, or None."""
    kind = arb if real else acb
    if isinstance(node, sympy.Integer):
        number = fmpz(int(node))
        return lambda analytic: kind(number)
    if isinstance(node, sympy.Rational):
        fraction = fmpq(int(node.p), int(node.q))
        return lambda analytic: kind(fraction)
    if isinstance(node, sympy.Float):
        return lambda analytic: kind(functions.float_ball(node))
    if node is sympy.I:
        if real:
            raise functions.NeedsComplex
        return lambda analytic: acb(0, 1)
    if isinstance(node, sympy.CRootOf):
        return lambda analytic: kind(_real_root(node))
    if hasattr(node, "ball"):  # a root known by an enclosure of any precision
        return lambda analytic: kind(node.ball(ctx.prec))
    constant = functions.CONSTANTS.get(type(node).__name__)
    if constant is not None:
        return lambda analytic: kind(constant())
    if isinstance(node, sympy.Number | sympy.NumberSymbol) or node is sympy.zoo:
        raise CertificationError(f"no ball for {node}")
    return None


def _real_root(node: sympy.CRootOf) -> arb:
    """The real root of this index (SymPy counts real roots upwards, before the complex ones)."""
    coefficients = [fmpz(int(c)) for c in reversed(node.poly.all_coeffs())]
    roots = fmpz_poly(coefficients).complex_roots()
    real = sorted((r.real for r, _ in roots if r.imag == 0), key=lambda r: float(r.mid()))
    if node.index >= len(real) or any(not a < b for a, b in pairwise(real)):
        raise CertificationError(f"not a separated real root: {node}")
    return real[node.index]


def _condition(condition: sympy.Basic) -> tuple[Callable[[Sequence[Ball]], bool | None], list[sympy.Basic]]:
    """A three-valued test on balls (True, False, None for undecided) and the expressions that it needs."""
    if isinstance(condition, BooleanTrue | BooleanFalse):
        truth = bool(condition)
        return (lambda balls: truth), []
    if isinstance(condition, And | Or | Not):
        parts = [_condition(c) for c in condition.args]
        needs = [e for _, es in parts for e in es]
        cuts = [0]
        for _, es in parts:
            cuts.append(cuts[-1] + len(es))
        decisive = isinstance(condition, Or)

        def combine(balls: Sequence[Ball]) -> bool | None:
            results = [t(balls[cuts[i] : cuts[i + 1]]) for i, (t, _) in enumerate(parts)]
            if isinstance(condition, Not):
                return None if results[0] is None else not results[0]
            if decisive in results:
                return decisive
            return None if None in results else not decisive

        return combine, needs
    if type(condition) not in _RELATIONS:
        raise CertificationError(f"cannot decide the condition {condition}")
    difference = condition.lhs - condition.rhs

    def test(balls: Sequence[Ball]) -> bool | None:
        value = functions.real_part(balls[0])
        if isinstance(condition, Eq | Ne):
            if value == 0:
                return isinstance(condition, Eq)
            return None if not value.is_finite() or value.contains(0) else isinstance(condition, Ne)
        value = value * _RELATIONS[type(condition)]
        strict = isinstance(condition, Lt | Gt)
        if (value > 0) if strict else (value >= 0):
            return True
        if (value <= 0) if strict else (value < 0):
            return False
        return None

    return test, [difference]


def _add(analytic: bool, *terms: Ball) -> Ball:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _mul(analytic: bool, *terms: Ball) -> Ball:
    product = terms[0]
    for term in terms[1:]:
        product = product * term
    return product


def _on_real_parts(op: Callable[..., arb]) -> Op:
    def wrapped(analytic: bool, *balls: Ball) -> Ball:
        kind = type(balls[0])
        return kind(op(*[functions.real_part(b) for b in balls]))

    return wrapped


def _nan_like(ball: Ball) -> Ball:
    return arb.nan() if isinstance(ball, arb) else acb(arb.nan(), arb.nan())
