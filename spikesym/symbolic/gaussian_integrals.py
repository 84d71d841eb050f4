"""Gaussian moments of terms over an interval, by recurrences in the Hermite degree and the power.

With Lambda = 1 + 2 gamma, h = exp(alpha x - gamma x^2) gates(x) and J_{k,p} the integral of x^p h He_k phi
over (a, b), integration by parts ((He_{k-1} phi)' = -He_k phi, x He_{k-1} = He_k + (k-1) He_{k-2}) gives

    Lambda J_{k,p} = -[x^p h He_{k-1} phi] + p J_{k-1,p-1} + alpha J_{k-1,p} - 2 gamma (k-1) J_{k-2,p}
                     + sum over gates of (2a/sqrt(pi)) exp(-b^2) J_{k-1,p} of the shape without that gate,

and likewise in p at k = 0. What remains is the mass J_{0,0}.
"""

from __future__ import annotations

import math
from functools import lru_cache

import sympy
from sympy import Integer, Rational, oo, pi, sqrt

from .gaussian_terms import NoClosedForm, Shape
from .symbols import X
from .vocabulary import hermite_polynomial

#: a sum of constants with coefficients, collected while it is computed
Combination = dict[sympy.Expr, sympy.Expr]

_ONE = Integer(1)


@lru_cache(maxsize=1024)
def moments(shape: Shape, lower: sympy.Expr, upper: sympy.Expr) -> Moments:
    """The moments of a shape over an interval; one object, so that recurrences are not repeated."""
    return Moments(shape, lower, upper)


