"""Spherical harmonics with a symbolic dimension: P_ell, multiplicities, three-term recurrence, sectors.

Conventions: uniform *probability* measure on the unit sphere of R^d; t is the coordinate of a uniform
point along w*; P_ell(1) = 1; d is the dimension of the ambient space. In the sector of degree l under
the rotations that fix w*, the harmonics are Y_{ell,l} = q_{ell,l}(t) Y_l(x_perp) with E q^2 = 1; they carry
the Gegenbauer index Lambda = l + (d - 2)/2, that is, zonal harmonics of dimension d + 2l.

Other conventions: SciPy's and SymPy's ``gegenbauer(n, a, t)`` is C_n^(a) = P_n * (2a)_n / n! with a = (d-2)/2 (it
vanishes at a = 0, where P_n is the Chebyshev T_n); a surface measure multiplies by the area of the sphere; sums
over levels multiply eigenvalues by :func:`multiplicity`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import sympy
from sympy import Expr, Function, Integer, Rational, Symbol, binomial, expand, factor, gamma, sqrt

from .symbols import ELL, RHO, D, K

#: coordinate of a uniform point along w*, Gegenbauer index, and the sector
T = RHO
LAMBDA = Symbol("Lambda", positive=True)
SECTOR = Symbol("l", nonnegative=True, integer=True)


def gegenbauer_index(sector: Expr | int = SECTOR, dimension: Expr = D) -> Expr:
    """The index Lambda = l + (d - 2)/2 of the sector l.

    Examples
    --------
    >>> gegenbauer_index(1)
    d/2
    """
    return expand(sympy.sympify(sector) + (dimension - 2) / 2)


@lru_cache(maxsize=1)
def moment_formula() -> Expr:
    """E t^(2K) under the density proportional to (1 - t^2)^(Lambda - 1/2): a ratio of beta integrals.

    Examples
    --------
    >>> moment_formula()
    RisingFactorial(1/2, k)/RisingFactorial(Lambda + 1, k)
    """
    # t^2 = y turns the moment into B(k + 1/2, Lambda + 1/2) / B(1/2, Lambda + 1/2)
    ratio = _beta(K + Rational(1, 2), LAMBDA + Rational(1, 2)) / _beta(
        Rational(1, 2), LAMBDA + Rational(1, 2)
    )
    step = sympy.simplify(sympy.expand_func(ratio.subs(K, K + 1) / ratio))
    return hypergeometric_product(step, K)


def moment(order: int, index: Expr) -> Expr:
    """E t^order for the Gegenbauer index given, as a rational function of it.

    Examples
    --------
    >>> moment(2, gegenbauer_index(0)), moment(3, gegenbauer_index(0))
    (1/d, 0)
    """
    if order % 2:
        return Integer(0)
    formula = moment_formula().subs({K: order // 2, LAMBDA: index})
    return factor(sympy.expand_func(formula))


def hypergeometric_product(step: Expr, k: Symbol) -> Expr:
    """The term u_k / u_0 of a sequence with u_(k+1)/u_k = ``step``, a rational function of k.

    Each linear factor (k + r) of the ratio becomes a rising factorial (r)_k.

    Examples
    --------
    >>> hypergeometric_product((K + D) / (K + 3), K)
    RisingFactorial(d, k)/RisingFactorial(3, k)
    """
    numerator, denominator = sympy.fraction(sympy.together(step))
    result = Integer(1)
    for side, polynomial in ((1, numerator), (-1, denominator)):
        constant, factors = sympy.factor_list(polynomial, k)
        result *= constant ** (side * k)
        for linear, power in factors:
            slope, root = sympy.Poly(linear, k).all_coeffs()
            result *= (slope**k * sympy.rf(expand(root / slope), k)) ** (side * power)
    return sympy.powsimp(result)


@lru_cache(maxsize=1)
def gegenbauer_recurrence() -> tuple[Expr, Expr]:
    """Coefficients (up, down) of C_(k+1) = up * t * C_k - down * C_(k-1), from the generating function.

    g = (1 - 2 x t + x^2)^(-Lambda) = sum_k C_k(t) x^k satisfies (1 - 2 x t + x^2) dg/dx = 2 Lambda (t - x) g;
    the coefficient of x^k of both sides is the recurrence.

    Examples
    --------
    >>> gegenbauer_recurrence()
    (2*(Lambda + k)/(k + 1), (2*Lambda + k - 1)/(k + 1))
    """
    x = Symbol("x")
    base = 1 - 2 * x * T + x**2
    right = 2 * LAMBDA * (T - x)
    if sympy.simplify(sympy.diff(base ** (-LAMBDA), x) * base - right * base ** (-LAMBDA)) != 0:
        raise AssertionError("the generating function does not satisfy its equation")
    C = Function("C")
    # the coefficient of x^k in p(x) g and in p(x) dg/dx
    left_terms = _coefficient(base, x, lambda shift: (K - shift + 1) * C(K - shift + 1))
    right_terms = _coefficient(right, x, lambda shift: C(K - shift))
    solved = sympy.solve(left_terms - right_terms, C(K + 1))[0]
    solved = sympy.collect(expand(solved), [C(K), C(K - 1)])
    up = factor(solved.coeff(C(K)) / T)
    return up, factor(-solved.coeff(C(K - 1)))


@lru_cache(maxsize=1)
def beta_squared_formula() -> Expr:
    """beta_K^2 of t pi_k = beta_(k+1) pi_(k+1) + beta_k pi_(k-1) for the orthonormal pi_k of index Lambda.

    From the recurrence of the monic polynomials: leading coefficients grow by ``up`` of
    :func:`gegenbauer_recurrence`, so beta_k^2 = down_k / (up_k up_(k-1)). At k = 1 and Lambda = 0 (the circle)
    the value is the limit 1/2; beta_0 = 0.

    Examples
    --------
    >>> beta_squared_formula()
    k*(2*Lambda + k - 1)/(4*(Lambda + k)*(Lambda + k - 1))
    """
    up, down = gegenbauer_recurrence()
    return factor(down / (up * up.subs(K, K - 1)))


def beta_squared(k: int, index: Expr) -> Expr:
    """beta_k^2 for a degree k and an index that may be symbolic or a number, zero included.

    Examples
    --------
    >>> beta_squared(1, gegenbauer_index(0)), beta_squared(1, Integer(0)), beta_squared(0, LAMBDA)
    (1/d, 1/2, 0)
    """
    if k == 0:
        return Integer(0)
    # cancel before the index is put in: at k = 1 the factor Lambda cancels, which is the limit d = 2
    return factor(sympy.cancel(beta_squared_formula().subs(K, k)).subs(LAMBDA, index))


def monic(degree: int, index: Expr, t: Expr = T) -> Expr:
    """The monic orthogonal polynomial of this degree, expanded in t.

    Examples
    --------
    >>> monic(2, gegenbauer_index(0))
    rho**2 - 1/d
    """
    previous, current = Integer(0), Integer(1)
    for k in range(degree):
        previous, current = current, expand(t * current - beta_squared(k, index) * previous)
    return sympy.collect(current, t, factor)


def monic_norm_squared(degree: int, index: Expr) -> Expr:
    """E of the squared monic polynomial: the product of beta_1^2 ... beta_degree^2."""
    result = Integer(1)
    for k in range(1, degree + 1):
        result *= beta_squared(k, index)
    return factor(result)


def legendre(degree: int, t: Expr = T, dimension: Expr = D) -> Expr:
    """P_degree(t; d), the zonal harmonic with value 1 at t = 1.

    Examples
    --------
    >>> legendre(2)
    d*rho**2/(d - 1) - 1/(d - 1)
    >>> legendre(3, T, Integer(2)), legendre(2, T, Integer(3))
    (4*rho**3 - 3*rho, 3*rho**2/2 - 1/2)
    """
    polynomial = monic(degree, gegenbauer_index(0, sympy.sympify(dimension)), T)
    scaled = sympy.collect(expand(polynomial / polynomial.subs(T, 1)), T, factor)
    return scaled.subs(T, t)


def sector_weight(sector: int) -> Expr:
    """E (1 - t^2)^l over the uniform sphere of R^d, which turns the index (d-2)/2 into Lambda.

    Examples
    --------
    >>> sector_weight(1)
    (d - 1)/d
    """
    ratio = _beta(Rational(1, 2), sector + (D - 1) / 2) / _beta(Rational(1, 2), (D - 1) / 2)
    return factor(sympy.expand_func(sympy.gammasimp(ratio)))


def associated(degree: int, sector: int, t: Expr = T) -> Expr:
    """q_{ell,l}(t): the normalised associated function, E q^2 = 1 over the uniform sphere of R^d.

    Examples
    --------
    >>> associated(0, 0), associated(1, 0)
    (1, sqrt(d)*rho)
    >>> sympy.simplify(associated(1, 1) ** 2)
    d*(1 - rho**2)/(d - 1)
    """
    if degree < sector:
        return Integer(0)
    index = gegenbauer_index(sector)
    order = degree - sector
    norm = monic_norm_squared(order, index) * sector_weight(sector)
    return (1 - t**2) ** Rational(sector, 2) * monic(order, index, t) / sqrt(factor(norm))


@lru_cache(maxsize=1)
def multiplicity_formula() -> Expr:
    """N(d, ell): homogeneous polynomials of degree ell less those of degree ell - 2 (the Laplacian is onto).

    Examples
    --------
    >>> factor(sympy.expand_func(multiplicity_formula().subs(ELL, 2)))
    (d - 1)*(d + 2)/2
    """

    def homogeneous(degree: Expr) -> Expr:
        return binomial(D + degree - 1, degree)

    return homogeneous(ELL) - homogeneous(ELL - 2)


def multiplicity(degree: int, dimension: Expr = D) -> Expr:
    """N(d, degree) as a polynomial in d; the sector l of R^d has multiplicity N(d - 1, l).

    Examples
    --------
    >>> multiplicity(2), multiplicity(3, D - 1), multiplicity(1, Integer(1)), multiplicity(2, Integer(1))
    ((d - 1)*(d + 2)/2, (d - 2)*(d - 1)*(d + 3)/6, 1, 0)
    """
    x = Symbol("x")
    # coefficients of (1 - x^2) (1 - x)^(-d), whose x^j coefficient counts monomials: the same difference, but
    # with no binomial at a negative argument, so that d = 1 and d = 2 need no special case
    count = Integer(0)
    for power, sign in ((degree, 1), (degree - 2, -1)):
        if power >= 0:
            count += sign * sympy.expand_func(sympy.rf(x, power)) / sympy.factorial(power)
    return factor(count.subs(x, sympy.sympify(dimension)))


def _beta(p: Expr, q: Expr) -> Expr:
    return gamma(p) * gamma(q) / gamma(p + q)


def _coefficient(polynomial: Expr, x: Symbol, term: Callable[[int], Expr]) -> Expr:
    """Sum over the powers of ``polynomial`` of coefficient times ``term(power)``."""
    powers = sympy.Poly(polynomial, x).all_coeffs()[::-1]
    return sum((c * term(power) for power, c in enumerate(powers)), Integer(0))
