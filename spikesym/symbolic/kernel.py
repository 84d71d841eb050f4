r"""The kernels k0, k1 and the expansion of k1 in the spike B, as formulas.

With p = x^T Gamma x, p' = x'^T Gamma x', t = x^T Gamma x' the kernel of features of covariance Gamma/d is the dual
activation at (p, p', t)/d; k0 has Gamma = I, k1 has Gamma = A I + B w* w*^T, so that p = A |x|^2 + B s^2 and so on.

The expansion in B is Price's theorem: along B the variances and the covariance move by s^2, s'^2, s s', and
d/dt, 2 d/dq, 2 d/dq' raise the orders of the derivatives of sigma in E[sigma^(i)(U) sigma^(j)(U')].
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import sympy
from sympy import Integer, Rational, Symbol, cos, pi, sin

from ..errors import InputError
from .dual import BUDGET, dual_formula
from .dual_engine import tidy
from .dual_simplify import hyperbolic, present
from .dual_terms import NoClosedForm
from .symbols import NORM, NORMP, PP, QP, SP, THETA, A, B, D, P, Q, S, T

if TYPE_CHECKING:
    from .functions import ScalarFunction

#: orders beyond this are refused: the closed forms grow too long to be of use
MOST_ORDERS = 12

_ONE = Integer(1)
_DISCRIMINANT = Q * QP - T**2
_STEP = Symbol("lambda", real=True)


class DualMoment(sympy.Function):
    r"""E[sigma^(i)(U) sigma^(j)(U')] as a function of q, q', t, with Price's theorem for its derivatives.

    Examples
    --------
    >>> DualMoment(0, 0, Q, QP, T).diff(T), DualMoment(0, 1, Q, QP, T).diff(Q)
    (DualMoment(1, 1, q, qp, t), DualMoment(2, 1, q, qp, t)/2)
    """

    nargs = 5
    is_real = True

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Price's theorem: d/dt raises both orders by one, 2 d/dq and 2 d/dq' raise one of them by two."""
        i, j, *law = self.args
        raised = {3: (2, 0, Rational(1, 2)), 4: (0, 2, Rational(1, 2)), 5: (1, 1, Integer(1))}
        di, dj, factor = raised[argindex]
        return factor * DualMoment(i + di, j + dj, *law)

    def _latex(self, printer: object, exp: str | None = None) -> str:
        i, j = (_order_latex(int(n)) for n in self.args[:2])
        body = rf"\mathbb{{E}}\left[\sigma{i}(U)\,\sigma{j}(U')\right]"
        return body if exp is None else rf"{body}^{{{exp}}}"


def _order_latex(order: int) -> str:
    return "'" * order if order <= 2 else f"^{{({order})}}"


@cache
def price_term(order: int) -> sympy.Expr:
    """Coefficient of (B/d)^order in the expansion, for any activation, derived by differentiating along the spike.

    Examples
    --------
    >>> sympy.factor_terms(price_term(1))
    s**2*DualMoment(2, 0, q, qp, t)/2 + s*sp*DualMoment(1, 1, q, qp, t) + sp**2*DualMoment(0, 2, q, qp, t)/2
    """
    moment: sympy.Expr = DualMoment(0, 0, Q + _STEP * S**2, QP + _STEP * SP**2, T + _STEP * S * SP)
    for _ in range(order):
        moment = sympy.diff(moment, _STEP)
    return sympy.expand(moment.subs(_STEP, 0) / sympy.factorial(order))


def along_spike(formula: sympy.Expr, order: int, deadline: float = float("inf")) -> sympy.Expr:
    """(s s' d/dt + s^2 d/dq + s'^2 d/dq')^order / order! of a closed form in q, q', t, in canonical form.

    Examples
    --------
    >>> along_spike(sympy.exp((Q + QP) / 2 + T), 1)
    (s + sp)**2*exp(q/2 + qp/2 + t)/2
    """
    for step in range(1, order + 1):
        if time.monotonic() > deadline:
            raise NoClosedForm("the time budget is spent")
        formula = _step_along_spike(formula, step)
    return formula


@cache
def _step_along_spike(formula: sympy.Expr, step: int) -> sympy.Expr:
    moved = S * SP * sympy.diff(formula, T) + S**2 * sympy.diff(formula, Q) + SP**2 * sympy.diff(formula, QP)
    moved = present(moved / step)
    return hyperbolic(moved) if formula.has(sympy.sinh, sympy.cosh) else moved


def in_inner_products(formula: sympy.Expr) -> sympy.Expr:
    """A dual activation in q, q', t as a kernel in p, p', t = x^T Gamma x' (each over d)."""
    scaled = formula.subs({Q: P / D, QP: PP / D, T: T / D}, simultaneous=True)
    back = {P: Q, PP: QP}
    forth = {Q: P, QP: PP}
    # the canonical form knows the names q, q'
    return present(scaled.subs(back, simultaneous=True)).subs(forth, simultaneous=True)


def in_angle(formula: sympy.Expr, amplitude: sympy.Expr = _ONE) -> sympy.Expr:
    """A formula in q, q', t at q = a |x|^2/d, q' = a |x'|^2/d, t = a |x||x'| cos(theta)/d, a the ``amplitude``.

    Examples
    --------
    >>> in_angle(T * sympy.asin(T / sympy.sqrt(Q * QP)) + pi * T / 2)
    nx*nxp*(pi - theta)*cos(theta)/d
    """
    scale = amplitude / D
    radius = scale * NORM * NORMP * sin(THETA)

    def power(base: sympy.Expr, exponent: sympy.Expr) -> sympy.Expr:
        ratio = tidy(base / _DISCRIMINANT)
        if ratio.free_symbols & {Q, QP, T}:
            return base**exponent
        return ratio**exponent * radius ** (2 * exponent)

    expr = formula.replace(
        lambda e: isinstance(e, sympy.Pow) and e.exp.is_Rational and not e.exp.is_Integer and e.base.has(T),
        lambda e: power(e.base, e.exp),
    )
    expr = expr.replace(sympy.asin, lambda u: pi / 2 - THETA if _is_cosine(u) else sympy.asin(u))
    at = {Q: scale * NORM**2, QP: scale * NORMP**2, T: scale * NORM * NORMP * cos(THETA)}
    placed = expr.subs(at, simultaneous=True)
    return _collected(placed) if is_angular(formula) else placed


def is_angular(formula: sympy.Expr) -> bool:
    """Whether a formula in q, q', t has no functions and roots but the angle's: true of kinked polynomials.

    Examples
    --------
    >>> is_angular(T * sympy.asin(T / sympy.sqrt(Q * QP))), is_angular(sympy.exp(T))
    (True, False)
    """
    functions = [f for f in formula.atoms(sympy.Function) if f.has(Q, QP, T)]
    if not all(isinstance(f, sympy.asin) and _is_cosine(f.args[0]) for f in functions):
        return False
    roots = [e.base for e in formula.atoms(sympy.Pow) if not e.exp.is_Integer and e.base.has(Q, QP, T)]
    return all(base.is_Symbol or not tidy(base / _DISCRIMINANT).has(Q, QP, T) for base in roots)


def _is_cosine(u: sympy.Expr) -> bool:
    return bool(tidy(u**2 * Q * QP / T**2) == 1) and not u.could_extract_minus_sign()


def _collected(expr: sympy.Expr) -> sympy.Expr:
    """Terms in theta together, each coefficient in lowest terms: (pi - theta) cos(theta) + sin(theta) as such."""
    expanded = sympy.expand(expr)
    groups: dict[sympy.Expr, sympy.Expr] = {}
    for term in sympy.Add.make_args(expanded):
        coefficient, harmonic = term.as_independent(THETA, as_Add=False)
        angle = sympy.Mul(*(f for f in sympy.Mul.make_args(harmonic) if f.as_base_exp()[0] == THETA))
        rest = harmonic / angle
        # theta is written as pi - (pi - theta)
        if angle == THETA:
            groups[rest * (pi - THETA)] = groups.get(rest * (pi - THETA), Integer(0)) - coefficient
            groups[rest] = groups.get(rest, Integer(0)) + pi * coefficient
        else:
            groups[harmonic] = groups.get(harmonic, Integer(0)) + coefficient
    total = sympy.Add(*(sympy.factor(sympy.expand(c)) * harmonic for harmonic, c in groups.items()))
    return sympy.gcd_terms(total, fraction=False)


def at_spike(formula: sympy.Expr) -> sympy.Expr:
    """A formula in q, q', t at Gamma = A I + B w* w*^T, in |x|, |x'|, s, s', theta."""
    at = {
        Q: (A * NORM**2 + B * S**2) / D,
        QP: (A * NORMP**2 + B * SP**2) / D,
        T: (A * NORM * NORMP * cos(THETA) + B * S * SP) / D,
    }
    return formula.subs(at, simultaneous=True)


@dataclass(frozen=True)
class KernelFormulas:
    """Formulas of k0, k1 and the orders of k1 in B for one activation.

    ``dual`` is the closed form of E[sigma(U) sigma(U')] in q, q', t, or None; then the orders are given in terms of
    E[sigma^(i)(U) sigma^(j)(U')].
    """

    dual: sympy.Expr | None

    @classmethod
    def of(cls, function: ScalarFunction, budget: float = BUDGET) -> KernelFormulas:
        """The formulas of an activation, closed where a closed form is found within the budget.

        Examples
        --------
        >>> from spikesym.symbolic.functions import make_function
        >>> KernelFormulas.of(make_function("relu", "activation")).order_in_angle(1)
        B*(2*s*sp*(pi - theta) + (nx**2*sp**2 + nxp**2*s**2)*sin(theta)/(nx*nxp))/(4*pi*d)
        """
        return cls(None if function.expr is None else dual_formula(function, budget=budget))

    @property
    def angular(self) -> bool:
        """Whether everything is elementary in the angle: polynomials with a kink or jump at zero."""
        return self.dual is not None and is_angular(self.dual)

    @property
    def closed(self) -> bool:
        """Whether there is a closed form."""
        return self.dual is not None

    def kernel(self) -> sympy.Expr:
        """k in p, p', t, for every Gamma."""
        moment = DualMoment(0, 0, P / D, PP / D, T / D)
        return moment if self.dual is None else in_inner_products(self.dual)

    def k0(self) -> sympy.Expr:
        """k0 in |x|, |x'|, theta; None-free also without a closed form."""
        return self._at_angle(DualMoment(0, 0, Q, QP, T) if self.dual is None else self.dual, Integer(1))

    def k1(self) -> sympy.Expr:
        """k1 in |x|, |x'|, s, s', theta and A, B."""
        return at_spike(DualMoment(0, 0, Q, QP, T) if self.dual is None else self.dual)

    def order(self, order: int, budget: float = BUDGET) -> sympy.Expr:
        """Coefficient of (B/d)^order, in q, q', t (those of A I) and s, s'."""
        if not 0 <= order <= MOST_ORDERS:
            raise InputError(f"order {order}", "--order", f"give an order from 0 to {MOST_ORDERS}")
        if self.dual is None:
            return price_term(order)
        try:
            return along_spike(self.dual, order, time.monotonic() + budget)
        except NoClosedForm:
            return price_term(order)

    def power(self, order: int) -> sympy.Expr:
        """The power of B/d that belongs to an order."""
        return (B / D) ** order

    def order_in_angle(self, order: int, budget: float = BUDGET) -> sympy.Expr:
        """The term of this order of k1, with its power of B/d, in |x|, |x'|, s, s', theta and A, B."""
        coefficient = self.order(order, budget)
        return self._at_angle(coefficient * self.power(order), A)

    def _at_angle(self, formula: sympy.Expr, amplitude: sympy.Expr) -> sympy.Expr:
        return in_angle(formula, amplitude)
