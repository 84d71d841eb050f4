"""The spectrum of k1 for the ReLU, symbolically: Gram form, exact blocks, linear eigenspace, large-d limits.

T f(x) = E_x'[k1(x, x') f(x')], x' ~ N(0, I_d). With w ~ N(0, Gamma), Gamma = A I + B w* w*^T, u = b/(1+b), b = B/A,

    <psi_ell, T psi_ell'> = a_ell a_ell' G_{ell,ell'},   G_{ell,ell'} = E_w[ |w|^2 q_ell(w_1/|w|) q_ell'(w_1/|w|) ]

in each sector l, where psi_ell = |x| Y_{ell,l}(x/|x|) / sqrt(d): k1 is an expectation over w of products of functions
of x and of x' that are homogeneous of degree one, Funk-Hecke turns each factor into a_ell |w| Y_ell(w/|w|), and
E |x|^2 = d. So every block is a Gram matrix: positive semidefinite, and split by parity.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Expr, Integer, Rational, Symbol, exp, factor, hyper, oo, simplify, sqrt

from .funk_hecke import coefficient, coefficient_step, relu_coefficient
from .sphere import SECTOR, T, gegenbauer_index, monic, monic_norm_squared
from .symbols import ELL, A, B, D, S, b

#: u = b/(1+b), kept as a symbol while integrals are done
U = Symbol("u", real=True)


@lru_cache(maxsize=1)
def direction_density() -> Expr:
    """E[|w|^2; w/|w| = t] for w ~ N(0, Gamma), relative to the uniform measure on the sphere.

    w^T Gamma^-1 w = r^2 (1 - u t^2) / A, so the radius integrates to a gamma function and leaves
    A d (1+b)^(-1/2) (1 - u t^2)^(-(d+2)/2).

    Examples
    --------
    >>> direction_density()
    A*d*(-rho**2*u + 1)**(-d/2 - 1)/sqrt(b + 1)
    """
    r, rate = Symbol("r", positive=True), Symbol("rate", positive=True)
    radial = sympy.integrate(r ** (D + 1) * exp(-rate * r**2), (r, 0, oo))
    uniform = sympy.integrate(r ** (D - 1) * exp(-(r**2) / 2), (r, 0, oo))
    constant = simplify(radial / uniform * rate ** (D / 2 + 1))  # free of the rate
    density = sympy.powsimp(sympy.gammasimp(constant) / A ** (D / 2) * (2 * A) ** (D / 2 + 1))
    return simplify(density) / sqrt(1 + b) * (1 - U * T**2) ** (-(D / 2 + 1))


@lru_cache(maxsize=64)
def weighted_moment(half_order: int, sector: int) -> Expr:
    """E_Lambda[t^(2j)] against :func:`direction_density`, j = ``half_order``: a 2F1 with symbolic d, A, b.

    Euler's integral gives (1/2)_j/(Lambda+1)_j 2F1(d/2 + 1, j + 1/2; j + Lambda + 1; u), and Pfaff's transformation
    turns it into (1+b)^(j + 1/2) 2F1(j + l - 1, j + 1/2; j + l + d/2; -b): a polynomial in b when j + l <= 1.

    Examples
    --------
    >>> weighted_moment(0, 0), weighted_moment(1, 0), weighted_moment(0, 1)
    (A*(b + d), A*(b + 1), A*d)
    """
    j = Integer(half_order)
    index = gegenbauer_index(sector)
    exponent = D / 2 + 1
    first, second, third = exponent, j + Rational(1, 2), j + index + 1
    prefactor = sympy.rf(Rational(1, 2), j) / sympy.expand_func(sympy.rf(index + 1, j))
    # Pfaff: 2F1(a, c'; c; u) = (1 - u)^(-c') 2F1(c - a, c'; c; u/(u - 1)), and u/(u - 1) = -b, 1 - u = 1/(1 + b)
    lowered = sympy.expand(third - first)
    series = terminating(lowered, second, third, -b)
    constant = (direction_density() * sqrt(1 + b)).subs(U, 0)
    return (
        factor(constant * prefactor * (1 + b) ** j) * series
        if series.has(hyper)
        else factor(constant * prefactor * (1 + b) ** j * series)
    )


def terminating(first: Expr, second: Expr, third: Expr, z: Expr) -> Expr:
    """2F1(first, second; third; z), written out when ``first`` is a non-positive integer.

    Examples
    --------
    >>> terminating(Integer(-1), Rational(1, 2), D / 2, -b)
    b/d + 1
    """
    if not (first.is_Integer and first <= 0):
        return hyper((first, second), (third,), z)
    terms = [
        sympy.rf(first, n) * sympy.rf(second, n) / sympy.rf(third, n) * z**n / sympy.factorial(n)
        for n in range(int(-first) + 1)
    ]
    return sum((simplify(sympy.expand_func(term)) for term in terms), Integer(0))


@lru_cache(maxsize=128)
def gram_entry(degree: int, other: int, sector: int) -> Expr:
    """G_{ell,ell'} of the sector with symbolic d, A and b; zero between different parities.

    Examples
    --------
    >>> gram_entry(0, 0, 0), gram_entry(0, 1, 0)
    (A*(b + d), 0)
    >>> gram_entry(2, 2, 2).has(hyper)
    True
    """
    if (degree - other) % 2 or min(degree, other) < sector:
        return Integer(0)
    index = gegenbauer_index(sector)
    product = monic(degree - sector, index) * monic(other - sector, index)
    total = Integer(0)
    for (power,), c in sympy.Poly(sympy.expand(product), T).terms():
        total += c * weighted_moment(power // 2, sector)
    norms = [monic_norm_squared(ell - sector, index) for ell in (degree, other)]
    norm = norms[0] if degree == other else sqrt(factor(norms[0] * norms[1]))
    return (total if total.has(hyper) else factor(sympy.expand(total))) / norm


def block_entry(degree: int, other: int, sector: int) -> Expr:
    """M_{ell,ell'} = a_ell a_ell' G_{ell,ell'}: the matrix element of T between psi_ell and psi_ell'.

    Examples
    --------
    >>> block_entry(1, 1, 0)
    A*(b + 1)/(4*d)
    """
    return simplify(coefficient(degree) * coefficient(other) * gram_entry(degree, other, sector))


@lru_cache(maxsize=1)
def top_block() -> dict[str, Expr]:
    """The entries of the top of the zonal block that are exactly linear in B.

    Examples
    --------
    >>> for name, entry in top_block().items():
    ...     print(name, entry)
    G_00 A*d + B
    G_02 sqrt(2)*B*sqrt(d - 1)*sqrt(d + 2)/2
    G_11 d*(A + B)
    """
    result = {}
    for name, degrees in (("G_00", (0, 0)), ("G_02", (0, 2)), ("G_11", (1, 1))):
        entry = gram_entry(*degrees, 0).subs(b, B / A)
        if entry.has(hyper):
            raise AssertionError(f"{name} does not terminate")
        entry = simplify(entry)
        result[name] = factor(entry) if name != "G_00" else sympy.expand(entry)
    return result


@lru_cache(maxsize=1)
def linear_eigenvalues() -> dict[str, Expr]:
    """Eigenvalues of the linear functions, to all orders in B: <x, w*> and those orthogonal to it.

    a_ell = 0 for odd ell >= 3, so the odd part of each block is the single entry ell = 1, which exists in the
    sectors l = 0 and l = 1, and both entries terminate.

    Examples
    --------
    >>> linear_eigenvalues()
    {'psi_star': (A + B)/(4*d), 'psi_perp': A/(4*d)}
    """
    if relu_coefficient().subs(ELL, 3) != 0 or not sympy.denom(coefficient_step()).is_positive:
        raise AssertionError("odd Funk-Hecke coefficients do not vanish")
    star, perp = (simplify(block_entry(1, 1, sector).subs(b, B / A)) for sector in (0, 1))
    return {"psi_star": factor(star), "psi_perp": factor(perp)}


@lru_cache(maxsize=1)
def base_eigenvalue() -> Expr:
    """Eigenvalue of degree ell at B = 0: A d a_ell^2, of multiplicity N(d, ell), with eigenfunctions |x| Y_ell.

    Examples
    --------
    >>> base_eigenvalue()
    A*d*gamma(d/2)**2/(16*gamma(3/2 - ell/2)**2*gamma(d/2 + ell/2 + 1/2)**2)
    """
    density = direction_density().subs(
        {b: 0, U: 0}
    )  # A d: the Gram matrix at B = 0 is this times the identity
    return density * relu_coefficient() ** 2


@lru_cache(maxsize=1)
def large_d_ratio() -> Expr:
    """lim d -> oo of lambda_{ell,l}(b) / lambda_ell(0) at fixed b: (1+b)^(ell - l).

    With t = s/sqrt(d) the law of t and the density of the direction become those of N(0, 1) and N(0, 1 + b);
    a_(ell+2)/a_ell -> 0, so each eigenvalue tends to a_ell^2 times the pivot of the Gram matrix in the monic
    Hermite basis, and the pivot of degree r is the ratio of the squared norms of the monic orthogonal
    polynomials of N(0, 1 + b) and N(0, 1), which are rescaled into each other.

    Examples
    --------
    >>> large_d_ratio()
    (b + 1)**(ell - l)
    """
    if sympy.limit(coefficient_step(), D, oo) != 0:
        raise AssertionError("the Funk-Hecke coefficients do not separate as d grows")
    law = (S**2 * (D - 3) / 2) / D
    tilt = (U * S**2 * (D / 2 + 1)) / D
    # log(1 - x/d) = -x/d + O(1/d^2): the exponents of both Gaussian limits
    rate = sympy.limit(law / S**2, D, oo) - sympy.limit(tilt / S**2, D, oo).subs(U, b / (1 + b))
    variance = simplify(1 / (2 * rate))
    degree = ELL - SECTOR
    return sympy.powsimp(variance**degree)


def hermite_pivots(count: int) -> list[Expr]:
    """Pivots of E[He_i(s) He_j(s)] / sqrt(i! j!), s ~ N(0, 1+b), by elimination: what the limit rests on.

    Examples
    --------
    >>> hermite_pivots(3)
    [1, b + 1, (b + 1)**2]
    """
    size = 2 * count
    moments = [
        Integer(0) if k % 2 else sympy.factorial2(k - 1) * (1 + b) ** (k // 2) if k else Integer(1)
        for k in range(size)
    ]

    def mean(polynomial: Expr) -> Expr:
        return sum((c * moments[p] for (p,), c in sympy.Poly(polynomial, S).terms()), Integer(0))

    he: list[Expr] = [Integer(1), S]
    for k in range(1, count):
        he.append(sympy.expand(S * he[k] - k * he[k - 1]))
    gram = sympy.Matrix(
        count,
        count,
        lambda i, j: mean(sympy.expand(he[i] * he[j])) / sqrt(sympy.factorial(i) * sympy.factorial(j)),
    )
    pivots = []
    for k in range(count):
        pivots.append(factor(sympy.expand(gram[k, k])))
        for i in range(k + 1, count):
            ratio = gram[i, k] / gram[k, k]
            for j in range(k + 1, count):
                gram[i, j] = sympy.cancel(gram[i, j] - ratio * gram[k, j])
    return pivots
