"""Funk-Hecke coefficients a_ell = E[f(t) P_ell(t)] of powers and of piecewise-linear functions, symbolic d and ell.

Derived with Rodrigues' formula and a beta integral. The homogeneous function p z + q |z| (ReLU has p = q = 1/2) has
the odd part p z, which is linear, and the even part q |z|.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Expr, Integer, Rational, Symbol, gamma, pi, sqrt

from .sphere import T
from .symbols import ELL, D

#: exponent of the power t_+^alpha = max(t, 0)^alpha
POWER = Symbol("alpha", positive=True)


@lru_cache(maxsize=1)
def rodrigues_constant() -> Expr:
    """R_ell in P_ell(t) (1 - t^2)^((d-3)/2) = (-1)^ell R_ell (d/dt)^ell (1 - t^2)^(ell + (d-3)/2).

    The ell-fold derivative is orthogonal to all lower degrees (integrate by parts); its size follows from
    P_ell(1) = 1: next to t = 1 only the term in which every derivative falls on (1 - t)^(ell + (d-3)/2) survives.

    Examples
    --------
    >>> rodrigues_constant()
    1/(2**ell*RisingFactorial(d/2 - 1/2, ell))
    """
    exponent = (D - 3) / 2
    # (d/dt)^ell (1 - t)^(ell + s) = (-1)^ell (s + 1)_ell (1 - t)^s, beside (1 + t)^(ell + s) -> 2^ell (1 + t)^s
    return 1 / (2**ELL * sympy.rf(exponent + 1, ELL))


def rodrigues(degree: int, t: Expr = T) -> Expr:
    """P_degree(t; d) by Rodrigues' formula, to be compared with :func:`~spikesym.symbolic.sphere.legendre`.

    Examples
    --------
    >>> sympy.factor(rodrigues(2))
    (d*rho**2 - 1)/(d - 1)
    """
    exponent = (D - 3) / 2
    derivative = sympy.diff((1 - T**2) ** (degree + exponent), T, degree)
    constant = rodrigues_constant().subs(ELL, degree)
    polynomial = sympy.powsimp(sympy.expand(derivative * (1 - T**2) ** (-exponent)))
    polynomial = sympy.simplify((-1) ** degree * sympy.expand_func(constant) * polynomial)
    return sympy.factor(polynomial).subs(T, t)


@lru_cache(maxsize=1)
def power_coefficient() -> Expr:
    """E[t_+^alpha P_ell(t)] in closed form, symbolic alpha > -1, ell and d.

    Rodrigues' formula and ell integrations by parts put ell derivatives on t^alpha (the boundary terms vanish
    for alpha > ell - 1; both sides are analytic in alpha), a beta integral is left, and the duplication formula
    removes the pole that meets a zero at integer alpha.

    Examples
    --------
    >>> power_coefficient()
    gamma(d/2)*gamma(alpha + 1)/(2*2**alpha*gamma(alpha/2 + d/2 + ell/2)*gamma(alpha/2 - ell/2 + 1))
    """
    raw = raw_power_coefficient()
    half = (POWER - ELL + 1) / 2
    # gamma(2 z) = 2^(2z-1) gamma(z) gamma(z + 1/2) / sqrt(pi) at 2 z = alpha - ell + 1
    doubled = 2 ** (2 * half - 1) * gamma(half) * gamma(half + Rational(1, 2)) / sqrt(pi)
    result = raw.subs(gamma(sympy.expand(2 * half)), doubled)
    # (x)_ell = gamma(x + ell) / gamma(x); SymPy's own rewriting adds a branch for x < 0, which d >= 2 excludes
    first = (D - 1) / 2
    return sympy.simplify(result.subs(sympy.rf(first, ELL), gamma(first + ELL) / gamma(first)))


def raw_power_coefficient() -> Expr:
    """The same before the duplication formula: valid where no gamma function has a pole."""
    falling = gamma(POWER + 1) / gamma(POWER - ELL + 1)
    p, q = (POWER - ELL + 1) / 2, ELL + (D - 1) / 2
    integral = gamma(p) * gamma(q) / gamma(p + q) / 2
    measure = gamma(Rational(1, 2)) * gamma((D - 1) / 2) / gamma(D / 2)
    return rodrigues_constant() * falling * integral / measure


@lru_cache(maxsize=1)
def relu_coefficient() -> Expr:
    """a_ell = E[max(t, 0) P_ell(t)] with symbolic ell and d; zero at ell = 3, 5, 7, ...

    Examples
    --------
    >>> relu_coefficient()
    gamma(d/2)/(4*gamma(3/2 - ell/2)*gamma(d/2 + ell/2 + 1/2))
    >>> [coefficient(ell) for ell in (1, 3)]
    [1/(2*d), 0]
    """
    return power_coefficient().subs(POWER, 1)


def coefficient(degree: int) -> Expr:
    """The ReLU coefficient a_degree with symbolic d, simplified.

    Examples
    --------
    >>> coefficient(0)
    gamma(d/2)/(2*sqrt(pi)*gamma(d/2 + 1/2))
    """
    return sympy.gammasimp(sympy.expand_func(relu_coefficient().subs(ELL, degree)))


@lru_cache(maxsize=1)
def coefficient_step() -> Expr:
    """a_(ell+2) / a_ell for ReLU (and for |t|), from the closed form.

    Examples
    --------
    >>> coefficient_step()
    -(ell - 1)/(d + ell + 1)
    """
    x = Symbol("x", positive=True)  # SymPy simplifies quotients of gammas only for a plain variable
    formula = relu_coefficient()
    step = sympy.expand_func(formula.subs(ELL, x + 2) / formula.subs(ELL, x))
    return sympy.factor(step).subs(x, ELL)


def coefficient_ratio(degree: int) -> Expr:
    """a_degree / a_0 for even degrees: a rational function of d.

    Examples
    --------
    >>> coefficient_ratio(2), coefficient_ratio(4)
    (1/(d + 1), -1/((d + 1)*(d + 3)))
    """
    if degree % 2:
        raise ValueError(f"the ratio is for even degrees, got {degree}")
    result = Integer(1)
    for ell in range(0, degree, 2):
        result *= coefficient_step().subs(ELL, ell)
    return sympy.factor(result)
