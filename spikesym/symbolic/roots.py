"""Real zeros without closed form: certified isolation in ball arithmetic, and the number they define."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import sympy
from flint import arb, ctx, fmpq, fmpz, fmpz_poly
from sympy import Rational
from sympy.core.expr import AtomicExpr

from ..errors import InputError
from .symbols import X

_NAMES: dict[type, str] = {
    sympy.exp: "exp", sympy.log: "log", sympy.sin: "sin", sympy.cos: "cos", sympy.tan: "tan",
    sympy.cot: "cot", sympy.sec: "sec", sympy.csc: "csc", sympy.sinh: "sinh", sympy.cosh: "cosh",
    sympy.tanh: "tanh", sympy.coth: "coth", sympy.sech: "sech", sympy.csch: "csch", sympy.erf: "erf",
    sympy.erfc: "erfc", sympy.erfinv: "erfinv", sympy.atan: "atan", sympy.asin: "asin",
    sympy.acos: "acos", sympy.asinh: "asinh", sympy.acosh: "acosh", sympy.Abs: "__abs__", sympy.sign: "sgn",
}  # fmt: skip
_CONSTANTS: dict[Any, Callable[[], arb]] = {sympy.pi: arb.pi, sympy.E: arb.const_e}
_MOST_PARTS = 20000
_FINEST = 60


class NoBall(Exception):
    """The expression has no ball evaluation here."""


def enclose(expr: sympy.Expr, x: arb | None = None) -> arb:
    """A ball for a real expression over the ball ``x`` of ``X``, at the context's precision.

    Examples
    --------
    >>> enclose(sympy.tanh(X) - 1, arb(0)) == -1
    True
    """
    known: dict[sympy.Basic, arb] = {}

    def visit(node: sympy.Expr) -> arb:
        value = known.get(node)
        if value is None:
            value = known[node] = compute(node)
        return value

    def compute(node: sympy.Expr) -> arb:
        if node == X:
            if x is None:
                raise NoBall("variable in a constant")
            return x
        if isinstance(node, sympy.Rational):
            return arb(fmpq(int(node.p), int(node.q)))
        if node in _CONSTANTS:
            return _CONSTANTS[node]()
        if hasattr(node, "ball"):
            return node.ball(ctx.prec)
        if isinstance(node, sympy.CRootOf):
            return _algebraic(node)
        if isinstance(node, sympy.Add):
            return sum((visit(a) for a in node.args), arb(0))
        if isinstance(node, sympy.Mul):
            product = arb(1)
            for a in node.args:
                product *= visit(a)
            return product
        if isinstance(node, sympy.Pow):
            return _power(node, visit)
        if isinstance(node, sympy.Max | sympy.Min):
            values = [visit(a) for a in node.args]
            for v in values[1:]:
                values[0] = values[0].max(v) if isinstance(node, sympy.Max) else values[0].min(v)
            return values[0]
        if type(node) in _NAMES:
            return getattr(visit(node.args[0]), _NAMES[type(node)])()
        raise NoBall(f"no ball for {str(node)[:60]}")

    return visit(sympy.sympify(expr))


def _power(node: sympy.Pow, visit: Callable[[sympy.Expr], arb]) -> arb:
    base, exponent = node.args
    if base == sympy.E:
        return visit(exponent).exp()
    if exponent.is_Integer:
        return integer_power(visit(base), int(exponent))
    if exponent == Rational(1, 2):
        return visit(base).sqrt()
    return visit(base) ** visit(exponent)


def integer_power(base: arb, n: int) -> arb:
    """base**n, also for a ball that contains zero (where the library goes through the logarithm)."""
    if not base.contains(0) or n < 0:
        return base ** fmpz(n)
    high = arb(base.abs_upper()) ** n
    return arb(0).union(high) if n % 2 == 0 else (-high).union(high)


def _algebraic(node: sympy.CRootOf) -> arb:
    coefficients = [fmpz(int(c)) for c in reversed(node.poly.all_coeffs())]
    real = [r.real for r, _ in fmpz_poly(coefficients).complex_roots() if r.imag == 0]
    real.sort(key=lambda r: float(r.mid()))
    if node.index >= len(real):
        raise NoBall(f"not a real root: {node}")
    return real[node.index]


def sign_of(expr: sympy.Expr) -> int | None:
    """The sign of a real constant, or None when it is zero to 2000 bits (or has no ball)."""
    return int(sympy.sign(expr)) if expr.is_Rational else sign_at(expr, sympy.Integer(0))


class IsolatedRoot(AtomicExpr):
    """The one zero of an expression in ``X`` between two rationals; its derivative does not vanish there.

    A real SymPy number without closed form: :meth:`ball` encloses it to any precision.

    Examples
    --------
    >>> (root,) = isolate(sympy.cos(X) - X, Rational(0), Rational(1))
    >>> root.evalf(20)
    0.73908513321516064166
    """

    equation: sympy.Expr
    lower: Rational
    upper: Rational
    _balls: dict[int, arb]

    is_real = True
    is_extended_real = True
    is_finite = True
    is_number = True
    is_commutative = True
    is_comparable = True

    def __new__(cls, equation: sympy.Expr, lower: Rational, upper: Rational) -> IsolatedRoot:
        """The zero of ``equation`` in (lower, upper), which the caller has proved to be unique and simple."""
        self = AtomicExpr.__new__(cls)
        self.equation, self.lower, self.upper = equation, lower, upper
        self._balls = {}
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.equation, self.lower, self.upper

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), self.__getnewargs__()

    def _hashable_content(self) -> tuple[Any, ...]:
        return self.equation, self.lower, self.upper

    def ball(self, bits: int) -> arb:
        """An Arb ball of about ``bits`` relative bits that contains the root, by Newton's interval method."""
        if bits in self._balls:
            return self._balls[bits]
        with ctx.workprec(bits + 40):
            ball = _hull(self.lower, self.upper)
            slope = self.equation.diff(X)
            for _ in range(4 * bits):
                if ball.rel_accuracy_bits() >= bits:
                    break
                middle = arb(ball.mid())
                step = middle - enclose(self.equation, middle) / enclose(slope, ball)
                if not step.is_finite() or not ball.overlaps(step):
                    raise InputError(
                        f"the zero of {str(self.equation)[:60]} could not be refined",
                        "break point",
                        "report this expression",
                    )
                smaller = ball.intersection(step)
                if smaller.rad() * 2 > ball.rad():
                    smaller = _bisected(self.equation, smaller)
                if not smaller.rad() < ball.rad():
                    break
                ball = smaller
            self._balls[bits] = ball
            return ball

    def _eval_evalf(self, prec: int) -> sympy.Float:
        man, exp = self.ball(prec + 8).mid().man_exp()
        return sympy.Float._new(sympy.Float((int(man), int(exp)), precision=prec)._mpf_, prec)

    def _eval_is_positive(self) -> bool | None:
        return True if self.lower >= 0 else (False if self.upper <= 0 else None)

    def _eval_is_negative(self) -> bool | None:
        return True if self.upper <= 0 else (False if self.lower >= 0 else None)

    def _sympystr(self, printer: Any) -> str:
        return f"root({printer._print(self.equation)}, {float(self.lower):.6g}, {float(self.upper):.6g})"

    def _latex(self, printer: Any) -> str:
        return sympy.latex(self.evalf(8))


