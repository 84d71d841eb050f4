"""Gram matrices of the exact blocks, as balls: G_{ell,ell'} of a sector for any d, b = B/A and size.

In a sector G is a function of the Jacobi matrix J of multiplication by t^2, G = W(J), so J G = G J: each row of G
follows from the two rows above it. The first row is a Gauss hypergeometric function by Rodrigues' formula,

    E[J_k(y) (1 - u y)^(-(d+2)/2)] ~ b^k ((d+2)/2)_k 2F1(k + e + l - 1, k + e + 1/2; 2k + e + l + d/2; -b),  y = t^2,

for the orthonormal Jacobi polynomials J_k of the chain ell = l + e + 2k (e = 0 or 1), and Gauss's continued fraction
gives the quotients of neighbours: all its coefficients are positive, so it contracts any starting interval.
"""

from __future__ import annotations

from flint import arb, ctx, fmpq

from ..errors import CertificationError
from .sphere import beta_squared, gegenbauer_index

#: longest continued fraction that is tried; beyond it b/d is far outside the range of the block method
_MAX_TERMS = 1 << 19


class NotConverged(CertificationError):
    """The continued fraction would need more terms than are tried: B/(A d) is far outside the block method."""


def first_degree(sector: int) -> int:
    """Lowest even degree of the sector: the start of the chain with non-zero even Funk-Hecke coefficients."""
    return sector + sector % 2


def contiguous_ratios(a: arb, b: arb, c: arb, x: arb, count: int) -> list[arb]:
    """Quotients of successive 2F1 at -x along (a, b; c), (a, b+1; c+1), (a+1, b+1; c+2), (a+1, b+2; c+3), ...

    Needs a >= 0, c > b > 0, c + 1 > a and x >= 0: then every quotient lies in (0, 1] and the continued fraction,
    started from the interval [0, 1] far enough out, returns rigorous enclosures.

    Examples
    --------
    >>> r = contiguous_ratios(arb(0), arb(1.5), arb(7), arb(3), 2)
    >>> with ctx.workprec(53):
    ...     direct = arb(-3).hypgeom_2f1(arb(1), arb(2.5), arb(9)) / arb(-3).hypgeom_2f1(arb(0), arb(2.5), arb(8))
    >>> print(r[0].str(6), r[1].overlaps(direct))
    1.00000 True
    """
    wanted = ctx.prec - 16
    if x > 0:
        wanted = min(wanted, x.rel_accuracy_bits() - 16)
    terms = count + 64
    while terms <= _MAX_TERMS:
        ratios: list[arb] = [arb(0)] * count
        current = arb(0.5, 0.5)
        for m in range(terms - 1, -1, -1):
            j, odd = divmod(m, 2)
            lower = c + m
            step = (b + j + 1) * (lower - a - j) if odd else (a + j) * (lower - b - j)
            current = 1 / (1 + x * step * current / (lower * (lower + 1)))
            if m < count:
                ratios[m] = current
        if all(r.rel_accuracy_bits() >= wanted for r in (ratios[0], ratios[-1])):
            return ratios
        terms *= 2
    text = (-x).str(5, radius=False)
    raise NotConverged(
        f"the continued fraction of 2F1 at -B/A = {text} has not converged after {_MAX_TERMS} terms"
    )


def first_row(d: int, sector: int, ratio: arb, count: int) -> list[arb]:
    """G_{0,k}/(A d), k < ``count``, between the first and the k-th degree of the chain, b = ``ratio`` > -1."""
    odd = sector % 2
    p = arb(fmpq(2 * odd + 1, 2))
    q = arb(fmpq(2 * sector + d - 1, 2))
    gamma = arb(fmpq(d + 2, 2))
    functions = _hypergeometric_column(d, sector, ratio, count)
    row = [(1 + ratio) ** odd * functions[0]]
    scale = (1 + ratio) ** odd
    for k in range(count - 1):
        norm = (k + p) * (k + q) / ((2 * k + p + q) * (2 * k + p + q + 1) * (k + 1))
        # at k = 0 the factor (p + q - 1)(p + q)/(p + q - 1) is p + q, also on the circle, where p + q = 1
        norm /= (p + q) if k == 0 else (2 * k + p + q - 1) * (2 * k + p + q) / (k + p + q - 1)
        scale = scale * ratio * (gamma + k) * norm.sqrt()
        row.append(scale * functions[k + 1])
    return row


