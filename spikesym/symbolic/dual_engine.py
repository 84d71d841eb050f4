"""Gaussian expectations of a pair of terms, by Stein's lemma.

E[(U - m) F] = v E[dF/du] + c E[dF/du'] lowers the powers; the derivative of a gate is a Gaussian factor or a
point mass, and conditioning on it leaves a Gaussian pair with one gate less. Exponential factors tilt the
Gaussian first. What is left are probabilities of one or two gates: the normal distribution function, the
arcsine of the correlation, or the bivariate normal distribution function.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import sympy
from sympy import I, Integer, Rational, asin, erf, exp, pi, sqrt

from .dual_terms import Atom, Gate, NoClosedForm, Part, Term
from .symbols import QP, Q, T

_HALF = Rational(1, 2)
_ZERO, _ONE = Integer(0), Integer(1)


class BivariateNormal(sympy.Function):
    r"""P(V < h, V' < k) for standard Gaussians of correlation r.

    Examples
    --------
    >>> h, k, r = sympy.symbols("h k r", real=True)
    >>> BivariateNormal(0, 0, r)
    asin(r)/(2*pi) + 1/4
    >>> BivariateNormal(h, k, r).diff(r).subs({h: 0, k: 0})
    1/(2*pi*sqrt(1 - r**2))
    """

    nargs = 3
    is_real = True

    @classmethod
    def eval(cls, h: sympy.Expr, k: sympy.Expr, r: sympy.Expr) -> sympy.Expr | None:
        """Reductions: both thresholds zero, or independent variables."""
        if h == 0 and k == 0:
            return Rational(1, 4) + asin(r) / (2 * pi)
        if r == 0:
            return normal_cdf(h) * normal_cdf(k)
        return None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Partial derivatives: the density in r, a density times a conditional probability in h and k."""
        h, k, r = self.args
        if argindex == 3:
            return exp(-(h**2 - 2 * r * h * k + k**2) / (2 * (1 - r**2))) / (2 * pi * sqrt(1 - r**2))
        if argindex == 2:
            h, k = k, h
        return exp(-(h**2) / 2) / sqrt(2 * pi) * normal_cdf((k - r * h) / sqrt(1 - r**2))

    def _latex(self, printer: object, exp: str | None = None) -> str:
        h, k, r = (printer._print(a) for a in self.args)  # type: ignore[attr-defined]
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"\Phi_{{2}}{power}\left({h}, {k}; {r}\right)"


def normal_cdf(x: sympy.Expr) -> sympy.Expr:
    """Phi(x) in terms of the error function."""
    return _HALF if x == 0 else (1 + erf(x / sqrt(2))) / 2


class Law(NamedTuple):
    """A Gaussian pair: two means, two variances, the covariance."""

    mean: sympy.Expr
    mean_p: sympy.Expr
    variance: sympy.Expr
    variance_p: sympy.Expr
    covariance: sympy.Expr


@cache
def tidy(expr: sympy.Expr) -> sympy.Expr:
    """One fraction in lowest terms, factored: keeps the parameters of conditioned laws small."""
    return expr if expr.is_Atom else sympy.factor(sympy.together(expr))


@dataclass
class Engine:
    """Expectations of products of two parts, under (U, U') ~ N(0, [[q, t], [t, q']]).

    ``deadline`` is a time of ``time.monotonic()`` after which :class:`NoClosedForm` is raised.
    """

    deadline: float = float("inf")
    _moments: dict[tuple[object, ...], sympy.Expr] = field(default_factory=dict)

    def expectation(self, first: Part, second: Part) -> sympy.Expr:
        """E[first(U) second(U')] as an expression in q, q', t."""
        if isinstance(first, Term) and isinstance(second, Term):
            return self._terms(first, second)
        if isinstance(first, Term):
            swapped = self.expectation(second, first)
            return swapped.subs({Q: QP, QP: Q}, simultaneous=True)
        a, weight = first.point, first.weight
        density = _density(a, Q)
        mean, variance = tidy(T * a / Q), tidy(QP - T**2 / Q)
        if isinstance(second, Atom):
            return weight * second.weight * density * _density(second.point - mean, variance)
        return weight * density * self._one(second, mean, variance)

    def _one(self, term: Term, mean: sympy.Expr, variance: sympy.Expr) -> sympy.Expr:
        """E of one term under N(mean, variance)."""
        w = tidy(1 + 2 * term.gamma * variance)
        tilted_variance = tidy(variance / w)
        tilted_mean = tidy((mean + variance * term.alpha) / w)
        # completing the square in -(u - mean)^2/(2 variance) - gamma u^2 + alpha u
        exponent = tidy(
            (2 * term.alpha * mean + term.alpha**2 * variance - 2 * term.gamma * mean**2) / (2 * w)
        )
        law = Law(tilted_mean, _ZERO, tilted_variance, _ZERO, _ZERO)
        gates = () if term.gate is None else ((0, term.gate),)
        return term.coefficient * exp(exponent) / sqrt(w) * self.moment(law, term.power, 0, gates)

    def _terms(self, first: Term, second: Term) -> sympy.Expr:
        g, gp, al, alp = first.gamma, second.gamma, first.alpha, second.alpha
        delta = Q * QP - T**2
        w = tidy(1 + 2 * g * Q + 2 * gp * QP + 4 * g * gp * delta)
        v, vp, c = tidy((Q + 2 * gp * delta) / w), tidy((QP + 2 * g * delta) / w), tidy(T / w)
        mean, mean_p = tidy(v * al + c * alp), tidy(c * al + vp * alp)
        exponent = tidy((v * al**2 + 2 * c * al * alp + vp * alp**2) / 2)
        gates = tuple((i, p.gate) for i, p in enumerate((first, second)) if p.gate is not None)
        if gates and (mean.has(I) or mean_p.has(I)):
            raise NoClosedForm("a gate times a sine or cosine")
        moment = self.moment(Law(mean, mean_p, v, vp, c), first.power, second.power, gates)
        return first.coefficient * second.coefficient * exp(exponent) / sqrt(w) * moment

    def moment(self, law: Law, k: int, m: int, gates: tuple[tuple[int, Gate], ...]) -> sympy.Expr:
        """E[U^k U'^m gates] under ``law``; a gate comes with the index (0 or 1) of its variable."""
        if k < 0 or m < 0:
            return _ZERO
        if k == 0 and m == 0:
            return self._probability(law, gates)
        key = (law, k, m, gates)
        if key in self._moments:
            return self._moments[key]
        if time.monotonic() > self.deadline:
            raise NoClosedForm("the time budget is spent")
        if k > 0:
            total = law.mean * self.moment(law, k - 1, m, gates)
            total += (k - 1) * law.variance * self.moment(law, k - 2, m, gates)
            if m > 0:
                total += m * law.covariance * self.moment(law, k - 1, m - 1, gates)
            below = (k - 1, m)
        else:
            total = law.mean_p * self.moment(law, 0, m - 1, gates)
            total += (m - 1) * law.variance_p * self.moment(law, 0, m - 2, gates)
            below = (0, m - 1)
        for position, (index, gate) in enumerate(gates):
            mean, variance, u, up = _gate_law(law, index, gate)
            covariance = u if k > 0 else up
            if covariance == 0:
                continue
            rest = gates[:position] + gates[position + 1 :]
            conditioned = Law(
                tidy(law.mean - u * mean / variance),
                tidy(law.mean_p - up * mean / variance),
                tidy(law.variance - u**2 / variance),
                tidy(law.variance_p - up**2 / variance),
                tidy(law.covariance - u * up / variance),
            )
            total += covariance * _density(mean, variance) * self.moment(conditioned, *below, rest)
        self._moments[key] = total
        return total

    def _probability(self, law: Law, gates: tuple[tuple[int, Gate], ...]) -> sympy.Expr:
        laws = [_gate_law(law, index, gate) for index, gate in gates]
        thresholds = [_ZERO if mean == 0 else mean / root(variance) for mean, variance, _, _ in laws]
        if not gates:
            return _ONE
        if len(gates) == 1:
            return normal_cdf(thresholds[0])
        (_, first), (_, second) = gates
        covariance = first.slope * second.slope * law.covariance
        correlation = covariance / (root(laws[0][1]) * root(laws[1][1]))
        return BivariateNormal(*thresholds, correlation)


def _gate_law(law: Law, index: int, gate: Gate) -> tuple[sympy.Expr, sympy.Expr, sympy.Expr, sympy.Expr]:
    """Mean and variance of V = slope * (U or U') + offset + noise, and its covariances with U and U'."""
    if index == 0:
        mean, variance, u, up = law.mean, law.variance, law.variance, law.covariance
    else:
        mean, variance, u, up = law.mean_p, law.variance_p, law.covariance, law.variance_p
    a = gate.slope
    return tidy(a * mean + gate.offset), tidy(a**2 * variance + gate.noise), tidy(a * u), tidy(a * up)


def _density(x: sympy.Expr, variance: sympy.Expr) -> sympy.Expr:
    factor = 1 / (sqrt(2 * pi) * root(variance))
    return factor if x == 0 else factor * exp(tidy(-(x**2) / (2 * variance)))


def root(expr: sympy.Expr) -> sympy.Expr:
    """Square root of a positive quantity, one root for each factor of its factored form."""
    numerator, denominator = sympy.fraction(tidy(expr))
    result = _ONE
    for part, sign in ((numerator, 1), (denominator, -1)):
        for factor in sympy.Mul.make_args(part):
            base, order = factor.as_base_exp()
            if order.is_Integer and order % 2 == 0 and not base.could_extract_minus_sign():
                result *= (
                    base ** (sign * order / 2) if base.is_positive else sympy.Abs(base) ** (sign * order / 2)
                )
            else:
                result *= sqrt(factor) ** sign
    return result
