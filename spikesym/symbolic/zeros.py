"""Real zeros of an analytic expression: exact where its inverse is known, isolated otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import sympy
from flint import arb, ctx, fmpz, fmpz_poly
from sympy import Integer, Rational, pi

from ..errors import InputError
from .hermite_series import polynomial_of
from .roots import IsolatedRoot, NoBall, enclose, isolate, sign_of
from .symbols import X

#: above this degree polynomials go to Arb, which isolates roots faster than SymPy
_MAX_CROOTOF_DEGREE = 8
_MAX_FAMILY = 5000
#: above this degree the zeros of a polynomial are not sought
_MAX_DEGREE = 120


class InfinitelyMany(Exception):
    """The zeros are infinitely many, or not known to be finitely many; ask within a radius."""


class Undecided(Exception):
    """Whether and where there are zeros depends on parameters without value."""


def zeros(expr: sympy.Expr, radius: Rational | None = None) -> list[sympy.Expr]:
    """The real zeros of an analytic expression in ``X``, in no order, some perhaps twice.

    With ``radius`` at least those within [-radius, radius]; without, all of them. Zeros of even order may
    be missing or present. An expression that is zero throughout has none.

    Raises :class:`InfinitelyMany` without ``radius``, :class:`Undecided` for parameters.

    Examples
    --------
    >>> zeros(X**2 - 2), zeros(sympy.exp(2*X) - 3), zeros(sympy.sin(X), Rational(4))
    ([-sqrt(2), sqrt(2)], [log(3)/2], [-pi, 0, pi])
    """
    return _Solver(radius).solve(sympy.sympify(expr), Integer(0))


class _Solver:
    def __init__(self, radius: Rational | None) -> None:
        self.radius = radius

    def solve(self, expr: sympy.Expr, target: sympy.Expr) -> list[sympy.Expr]:
        """Points where ``expr`` equals the constant ``target``."""
        if not expr.has(X):
            return []
        if expr == X:
            return [target]
        if target == 0:
            if expr.is_positive or expr.is_negative or expr.is_nonzero:
                return []
            if isinstance(expr, sympy.Mul):
                return [z for factor in expr.args for z in self.solve(factor, Integer(0))]
        if isinstance(expr, sympy.Add):
            constant, rest = expr.as_independent(X)
            if constant != 0:
                return self.solve(rest, target - constant)
        if isinstance(expr, sympy.Mul):
            factor, rest = expr.as_independent(X)
            if factor != 1:
                return self.solve(rest, target / factor)
        if expr.is_polynomial(X):
            return self._polynomial(expr - target)
        if isinstance(expr, sympy.Pow) and (found := self._power(expr, target)) is not None:
            return found
        if len(expr.args) == 1 and type(expr) in _INVERSES:
            return [z for t in _INVERSES[type(expr)](target) for z in self.solve(expr.args[0], t)]
        if len(expr.args) == 1 and type(expr) in _WAVES:
            return self._wave(type(expr), expr.args[0], target)
        if (found := self._one_kernel(expr, target)) is not None:
            return found
        return self._isolated(expr - target)

    def _power(self, expr: sympy.Pow, target: sympy.Expr) -> list[sympy.Expr] | None:
        base, p = expr.args
        if base == sympy.E or (not base.has(X) and base.is_positive):
            logs = _logarithm(target)
            scale = Integer(1) if base == sympy.E else sympy.log(base)
            return [z for t in logs for z in self.solve(p, t / scale)]
        if p.has(X):
            return None
        if target == 0:
            return self.solve(base, Integer(0)) if p.is_positive else []
        if not p.is_Rational:
            return None
        sign = _sign(target)
        if p.is_Integer and p.is_odd:
            root = sympy.sign(target) * sympy.Abs(target) ** (1 / p)
            return self.solve(base, sign * abs(target) ** (1 / p) if sign else root)
        if sign < 0:
            return []
        roots = [target ** (1 / p)]
        if p.is_Integer or p.p % 2 == 0:
            roots.append(-roots[0])
        return [z for r in roots for z in self.solve(base, r)]

    # ---- polynomials ---------------------------------------------------------------------------------------

    def _polynomial(self, expr: sympy.Expr) -> list[sympy.Expr]:
        polynomial = polynomial_of(expr)
        degree = polynomial.degree()
        if polynomial.is_zero or degree < 1:
            return []
        coefficients = polynomial.all_coeffs()
        if degree == 1:
            a, b = coefficients
            return [sympy.cancel(-b / a) if (a.free_symbols or b.free_symbols) else sympy.radsimp(-b / a)]
        if not any(coefficients[1:]):
            return [Integer(0)]
        if degree == 2:
            return _quadratic(*coefficients)
        if polynomial.free_symbols_in_domain:
            raise Undecided(f"zeros of {expr}")
        if not all(c.is_Rational for c in coefficients):
            return self._isolated(expr)
        if degree > _MAX_DEGREE:
            raise InputError(
                f"a kink or jump at zeros of a polynomial of degree {degree}",
                "break points",
                f"up to degree {_MAX_DEGREE} these are found",
            )
        integers = polynomial.clear_denoms(convert=True)[1]
        _, factors = fmpz_poly([fmpz(int(c)) for c in reversed(integers.all_coeffs())]).factor()
        return [z for factor, _ in factors for z in self._irreducible(factor)]

    def _irreducible(self, factor: fmpz_poly) -> list[sympy.Expr]:
        polynomial = sympy.Poly([int(c) for c in reversed(factor.coeffs())], X)
        degree, coefficients = polynomial.degree(), polynomial.all_coeffs()
        if degree == 1:
            return [-coefficients[1] / coefficients[0]]
        if degree == 2:
            return _quadratic(*coefficients)
        biquadratic = degree == 4 and coefficients[1] == coefficients[3] == 0
        if biquadratic:
            squares = _quadratic(coefficients[0], coefficients[2], coefficients[4])
            return [s * sympy.sqrtdenest(sympy.sqrt(q)) for q in squares if sign_of(q) == 1 for s in (-1, 1)]
        if degree <= _MAX_CROOTOF_DEGREE:
            return list(polynomial.real_roots())
        balls = [r.real for r, _ in factor.complex_roots() if r.imag == 0]
        return [_root_in(polynomial.as_expr(), ball) for ball in balls]

    # ---- waves: infinitely many ----------------------------------------------------------------------------

    def _wave(self, wave: type, inner: sympy.Expr, target: sympy.Expr) -> list[sympy.Expr]:
        period, starts = _WAVES[wave](target)
        if not starts:
            return []
        if self.radius is None:
            raise InfinitelyMany(f"{wave.__name__}({inner})")
        low, high = self._range(inner)
        found: list[sympy.Expr] = []
        for start in starts:
            first = _floor((low - start) / period) - 1
            last = _floor((high - start) / period) + 1
            if last - first > _MAX_FAMILY:
                raise InputError(
                    f"more than {_MAX_FAMILY} zeros of {wave.__name__}({inner})",
                    "break points",
                    "slow the oscillation",
                )
            for n in range(first, last + 1):
                found += self.solve(inner, start + n * period)
        return [z for z in found if self._is_inside(z)]

    def _range(self, inner: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
        assert self.radius is not None
        with ctx.workprec(64):
            window = enclose(-self.radius).union(enclose(self.radius))
            try:
                ball = enclose(inner, window)
            except NoBall:
                raise Undecided(str(inner)) from None
            if not ball.is_finite():
                raise Undecided(f"range of {inner}")
            return Integer(math.floor(float(ball.lower()))), Integer(math.ceil(float(ball.upper())))

    def _is_inside(self, point: sympy.Expr) -> bool:
        return self.radius is None or point.free_symbols != set() or sign_of(self.radius - abs(point)) != -1

    # ---- several occurrences of the variable ---------------------------------------------------------------

    def _one_kernel(self, expr: sympy.Expr, target: sympy.Expr) -> list[sympy.Expr] | None:
        """A polynomial in one kernel, such as exp(x), tanh(x) or cos(x); None when it is not that."""
        difference = expr - target
        kernels = {node for node in difference.atoms(*_INVERSES, *_WAVES) if node.has(X)}
        exponentials = {node for node in kernels if isinstance(node, sympy.exp)}
        y = sympy.Dummy("y", real=True)
        if kernels == exponentials and len(exponentials) > 1:
            slopes = [sympy.cancel(node.args[0] / X) for node in exponentials]
            if not all(s.is_Rational for s in slopes):
                return None
            unit = slopes[0]
            for s in slopes[1:]:
                unit = sympy.gcd(unit, s)
            kernel = sympy.exp(unit * X)
            exchanged = difference.replace(
                lambda e: isinstance(e, sympy.exp) and e.has(X),
                lambda e: y ** sympy.cancel(e.args[0] / X / unit),
            )
        elif len(kernels) == 1:
            kernel = kernels.pop()
            exchanged = difference.xreplace({kernel: y})
        else:
            return None
        numerator = sympy.numer(sympy.together(exchanged))
        if exchanged.has(X) or not numerator.is_polynomial(y) or numerator.free_symbols != {y}:
            return None
        levels = _Solver(None)._polynomial(numerator.xreplace({y: X}))
        return [z for level in levels for z in self.solve(kernel, level)]

    def _isolated(self, expr: sympy.Expr) -> list[sympy.Expr]:
        if expr.free_symbols != {X}:
            raise Undecided(f"zeros of {expr}")
        if (root := _obvious(expr)) is not None:
            return root
        radius = self.radius if self.radius is not None else _radius_of_all(expr)
        if radius is None:
            raise InfinitelyMany(str(expr))
        try:
            return list(isolate(expr, -Rational(radius), Rational(radius)))
        except NoBall:
            raise Undecided(f"zeros of {expr}") from None


def _obvious(expr: sympy.Expr) -> list[sympy.Expr] | None:
    """No zeros to report, where the expression vanishes identically; None where it does not."""
    return [] if sympy.expand(expr) == 0 else None


def _radius_of_all(expr: sympy.Expr) -> Rational | None:
    """A radius that holds all zeros of a polynomial plus bounded terms, by Cauchy's bound; else None."""
    head, size = Integer(0), Integer(0)
    for term in sympy.Add.make_args(sympy.expand(expr)):
        if term.is_polynomial(X):
            head += term
            continue
        factor, rest = term.as_independent(X)
        for part in sympy.Mul.make_args(rest):
            base, p = part.as_base_exp()
            bound = _BOUNDS.get(type(base))
            if bound is None or not (p.is_Integer and p > 0):
                return None
            factor *= bound**p
        size += abs(factor)
    polynomial = sympy.Poly(head, X)
    if polynomial.degree() < 1:
        return None
    lead = abs(polynomial.LC())
    others = [abs(c) for c in polynomial.all_coeffs()[1:]]
    others[-1] += size
    with ctx.workprec(64):
        try:
            largest = max((enclose(c / lead) for c in others), key=lambda b: float(b.upper()))
        except NoBall:
            return None
    return Rational(math.ceil(float(largest.upper())) + 2)


