"""Links and activations as objects: exact expression, break points and pieces, NumPy functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from sympy import Integer, Rational, Symbol

from ..errors import InputError
from .compile import compile_numpy
from .parsing import check_parameter_names, expand_hermite, parse_keeping_hermite
from .symbols import X
from .vocabulary import VARIABLES, HermiteProb

if TYPE_CHECKING:
    from .distributions import Distribution
    from .pieces import Piece

#: role of a function: the variable it is written in, and what errors name
ROLES = {"link": ("s", "--link"), "activation": ("z", "--activation")}

_NODES = (
    sympy.Add, sympy.Mul, sympy.Pow, sympy.Rational, sympy.Float, sympy.NumberSymbol, Symbol, sympy.Abs,
    sympy.sign, sympy.Heaviside, sympy.Max, sympy.Min, sympy.Piecewise, sympy.erf, sympy.erfc, sympy.tanh,
    sympy.sinh, sympy.cosh, sympy.sech, sympy.csch, sympy.coth, sympy.sin, sympy.cos, sympy.tan, sympy.cot,
    sympy.sec, sympy.csc, sympy.exp, sympy.log, sympy.atan, sympy.asin, sympy.acos, sympy.asinh, HermiteProb,
    sympy.hermite_prob, sympy.StrictGreaterThan, sympy.StrictLessThan, sympy.GreaterThan, sympy.LessThan,
    sympy.And, sympy.Or, sympy.Not, sympy.logic.boolalg.BooleanAtom, sympy.functions.elementary.piecewise.ExprCondPair,
)  # fmt: skip


@dataclass(frozen=True)
class ScalarFunction:
    """A link g(s) or an activation sigma(z).

    Parameters
    ----------
    text : str
        As the user wrote it.
    role : {"link", "activation"}
        Which of the two it is.
    expr : sympy.Expr or None
        The expression in ``X``; None for a Python callable.
    parameters : tuple of sympy.Symbol
        Real parameters that are still free.
    callable : callable or None
        The Python callable, which gives numbers only, and these not certified.

    Examples
    --------
    >>> relu = make_function("relu", "link")
    >>> relu.expr, relu.breakpoints(), relu.piecewise_linear_coefficients()
    (Max(0, x), (0,), (1/2, 1/2))
    >>> relu.numpy()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    text: str
    role: str
    expr: sympy.Expr | None
    parameters: tuple[Symbol, ...] = ()
    callable: Callable[[Any], Any] | None = None
    _stable: sympy.Expr | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        # compiled closures are made again where they are needed
        kept = ("text", "role", "expr", "parameters", "callable", "_stable")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def variable(self) -> str:
        """The name of the variable in this role."""
        return ROLES[self.role][0]

    def breakpoints(self, radius: Any = None) -> tuple[sympy.Expr, ...]:
        """Points where the function is not analytic, ascending, within [-radius, radius].

        All of them when ``radius`` is None; raises :class:`~spikesym.errors.InputError` when these are
        infinitely many or not known to be finitely many. Each is an exact real number, or a
        :class:`~spikesym.symbolic.roots.IsolatedRoot` with an enclosure to any precision.
        """
        from .pieces import breakpoints

        return breakpoints(self.symbolic(), radius)

    @cached_property
    def has_finite_breakpoints(self) -> bool:
        """Whether the break points are known to be finitely many (False for a Python callable)."""
        from .pieces import has_finite_breakpoints

        return self.expr is not None and has_finite_breakpoints(self.expr)

    def pieces(self, radius: Any = None) -> tuple[Piece, ...]:
        """The analytic pieces that cover [-radius, radius], or the line; see :func:`~spikesym.symbolic.pieces.pieces`."""
        from .pieces import pieces

        return pieces(self.symbolic(), radius)

    def derivative(self, order: int = 1, radius: Any = None) -> Distribution:
        """The derivative of this order in the sense of distributions: regular pieces and point masses."""
        from .distributions import derivative

        return derivative(self.symbolic(), order, radius)

    def piecewise_linear_coefficients(self) -> tuple[sympy.Expr, sympy.Expr] | None:
        """(p, q) with f(x) = p x + q |x| exactly, or None."""
        from .pieces import homogeneous_coefficients

        return None if self.expr is None else homogeneous_coefficients(self.expr)

    def symbolic(self) -> sympy.Expr:
        """The expression; raises :class:`~spikesym.errors.InputError` for a Python callable."""
        if self.expr is None:
            raise InputError(
                f"{self.text} is a Python callable, without formula",
                ROLES[self.role][1],
                "give an expression",
            )
        return self.expr

    def numpy(self) -> Callable[[Any], Any]:
        """The function on NumPy arrays: same shape, float32 stays float32, finite far out."""
        return self._numpy

    def derivative_numpy(self) -> Callable[[Any], Any]:
        """The derivative almost everywhere on NumPy arrays (0 at jumps, the mean of the slopes at kinks)."""
        return self._derivative_numpy

    @cached_property
    def _numpy(self) -> Callable[[Any], Any]:
        if self.callable is not None:
            return _OnArrays(self.callable, self.text, ROLES[self.role][1])
        return compile_numpy(self._stable if self._stable is not None else self.symbolic())

    @cached_property
    def _derivative_numpy(self) -> Callable[[Any], Any]:
        if self.callable is not None:
            return _Differences(self._numpy)
        return compile_numpy(
            derivative_almost_everywhere(self._stable if self._stable is not None else self.symbolic())
        )


