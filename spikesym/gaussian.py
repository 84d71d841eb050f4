"""Gaussian data of a link or an activation: every constant that the theory takes from it.

Closed forms where there are any, found within a time budget and compared with the certified number;
certified quadrature otherwise; two rules and no certificate for a Python callable.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple

import sympy
from flint import arb

from .errors import InputError
from .expectations import Expectations, combination
from .numeric import properties
from .numeric.value import Value
from .symbolic.functions import ScalarFunction, make_function
from .symbolic.hermite_series import hermite_coefficients
from .symbolic.symbols import X

_ZERO_DIGITS = 50
_SEARCHED = 24
_KEPT = 128


class InformationExponent(NamedTuple):
    """The smallest k >= 1 with c_k != 0: k is None when there is none, or none was found."""

    k: int | None
    certified: bool
    detail: str


def gaussian_data(
    source: Any, role: str, parameters: Mapping[str, Fraction] | None = None, budget: float = 5.0
) -> GaussianData:
    """The Gaussian data of a link (``role="link"``, in s) or an activation (``role="activation"``, in z).

    Parameters
    ----------
    source : str, SymPy expression or callable
        As in :class:`~spikesym.model.Model`.
    role : {"link", "activation"}
        Decides the variable and what errors name.
    parameters : mapping, optional
        Exact values of free parameters by name. Parameters that stay free leave closed forms only.
    budget : float
        Seconds for all symbolic attempts together; what overruns is stopped and a certified number is used.

    Raises
    ------
    ParseError, InputError
        For an expression outside the language.
    NotIntegrableError
        When E[g^2] is infinite, or cannot be shown to be finite.

    Examples
    --------
    >>> data = gaussian_data("relu", "link")
    >>> data.coefficient(2).exact, data.second_moment.exact, data.information_exponent.k
    (sqrt(2)/(2*sqrt(pi)), 1/2, 1)
    >>> gaussian_data("tanh", "link").coefficient(1).text(20)
    '0.60570550960215882558'
    >>> gaussian_data("exp(s**2/4)", "link")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    spikesym.errors.NotIntegrableError: --link: E[g(s)^2] is infinite: ...
    """
    function = make_function(source, role, parameters)
    key = (function.expr, function.callable, function.role, budget)
    try:
        known = _CACHE.get(key)
    except TypeError:  # a callable that cannot be hashed
        return GaussianData(function, budget)
    if known is None:
        known = _CACHE[key] = GaussianData(function, budget)
        while len(_CACHE) > _KEPT:
            _CACHE.popitem(last=False)
    return known


_CACHE: OrderedDict[Any, GaussianData] = OrderedDict()


class GaussianData:
    """Expectations over x ~ N(0, 1) of one function f; see :func:`gaussian_data`."""

    def __init__(self, function: ScalarFunction, budget: float = 5.0) -> None:
        self._function = function
        self._source = Expectations(function, budget)
        self._values: dict[Any, Value] = {}

    @property
    def function(self) -> ScalarFunction:
        """The function itself."""
        return self._function

    @property
    def warnings(self) -> list[str]:
        """What the user should know: fallbacks, stopped attempts, numbers without certificate."""
        return list(self._source.warnings)

    # ---- coefficients --------------------------------------------------------------------------------------

    def coefficient(self, k: int) -> Value:
        """c_k = E[f(x) He_k(x)], which is also E of the k-th derivative in the sense of distributions."""
        if k < 0:
            raise InputError(f"negative degree {k}", "k", "give a degree k >= 0")
        return self._remembered(("c", k), partial(self._coefficient, k))

    def coefficients(self, count: int) -> list[Value]:
        """c_0, ..., c_(count-1)."""
        self._source.wanted = max(self._source.wanted, count)
        return [self.coefficient(k) for k in range(count)]

    def coefficient_formula(self) -> sympy.Expr | None:
        """c_k in closed form in the symbol k, or None."""
        return self._source.formula()

    def derivative_mean(self, order: int) -> Value:
        """E of the derivative of this order, point masses included: it equals c_order."""
        return self.coefficient(order)

    def _coefficient(self, k: int) -> Value:
        if (self.parity, k % 2) in (("even", 1), ("odd", 0)):
            return Value(exact=sympy.Integer(0), method=f"zero by parity: the function is {self.parity}")
        return self._source.value(1, 0, k)

    # ---- other expectations --------------------------------------------------------------------------------

    def expectation(
        self, power_f: int = 1, derivative: int = 0, polynomial: sympy.Expr | int | None = None
    ) -> Value:
        """E[(f^(derivative))^power_f p(x)] for a polynomial p in ``symbols.X`` (1 when left out).

        For ``power_f`` = 1 the derivative is that of distributions. Higher powers need a function:
        raises :class:`~spikesym.errors.NotIntegrableError` when the derivative has point masses, or the
        expectation is infinite.
        """
        p = sympy.Integer(1) if polynomial is None else sympy.sympify(polynomial)
        p = p.xreplace({v: X for v in p.free_symbols if v.name == X.name})
        key = ("E", power_f, derivative, p)
        return self._remembered(key, partial(self._expectation, power_f, derivative, p))

    def _expectation(self, power_f: int, derivative: int, p: sympy.Expr) -> Value:
        if power_f < 0 or derivative < 0 or p.free_symbols - {X}:
            raise InputError(
                "not an expectation of a power", "expectation", "give powers >= 0 and a polynomial in x"
            )
        weights = hermite_coefficients(sympy.Poly(p, X))
        if power_f == 0:
            return Value(exact=weights[0])
        if power_f == 1:
            return combination([(w, self.coefficient(derivative + k)) for k, w in enumerate(weights)])
        if derivative:
            self._source.require_function(derivative, power_f)
        if power_f > 2 or derivative:
            self._source.require_integrable(power_f, derivative)
        return combination(
            [(w, self._source.value(power_f, derivative, k)) for k, w in enumerate(weights) if w != 0]
        )

    @property
    def second_moment(self) -> Value:
        """E[f^2]."""
        return self.expectation(2)

    @property
    def second_moment_x2(self) -> Value:
        """E[f^2 x^2]."""
        return self.expectation(2, polynomial=X**2)

    @property
    def s_g(self) -> Value:
        """E[(x^2 - 1) f^2]/2, half the mean second derivative of f^2."""
        return self.expectation(2, polynomial=(X**2 - 1) / 2)

    @property
    def derivative_second_moment(self) -> Value:
        """E[f'^2]; raises :class:`~spikesym.errors.NotIntegrableError` for a function that jumps."""
        return self.expectation(2, derivative=1)

    def mixed(self, i: int, j: int, polynomial: sympy.Expr | int | None = None) -> Value:
        """E[f^(i) f^(j) p(x)] in the sense of distributions, by parts down to squares of functions.

        (p u v)' has mean E[x p u v]; so E[p u v'] = E[(x p - p') u v] - E[p u' v].

        Examples
        --------
        >>> gaussian_data("relu", "activation").mixed(0, 2).exact
        0
        """
        p = sympy.Integer(1) if polynomial is None else sympy.sympify(polynomial)
        i, j = min(i, j), max(i, j)
        if i == j:
            return self.expectation(2, derivative=i, polynomial=p)
        lowered = sympy.expand(X * p - p.diff(X))
        if j == i + 1:
            return self.expectation(2, derivative=i, polynomial=lowered / 2)
        minus = sympy.Integer(-1)
        return combination(
            [(sympy.Integer(1), self.mixed(i, j - 1, lowered)), (minus, self.mixed(i + 1, j - 1, p))]
        )

    def parseval_residual(self, count: int) -> Value:
        """E[f^2] - sum over k < count of c_k^2/k!: what a series cut at ``count`` leaves out."""
        return self._remembered(("parseval", count), partial(self._parseval_residual, count))

    def _parseval_residual(self, count: int) -> Value:
        total, parts = self.second_moment, self.coefficients(count)
        exact = None
        known = [v.exact for v in parts if v.exact is not None]
        if total.exact is not None and len(known) == count:
            squares = [c**2 / math.factorial(k) for k, c in enumerate(known)]
            exact = sympy.expand(total.exact - sympy.Add(*squares))
        if exact is not None and (exact.is_Rational or exact.free_symbols):
            return Value(exact=exact)

        def enclose(bits: int) -> arb:
            rest = total.ball(bits)
            for k, value in enumerate(parts):
                ball = value.ball(bits)
                rest -= ball * ball / math.factorial(k)
            return rest

        certified = all(v.certified for v in (total, *parts))
        return Value(exact, enclose, certified, total.method if not certified else "difference of enclosures")

    # ---- properties ----------------------------------------------------------------------------------------

    @cached_property
    def parity(self) -> str | None:
        """``"even"``, ``"odd"``, or None when neither is proved."""
        return properties.parity(self._function)

    @property
    def lipschitz(self) -> Value | None:
        """The Lipschitz constant, or None; see :attr:`lipschitz_reason`."""
        return self._lipschitz.value

    @property
    def lipschitz_reason(self) -> str:
        """Why there is no Lipschitz constant; empty when there is one."""
        return self._lipschitz.reason

    @cached_property
    def _lipschitz(self) -> properties.Bound:
        return properties.lipschitz(self._function)

    @property
    def bounded(self) -> Value | None:
        """sup |f|, or None; see :attr:`bounded_reason`."""
        return self._bounded.value

    @property
    def bounded_reason(self) -> str:
        """Why there is no bound; empty when there is one."""
        return self._bounded.reason

    @cached_property
    def _bounded(self) -> properties.Bound:
        return properties.bound(self._function)

    @cached_property
    def information_exponent(self) -> InformationExponent:
        """The smallest k >= 1 with c_k != 0, whether that is proved, and a sentence."""
        expr = self._function.expr
        if expr is not None and not expr.has(X):
            return InformationExponent(None, True, "the function is constant: it has no information exponent")
        unproved = []
        searched = max(_SEARCHED, sympy.degree(expr, X) if expr is not None and expr.is_polynomial(X) else 0)
        for k in range(1, searched + 1):
            value = self.coefficient(k)
            zero = self._is_zero(value)
            if zero is None:
                unproved.append(k)
            elif not zero:
                return self._exponent(k, value, unproved)
        detail = f"c_1, ..., c_{searched} are zero" + (
            f" within radius 1e-{_ZERO_DIGITS}" if unproved else ""
        )
        return InformationExponent(None, False, detail)

    def _is_zero(self, value: Value) -> bool | None:
        if value.exact is not None and not value.has_number:
            return bool(sympy.simplify(value.exact) == 0)
        if value.certified:
            return value.is_zero
        ball = value.ball(64)
        return None if ball.contains(0) else False

    def _exponent(self, k: int, value: Value, unproved: list[int]) -> InformationExponent:
        if not value.has_number:
            names = ", ".join(map(str, self._function.parameters))
            return InformationExponent(k, False, f"c_{k} = {value.exact}, not zero for general {names}")
        shown = f"c_{k} = {value.text(6)}"
        if not value.certified:
            return InformationExponent(k, False, f"{shown}, an estimate")
        if unproved:
            names = ", ".join(f"c_{i}" for i in unproved)
            return InformationExponent(k, False, f"{names} zero within radius 1e-{_ZERO_DIGITS}; {shown}")
        return InformationExponent(
            k, True, shown + (", the coefficients before it are zero" if k > 1 else "")
        )

    def _remembered(self, key: Any, make: Callable[[], Value]) -> Value:
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]