def _hull(lower: Rational, upper: Rational) -> arb:
    return enclose(lower).union(enclose(upper))


def _bisected(equation: sympy.Expr, ball: arb) -> arb:
    """The half of the ball that holds the sign change; the ball itself when that is not decided."""
    low, middle, high = ball.lower(), ball.mid(), ball.upper()
    here, left = enclose(equation, middle), enclose(equation, low)
    if here.contains(0) or left.contains(0):
        return ball
    return arb(middle).union(arb(high)) if (here > 0) == (left > 0) else arb(low).union(arb(middle))


def isolate(equation: sympy.Expr, lower: Rational, upper: Rational) -> list[IsolatedRoot]:
    """All zeros in [lower, upper] of an analytic expression, each proved to be simple and alone.

    Raises :class:`~spikesym.errors.InputError` where zeros cannot be separated (a zero of even order).
    """
    slope = equation.diff(X)
    found: list[IsolatedRoot] = []
    # odd denominators, so that a zero at a round number does not fall on a cut
    parts = [(lower - Rational(1, 997), upper + Rational(1, 991), 0)]
    count = 0
    with ctx.workprec(128):
        while parts:
            low, high, depth = parts.pop()
            count += 1
            ball = _hull(low, high)
            value = enclose(equation, ball)
            if value.is_finite() and not value.contains(0):
                continue
            steep = enclose(slope, ball)
            if value.is_finite() and steep.is_finite() and not steep.contains(0):
                left, right = enclose(equation, enclose(low)), enclose(equation, enclose(high))
                if not left.contains(0) and not right.contains(0):
                    if (left > 0) != (right > 0):
                        found.append(IsolatedRoot(equation, low, high))
                    continue
            if depth > _FINEST or count > _MOST_PARTS:
                raise InputError(
                    f"the zeros of {str(equation)[:60]} near {float(low):.6g} cannot be separated",
                    "break points",
                    "write the function as a Piecewise with explicit break points",
                )
            cut = low + (high - low) * Rational(487, 1009)
            parts += [(low, cut, depth + 1), (cut, high, depth + 1)]
    return sorted((r for r in found if not _outside(r, lower, upper)), key=lambda r: r.lower)


