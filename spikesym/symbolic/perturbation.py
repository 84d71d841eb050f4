"""Perturbation of the spectrum in b = B/A, to any order, with symbolic d.

In a sector T = A d F W F, where F multiplies the harmonic of degree ell by a_ell and W is multiplication by
(1+b)^(-1/2) (1 - u t^2)^(-(d+2)/2), u = b/(1+b). In the basis of monic polynomials everything is rational in d, and
the eigenvalues of a chain (one parity of one sector) are simple at b = 0, so Rayleigh-Schroedinger theory applies.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy import QQ, Expr, Integer, Rational, binomial, factor, sqrt

from .funk_hecke import coefficient_step
from .sphere import LAMBDA, SECTOR, beta_squared, beta_squared_formula, gegenbauer_index, monic_norm_squared
from .symbols import ELL, D, K

#: rational functions of d, in SymPy's fast arithmetic
_FIELD = QQ.frac_field(D)


def weight_series(order: int) -> list[list[Expr]]:
    """Coefficients of b^k y^j in (1+b)^(-1/2) (1 - u y)^(-(d+2)/2), as ``series[k][j]``, k <= order.

    Examples
    --------
    >>> weight_series(1)
    [[1], [-1/2, d/2 + 1]]
    """
    # 1 - u y = (1 + b (1 - y)) / (1 + b), so the weight is (1+b)^(g - 1/2) (1 + b (1 - y))^(-g)
    g = (D + 2) / 2
    series = []
    for k in range(order + 1):
        row = [Integer(0)] * (k + 1)
        for i in range(k + 1):
            scale = _binomial(g - Rational(1, 2), k - i) * _binomial(-g, i)
            for j in range(i + 1):
                row[j] += scale * binomial(i, j) * (-1) ** j
        series.append([sympy.expand(c) for c in row])
    return series


@lru_cache(maxsize=1)
def first_order_formula() -> Expr:
    """First-order relative shift of lambda_{ell,l} per unit of b, with symbolic ell, l and d.

    The diagonal element of the first-order weight ((d+2) t^2 - 1)/2 in the orthonormal state of degree r = ell - l:
    E t^2 = beta_r^2 + beta_(r+1)^2. The formula has a removable singularity where r + Lambda = 1
    (d = 4, ell = 0 and d = 2, ell = 1); :func:`first_order` takes the limit there.

    Examples
    --------
    >>> sympy.factor(first_order_formula().subs({SECTOR: 0, ELL: 0}))
    1/d
    """
    _, (constant, slope) = weight_series(1)
    square = sympy.cancel(beta_squared_formula() + beta_squared_formula().subs(K, K + 1))
    mean = factor(square).subs({K: ELL - SECTOR, LAMBDA: SECTOR + (D - 2) / 2})
    return slope * mean + constant


def first_order(degree: int, sector: int, dimension: Expr = D) -> Expr:
    """The shift of :func:`first_order_formula` for given degree and sector, right in every dimension.

    Examples
    --------
    >>> first_order(0, 0), first_order(0, 0, Integer(4)), first_order(1, 0), first_order(1, 1, Integer(2))
    (1/d, 1/4, 1, 0)
    """
    order = degree - sector
    index = gegenbauer_index(sector, sympy.sympify(dimension))
    mean = beta_squared(order, index) + beta_squared(order + 1, index)
    _, (constant, slope) = weight_series(1)
    return factor(slope.subs(D, dimension) * mean + constant)


@lru_cache(maxsize=32)
def series(degree: int, sector: int, order: int) -> tuple[tuple[Expr, ...], dict[int, tuple[Expr, ...]]]:
    """Eigenvalue and eigenfunction of T that grow from Y_{degree,sector}, as power series in b.

    Parameters
    ----------
    degree : int
        1 or an even number, at least ``sector``.
    sector : int
        Degree under the rotations that fix w*.
    order : int
        Highest power of b.

    Returns
    -------
    eigenvalue : tuple of sympy.Expr
        c_0 = 1, c_1, ... of lambda(b)/lambda(0) = sum_k c_k b^k, rational in d.
    mixing : dict
        For each other degree reached, the coefficients of b^0, b^1, ... of its orthonormal harmonic, where the
        coefficient of Y_{degree,sector} is fixed at 1.

    Examples
    --------
    >>> eigenvalue, mixing = series(0, 0, 2)
    >>> eigenvalue
    (1, 1/d, (d - 1)/(2*d**3))
    >>> sympy.factor(mixing[2][1] ** 2)
    (d - 1)*(d + 1)**2/(2*d**4*(d + 2))
    """
    if degree < sector or (degree % 2 and degree != 1):
        raise ValueError(f"no eigenvalue grows from degree {degree} in sector {sector}")
    chain = [degree] if degree == 1 else _chain(degree, sector, order)
    here, size = chain.index(degree), len(chain)
    perturbations = _perturbations(chain, degree, sector, order)
    values = [_FIELD.one]
    vectors = [[_FIELD.one if i == here else _FIELD.zero for i in range(size)]]
    for k in range(1, order + 1):
        applied = [
            sum(
                (perturbations[j][i][m] * vectors[k - j][m] for j in range(1, k + 1) for m in range(size)),
                _FIELD.zero,
            )
            for i in range(size)
        ]
        values.append(applied[here])
        vector = [_FIELD.zero] * size
        for i in range(size):
            if i != here:
                known = sum((values[j] * vectors[k - j][i] for j in range(1, k)), _FIELD.zero)
                vector[i] = (applied[i] - known) / (_FIELD.one - perturbations[0][i][i])
        vectors.append(vector)
    index = gegenbauer_index(sector)
    own = monic_norm_squared(degree - sector, index)
    mixing = {}
    for i, ell in enumerate(chain):
        if i != here and any(vector[i] for vector in vectors):
            norm = sqrt(factor(monic_norm_squared(ell - sector, index) / own))
            mixing[ell] = tuple(factor(_FIELD.to_sympy(vector[i])) * norm for vector in vectors)
    return tuple(factor(_FIELD.to_sympy(value)) for value in values), mixing


@lru_cache(maxsize=1)
def top_second_order() -> dict[str, Expr]:
    """Shift of the top eigenvalue to second order, and the coefficient of Y_2 per unit of b in its eigenfunction.

    Examples
    --------
    >>> top_second_order()["c_2"]
    (d - 1)/(2*d**3)
    """
    values, mixing = series(0, 0, 2)
    return {"c_1": values[1], "c_2": values[2], "mixing": sympy.simplify(mixing[2][1])}


def _binomial(upper: Expr, lower: int) -> Expr:
    """Generalised binomial coefficient as a polynomial in ``upper``."""
    result = Integer(1)
    for i in range(lower):
        result *= (upper - i) / Integer(i + 1)
    return result


def _chain(degree: int, sector: int, order: int) -> list[int]:
    """Even degrees within ``order`` steps: perturbation of this order reaches no further."""
    return [ell for ell in range(degree - 2 * order, degree + 2 * order + 1, 2) if ell >= sector]


def _coefficient_ratio(base: int, degree: int) -> Expr:
    """a_degree / a_base of the same parity."""
    low, high = sorted((base, degree))
    product = Integer(1)
    for ell in range(low, high, 2):
        product *= coefficient_step().subs(ELL, ell)
    return product if degree >= base else 1 / product


def _perturbations(chain: list[int], degree: int, sector: int, order: int) -> list[list[list[Any]]]:
    """Matrices T_0, T_1, ... of T / (A d a_degree^2) = sum_k b^k T_k in the monic basis of the chain."""
    ratio = [_FIELD.from_sympy(_coefficient_ratio(degree, ell)) for ell in chain]
    powers = _multiplication_powers(chain, sector, order)
    matrices = []
    for row in weight_series(order):
        weights = [_FIELD.from_sympy(c) for c in row]
        matrices.append(
            [
                [
                    ratio[i]
                    * ratio[j]
                    * sum((c * powers[p][i][j] for p, c in enumerate(weights)), _FIELD.zero)
                    for j in range(len(chain))
                ]
                for i in range(len(chain))
            ]
        )
    return matrices


def _multiplication_powers(chain: list[int], sector: int, order: int) -> list[list[list[Any]]]:
    """Powers 0 ... order of multiplication by t^2 in the monic basis, restricted to the chain.

    Entry [i][j] is the coefficient of the monic polynomial i in t^2 times the monic polynomial j. The chain is
    widened first, so that the restriction is exact.
    """
    wide = [ell for ell in range(chain[0] - 2 * order, chain[-1] + 2 * order + 1, 2) if ell >= sector]
    index = gegenbauer_index(sector)
    size = len(wide)
    squared = [_FIELD.from_sympy(beta_squared(k, index)) for k in range(wide[-1] - sector + 2)]
    below, diagonal = [_FIELD.zero] * size, [_FIELD.zero] * size
    for j, ell in enumerate(wide):
        r = ell - sector
        diagonal[j] = squared[r] + squared[r + 1]
        below[j] = squared[r] * squared[r - 1] if r >= 2 else _FIELD.zero
    current = [[_FIELD.one if i == j else _FIELD.zero for j in range(size)] for i in range(size)]
    places = [wide.index(ell) for ell in chain]
    powers = []
    for _ in range(order + 1):
        powers.append([[current[i][j] for j in places] for i in places])
        # t^2 m_j = m_(j+1) + diagonal_j m_j + below_j m_(j-1)
        current = [
            [
                diagonal[i] * current[i][j]
                + (current[i - 1][j] if i else _FIELD.zero)
                + (below[i + 1] * current[i + 1][j] if i + 1 < size else _FIELD.zero)
                for j in range(size)
            ]
            for i in range(size)
        ]
    return powers