class Moments:
    """J_{k,p} for one shape and interval; see the module.

    Examples
    --------
    >>> total(moments(Shape(), Integer(0), oo).integral(2, 1))
    sqrt(2)/(2*sqrt(pi))
    """

    def __init__(self, shape: Shape, lower: sympy.Expr, upper: sympy.Expr) -> None:
        self.shape, self.lower, self.upper = shape, lower, upper
        precision = sympy.expand(1 + 2 * shape.gamma)
        unbounded = lower == -oo or upper == oo
        if not (precision.is_positive or (not unbounded and precision.is_negative)):
            raise NoClosedForm(f"Gaussian weight of precision {precision}")
        self.precision = _precision_symbol(precision)
        self.at_zero = {lower, upper} in ({Integer(0), oo}, {-oo, Integer(0)})
        self.on_line = lower == -oo and upper == oo
        self.symmetric = shape.alpha == 0 and all(b == 0 for _, b in shape.gates)
        self.known: dict[tuple[int, int], Combination] = {}
        self.hermite = {end: [Integer(0), _ONE] for end in (lower, upper)}

    def integral(self, k: int, p: sympy.Expr | int) -> Combination:
        """The integral of x^p h(x) He_k(x) phi(x) over the interval."""
        p = sympy.sympify(p)
        if self.shape.pole is not None:
            return self._with_pole(k, p)
        if not (p.is_Integer and p >= 0):
            return self._fractional(k, p)
        if self.shape.is_one and self.on_line:
            return _monomial(int(p), k)
        return self._integral(k, int(p))

    def _integral(self, k: int, p: int) -> Combination:
        """The recurrence, with a stack of its own, because its depth grows with k and p."""
        stack = [(k, p)]
        while stack:
            needed = [part[1:] for part in self._parts(*stack[-1]) if part[1:] not in self.known]
            if needed:
                stack += needed
            else:
                self.known.setdefault(stack[-1], self._compute(*stack[-1]))
                stack.pop()
        return self.known[k, p]

    def _vanishes(self, k: int, p: int) -> bool:
        """Whether the integrand is odd on the line."""
        return self.symmetric and self.on_line and (k + p + len(self.shape.gates)) % 2 == 1

    def _is_half(self, k: int, p: int) -> bool:
        """Whether the integrand is even and the interval half of the line."""
        return self.symmetric and self.at_zero and (k + p + len(self.shape.gates)) % 2 == 0

    def _parts(self, k: int, p: int) -> list[tuple[sympy.Expr, int, int]]:
        """The terms (weight, k', p') of the recurrence within this shape."""
        if self._vanishes(k, p) or self._is_half(k, p) or (k == 0 and p == 0):
            return []
        alpha, gamma = self.shape.alpha, self.shape.gamma
        if k > 0:
            parts = [(Integer(p), k - 1, p - 1), (alpha, k - 1, p), (-2 * gamma * (k - 1), k - 2, p)]
        else:
            parts = [(Integer(p - 1), 0, p - 2), (alpha, 0, p - 1)]
        return [part for part in parts if part[0] != 0]

    def _compute(self, k: int, p: int) -> Combination:
        """One step of the recurrence, where :meth:`_parts` is known."""
        if self._vanishes(k, p):
            return {}
        if self._is_half(k, p):
            return scaled(Rational(1, 2), moments(self.shape, -oo, oo).integral(k, p))
        if k == 0 and p == 0:
            return self._mass()
        result: Combination = {}
        lowered = (k - 1, p) if k > 0 else (0, p - 1)
        self._add_boundary(result, lowered[1], lowered[0])
        for weight, degree, power in self._parts(k, p):
            add_to(result, weight, self.known[degree, power])
        for i in range(len(self.shape.gates)):
            factor, shape = self.shape.without_gate(i)
            add_to(result, factor, moments(shape, self.lower, self.upper).integral(*lowered))
        return scaled(1 / self.precision, result)

    def _add_boundary(self, result: Combination, p: int, k: int) -> None:
        """Add -[x^p h He_k phi] between the ends."""
        for end, sign in ((self.upper, -1), (self.lower, 1)):
            if end in (oo, -oo):
                continue
            monomial = _ONE if p == 0 else end**p
            weight = sympy.expand(sign * monomial * self._hermite_at(end, k))
            if weight != 0:
                add_to(result, weight, {self._density_at(end): _ONE})

    def _density_at(self, end: sympy.Expr) -> sympy.Expr:
        gates = sympy.Mul(*(sympy.erf(a * end + b) for a, b in self.shape.gates))
        exponent = sympy.expand(self.shape.alpha * end - self.precision * end**2 / 2)
        return gates * sympy.exp(exponent) / sqrt(2 * pi)

    def _hermite_at(self, end: sympy.Expr, k: int) -> sympy.Expr:
        values = self.hermite[end]
        while len(values) < k + 2:
            n = len(values) - 1
            values.append(sympy.expand(end * values[-1] - (n - 1) * values[-2]))
        return values[k + 1]

    # ---- the mass ------------------------------------------------------------------------------------------

    def _mass(self) -> Combination:
        """J_{0,0}, in the coordinate y = sqrt(Lambda) (x - alpha/Lambda)."""
        alpha, precision = self.shape.alpha, self.precision
        root = sqrt(precision)
        scale = sympy.exp(alpha**2 / (2 * precision)) / root
        gates = [(a / root, sympy.expand(b + a * alpha / precision)) for a, b in self.shape.gates]

        def erf_at(end: sympy.Expr) -> sympy.Expr:
            if end in (oo, -oo):
                return _ONE if end == oo else -_ONE
            return sympy.erf(sympy.expand((precision * end - alpha) / (sqrt(2) * root)))

        if all(b == 0 and sympy.expand(2 * a**2 - 1) == 0 for a, b in gates):
            # the gates are powers of erf(y/sqrt 2), whose derivative is 2 phi(y)
            n = len(gates) + 1
            sign = sympy.prod([sqrt(2) * a for a, _ in gates])
            weight = sign * scale / (2 * n)
            return _collected({erf_at(self.upper) ** n: weight}, {erf_at(self.lower) ** n: -weight})
        if self.on_line and len(gates) == 1:
            ((a, b),) = gates
            return {sympy.erf(_tidy(b / sqrt(1 + 2 * a**2))): scale}
        if self.on_line and len(gates) == 2 and all(b == 0 for _, b in gates):
            (a, _), (c, _) = gates
            angle = sympy.asin(_tidy(2 * a * c / sqrt((1 + 2 * a**2) * (1 + 2 * c**2))))
            return {angle: 2 * scale / pi}
        if self.at_zero and alpha == 0 and len(gates) == 1 and gates[0][1] == 0:
            sign = 1 if self.upper == oo else -1
            return {sympy.atan(_tidy(sqrt(2) * gates[0][0])): sign * scale / pi}
        raise NoClosedForm("a product of normal distribution functions (Owen's T)")

    # ---- other powers and poles ----------------------------------------------------------------------------

    def _fractional(self, k: int, p: sympy.Expr) -> Combination:
        """Real powers p > -1 on (0, oo), by the gamma function."""
        if not (self.shape.alpha == 0 and not self.shape.gates and self.lower == 0 and self.upper == oo):
            raise NoClosedForm(f"x**{p} with other factors")
        if not (p + 1).is_positive:
            raise NoClosedForm(f"x**{p}")
        first = p + k % 2
        weight, ratio = Integer(0), _ONE
        coefficients = sympy.Poly(hermite_polynomial(k, X), X).all_coeffs()[::-1]
        for j in range(k % 2, k + 1, 2):
            weight += coefficients[j] * ratio
            ratio = sympy.expand(ratio * (p + j + 1) / self.precision)
        half = (first + 1) / 2
        mass = 2 ** ((first - 1) / 2) * self.precision ** (-half) * sympy.gamma(half) / sqrt(2 * pi)
        return {mass: sympy.expand(weight)}

    def _with_pole(self, k: int, p: sympy.Expr) -> Combination:
        """x^p He_k / (x^2 + q)^m on the line, by division and derivatives in q."""
        assert self.shape.pole is not None
        q, m = self.shape.pole
        if not (self.on_line and self.symmetric and not self.shape.gates and p.is_Integer and p >= 0):
            raise NoClosedForm("a rational function on an interval")
        if (k + p) % 2:
            return {}
        result: Combination = {}
        square = sympy.Dummy("u")
        numerator = sympy.Poly((X**p * hermite_polynomial(k, X)).expand().subs(X, sqrt(square)), square)
        divisor = sympy.Poly(square + q, square)
        plain = moments(Shape(gamma=self.shape.gamma), -oo, oo)
        for order in range(m, 0, -1):
            numerator, rest = sympy.div(numerator, divisor)
            add_to(result, rest.as_expr(), {self._pole_mass(q, order): _ONE})
        for (power,), coefficient in numerator.terms():
            if coefficient != 0:
                add_to(result, coefficient, plain.integral(0, Integer(2 * power)))
        return result

    def _pole_mass(self, q: sympy.Expr, order: int) -> sympy.Expr:
        """The integral of exp(-Lambda x^2/2)/sqrt(2 pi) (x^2 + q)^(-order)."""
        c = sympy.Dummy("c", positive=True)
        simple = (
            sqrt(pi / (2 * c)) * sympy.exp(self.precision * c / 2) * sympy.erfc(sqrt(self.precision * c / 2))
        )
        value = simple.diff(c, order - 1) * (-1) ** (order - 1) / sympy.factorial(order - 1)
        return sympy.expand(value.subs(c, q))


