"""Expressions compiled to NumPy: vectorised, of the input's shape and float type, without NaN far out.

Where the plain evaluation overflows (``exp`` at 800 inside a quotient), those entries are evaluated again
in scaled arithmetic, where each number is a mantissa times the exponential of a float.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sympy
from scipy import special
from sympy.core.relational import Ge, Gt, Le, Lt
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from ..errors import InputError
from .hermite_series import MAX_DEGREE, MIN_DEGREE, orthonormal_hermite, well_conditioned_series
from .scaled import ScaledEvaluator
from .symbols import X
from .vocabulary import HermiteProb

Array = Any
Function = Callable[[Any], Any]

_CHUNK = 1 << 15

UNARY: dict[type, Function] = {
    sympy.sin: np.sin,
    sympy.cos: np.cos,
    sympy.tan: np.tan,
    sympy.sinh: np.sinh,
    sympy.cosh: np.cosh,
    sympy.tanh: np.tanh,
    sympy.sech: lambda u: 1 / np.cosh(u),
    sympy.csch: lambda u: 1 / np.sinh(u),
    sympy.coth: lambda u: 1 / np.tanh(u),
    sympy.cot: lambda u: 1 / np.tan(u),
    sympy.sec: lambda u: 1 / np.cos(u),
    sympy.csc: lambda u: 1 / np.sin(u),
    sympy.exp: np.exp,
    sympy.log: np.log,
    sympy.erf: special.erf,
    sympy.erfc: special.erfc,
    sympy.atan: np.arctan,
    sympy.asin: np.arcsin,
    sympy.acos: np.arccos,
    sympy.asinh: np.arcsinh,
    sympy.Abs: np.abs,
    sympy.sign: np.sign,
}

_COMPARE: dict[type, Callable[[Array, Array], Array]] = {
    Lt: np.less,
    Le: np.less_equal,
    Gt: np.greater,
    Ge: np.greater_equal,
}


def compile_numpy(expr: sympy.Expr) -> Function:
    """A vectorised NumPy function for an expression in ``X`` without other symbols.

    The result has the shape of the argument and its float type (integers become float64); a float for a
    float. Constants keep the shape. Branches of a ``Piecewise`` are evaluated only where they hold.

    Raises :class:`~spikesym.errors.InputError` for free parameters and for functions without NumPy form.

    Examples
    --------
    >>> swish = compile_numpy(X / (1 + sympy.exp(-X)))
    >>> swish(np.array([-800.0, 0.0, 800.0]))
    array([ -0.,   0., 800.])
    >>> compile_numpy(sympy.Integer(2))(np.zeros((2, 1), np.float32))
    array([[2.],
           [2.]], dtype=float32)
    """
    free = sorted(str(v) for v in expr.free_symbols - {X})
    if free:
        raise InputError(
            f"no numbers with free parameters {', '.join(free)}",
            str(expr)[:60],
            "give them by --set NAME=VALUE",
        )
    return _Compiled(expr)


class _Compiled:
    """The compiled function; picklable, because it is rebuilt from its expression."""

    def __init__(self, expr: sympy.Expr) -> None:
        self.expr = expr
        counts = Counter(node for node in sympy.preorder_traversal(expr) if node.args)
        self._shared = {node for node, n in counts.items() if n > 1}
        self._plain = self._build(expr)
        self._scaled: ScaledEvaluator | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_numpy, (self.expr,)

    def __call__(self, x: Any) -> Any:
        array = np.asarray(x)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64)
        flat = array.reshape(-1)
        result = np.empty(flat.shape, array.dtype)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _CHUNK):
                part = slice(start, start + _CHUNK)
                result[part] = self._evaluate(flat[part])
        return result.reshape(array.shape) if array.ndim else result[0]

    def _evaluate(self, x: Array) -> Array:
        values = self._plain(_Env(x))
        values = np.array(np.broadcast_to(values, x.shape), dtype=x.dtype)
        bad = ~np.isfinite(values)
        if bad.any():
            if self._scaled is None:
                self._scaled = ScaledEvaluator(self.expr)
            values[bad] = self._scaled(x[bad].astype(np.float64)).astype(x.dtype)
        return values

    # ---- building closures ---------------------------------------------------------------------------------

    def _build(self, node: sympy.Expr) -> Callable[[_Env], Array]:
        op = self._build_node(node)
        if node not in self._shared or not node.has(X):
            return op

        def once(env: _Env) -> Array:
            if node not in env.known:
                env.known[node] = op(env)
            return env.known[node]

        return once

    def _build_node(self, node: sympy.Expr) -> Callable[[_Env], Array]:
        if not node.has(X):
            number = constant(node)
            return lambda env: number
        if node == X:
            return lambda env: env.x
        if isinstance(node, sympy.Add):
            return self._sum(node)
        if isinstance(node, sympy.Mul):
            parts = [self._build(a) for a in node.args]
            return lambda env: math.prod((p(env) for p in parts[1:]), start=parts[0](env))
        if isinstance(node, sympy.Pow):
            return self._power(*node.args)
        if isinstance(node, sympy.Piecewise):
            return self._piecewise(node)
        if isinstance(node, sympy.Max | sympy.Min):
            pick = np.maximum if isinstance(node, sympy.Max) else np.minimum
            parts = [self._build(a) for a in node.args]

            def fold(env: _Env) -> Array:
                value = parts[0](env)
                for part in parts[1:]:
                    value = pick(value, part(env))
                return value

            return fold
        if isinstance(node, sympy.Heaviside):
            inner = self._build(node.args[0])
            return lambda env: np.heaviside(inner(env), env.half)
        if isinstance(node, HermiteProb):
            degree, inner = int(node.args[0]), self._build(node.args[1])
            log_norm = math.lgamma(degree + 1) / 2
            return lambda env: orthonormal_hermite(degree, inner(env)) * np.exp(log_norm)
        if isinstance(node, sympy.log) and (rest := _minus_one(node.args[0])) is not None:
            inner = self._build(rest)
            return lambda env: np.log1p(inner(env))
        if type(node) in UNARY:
            op, inner = UNARY[type(node)], self._build(node.args[0])
            return lambda env: op(inner(env))
        raise InputError(
            f"{type(node).__name__} has no fast evaluation", str(node)[:60], "give a Python callable instead"
        )

    def _sum(self, node: sympy.Add) -> Callable[[_Env], Array]:
        """Sums, with the patterns that lose digits when written out: 1 + erf, exp - 1, high polynomials."""
        if node.is_polynomial(X) and MIN_DEGREE <= _degree_bound(node) <= MAX_DEGREE:
            series = well_conditioned_series(node)
            if series is not None:
                return lambda env: series(env.x)
        terms = list(node.args)
        built: list[Callable[[_Env], Array]] = []
        number = next((t for t in terms if t.is_Number), None)
        if number is not None:
            for term in terms:
                coefficient, function = term.as_coeff_Mul()
                if isinstance(function, sympy.erf) and coefficient == number:
                    built.append(self._of(function, partial(_scaled_erfc, float(number))))
                elif isinstance(function, sympy.exp) and coefficient == -number:
                    built.append(self._of(function, partial(_scaled_expm1, float(-number))))
                else:
                    continue
                terms = [t for t in terms if t is not number and t is not term]
                break
        built += [self._build(t) for t in terms]

        def add(env: _Env) -> Array:
            total = built[0](env)
            for part in built[1:]:
                total = total + part(env)
            return total

        return add

    def _of(self, node: sympy.Expr, op: Function) -> Callable[[_Env], Array]:
        inner = self._build(node.args[0])
        return lambda env: op(inner(env))

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> Callable[[_Env], Array]:
        if exponent.has(X):
            inner = self._build(exponent * sympy.log(base))
            return lambda env: np.exp(inner(env))
        if exponent == -1 and (rest := _minus_one(base)) is not None and isinstance(rest, sympy.exp):
            inner = self._build(rest.args[0])
            return lambda env: special.expit(-inner(env))
        inner = self._build(base)
        if exponent == sympy.Rational(1, 2):
            return lambda env: np.sqrt(inner(env))
        if exponent.is_Integer:
            p = int(exponent)
            if p == 2:
                return lambda env: np.square(inner(env))
            return lambda env: _integer_power(inner(env), p)
        q = constant(exponent)
        return lambda env: np.power(inner(env), q)

    def _piecewise(self, node: sympy.Piecewise) -> Callable[[_Env], Array]:
        branches = [(self._build(e), self._condition(c)) for e, c in node.args]

        def select(env: _Env) -> Array:
            values = np.full(env.x.shape, np.nan, env.x.dtype)
            left = np.arange(env.x.size)
            for branch, condition in branches:
                here = env if left.size == env.x.size else _Env(env.x[left])
                holds = np.broadcast_to(condition(here), left.shape)
                chosen = left[holds]
                if chosen.size:
                    values[chosen] = branch(_Env(env.x[chosen]))
                left = left[~holds]
                if not left.size:
                    break
            return values

        return select

    def _condition(self, node: sympy.Basic) -> Callable[[_Env], Array]:
        return build_condition(node, self._build)


class _Env:
    """The argument and the values of subexpressions that occur more than once."""

    def __init__(self, x: Array) -> None:
        self.x = x
        self.half = x.dtype.type(0.5)
        self.known: dict[sympy.Basic, Array] = {}


def build_condition(
    node: sympy.Basic, build: Callable[[Any], Callable[[Any], Array]]
) -> Callable[[Any], Array]:
    """A condition of a Piecewise as a function from an environment to booleans."""
    if isinstance(node, BooleanTrue | BooleanFalse):
        truth = np.bool_(bool(node))
        return lambda env: truth
    if isinstance(node, sympy.ITE):
        # SymPy writes a comparison of a Piecewise so
        return build_condition(node.to_nnf(), build)
    if isinstance(node, And | Or | Not):
        parts = [build_condition(a, build) for a in node.args]
        if isinstance(node, Not):
            return lambda env: ~parts[0](env)
        combine = np.logical_and if isinstance(node, And) else np.logical_or

        def fold(env: Any) -> Array:
            value = parts[0](env)
            for part in parts[1:]:
                value = combine(value, part(env))
            return value

        return fold
    if type(node) not in _COMPARE:
        raise InputError(f"condition {node} is not an inequality", "Piecewise", "use < <= > >=")
    compare, left, right = _COMPARE[type(node)], build(node.lhs), build(node.rhs)
    return lambda env: compare(left(env), right(env))


def constant(node: sympy.Expr) -> float:
    """A real constant as the nearest float."""
    if node.is_Rational:
        return float(node)
    value = sympy.N(node, 30)
    if not value.is_real:
        raise InputError(f"not a real constant: {node}", "expression", "keep to real numbers")
    return float(value)


def _degree_bound(node: sympy.Expr) -> int:
    """A bound of the degree of a polynomial, without expanding it."""
    if isinstance(node, sympy.Add):
        return max(_degree_bound(a) for a in node.args)
    if isinstance(node, sympy.Mul):
        return sum(_degree_bound(a) for a in node.args)
    if isinstance(node, sympy.Pow):
        return _degree_bound(node.base) * int(node.exp) if node.has(X) else 0
    return int(node.has(X))


def _scaled_erfc(c: float, u: Array) -> Array:
    return c * special.erfc(-u)


def _scaled_expm1(c: float, u: Array) -> Array:
    return c * np.expm1(u)


def _integer_power(base: Array, p: int) -> Array:
    # NumPy's power loses accuracy for float32 and is slow for integer exponents: square and multiply
    if p < 0:
        return 1 / _integer_power(base, -p)
    result, square = None, base
    while p:
        if p & 1:
            result = square if result is None else result * square
        p >>= 1
        if p:
            square = square * square
    return 1.0 if result is None else result


def _minus_one(expr: sympy.Expr) -> sympy.Expr | None:
    """``expr - 1`` for a sum that begins with 1, else None."""
    return expr - 1 if isinstance(expr, sympy.Add) and sympy.Integer(1) in expr.args else None