def make_function(
    source: Any, role: str, parameters: Mapping[str, Fraction] | None = None, allow_parameters: bool = True
) -> ScalarFunction:
    """The function that a text, a SymPy expression or a Python callable stands for.

    Parameters
    ----------
    source : str, sympy.Expr, number or callable
        Text goes through the whitelist parser. The symbol of a SymPy expression is renamed by name,
        whatever its assumptions; with several symbols, the variable is the one named s, z or x.
    role : {"link", "activation"}
        Which decides the variable of a text (s or z) and what errors name.
    parameters : mapping, optional
        Exact values of parameters by name.
    allow_parameters : bool
        Whether parameters may stay free.

    Raises
    ------
    ParseError, InputError
        For what is outside the language, is not real, or does not depend on the variable.

    Examples
    --------
    >>> make_function("tanh(a*s)", "link").parameters
    (a,)
    >>> make_function(sympy.Symbol("t")**2, "activation").expr
    x**2
    >>> make_function(np.tanh, "link").numpy()(np.zeros(2))
    array([0., 0.])
    """
    variable, where = ROLES[role]
    values = dict(parameters or {})
    if isinstance(source, ScalarFunction):
        return source
    if isinstance(source, str):
        kept = parse_keeping_hermite(
            source, variable, where=where, parameters=values, allow_parameters=allow_parameters
        )
        text = source.strip()
    elif isinstance(source, sympy.FunctionClass):
        text = source.__name__
        kept = _from_sympy(source(X), where, values, allow_parameters)
    elif callable(source) and not isinstance(source, sympy.Basic):
        return ScalarFunction(getattr(source, "__name__", repr(source)), role, None, (), source)
    else:
        try:
            expr = sympy.sympify(source, strict=True)
        except sympy.SympifyError:
            expr = None
        if not isinstance(expr, sympy.Expr):
            raise InputError(
                f"cannot read a {type(source).__name__}",
                where,
                "give text, a SymPy expression or a Python callable",
            )
        text = str(expr)
        kept = _from_sympy(expr, where, values, allow_parameters)
    kept = idempotent_steps(kept)
    expr = expand_hermite(kept)
    free = tuple(sorted(expr.free_symbols - {X}, key=str))
    function = ScalarFunction(text, role, expr, free, None, kept)
    _check_real(function, where)
    return function


def idempotent_steps(expr: sympy.Expr) -> sympy.Expr:
    """Powers of steps reduced: H^p = H for p > 0, sign^2 = 1, almost everywhere.

    Examples
    --------
    >>> idempotent_steps(sympy.Heaviside(X)**3), idempotent_steps(sympy.sign(X)**4 * sympy.sign(X - 1)**5)
    (Heaviside(x), sign(x - 1))
    """

    def reduce(power: sympy.Pow) -> sympy.Expr:
        base, p = power.args
        if isinstance(base, sympy.Heaviside) and p.is_positive:
            return base
        if isinstance(base, sympy.sign) and p.is_Integer:
            return Integer(1) if p.is_even else base
        return power

    expr = expr.replace(
        lambda e: isinstance(e, sympy.Heaviside) and len(e.args) > 1, lambda e: sympy.Heaviside(e.args[0])
    )
    return expr.replace(lambda e: isinstance(e, sympy.Pow), reduce)