def _monomial(p: int, k: int) -> Combination:
    """E[x^p He_k] = p!/(2^m m!) with m = (p - k)/2: k derivatives, then the moment of x^(p-k)."""
    if k > p or (p - k) % 2:
        return {}
    m = (p - k) // 2
    return {_ONE: Integer(math.factorial(p) // (2**m * math.factorial(m)))}


_PRECISIONS: dict[sympy.Expr, sympy.Symbol] = {}


def _precision_symbol(precision: sympy.Expr) -> sympy.Expr:
    """A symbol for Lambda where it has parameters, so that expanding does not multiply its powers out."""
    if not precision.free_symbols or not precision.is_positive:
        return precision
    return _PRECISIONS.setdefault(precision, sympy.Dummy("Lambda", positive=True))


def _tidy(argument: sympy.Expr) -> sympy.Expr:
    """The argument of a function in its plainest form, without symbols for precisions."""
    argument = argument.xreplace({symbol: precision for precision, symbol in _PRECISIONS.items()})
    return sympy.simplify(argument) if argument.free_symbols else sympy.radsimp(argument)


def add_to(total: Combination, weight: sympy.Expr, part: Combination) -> None:
    """Add a multiple of ``part`` in place."""
    for key, c in part.items():
        value = sympy.expand(total.get(key, Integer(0)) + weight * c)
        if value == 0:
            total.pop(key, None)
        else:
            total[key] = value


def scaled(weight: sympy.Expr, part: Combination) -> Combination:
    """A multiple."""
    result: Combination = {}
    add_to(result, weight, part)
    return result


def _collected(*parts: Combination) -> Combination:
    """The sum, with numbers moved from the keys into the coefficients."""
    result: Combination = {}
    for part in parts:
        for key, c in part.items():
            number, rest = key.as_coeff_Mul()
            add_to(result, number * c, {rest: _ONE})
    return result


def total(part: Combination) -> sympy.Expr:
    """The value of a combination, as one expression."""
    value = sympy.Add(*(sympy.expand_mul(c * key) for key, c in part.items()))
    if not value.free_symbols:
        return value
    back = {symbol: precision for precision, symbol in _PRECISIONS.items()}
    terms = [_merged(term.xreplace(back)) for term in sympy.Add.make_args(value)]
    return sympy.Add(*terms)


def _merged(term: sympy.Expr) -> sympy.Expr:
    """A product with its exponentials brought together."""
    exponent, rest = Integer(0), _ONE
    for factor in sympy.Mul.make_args(term):
        if isinstance(factor, sympy.exp):
            exponent += factor.args[0]
        else:
            rest *= factor
    return rest * sympy.exp(
        sympy.expand(sympy.cancel(exponent)) if exponent.is_polynomial() else sympy.cancel(exponent)
    )
