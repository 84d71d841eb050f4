"""Where Gaussian expectations come from: closed forms within a budget, certified quadrature, or samples.

Every closed form is compared with the certified number before it is believed, except those of polynomials,
which are rational arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import sympy
from flint import arb, ctx

from .budget import within
from .errors import CertificationError, InputError, NotIntegrableError, SpikesymError
from .numeric.arb_eval import evaluate
from .numeric.integrability import check_integrand, check_square_integrable
from .numeric.polynomial import polynomial_expectation
from .numeric.properties import first_point_mass
from .numeric.quadrature import function_integrand, hermite_moments
from .numeric.sampled import METHOD as SAMPLED
from .numeric.sampled import sampled_moments
from .numeric.value import Value
from .symbolic.functions import ROLES, ScalarFunction
from .symbolic.moments import coefficient_formula, exact_coefficient, exact_expectation
from .symbolic.symbols import X
from .symbolic.vocabulary import hermite_polynomial

Result = TypeVar("Result")

_CERTIFIED = "certified quadrature"
_CHECK_BITS = 90


class Expectations:
    """E[(f^(i)(x))^p He_k(x)] of one function f, each as a :class:`~spikesym.numeric.value.Value`.

    ``budget`` is what all symbolic attempts together may take, in seconds.

    Raises :class:`~spikesym.errors.NotIntegrableError` when E[f^2] is infinite.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> source = Expectations(make_function("relu", "link"), 5.0)
    >>> source.value(1, 0, 2).exact, source.value(2, 0, 0).exact
    (sqrt(2)/(2*sqrt(pi)), 1/2)
    """

    def __init__(self, function: ScalarFunction, budget: float) -> None:
        self.function, self.where = function, ROLES[function.role][1]
        self.budget, self.left = budget, budget
        self.wanted = 12
        self.warnings: list[str] = []
        self._moments: dict[Any, list[arb]] = {}
        self._told: set[tuple[int, int]] = set()
        if function.expr is None:
            self.warn("a Python callable has no formula: its numbers are estimates, not certified")
        elif not function.parameters:
            check_square_integrable(function, self.where)

    def warn(self, text: str) -> None:
        """Note something that the user should know, once."""
        message = f"{self.where}: {text}"
        if message not in self.warnings:
            self.warnings.append(message)

    def formula(self) -> sympy.Expr | None:
        """The coefficients in closed form in the symbol k, or None."""
        if self.function.expr is None:
            return None
        return self._attempt("c_k for symbolic k", partial(coefficient_formula, self.function))

    def value(self, power: int, derivative: int, k: int) -> Value:
        """E[(f^(derivative))^power He_k]; the derivative is the ordinary one, almost everywhere."""
        kind, name = (power, derivative), _name(self.function, power, derivative, k)
        encloser = partial(self._ball, kind, k)
        if self.function.expr is None:
            return Value(encloser=encloser, certified=False, method=SAMPLED)
        exact = polynomial_expectation(self.function.expr, power, derivative, k)
        if exact is not None:
            return Value(exact=exact)
        exact = self._closed_form(kind, k, name)
        if self.function.parameters:
            if exact is None:
                free = ", ".join(map(str, self.function.parameters))
                what = f"no closed form of {name} with {free} left free"
                raise InputError(what, self.where, "give --set NAME=VALUE")
            return Value(exact=exact)
        if exact is None:
            return Value(encloser=encloser, method=_CERTIFIED)
        try:
            ball = evaluate(exact, _CHECK_BITS)
        except CertificationError:
            return Value(exact=exact, encloser=encloser, method=f"closed form, number by {_CERTIFIED}")
        if not ball.overlaps(encloser(_CHECK_BITS)):
            self.warn(f"the closed form found for {name} disagrees with the certified number, which is used")
            return Value(encloser=encloser, method=_CERTIFIED)
        return Value(exact=exact)

    # ---- closed forms --------------------------------------------------------------------------------------

    def _closed_form(self, kind: tuple[int, int], k: int, name: str) -> sympy.Expr | None:
        power, derivative = kind

        def compute() -> sympy.Expr | None:
            if kind == (1, 0):
                return exact_coefficient(self.function, k)
            return exact_expectation(self.function, {derivative: power}, hermite_polynomial(k, X))

        exact = self._attempt(name, compute)
        if exact is None and kind not in self._told:
            self._told.add(kind)
            every = _name(self.function, power, derivative, None)
            self.warn(f"no closed form of {every} in general; certified numbers are used")
        return exact

    def _attempt(self, name: str, compute: Callable[[], Result]) -> Result | None:
        """A symbolic attempt within what is left of the budget."""
        start = time.perf_counter()
        try:
            result, finished = within(self.left, compute, None)
        except SpikesymError:
            raise
        except Exception as error:  # whatever SymPy stumbles over: the certified number does not need it
            self.warn(
                f"the closed form of {name} failed ({type(error).__name__}); certified numbers are used"
            )
            return None
        finally:
            self.left = max(0.0, self.left - (time.perf_counter() - start))
        if not finished:
            what = f"the time budget of {self.budget:g} s for closed forms ran out at {name}"
            self.warn(f"{what}; certified numbers are used")
        return result

    # ---- numbers -------------------------------------------------------------------------------------------

    def _ball(self, kind: tuple[int, int], k: int, bits: int) -> arb:
        """The enclosure of E[F He_k], from the moments that were computed together."""
        key = (kind, bits if self.function.expr is not None else 0)
        if len(self._moments.get(key, ())) <= k:
            least = max(self.wanted, 12) if kind == (1, 0) else 3
            self._moments[key] = self._compute(kind, max(k + 1, least), bits)
        return self._moments[key][k]

    def _compute(self, kind: tuple[int, int], count: int, bits: int) -> list[arb]:
        power, derivative = kind
        if self.function.expr is None:
            base = self.function.numpy() if derivative == 0 else self.function.derivative_numpy()
            user = self.function.callable
            precise = None if derivative or user is None else (lambda x: user(x) ** power)
            return sampled_moments(lambda x: base(x) ** power, count, precise, self.where)
        integrand = function_integrand(self.function, lambda e: e.diff(X, derivative) ** power)
        return hermite_moments(integrand, count, bits)

    # ---- refusals ------------------------------------------------------------------------------------------

    def require_function(self, derivative: int, power: int) -> None:
        """Refuse a power of a derivative that has point masses."""
        name = f"E[{'g' if self.function.role == 'link' else 'sigma'}{chr(39) * derivative}^{power}]"
        remedy = "use derivative_mean, or a function without jumps"
        if self.function.expr is None:
            if derivative > 1:
                raise InputError("higher derivatives of a callable", self.where, "give an expression")
            return
        point = first_point_mass(self.function, derivative)
        if point is not None:
            variable = self.function.variable
            what = "jumps" if derivative == 1 else "its derivative has a point mass"
            raise NotIntegrableError(
                f"{name} is infinite: {what} at {variable} = {point}", self.where, remedy
            )

    def require_integrable(self, power: int, derivative: int) -> None:
        """Refuse E[(f^(derivative))^power] that is infinite: what is checked is the square of its root."""
        if self.function.expr is None or self.function.parameters:
            return
        name = f"{'g' if self.function.role == 'link' else 'sigma'}{chr(39) * derivative}({self.function.variable})"
        half = sympy.Rational(power, 2)
        root = function_integrand(self.function, lambda e: sympy.Abs(e.diff(X, derivative)) ** half)
        if power == 2:
            root = function_integrand(self.function, lambda e: e.diff(X, derivative))
        check_integrand(root, self.where, name)


def _name(function: ScalarFunction, power: int, derivative: int, k: int | None) -> str:
    """What messages call E[(f^(derivative))^power He_k]; with k = None, all of these."""
    if (power, derivative) == (1, 0):
        letter = "c" if function.role == "link" else "mu"
        return f"{letter}_k" if k is None else f"{letter}_{k}"
    letter = "g" if function.role == "link" else "sigma"
    inside = f"{letter}{chr(39) * derivative}" + (f"^{power}" if power != 1 else "")
    return f"E[{inside}]" if not k else f"E[{inside} He_{k}]"


def combination(terms: list[tuple[sympy.Expr, Value]]) -> Value:
    """A linear combination of values: exact where all are, certified where all are.

    Examples
    --------
    >>> half, one = Value(exact=sympy.Rational(1, 2)), Value(exact=sympy.Integer(1))
    >>> combination([(sympy.Integer(3), half), (sympy.Integer(-1), one)]).exact
    1/2
    """
    terms = [(w, v) for w, v in terms if w != 0]
    if not terms:
        return Value(exact=sympy.Integer(0))
    if len(terms) == 1 and terms[0][0] == 1:
        return terms[0][1]
    exact = None
    if all(v.exact is not None for _, v in terms):
        exact = sympy.expand(sympy.Add(*(w * v.exact for w, v in terms)))
    certified = all(v.certified for _, v in terms)
    method = next((v.method for _, v in terms if v.exact is None), terms[0][1].method)
    if exact is not None and all(v.encloser is None for _, v in terms):
        return Value(exact=exact, method=method)

    def enclose(bits: int) -> arb:
        total = arb(0)
        for weight, value in terms:
            total += evaluate(weight, ctx.prec) * value.ball(bits)
        return total

    return Value(exact, enclose, certified, method)
