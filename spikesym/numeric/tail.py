"""What a truncated block leaves out: rigorous bounds for the harmonics beyond the last degree kept.

All bounds are in units of A, for the ReLU, and for the block M of the exact operator split as kept + left out.
``tail_norm`` bounds the norm of the left-out diagonal block; ``coupling`` the norm of the left-out rows times a vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb, ctx, fmpq

from .sphere import multiplicity, relu_coefficients


def shares(d: int, count: int, bits: int) -> list[arb]:
    """Tails V_k = sum of a_ell^2 N(d, ell) over even ell >= 2k, k < ``count``: parts of E max(t, 0)^2's even half.

    Examples
    --------
    >>> print(shares(5, 1, 60)[0].str(5, radius=False))  # 1/(4 d)
    0.050000
    """
    with ctx.workprec(bits):
        term = relu_coefficients(d, 1, bits)[0] ** 2
        left, result = arb(fmpq(1, 4 * d)), []
        for k in range(count):
            result.append(left)
            left = left - term
            ell = 2 * k
            if ell == 0:
                growth = fmpq(multiplicity(2, d))
            else:
                growth = fmpq(2 * ell + d + 2, 2 * ell + d - 2)
                growth *= fmpq((ell + d - 2) * (ell + d - 1), (ell + 1) * (ell + 2))
            term = term * growth * fmpq((ell - 1) ** 2, (ell + d + 1) ** 2)
        return result


def tail_norm(d: int, sector: int, ratio: arb, coefficient: arb, degree: int, share: arb) -> arb:
    """Upper bound of the norm of the block of all degrees >= ``degree``, given a_degree and the share V of :func:`shares`.

    The smaller of two bounds. By the size of the weight: a_degree^2 d (1+b)^((d+1)/2), for small d. By the trace, for
    large d: Laplace's integral bounds q_{ell,l}(t)^2 by N(d, ell) E[(t^2 + (1 - t^2) rho^2)^ell] up to a factor that
    decreases with ell, rho a coordinate of the unit sphere of R^(d-1).

    Examples
    --------
    >>> tail_norm(1000, 0, arb(5), arb(1e-30), 40, shares(1000, 21, 80)[20]) < arb(1e-30)
    True
    """
    power = arb(fmpq(d + 1, 2)) if ratio >= 0 else arb(fmpq(-1, 2))
    bounded = arb((coefficient**2 * d * (1 + ratio) ** power).upper())
    if d < 4 or degree < 3:
        return bounded
    trace = arb(_trace_bound(d, sector, arb(ratio.upper()) if ratio > 0 else arb(0), degree, share).upper())
    return trace if trace < bounded else bounded


def _trace_bound(d: int, sector: int, ratio: arb, degree: int, share: arb) -> arb:
    """Bound of sum over ell >= degree of a_ell^2 G_{ell,ell} / A through E |w|^2 X^degree, X in (0, 1).

    X = (w_1^2 + w_2^2)/|w|^2 is at most (1+b) y/(1 + b y) with y ~ Beta(1, v), v = d/2 - 1. With 1 - X = e^s the
    expectation is d v (1+b)^(v+1) times the integral of exp h(s), h(s) = v s - (v+2) log(1 + b e^s) + degree log(1 - e^s),
    a concave function: it lies below its maximum near the top and below its tangents on both sides.
    """
    v = arb(fmpq(d - 2, 2))
    lift = arb(1)
    for i in range(1, sector + 1):
        lift *= fmpq(degree + d - 3 + i, degree - sector + i)
    lift /= multiplicity(sector, d - 1)

    def h(x: arb) -> arb:
        return v * x.log() - (v + 2) * (1 + ratio * x).log() + degree * (1 - x).log()

    def slope(x: arb) -> arb:
        return v - (v + 2) * ratio * x / (1 + ratio * x) - degree * x / (1 - x)

    linear = v + 2 * ratio + degree
    x = 2 * v / (linear + (linear * linear + 4 * (degree - 2) * ratio * v).sqrt())
    curvature = (v + 2) * ratio * x / (1 + ratio * x) ** 2 + degree * x / (1 - x) ** 2
    step = 1 / curvature.sqrt()
    left, right = x * (-step).exp(), x * step.exp()
    # half way to the end, where the step would leave the interval
    right = right if right < (1 + x) / 2 else (1 + x) / 2
    scale = (v + 1) * (1 + ratio).log()
    integral = (h(x) + scale).exp() * (right / left).log()
    integral += (h(left) + scale).exp() / slope(left) - (h(right) + scale).exp() / slope(right)
    return lift * share * d * v * integral


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
