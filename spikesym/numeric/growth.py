"""Growth of an expression at infinity and at a point, proved by recursion over its tree.

Used for the tails of Gaussian integrals, for integrable singularities, and for the proof that an
expectation is infinite. All bounds are rigorous and valid for every t >= T.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import sympy
from flint import arb, ctx

from ..budget import within
from ..errors import CertificationError
from ..symbolic.roots import IsolatedRoot
from ..symbolic.symbols import X
from .arb_eval import compile, evaluate
from .orders import ONE, ZERO, Order, Undecided, ball_of, extreme, rational_above, sign, total
from .ranges import Range

T = sympy.Symbol("t", positive=True)
_Y = sympy.Symbol("y", real=True)
_BITS = 80
_MAX_VANISHING = 8
#: log t is bounded by a multiple of this power
_LOG_POWER = sympy.Rational(1, 16)
_ZERO_BITS = 256
_ZERO_BUDGET = 0.5
_MOST_OPS = 120

#: limits at minus and plus infinity of monotone bounded functions
_LIMITS: dict[str, Callable[[], tuple[arb, arb]]] = {
    "tanh": lambda: (arb(-1), arb(1)),
    "erf": lambda: (arb(-1), arb(1)),
    "atan": lambda: (-arb.pi() / 2, arb.pi() / 2),
    "erfc": lambda: (arb(2), arb(0)),
}
_WAVES = ("sin", "cos")
_MONOTONE = ("tanh", "erf", "atan", "erfc", "sinh", "asinh", "asin", "acos", "erfi", "atanh")
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
    >>> from sympy import Symbol, exp, log
    >>> x = Symbol("x", real=True)
    >>> bound = growth_at_infinity(x * log(1 + exp(x)), x, +1, 8.0)
    >>> bound.p, bound.a, bound.range.high < 1.1
    (2, 0, True)
    """
    growth, expr = _Growth(arb(start), None), expr.subs(x, side * T)
    try:
        return growth.order_within(growth.by_distance_to_limits(expr))
    except Undecided:
        return growth.order_within(expr)


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
        """The bound of ``expr``, at no less than the working precision of bounds."""
        old = ctx.prec
        ctx.prec = max(_BITS, old)
        try:
            return self.order(expr)
        except (CertificationError, ZeroDivisionError, ValueError, RecursionError) as error:
            raise Undecided(str(error)) from None
        finally:
            ctx.prec = old

    def by_distance_to_limits(self, expr: sympy.Expr) -> sympy.Expr:
        """erf and tanh of arguments that grow written by what is missing to their limits, so that 1 - 1 cancels."""

        def sign(argument: sympy.Expr) -> int:
            try:
                order = self.order_within(argument)
                return order.range.sign if order.tends_to_infinity else 0
            except Undecided:
                return 0

        def of_erf(w: sympy.Expr) -> sympy.Expr:
            s = sign(w)
            return s * (1 - sympy.erfc(s * w)) if s else sympy.erf(w)

        def of_tanh(w: sympy.Expr) -> sympy.Expr:
            s = sign(w)
            return s * (1 - 2 / (sympy.exp(2 * s * w) + 1)) if s else sympy.tanh(w)

        written = expr.replace(sympy.erf, of_erf).replace(sympy.tanh, of_tanh)
        return sympy.expand(written) if written != expr and sympy.count_ops(written) < _MOST_OPS else written

    def order(self, node: sympy.Expr) -> Order:
        """The bound of a subexpression."""
        if node not in self.known:
            self.known[node] = self._order(node)
        return self.known[node]

    def _order(self, node: sympy.Expr) -> Order:
        if self.variable not in node.free_symbols:
            return Order.bounded(Range.of(evaluate(node, ctx.prec)))
        if node == self.variable:
            return Order(ONE if self.local is None else -ONE, ZERO, ZERO, Range.of(arb(1)))
        if self.local is not None and (direct := self._analytic(node)) is not None:
            return direct
        if isinstance(node, sympy.Add):
            return self._sum(node)
        if isinstance(node, sympy.Mul):
            product = Order.bounded(Range.of(arb(1)))
            for part in node.args:
                product = product.times(self.order(part))
            return product
        if isinstance(node, sympy.Pow):
            return self._power(node)
        if isinstance(node, sympy.exp):
            return self._exponential(node.args[0])
        return self._function(node)

    def _sum(self, node: sympy.Add) -> Order:
        problem: Undecided | None = None
        try:
            order = total([self.order(part) for part in node.args], self.start)
            if self.local is None or order.trend <= 0 or order.is_two_sided:
                return order
        except Undecided as error:
            problem = error
        # singular terms may cancel over a common denominator
        top, bottom = sympy.fraction(sympy.together(node))
        if self.local is not None and bottom.has(self.local):
            quotient = self.order(top).times(self.order(sympy.Pow(bottom, -1, evaluate=False)))
            if problem is not None or sign(order.p - quotient.p) > 0:
                return quotient
        if problem is not None:
            raise problem
        return order

    # ---- powers and exponentials ---------------------------------------------------------------------------

    def _power(self, node: sympy.Pow) -> Order:
        base, exponent = node.args
        if self.variable in exponent.free_symbols:
            return self.order(sympy.exp(exponent * sympy.log(base)))
        inner = self.order(base)
        if exponent.is_Integer:
            return inner.to_power(exponent, inner.range.integer_power(int(exponent)))
        return inner.to_power(exponent, inner.range.real_power(ball_of(exponent)))

    def _exponential(self, argument: sympy.Expr) -> Order:
        inner = self.order(argument)
        if inner.trend <= 0:
            return Order.bounded(inner.values(self.start).monotone(arb.exp))
        infinite = Order(ZERO, ZERO, sympy.oo, Range.of(arb(1)))
        if (exact := self._exact_exponent(argument)) is not None:
            return exact
        if self.local is not None and inner.range.sign > 0:
            return infinite
        if inner.range.sign < 0:
            return Order.bounded(Range.of(arb(0), (-inner.least(self.start)).exp()))
        # slower than t^2: |argument| <= H t^p <= H start^(p-1) t for p <= 1, and likewise with t^2 up to 2
        positive = Range.of(arb(0), arb(1))
        for power in (1, 2) if inner.a == 0 and inner.b == 0 else ():
            if inner.p <= power:
                rate = rational_above(inner.range.largest * self.start ** ball_of(inner.p - power))
                return Order(ZERO, rate if power == 1 else ZERO, rate if power == 2 else ZERO, positive)
        if inner.range.sign > 0:
            return infinite
        raise Undecided("exponential of a growing oscillation")

    def _exact_exponent(self, argument: sympy.Expr) -> Order | None:
        """exp(b t^2 + a t + rest) with the quadratic part split off exactly; None where there is none."""
        if self.local is not None:
            argument = argument.subs(self.local, 1 / T)
        exact, rest = [ZERO, ZERO, ZERO], []
        for term in sympy.Add.make_args(sympy.expand(argument)):
            degree = sympy.degree(term, T) if term.is_polynomial(T) else 3
            if degree > 2:
                rest.append(term if self.local is None else term.subs(T, 1 / self.local))
            else:
                exact[degree] += term.coeff(T, degree)
        if exact[1] == 0 and exact[2] == 0:
            return None
        head = Order(ZERO, exact[1], exact[2], Range.of(ball_of(exact[0]).exp()))
        return head.times(self._exponential(sympy.Add(*rest))) if rest else head

    # ---- functions -----------------------------------------------------------------------------------------

    def _function(self, node: sympy.Expr) -> Order:
        name = type(node).__name__
        if name in ("Max", "Min"):
            parts, pick = [self.order(part) for part in node.args], arb.max if name == "Max" else arb.min
            return extreme(parts, self.start, lambda x, y: x.extreme(y, pick))
        if name == "Piecewise":
            return self._piecewise(node)
        if name in _BY_EXPONENTIALS and self.local is None:
            return self.order(node.rewrite(sympy.exp))
        if name == "HermiteProb":
            return self.order(node.doit())
        if name in _BY_QUOTIENT:
            return self.order(_BY_QUOTIENT[name](node.args[0]))
        if name == "log":
            return self._logarithm(node.args[0])
        if len(node.args) != 1 and name != "Heaviside":
            raise Undecided(f"growth of {name}")
        argument = node.args[0]
        inner = self.order(argument)
        if name == "Abs":
            return replace(inner, range=inner.range.absolute())
        if name in ("sign", "Heaviside"):
            least = -1 if name == "sign" else 0
            at = {1: Range.of(arb(1)), -1: Range.of(arb(least)), 0: Range.of(arb(least), arb(1))}
            return Order.bounded(at[inner.range.sign])
        if inner.trend < 0 and name in _ODD:
            reach = inner.values(self.start).union(Range.of(arb(0)))
            slope = compile(node.func(_Y).diff(_Y), (_Y,), real=True)(reach.ball())
            return inner.times(Order.bounded(Range.of(slope)))
        if inner.trend <= 0:
            function, reach = compile(node.func(_Y), (_Y,), real=True), inner.values(self.start)
            value = reach.monotone(function) if name in _MONOTONE else Range.of(function(reach.ball()))
            if value.is_finite:
                return Order.bounded(value)
        return self._at_large_argument(name, argument, inner)

    def _at_large_argument(self, name: str, argument: sympy.Expr, inner: Order) -> Order:
        if name in _WAVES:
            return Order.bounded(Range.of(arb(-1), arb(1)))
        if name in _LIMITS:
            low, high = _LIMITS[name]()
            if not inner.is_two_sided or inner.trend <= 0:
                return Order.bounded(Range.of(low, high))
            positive = inner.range.sign > 0
            if name == "erfc" and positive:
                return self.order(sympy.exp(-(argument**2))).times(Order.bounded(Range.of(arb(0), arb(1))))
            edge = inner.least(self.start) * inner.range.sign
            value = compile(getattr(sympy, name)(_Y), (_Y,), real=True)(edge)
            return Order.bounded(Range.of(high if positive else low, value))
        if name == "asinh":
            size = self.order(sympy.log(sympy.Abs(argument) + sympy.sqrt(argument**2 + 1)))
            sign = inner.range.sign
            return size.times(Order.bounded(Range.of(arb(sign)) if sign else Range.of(arb(-1), arb(1))))
        raise Undecided(f"growth of {name} of an unbounded argument")

    def _logarithm(self, argument: sympy.Expr) -> Order:
        inner = self.order(argument)
        if not inner.range.sign > 0:
            raise Undecided("logarithm of a function that may vanish")
        terms = [Order.bounded(inner.range.monotone(arb.log))]
        if inner.p != 0:
            # 0 <= log t <= t^s / (e s) for t >= 1
            if not self.start >= 1:
                raise Undecided("logarithm before t = 1")
            largest = Range.of(arb(0), 1 / (arb.const_e() * ball_of(_LOG_POWER)))
            terms.append(Order(_LOG_POWER, ZERO, ZERO, Range.of(ball_of(inner.p)) * largest))
        if inner.a != 0:
            terms.append(Order(ONE, ZERO, ZERO, Range.of(ball_of(inner.a))))
        if inner.b != 0:
            terms.append(Order(2 * ONE, ZERO, ZERO, Range.of(ball_of(inner.b))))
        return replace(total(terms, self.start), diverges=inner.trend != 0)

    def _piecewise(self, node: sympy.Piecewise) -> Order:
        """The branch that holds for all t >= T where that is clear, the union of the candidates otherwise."""
        candidates = []
        for branch, condition in node.args:
            holds = self._holds(condition)
            if holds is not False:
                candidates.append(self.order(branch))
            if holds is True:
                break
        return extreme(candidates, self.start, Range.union)

    def _holds(self, condition: sympy.Basic) -> bool | None:
        if condition in (sympy.true, sympy.false):
            return bool(condition)
        if not isinstance(condition, sympy.core.relational.Relational):
            return None
        try:
            sign = self.order(condition.lhs - condition.rhs).range.sign
        except Undecided:
            return None
        return bool(condition.func(sympy.Integer(sign), 0)) if sign else None

    def _analytic(self, node: sympy.Expr) -> Order | None:
        """The bound u^m h of a subexpression that is smooth on 0 <= u <= 1/T, from its m-th derivative there."""
        if node.has(sympy.Piecewise):  # SymPy's derivative of it forgets jumps
            return None
        interval = arb(0).union(1 / self.start)
        derivative = node
        for m in range(_MAX_VANISHING):
            try:
                ball = compile(derivative, (self.variable,), real=True)(interval)
            except CertificationError:
                return None
            if not ball.is_finite():
                return None
            if not _is_known_zero(derivative.subs(self.variable, 0)):
                return Order(sympy.Integer(-m), ZERO, ZERO, Range.of(ball / math.factorial(m)))
            derivative = derivative.diff(self.variable)
        return None


def _is_known_zero(value: sympy.Expr) -> bool:
    """Whether a constant is proved to be zero: by SymPy, or as the equation that defines a root."""
    if value.is_zero is not None:
        return bool(value.is_zero)
    if any(value in (e := root.equation.subs(X, root), -e) for root in value.atoms(IsolatedRoot)):
        return True
    if not evaluate(value, _ZERO_BITS).contains(0):
        return False
    proved, _ = within(_ZERO_BUDGET, lambda: sympy.simplify(value.rewrite(sympy.exp)) == 0, False)
    return bool(proved)
