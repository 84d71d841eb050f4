"""Growth of an expression at infinity and at a point, proved by recursion over its tree.

Used for the tails of Gaussian integrals, for integrable singularities, and for the proof that an
expectation is infinite. All bounds are balls, valid for every t >= T.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import sympy
from flint import arb, ctx

from ..errors import CertificationError
from .arb_eval import compile, evaluate
from .orders import Order, Undecided, combine

T = sympy.Symbol("t", positive=True)
_Y = sympy.Symbol("y", real=True)
_BITS = 80
_MAX_VANISHING = 8

#: limits at minus and plus infinity of monotone bounded functions
_LIMITS: dict[str, Callable[[], tuple[arb, arb]]] = {
    "tanh": lambda: (arb(-1), arb(1)),
    "erf": lambda: (arb(-1), arb(1)),
    "atan": lambda: (-arb.pi() / 2, arb.pi() / 2),
    "erfc": lambda: (arb(2), arb(0)),
}
_WAVES = ("sin", "cos")
#: odd functions: f(w) = w f'(xi), so that they vanish with their argument
_ODD = ("sin", "tan", "sinh", "tanh", "asin", "atan", "asinh", "erf", "erfi", "atanh")
_BY_EXPONENTIALS = ("sinh", "cosh", "sech", "csch", "coth")
_BY_QUOTIENT: dict[str, Callable[[sympy.Expr], sympy.Expr]] = {
    "tan": lambda w: sympy.sin(w) / sympy.cos(w),
    "cot": lambda w: sympy.cos(w) / sympy.sin(w),
    "sec": lambda w: 1 / sympy.cos(w),
    "csc": lambda w: 1 / sympy.sin(w),
    "coth": lambda w: sympy.cosh(w) / sympy.sinh(w),
    "csch": lambda w: 1 / sympy.sinh(w),
}


def growth_at_infinity(expr: sympy.Expr, x: sympy.Symbol, side: int, start: float) -> Order:
    """Bound of ``expr`` as x -> side * infinity, valid for side * x >= ``start``.

    Raises :class:`~spikesym.numeric.orders.Undecided` when these rules do not bound it.

    Examples
    --------
    >>> from sympy import Symbol, exp, log, tanh
    >>> x = Symbol("x", real=True)
    >>> bound = growth_at_infinity(x * log(1 + exp(x)), x, +1, 8.0)
    >>> bound.p, bound.a, bound.ball < 1.1
    (2.00000000000000, 0, True)
    """
    return _Growth(arb(start), None).order_within(expr.subs(x, side * T))


def order_at_point(expr: sympy.Expr, x: sympy.Symbol, point: sympy.Expr, side: int, reach: float) -> Order:
    """Bound of ``expr`` at x = point + side * u in terms of t = 1/u, valid for 0 < u <= ``reach``.

    A positive power p of t is a singularity |x - point|^(-p); a negative one is a zero.
    """
    u = sympy.Symbol("u", positive=True)
    local = expr.subs(x, point + side * u)
    return _Growth(1 / arb(reach), u).order_within(local)


class _Growth:
    """The recursion; ``local`` is the symbol u = 1/t when the limit is at a finite point."""

    def __init__(self, start: arb, local: sympy.Symbol | None) -> None:
        self.start, self.local = start, local
        self.variable = T if local is None else local
        self.known: dict[sympy.Basic, Order] = {}

    def order_within(self, expr: sympy.Expr) -> Order:
        """The bound of ``expr`` at the working precision of bounds."""
        old = ctx.prec
        ctx.prec = _BITS
        try:
            return self.order(expr)
        except (CertificationError, ZeroDivisionError, ValueError, RecursionError) as error:
            raise Undecided(str(error)) from None
        finally:
            ctx.prec = old

    def order(self, node: sympy.Expr) -> Order:
        """The bound of a subexpression."""
        if node not in self.known:
            self.known[node] = self._order(node)
        return self.known[node]

    def _order(self, node: sympy.Expr) -> Order:
        if self.variable not in node.free_symbols:
            return Order.bounded(evaluate(node, _BITS))
        if node == self.variable:
            return Order(arb(1 if self.local is None else -1), arb(0), arb(0), arb(1))
        if self.local is not None and (direct := self._analytic(node)) is not None:
            return direct
        if isinstance(node, sympy.Add):
            parts = [self.order(part) for part in node.args]
            return combine(parts, self.start, lambda balls: sum(balls[1:], balls[0]))
        if isinstance(node, sympy.Mul):
            product = Order.bounded(arb(1))
            for part in node.args:
                product = product.times(self.order(part))
            return product
        if isinstance(node, sympy.Pow):
            return self._power(node)
        if isinstance(node, sympy.exp):
            return self._exponential(node.args[0])
        return self._function(node)

    # ---- powers and exponentials ---------------------------------------------------------------------------

    def _power(self, node: sympy.Pow) -> Order:
        base, exponent = node.args
        if self.variable in exponent.free_symbols:
            return self.order(sympy.exp(exponent * sympy.log(base)))
        inner, power = self.order(base), evaluate(exponent, _BITS)
        if exponent.is_Integer:
            n = int(exponent)
            return inner.to_power(power, lambda ball: ball**n)
        if not power > 0:
            return inner.to_power(power, lambda ball: ball**power if ball > 0 else arb.nan())
        # the expression is real, so its base is not negative: the ball may be cut at zero
        return inner.to_power(power, _power_of_nonnegative(power))

    def _exponential(self, argument: sympy.Expr) -> Order:
        inner = self.order(argument)
        if inner.trend <= 0:
            return Order.bounded(inner.values(self.start).exp())
        if self.local is not None and inner.ball > 0:
            return Order(arb(0), arb(0), arb.pos_inf(), arb(1))
        if self.local is None and (exact := self._exact_exponent(argument)) is not None:
            return exact
        if inner.ball < 0:
            return Order.bounded(arb(0).union((-inner.lower_size(self.start)).exp()))
        # slower than t^2: |argument| <= H t^p <= H start^(p-1) t for p <= 1, and likewise with t^2 up to 2
        size, positive = inner.ball.abs_upper(), arb(0).union(arb(1))
        if inner.a == 0 and inner.b == 0 and inner.p <= 1:
            return Order(arb(0), size * self.start ** (inner.p - 1), arb(0), positive)
        if inner.a == 0 and inner.b == 0 and inner.p <= 2:
            return Order(arb(0), arb(0), size * self.start ** (inner.p - 2), positive)
        if inner.ball > 0:
            return Order(arb(0), arb(0), arb.pos_inf(), arb(1))
        raise Undecided("exponential of a growing oscillation")

    def _exact_exponent(self, argument: sympy.Expr) -> Order | None:
        """exp(b t^2 + a t + rest) with the quadratic part split off exactly; None where there is none."""
        exact, rest = [arb(0), arb(0), arb(0)], []
        for term in sympy.Add.make_args(sympy.expand(argument)):
            degree = sympy.degree(term, T) if term.is_polynomial(T) else 3
            if degree > 2:
                rest.append(term)
            else:
                exact[degree] += evaluate(term.coeff(T, degree), _BITS)
        if exact[1] == 0 and exact[2] == 0:
            return None
        head = Order(arb(0), exact[1], exact[2], exact[0].exp())
        return head.times(self._exponential(sympy.Add(*rest))) if rest else head

    # ---- functions -----------------------------------------------------------------------------------------

    def _function(self, node: sympy.Expr) -> Order:
        name = type(node).__name__
        if name in ("Max", "Min"):
            parts = [self.order(part) for part in node.args]
            pick = arb.max if name == "Max" else arb.min
            return combine(parts, self.start, lambda balls: _fold(balls, pick))
        if name == "Piecewise":
            return self._piecewise(node)
        if name in _BY_EXPONENTIALS and self.local is None:
            return self.order(node.rewrite(sympy.exp))
        if name in _BY_QUOTIENT:
            return self.order(_BY_QUOTIENT[name](node.args[0]))
        if name == "log":
            return self._logarithm(node.args[0])
        if name == "atan2":
            return Order.bounded(arb(0, arb.pi()))
        if len(node.args) != 1 and name != "Heaviside":
            raise Undecided(f"growth of {name}")
        argument = node.args[0]
        inner = self.order(argument)
        if name == "Abs":
            return Order(inner.p, inner.a, inner.b, abs(inner.ball))
        if name in ("sign", "Heaviside"):
            sign = inner.ball.sgn()
            return Order.bounded(sign if name == "sign" else (1 + sign) / 2)
        if inner.trend < 0 and name in _ODD:
            reach = inner.values(self.start).union(arb(0))
            slope = compile(node.func(_Y).diff(_Y), (_Y,), real=True)(reach)
            return inner.times(Order.bounded(slope))
        if inner.trend <= 0:
            ball = inner.values(self.start)
            value = compile(node.func(_Y), (_Y,), real=True)(ball)
            if value.is_finite():
                return Order.bounded(value)
        return self._at_large_argument(name, argument, inner)

    def _at_large_argument(self, name: str, argument: sympy.Expr, inner: Order) -> Order:
        if name in _WAVES:
            return Order.bounded(arb(0, 1))
        if name in _LIMITS:
            low, high = _LIMITS[name]()
            if not inner.is_two_sided or inner.trend <= 0:
                return Order.bounded(low.union(high))
            if name == "erfc" and inner.ball > 0:
                return self.order(sympy.exp(-(argument**2))).times(Order.bounded(arb(0).union(arb(1))))
            limit = high if inner.ball > 0 else low
            edge = inner.lower_size(self.start) * (1 if inner.ball > 0 else -1)
            value = compile(getattr(sympy, name)(_Y), (_Y,), real=True)(edge)
            return Order.bounded(limit.union(value))
        if name == "asinh":
            return Order(inner.p, inner.a, inner.b, inner.ball.union(-inner.ball))
        raise Undecided(f"growth of {name} of an unbounded argument")

    def _logarithm(self, argument: sympy.Expr) -> Order:
        inner = self.order(argument)
        if not inner.ball > 0:
            raise Undecided("logarithm of a function that may vanish")
        terms = [Order.bounded(inner.ball.log())]
        if not _is_zero(inner.p):
            # 0 <= log t <= t^s / (e s) for t >= 1
            if not self.start >= 1:
                raise Undecided("logarithm before t = 1")
            s = arb(1) / 16
            terms.append(Order(s, arb(0), arb(0), inner.p * arb(0).union(1 / (arb.const_e() * s))))
        if not _is_zero(inner.a):
            terms.append(Order(arb(1), arb(0), arb(0), inner.a))
        if not _is_zero(inner.b):
            terms.append(Order(arb(2), arb(0), arb(0), inner.b))
        return combine(terms, self.start, lambda balls: sum(balls[1:], balls[0]))

    def _piecewise(self, node: sympy.Piecewise) -> Order:
        """The branch that holds for all t >= T where that is clear, the union of the candidates otherwise."""
        candidates = []
        for branch, condition in node.args:
            holds = self._holds(condition)
            if holds is not False:
                candidates.append(self.order(branch))
            if holds is True:
                break
        return combine(candidates, self.start, lambda balls: _fold(balls, arb.union))

    def _holds(self, condition: sympy.Basic) -> bool | None:
        if condition in (sympy.true, sympy.false):
            return bool(condition)
        if not isinstance(condition, sympy.core.relational.Relational):
            return None
        try:
            ball = self.order(condition.lhs - condition.rhs).ball
        except Undecided:
            return None
        if not (ball > 0 or ball < 0):
            return None
        return bool(condition.func(sympy.Integer(1 if ball > 0 else -1), 0))

    def _analytic(self, node: sympy.Expr) -> Order | None:
        """The bound u^m h of a subexpression that is smooth on 0 <= u <= 1/T, from its m-th derivative there."""
        interval = arb(0).union(1 / self.start)
        if node.has(sympy.Piecewise):  # SymPy's derivative of it forgets jumps
            return None
        derivative = node
        for m in range(_MAX_VANISHING):
            try:
                ball = compile(derivative, (self.variable,), real=True)(interval)
            except CertificationError:
                return None
            if not ball.is_finite():
                return None
            at_zero = derivative.subs(self.variable, 0)
            if not at_zero.is_zero:
                return Order(arb(-m), arb(0), arb(0), ball / math.factorial(m))
            derivative = derivative.diff(self.variable)
        return None


def _power_of_nonnegative(power: arb) -> Callable[[arb], arb]:
    def apply(ball: arb) -> arb:
        if ball > 0:
            return ball**power
        if ball < 0:
            return arb.nan()
        upper = ball.upper()
        return arb(0).union(upper**power if upper > 0 else arb(0))

    return apply


def _is_zero(ball: arb) -> bool:
    """Whether the ball is exactly zero (``!=`` of balls asks for certainty of the opposite)."""
    return bool(ball == 0)


def _fold(balls: list[arb], op: Callable[[arb, arb], arb]) -> arb:
    result = balls[0]
    for ball in balls[1:]:
        result = op(result, ball)
    return result