def _outside(root: IsolatedRoot, lower: Rational, upper: Rational) -> bool:
    ball = root.ball(128)
    return bool(ball < enclose(lower) or ball > enclose(upper))


def sort_points(points: Iterable[sympy.Expr]) -> list[sympy.Expr]:
    """Real numbers in ascending order, equal ones once.

    Two that agree to 2000 bits count as equal. Raises :class:`~spikesym.errors.InputError` for points with
    parameters whose order does not follow from the assumptions.
    """
    distinct = list(dict.fromkeys(points))
    if all(not p.free_symbols for p in distinct):
        # presorted, so that nearly all comparisons are between neighbours
        with ctx.workprec(128):
            distinct.sort(key=lambda p: float(enclose(p).mid()))
    ordered: list[sympy.Expr] = []
    for point in distinct:
        place = len(ordered)
        while place > 0 and (order := _compare(point, ordered[place - 1])) <= 0:
            place = place - 1 if order < 0 else -1
        if place >= 0:
            ordered.insert(place, point)
    return ordered


def _compare(a: sympy.Expr, b: sympy.Expr) -> int:
    if a == b:
        return 0
    if not a.free_symbols and not b.free_symbols:
        with ctx.workprec(128):
            left, right = enclose(a), enclose(b)
        if left < right or left > right:
            return -1 if left < right else 1
        return sign_of(a - b) or 0
    difference = sympy.expand(a - b)
    for value, test in ((0, difference.is_zero), (1, difference.is_positive), (-1, difference.is_negative)):
        if test:
            return value
    raise InputError(
        f"the order of the break points {a} and {b} is open", "parameters", "give values by --set NAME=VALUE"
    )


def sign_at(expr: sympy.Expr, point: Rational, most_bits: int = 2000) -> int | None:
    """The sign of an expression in ``X`` at a rational; None when it is zero to ``most_bits``, or has no ball."""
    bits = 64
    while bits <= most_bits:
        try:
            with ctx.workprec(bits):
                ball = enclose(expr, enclose(point))
        except NoBall:
            return None
        if ball == 0:
            return 0
        if ball.is_finite() and not ball.contains(0):
            return 1 if ball > 0 else -1
        bits *= 4
    return None
