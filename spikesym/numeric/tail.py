"""What a truncated block leaves out: rigorous bounds for the harmonics beyond the last degree kept.

All bounds are in units of A, for the ReLU, and for the block M of the exact operator split as kept + left out.
``tail_norm`` bounds the norm of the left-out diagonal block; ``coupling`` the norm of the left-out rows times a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, fmpq

from .sphere import multiplicity


def tail_norm(d: int, sector: int, ratio: arb, coefficient: arb, degree: int) -> arb:
    """Upper bound of the norm of the block of all degrees >= ``degree``, whose Funk-Hecke coefficient is given.

    The smaller of two bounds. By the size of the weight: a_degree^2 d (1+b)^((d+1)/2), for small d. By the trace,
    for large d: Laplace's integral bounds q_{ell,l}(t)^2 by N(d, ell) E[(t^2 + (1 - t^2) rho^2)^ell] up to a factor,
    rho a coordinate of the unit sphere of R^(d-1), and sum_ell a_ell^2 N(d, ell) <= 1/(4d) over even ell.

    Examples
    --------
    >>> tail_norm(1000, 0, arb(5), arb(1e-30), 40) < arb(1e-30)
    True
    """
    if ratio >= 0:
        bounded = coefficient**2 * d * (1 + ratio) ** arb(fmpq(d + 1, 2))
    else:
        bounded = coefficient**2 * d / (1 + ratio).sqrt()
    bounded = bounded.upper()
    if d < 4 or degree < 2:
        return bounded
    trace = _trace_bound(d, sector, arb(ratio.upper()) if ratio > 0 else arb(0), degree).upper()
    return trace if trace < bounded else bounded


def _trace_bound(d: int, sector: int, ratio: arb, degree: int) -> arb:
    """Bound of sum over ell >= degree of a_ell^2 G_{ell,ell} / A through E |w|^2 X^degree, X in (0, 1).

    X = (w_1^2 + w_2^2)/|w|^2 is at most (1+b) y/(1 + b y) with y ~ Beta(1, d/2 - 1); with x = 1 - X the expectation is
    v (1+b)^(v+1) int x^(v-1) (1 + b x)^(-v-2) (1 - x)^degree dx, v = d/2 - 1, bounded by the maximum of
    (x/(1 + b x))^(v-1) (1 - x)^degree times the integral of (1 + b x)^-3.
    """
    v = arb(fmpq(d - 2, 2))
    lift = arb(1)
    for i in range(1, sector + 1):
        lift *= fmpq(degree + d - 3 + i, degree - sector + i)
    lift /= multiplicity(sector, d - 1)
    slope = degree + v - 1
    root = (slope * slope + 4 * degree * ratio * (v - 1)).sqrt()
    x = 2 * (v - 1) / (slope + root)
    exponent = (v + 1) * (1 + ratio).log() + degree * (1 - x).log()
    if d > 4:
        exponent += (v - 1) * (x / (1 + ratio * x)).log()
    width = 1 / (2 * ratio) if ratio > 0.5 else arb(1)
    # sum of a_ell^2 N(d, ell) over even ell is E (|t|/2)^2 = 1/(4d), beside E |w|^2 = A d: the d cancels
    return lift * v * exponent.exp() * width / 4


def coupling(d: int, ratio: arb, coefficients: Sequence[arb], vector: Sequence[arb]) -> arb:
    """Bound of the norm of the left-out rows of M/A times ``vector`` (components on the kept degrees).

    ``coefficients`` has one entry more than ``vector``. G/(A d) = (1+b)^(-1/2) W(J) with J tridiagonal, so its entries
    decay as best polynomial approximation of W does: at most 2 max|W| rho^(1-|k-k'|)/(rho - 1) with the maximum over
    the ellipse of parameter rho (Bernstein), for each rho below the one that meets the singularity of W.

    Examples
    --------
    >>> a = [arb(1) / (k + 1) ** 2 for k in range(41)]
    >>> coupling(3, arb(1), a, [arb(2) ** (-4 * k) for k in range(40)]) < arb(1e-20)
    True
    """
    if ratio.contains(0) and ratio.rad() == 0:
        return arb(0)
    u = ratio / (1 + ratio)
    pole = abs(2 / u - 1)
    largest = pole + (pole * pole - 1).sqrt()
    best = arb.pos_inf()
    for fraction in (0.2, 0.4, 0.6, 0.8, 0.9, 0.97):
        rho = arb((1 + (largest - 1) * fraction).lower())
        if not rho > 1:
            continue
        height = (rho + 1 / rho) / 2
        nearest = 1 - u * (1 + height) / 2 if ratio > 0 else 1 - u * (1 - height) / 2
        if not nearest > 0:
            continue
        size = nearest ** (-arb(fmpq(d + 2, 2))) / (1 + ratio).sqrt()
        total, power = arb(0), arb(1)
        for a, v in zip(coefficients, vector, strict=False):
            total += power * abs(a * v)
            power *= rho
        # power is rho^n, n the number of kept degrees: the first row left out is n
        bound = abs(coefficients[len(vector)]) * d * 2 * size / (rho - 1) * rho * total / power
        bound = (bound / (1 - rho ** (-2)).sqrt()).upper()
        if bound < best:
            best = bound
    return best