def gram(d: int, sector: int, ratio: arb, size: int) -> list[list[arb]]:
    """G/(A d) of the chain's first ``size`` degrees, at the current precision; b = ``ratio`` > -1.

    Returns the upper triangle: entry ``[i][j - i]`` for j >= i.

    Examples
    --------
    >>> with ctx.workprec(100):
    ...     g = gram(1000, 0, arb(5), 2)
    ...     print((1000 * g[0][0]).str(15, radius=False), (1000 * g[0][1] / 5).str(10, radius=False))
    1005.00000000000 707.4595395
    """
    length = 2 * size
    diagonal, off = jacobi(d, sector, length)
    here = first_row(d, sector, ratio, length)
    above = [arb(0)] * (length + 1)
    rows = [here[:size]]
    for i in range(size - 1):
        inverse, up, own = 1 / off[i + 1], off[i], diagonal[i]
        # here[m] is the entry (i, i + m); the row shortens by one at each end
        following = [
            ((diagonal[j] - own) * h + off[j + 1] * right + off[j] * left - up * a) * inverse
            for j, h, right, left, a in zip(
                range(i + 1, length), here[1:], here[2:], here, above[2:], strict=False
            )
        ]
        above, here = here, following
        rows.append(here[: size - i - 1])
    return rows


def jacobi(d: int, sector: int, count: int) -> tuple[list[arb], list[arb]]:
    """Diagonal and off-diagonal (``off[k]`` joins k-1 and k) of multiplication by t^2 along the chain."""
    index = gegenbauer_index(d, sector)
    start = sector % 2
    squares = [beta_squared(r, index) for r in range(start + 2 * count + 2)]
    diagonal = [squares[start + 2 * k] + squares[start + 2 * k + 1] for k in range(count)]
    off = [arb(0)] + [
        (squares[start + 2 * k - 1] * squares[start + 2 * k]).sqrt() for k in range(1, count + 1)
    ]
    return diagonal, off


def _hypergeometric_column(d: int, sector: int, ratio: arb, count: int) -> list[arb]:
    """2F1(k + e + l - 1, k + e + 1/2; 2k + e + l + d/2; -b) for k < ``count``, e the parity of the sector."""
    odd = sector % 2
    first = sector + odd - 1
    second, third = arb(fmpq(2 * odd + 1, 2)), arb(fmpq(2 * (odd + sector) + d, 2))
    if not ratio >= 0:
        values = [(-ratio).hypgeom_2f1(first + k, second + k, third + 2 * k) for k in range(count)]
        if not all(v.is_finite() for v in values):
            raise CertificationError(
                f"2F1 at -B/A = {(-ratio).str(5, radius=False)} has no enclosure; take B/A nearer to 0"
            )
        return values
    if first == -1:
        # the zonal sector: the series end, 2F1(-1, ...) = 1 + b/d and 2F1(0, ...) = 1
        values = [1 + ratio / d, arb(1)]
        second, third = second + 1, third + 2
        first = 0
    else:
        value = arb(1)
        for m in range(first):
            value *= contiguous_ratios(second, arb(m), third - first + m, ratio, 1)[0]
        values = [value]
    ratios = contiguous_ratios(arb(first), second, third, ratio, 2 * count)
    for k in range(count - len(values)):
        values.append(values[-1] * ratios[2 * k] * ratios[2 * k + 1])
    return values[:count]