def _quadratic(a: sympy.Expr, b: sympy.Expr, c: sympy.Expr) -> list[sympy.Expr]:
    discriminant = sympy.expand(b**2 - 4 * a * c)
    sign = _sign(discriminant)
    if sign < 0:
        return []
    if sign == 0:
        return [-b / (2 * a)]
    root = sympy.sqrtdenest(sympy.sqrt(discriminant))
    return [sympy.expand((-b - root) / (2 * a)), sympy.expand((-b + root) / (2 * a))]


def _sign(number: sympy.Expr) -> int:
    if number.free_symbols:
        for value, test in ((0, number.is_zero), (1, number.is_positive), (-1, number.is_negative)):
            if test:
                return value
        raise Undecided(f"sign of {number}")
    sign = sign_of(number)
    return 0 if sign is None else sign


def _floor(number: sympy.Expr) -> int:
    with ctx.workprec(128):
        return math.floor(float(enclose(number).mid()))


def _root_in(equation: sympy.Expr, ball: arb) -> IsolatedRoot:
    def rational(end: arb) -> Rational:
        man, exp = end.man_exp()
        return Rational(int(man)) * Rational(2) ** int(exp)

    with ctx.workprec(256):
        return IsolatedRoot(equation, rational(ball.lower()), rational(ball.upper()))


