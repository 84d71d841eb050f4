"""Dual activations as objects: closed form, fast NumPy values, certified balls; each says how it was made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from flint import arb
from numpy.typing import NDArray

from ..errors import CertificationError, InputError
from ..symbolic.dual import BUDGET, dual_formula
from ..symbolic.dual_terms import NoClosedForm, decompose
from ..symbolic.functions import ScalarFunction, derivative_almost_everywhere, make_function
from ..symbolic.symbols import QP, Q, T, X
from .angles import covariances, discriminant
from .dual_ball import CertifiedSeries, Exact, exact, formula_ball
from .dual_boundary import boundary_ball
from .dual_compile import DualFunction, compile_dual
from .dual_kink import KinkDual
from .dual_series import MORE_TERMS, HermiteTable, line, plane, series
from .value import Value

Array = NDArray[Any]

CLOSED = "closed form"
SERIES = "Hermite series in the correlation"
PLANE = "Hermite series, and quadrature where it is slow"

MIXED = "closed form; Hermite series or Arb where it loses digits"

#: sizes of the terms of a closed form, relative to 1 + |value|, beyond which it is not trusted to double precision
_AMPLIFIED = 64.0
#: at most this many entries are computed by two-dimensional quadrature in one call
_MOST_PLANE = 400
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class DualValues:
    """Values of a dual activation, the method, and a bound of the absolute error beside rounding (0: none)."""

    values: Array
    method: str
    bound: Array | float


@dataclass(frozen=True)
class DualActivation:
    """E[sigma^(i)(U) sigma^(j)(U')] for centred Gaussians of variances q, q' and covariance t; see :func:`dual`.

    ``exact`` is the closed form in the symbols ``Q``, ``QP``, ``T``, or None.
    """

    function: ScalarFunction
    i: int
    j: int
    exact: sympy.Expr | None
    _tables: dict[int, HermiteTable] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        # compiled evaluators are made again where they are needed
        return DualActivation, (self.function, self.i, self.j, self.exact)

    @property
    def method(self) -> str:
        """How values are made: a closed form, or a series."""
        return SERIES if self.exact is None else CLOSED

    def __call__(self, q: Any, qp: Any, t: Any) -> Array:
        """Values at arrays that broadcast against each other; float32 stays float32.

        Parameters
        ----------
        q, qp : array_like
            Variances, at least 0.
        t : array_like
            Covariance, t^2 <= q q' up to rounding.

        Notes
        -----
        The relative error of closed forms of polynomials with a kink or jump at zero is about 1e-15 at all angles of
        the given (q, q', t). At q = 0 or q' = 0 a jump at zero counts half. Infinite values (two point masses that
        meet) are returned as such.

        Raises
        ------
        InputError
            For a negative variance or an impossible covariance, and for free parameters.
        """
        return self.evaluate(q, qp, t).values

    def evaluate(self, q: Any, qp: Any, t: Any) -> DualValues:
        """Values with the method that made them and a bound of the truncation error."""
        a, b, c, dtype = covariances(q, qp, t)
        result = self._evaluate(a, b, c, discriminant(*np.broadcast_arrays(a, b, c)))
        return DualValues(result.values.astype(dtype), result.method, result.bound)

    def at(self, q: Array, qp: Array, t: Array, delta: Array) -> Array:
        """Values with the discriminant q q' - t^2 given, in float64 and without checks."""
        return self._evaluate(q, qp, t, delta).values

    def ball(self, q: Exact, qp: Exact, t: Exact, bits: int) -> arb:
        """A certified ball at exact numbers, computed with ``bits`` of working precision.

        Raises
        ------
        CertificationError
            For a Python callable, and where the value is infinite or cannot be enclosed.

        Examples
        --------
        >>> print(dual("sign").ball(2, 2, 1, 100).str(20, radius=False))
        0.33333333333333333333
        """
        variance, variance_p, covariance = exact(q), exact(qp), exact(t)
        self._check_domain(variance, variance_p, covariance)
        if self.function.expr is None:
            raise CertificationError(
                f"{self.function.text} is a Python callable; nothing about it can be certified"
            )
        if self.function.parameters:
            raise _free(self.function)
        if variance == 0 or variance_p == 0 or sympy.expand(variance * variance_p - covariance**2) == 0:
            return boundary_ball(self.function, self.i, self.j, variance, variance_p, covariance, bits)
        if self.exact is not None:
            ball = formula_ball(self.exact, variance, variance_p, covariance, bits)
        else:
            ball = self._certified.ball(variance, variance_p, covariance, bits)
        if not ball.is_finite():
            raise CertificationError(
                f"no enclosure of the dual activation at q = {q}, q' = {qp}, t = {t} with {bits} bits"
            )
        return ball

    def value(self, q: Exact, qp: Exact, t: Exact) -> Value:
        """The number at exact arguments, with an enclosure to any precision and the closed form where there is one."""
        closed = None
        if self.exact is not None:
            at = {Q: exact(q), QP: exact(qp), T: exact(t)}
            closed = self.exact.subs(at, simultaneous=True)
            if closed.has(sympy.nan, sympy.zoo, sympy.oo):
                closed = None
        return Value(closed, lambda bits: self.ball(q, qp, t, bits), method=self.method)

    # ---- how it is done ----------------------------------------------------------------------------------------

    def _evaluate(self, q: Array, qp: Array, t: Array, delta: Array) -> DualValues:
        if self.function.parameters:
            raise _free(self.function)
        if self.exact is None:
            return self._by_series(q, qp, t, delta)
        values = self._fast(q, qp, t, delta)
        if not isinstance(self._fast, DualFunction):
            return DualValues(values, CLOSED, 0.0)
        bad = ~np.isfinite(values)
        if self._fast.size is not None:
            with np.errstate(invalid="ignore"):
                bad |= ~(self._fast.size(q, qp, t, delta) < _AMPLIFIED * (1 + np.abs(values)))
        return self._repaired(values, bad, q, qp, t, delta) if bad.any() else DualValues(values, CLOSED, 0.0)

    @cached_property
    def _fast(self) -> Callable[[Array, Array, Array, Array], Array]:
        assert self.exact is not None
        kink = self.kink
        return kink if kink is not None else compile_dual(self.exact)

    @cached_property
    def kink(self) -> KinkDual | None:
        """The evaluator in the angle, for polynomials with a kink or jump at zero; None for other functions."""
        try:
            return KinkDual.of(decompose(self.function), self.i, self.j)
        except NoClosedForm:
            return None

    def _repaired(self, values: Array, bad: Array, q: Array, qp: Array, t: Array, delta: Array) -> DualValues:
        """Entries where the closed form overflows or loses digits in floating point, by the series or by Arb."""
        bound = np.zeros(values.shape)
        a, b, c, d = (np.broadcast_to(x, values.shape)[bad] for x in (q, qp, t, delta))
        with np.errstate(all="ignore"):
            found = self._by_series(a, b, c, d)
        entries, errors = found.values, np.array(found.bound)
        trusted = np.isfinite(entries) & (errors <= 1e-10 * (1 + np.abs(entries)))
        for k in np.flatnonzero(~trusted)[:_MOST_PLANE]:
            try:
                entries[k] = float(self.ball(float(a[k]), float(b[k]), float(c[k]), 300).mid())
                errors[k] = 0.0
            except (CertificationError, InputError):
                entries[k], errors[k] = np.inf, 0.0
        values[bad], bound[bad] = entries, errors
        return DualValues(values, MIXED, bound)

    def _by_series(self, q: Array, qp: Array, t: Array, delta: Array) -> DualValues:
        orders = self._shifts
        first, second = self._table(self.i - orders[0]), self._table(self.j - orders[1])
        result = series(first, second, q, qp, t, orders=orders)
        values, bound = result.values, np.array(np.broadcast_to(result.bound, result.values.shape))
        arrays = [np.broadcast_to(x, values.shape) for x in (q, qp, t, delta)]

        def slow() -> Array:
            return bound > 1e-12 * np.abs(values) + 1e-13

        left = slow()
        if not left.any() or any(orders):
            return DualValues(values, SERIES, bound)
        with np.errstate(invalid="ignore", divide="ignore"):
            sine = np.sqrt(arrays[3]) / (np.sqrt(arrays[0]) * np.sqrt(arrays[1]))
        # by Price's theorem values on the line t^2 = q q' differ by the order of the square of the sine
        for place in np.argwhere(left & (sine < 1e-8))[:_MOST_PLANE]:
            v, vp, cov = (float(x[tuple(place)]) for x in arrays[:3])
            values[tuple(place)], bound[tuple(place)] = line(first, second, v, vp, np.sign(cov))
        left = slow()
        if left.any() and not first.breakpoints:
            a, b, c = (x[left] for x in arrays[:3])
            longer = series(first, second, a, b, c, MORE_TERMS)
            values[left], bound[left] = longer.values, longer.bound
            left = slow()
        if left.sum() > _MOST_PLANE:
            return DualValues(values, SERIES, bound)
        for place in np.argwhere(left):
            v, vp, cov = (float(x[tuple(place)]) for x in arrays[:3])
            cosine = cov / (np.sqrt(v) * np.sqrt(vp))
            found = plane(first, second, v, vp, cosine, min(float(sine[tuple(place)]), 1.0))
            values[tuple(place)], bound[tuple(place)] = found
        return DualValues(values, PLANE, bound)

    @cached_property
    def _shifts(self) -> tuple[int, int]:
        """Orders that are left to the series: all where derivatives have point masses, or are not to be had."""
        function = self.function
        if function.expr is None:
            return self.i, self.j
        if not function.has_finite_breakpoints or function.breakpoints():
            return tuple(n if n and _has_masses(function, n) else 0 for n in (self.i, self.j))  # type: ignore[return-value]
        return 0, 0

    def _table(self, order: int) -> HermiteTable:
        if order not in self._tables:
            self._tables[order] = _hermite_table(self.function, order)
        return self._tables[order]

    @cached_property
    def _certified(self) -> CertifiedSeries:
        function, i, j = self.function, self.i, self.j
        if function.has_finite_breakpoints and not function.breakpoints():
            # without kinks the derivatives have series of their own, which converge faster
            expr = function.symbolic()
            first, second = (make_function(sympy.diff(expr, X, n), "activation") for n in (i, j))
            return CertifiedSeries(first, 0, second, 0)
        return CertifiedSeries(function, i, function, j)

    def _check_domain(self, q: sympy.Expr, qp: sympy.Expr, t: sympy.Expr) -> None:
        if q.is_negative or qp.is_negative:
            raise InputError("a negative variance", "q, q'", "give variances of at least 0")
        if sympy.expand(q * qp - t**2).is_negative:
            raise InputError("not a covariance: t^2 exceeds q q'", "t", "give |t| of at most sqrt(q q')")


def _free(function: ScalarFunction) -> InputError:
    names = ", ".join(map(str, function.parameters))
    return InputError(
        f"no number: free parameters {names}", "--activation", "give them with --set NAME=VALUE"
    )


def _hermite_table(function: ScalarFunction, order: int) -> HermiteTable:
    if function.expr is None:
        return HermiteTable(function.numpy())
    points = tuple(map(_to_float, function.breakpoints(None if function.has_finite_breakpoints else 60)))
    if order == 0:
        return HermiteTable(function.numpy(), points)
    expr = function.symbolic()
    for _ in range(order):
        expr = derivative_almost_everywhere(expr)
    if not expr.has(X):
        constant = float(expr)
        return HermiteTable(lambda x: np.full(np.shape(x), constant), points)
    return HermiteTable(make_function(expr, "activation").numpy(), points)


def _has_masses(function: ScalarFunction, order: int) -> bool:
    return bool(function.derivative(order, None if function.has_finite_breakpoints else 60).atoms)


def _to_float(point: Any) -> float:
    return float(point.ball(80).mid()) if hasattr(point, "ball") else float(point)


def dual(sigma: ScalarFunction | Any, i: int = 0, j: int = 0, budget: float = BUDGET) -> DualActivation:
    """The dual activation E[sigma^(i)(U) sigma^(j)(U')].

    Parameters
    ----------
    sigma : ScalarFunction, or what makes one (text in z, SymPy expression, Python callable)
        The activation.
    i, j : int
        Orders of derivatives, in the sense of distributions.
    budget : float
        Seconds for the closed form; without one, values come from Hermite series.

    Examples
    --------
    >>> relu = dual("relu")
    >>> relu.exact
    t*asin(t/(sqrt(q)*sqrt(qp)))/(2*pi) + t/4 + sqrt(q*qp - t**2)/(2*pi)
    >>> relu(np.array([1.0, 2.0]), 1.0, np.array([0.0, 1.0])).round(6)
    array([0.159155, 0.534155])
    """
    function = make_function(sigma, "activation")
    if i < 0 or j < 0:
        raise InputError(f"a derivative of order {min(i, j)}", "order", "give orders of at least 0")
    key = (function, i, j)
    if key not in _FOUND:
        exact_form = None if function.expr is None else dual_formula(function, i, j, budget)
        if exact_form is None:
            # not kept: with more time there may be one
            return DualActivation(function, i, j, None)
        if len(_FOUND) >= _MOST_FOUND:
            _FOUND.clear()
        _FOUND[key] = DualActivation(function, i, j, exact_form)
    return _FOUND[key]


#: dual activations with closed forms, by function and orders, with their compiled evaluators
_FOUND: dict[tuple[ScalarFunction, int, int], DualActivation] = {}
_MOST_FOUND = 256
