r"""Dual activations: E[f^(i)(U) f^(j)(U')] for centred Gaussians of variances q, q' and covariance t, in closed form.

Derivations, not a table. Polynomials: Price's theorem, dE/dt = E[f' f'], iterated at t = 0 gives the finite series
sum_k t^k/k! E[f^(k)(U)] E[f^(k)(U')]. Everything else: :mod:`.dual_terms` writes f as gated exponential terms and
:mod:`.dual_engine` reduces each pair by Stein's lemma. Higher derivatives, as distributions, by Price's theorem again:
d/dt raises both orders by one, and 2 d/dq the first by two.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy
from sympy import Integer

from .dual_engine import Engine
from .dual_simplify import hyperbolic, present
from .dual_terms import NoClosedForm, Part, Term, decompose, derivative
from .symbols import QP, Q, T, X

if TYPE_CHECKING:
    from .functions import ScalarFunction

#: seconds for one closed form
BUDGET = 5.0


def dual_formula(
    function: ScalarFunction, i: int = 0, j: int = 0, budget: float = BUDGET
) -> sympy.Expr | None:
    """Closed form of E[f^(i)(U) f^(j)(U')] in the symbols ``Q``, ``QP``, ``T``, or None.

    Parameters
    ----------
    function : ScalarFunction
        The activation f; it may have free parameters.
    i, j : int
        Orders of the derivatives, in the sense of distributions.
    budget : float
        Seconds for the attempt; None is returned when they are spent.

    Notes
    -----
    The formulas hold for q, q' > 0 and q q' > t^2; their values on the boundary are limits. Functions that grow like
    exp(z^2) have a dual only for small variances.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> dual_formula(make_function("erf(z)", "activation"))
    2*asin(2*t/(sqrt(2*q + 1)*sqrt(2*qp + 1)))/pi
    >>> dual_formula(make_function("relu", "activation"), 2, 2)
    1/(2*pi*sqrt(q*qp - t**2))
    """
    deadline = time.monotonic() + budget
    try:
        return pair_formula(decompose(function), i, j, deadline)
    except NoClosedForm:
        return None


def pair_formula(
    terms: Sequence[Term],
    i: int,
    j: int,
    deadline: float = float("inf"),
    other: Sequence[Term] | None = None,
) -> sympy.Expr:
    """The closed form of E[f^(i)(U) h^(j)(U')] for functions that are given as terms; h = f unless ``other`` is given.

    Raises :class:`NoClosedForm`.
    """
    others = terms if other is None else other
    both = [*terms, *others]
    if all(t.is_monomial for t in both):
        return polynomial_dual(_sum(terms), i, j, _sum(others))
    ladder, other_ladder = _ladder(terms, i, deadline), _ladder(others, j, deadline)
    i_start, j_start = len(ladder) - 1, len(other_ladder) - 1
    if (i - i_start - j + j_start) % 2:
        # Price's theorem raises both orders by one, or one of them by two
        i_start, j_start = (i_start - 1, j_start) if i_start else (0, j_start - 1)
    first, second = ladder[i_start], other_ladder[j_start]
    i_left, j_left = i - i_start, j - j_start
    engine = Engine(deadline)
    total = Integer(0)
    for a in first:
        for b in second:
            total += engine.expectation(a, b)
    smooth = all(t.gate is None for t in both)

    def tidied(expr: sympy.Expr) -> sympy.Expr:
        if time.monotonic() > deadline:
            raise NoClosedForm("the time budget is spent")
        return hyperbolic(present(expr)) if smooth else present(expr)

    total = tidied(total)
    in_common = min(i_left, j_left)
    for _ in range(in_common):
        total = tidied(sympy.diff(total, T))
    for variable, left in ((Q, i_left), (QP, j_left)):
        for _ in range((left - in_common) // 2):
            total = tidied(2 * sympy.diff(total, variable))
    return total


def _sum(terms: Sequence[Term]) -> sympy.Expr:
    return sympy.Add(*(t.at(X) for t in terms))


def _ladder(terms: Sequence[Term], order: int, deadline: float) -> list[Sequence[Part]]:
    """The function and its derivatives up to ``order``, as far as they are free of the derivatives of point masses."""
    ladder: list[Sequence[Part]] = [terms]
    while len(ladder) <= order and all(isinstance(p, Term) for p in ladder[-1]):
        if time.monotonic() > deadline:
            raise NoClosedForm("the time budget is spent")
        ladder.append(derivative([p for p in ladder[-1] if isinstance(p, Term)]))
    return ladder


def polynomial_dual(
    polynomial: sympy.Expr, i: int = 0, j: int = 0, other: sympy.Expr | None = None
) -> sympy.Expr:
    """Price's series for polynomials in ``X`` (the same one twice by default); it stops at the degree.

    Examples
    --------
    >>> polynomial_dual(X**2 - 1)
    2*t**2 + (q - 1)*(qp - 1)
    """
    first, second = sympy.diff(polynomial, X, i), sympy.diff(polynomial if other is None else other, X, j)
    total, k = Integer(0), 0
    while first != 0 and second != 0:
        mean, mean_p = gaussian_mean(first, Q), gaussian_mean(second, QP)
        total += T**k / sympy.factorial(k) * sympy.factor(mean) * sympy.factor(mean_p)
        first, second, k = sympy.diff(first, X), sympy.diff(second, X), k + 1
    return total


def gaussian_mean(polynomial: sympy.Expr, variance: sympy.Expr) -> sympy.Expr:
    """E of a polynomial in ``X`` under N(0, variance)."""
    terms = sympy.Poly(sympy.expand(polynomial), X).terms()
    return sympy.Add(*(c * variance ** (n // 2) * sympy.factorial2(n - 1) for (n,), c in terms if n % 2 == 0))