# ---- inverses ------------------------------------------------------------------------------------------------

Levels = Callable[[sympy.Expr], Iterable[sympy.Expr]]


def _inside(t: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> bool:
    return _sign(t - low) > 0 and _sign(high - t) > 0


def _logarithm(t: sympy.Expr) -> list[sympy.Expr]:
    return [sympy.log(t)] if _sign(t) > 0 else []


def _both(t: sympy.Expr) -> list[sympy.Expr]:
    return [-t, t] if t != 0 else [t]


_INVERSES: dict[type, Levels] = {
    sympy.exp: _logarithm,
    sympy.log: lambda t: [sympy.exp(t)],
    sympy.tanh: lambda t: [sympy.log((1 + t) / (1 - t)) / 2] if _inside(t, -Integer(1), Integer(1)) else [],
    sympy.erf: lambda t: [sympy.erfinv(t)] if _inside(t, -Integer(1), Integer(1)) else [],
    sympy.erfc: lambda t: [sympy.erfinv(1 - t)] if _inside(t, Integer(0), Integer(2)) else [],
    sympy.sinh: lambda t: [sympy.asinh(t)],
    sympy.asinh: lambda t: [sympy.sinh(t)],
    sympy.cosh: lambda t: _both(sympy.acosh(t)) if _sign(t - 1) >= 0 else [],
    sympy.atan: lambda t: [sympy.tan(t)] if _inside(t, -pi / 2, pi / 2) else [],
    sympy.asin: lambda t: [sympy.sin(t)] if _inside(t, -2 * pi / 3, 2 * pi / 3) else [],
    sympy.acos: lambda t: [sympy.cos(t)] if _inside(t, -Integer(1), Integer(4)) else [],
}

_WAVES: dict[type, Callable[[sympy.Expr], tuple[sympy.Expr, list[sympy.Expr]]]] = {
    sympy.sin: lambda t: (
        (pi, [Integer(0)])
        if t == 0
        else (2 * pi, [sympy.asin(t), pi - sympy.asin(t)] if _sign(1 - abs(t)) >= 0 else [])
    ),
    sympy.cos: lambda t: (
        (pi, [pi / 2])
        if t == 0
        else (2 * pi, [sympy.acos(t), -sympy.acos(t)] if _sign(1 - abs(t)) >= 0 else [])
    ),
    sympy.tan: lambda t: (pi, [sympy.atan(t)]),
}

_BOUNDS: dict[type, sympy.Expr] = {
    sympy.tanh: Integer(1),
    sympy.erf: Integer(1),
    sympy.erfc: Integer(2),
    sympy.sin: Integer(1),
    sympy.cos: Integer(1),
    sympy.atan: pi / 2,
}