def derivative_almost_everywhere(expr: sympy.Expr) -> sympy.Expr:
    """The ordinary derivative where it exists; point masses are dropped.

    Examples
    --------
    >>> derivative_almost_everywhere(abs(X) + sympy.sign(X - 1))
    sign(x)
    """
    return expr.diff(X).replace(sympy.DiracDelta, lambda *arguments: Integer(0))


def _from_sympy(
    expr: sympy.Expr, where: str, values: Mapping[str, Fraction], allow_parameters: bool
) -> sympy.Expr:
    """The expression in ``X`` with exact numbers; refuses what the theory has no calculus for."""
    check_parameter_names(values)
    for node in sympy.preorder_traversal(expr):
        if not isinstance(node, _NODES) or node in (sympy.I, sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
            raise InputError(
                f"{type(node).__name__} in the expression: {str(node)[:40]}",
                where,
                "use real elementary functions, or give a Python callable",
            )
    names = {v.name for v in expr.free_symbols}
    unset = names - set(values)
    if len(unset) > 1:
        variables = unset & set(VARIABLES)
        if len(variables) != 1 or not allow_parameters:
            raise InputError(
                f"several symbols: {', '.join(sorted(unset))}", where, "write in one variable, s, z or x"
            )
        name = variables.pop()
    else:
        name = next(iter(unset), None)

    def renamed(symbol: Symbol) -> sympy.Expr:
        if symbol.name == name:
            return X
        if symbol.name in values:
            return Rational(values[symbol.name].numerator, values[symbol.name].denominator)
        return Symbol(symbol.name, real=True)

    exact = expr.xreplace({f: Rational(str(f)) for f in expr.atoms(sympy.Float)})
    # a simultaneous exchange, so that a parameter named x cannot meet the variable
    exact = exact.xreplace({v: renamed(v) for v in exact.free_symbols})
    exact = exact.replace(sympy.hermite_prob, lambda k, u: HermiteProb(k, u) if k.is_Integer else sympy.nan)
    if exact.has(sympy.nan, sympy.zoo):
        raise InputError(f"undefined: {str(expr)[:60]}", where, "give a real function")
    return exact


_SAMPLES = np.array([-2.9, -2.1, -1.3, -0.61, -0.23, 0.17, 0.57, 1.37, 2.3, 3.1])


def _check_real(function: ScalarFunction, where: str) -> None:
    """Refuse a function that is not a real number at some ordinary point."""
    if function.parameters:
        return
    values = np.asarray(function.numpy()(_SAMPLES))
    bad = _SAMPLES[np.isnan(values)]
    if bad.size:
        raise InputError(
            f"not a real number at {function.variable} = {bad[0]:g}: {function.text[:60]}",
            where,
            "roots and logarithms need arguments above 0, as in sqrt(abs(s)); a Piecewise must cover the line",
        )


class _OnArrays:
    """A user's callable made to accept arrays and to answer in their shape and float type."""

    def __init__(self, function: Callable[[Any], Any], name: str, where: str) -> None:
        self.function, self.name, self.where = function, name, where

    def __call__(self, x: Any) -> Any:
        array = np.asarray(x)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64)
        try:
            values = np.asarray(self.function(array))
        except (TypeError, ValueError):
            # written for single numbers
            values = np.array([self.function(float(v)) for v in array.ravel()]).reshape(array.shape)
        if values.shape not in (array.shape, ()) or not np.isrealobj(values):
            raise InputError(
                f"{self.name} returned shape {values.shape} and type {values.dtype} for shape {array.shape}",
                self.where,
                "return one real number for each argument",
            )
        values = np.broadcast_to(values, array.shape).astype(array.dtype)
        return values if array.ndim else values[()]


class _Differences:
    """Derivative of a callable by central differences of fourth order; not certified."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, x: Any) -> Any:
        array = np.asarray(x)
        wide = array.astype(np.float64)
        step = 1e-3 * np.maximum(1.0, np.abs(wide))
        f = self.function
        slope = (8 * (f(wide + step) - f(wide - step)) - (f(wide + 2 * step) - f(wide - 2 * step))) / (
            12 * step
        )
        kind = array.dtype if np.issubdtype(array.dtype, np.floating) else np.float64
        return np.asarray(slope).astype(kind)[()] if not array.ndim else np.asarray(slope).astype(kind)
