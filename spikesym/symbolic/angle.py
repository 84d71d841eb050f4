"""Means over the angle phi = arcsin(rho) between a random direction and the hyperplane orthogonal to w*.

rho = sin(phi) is one coordinate of a uniform point of the sphere in R^d, so phi has density proportional to
cos(phi)^(d-2) on (-pi/2, pi/2). Means of polynomials in phi, sin(phi), cos(phi) close with gamma and polygamma
functions; the rules are integrations by parts, each one a checked step.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import mpmath
import sympy

from .derivation import Derivation, Step, proved, same_at
from .symbols import LATEX_NAMES, D

PHI = sympy.Symbol("phi", real=True)
_T = sympy.Symbol("t", real=True)
_J = sympy.Symbol("j", integer=True, nonnegative=True)
#: mean of cos(t phi) in dimension d
CHARACTERISTIC = sympy.Function("M")
LATEX_NAMES.setdefault(PHI, r"\varphi")


def angle_mean(expr: sympy.Expr, d: sympy.Expr = D) -> sympy.Expr:
    """E of a polynomial in phi, sin(phi), cos(phi), in closed form in d.

    Raises
    ------
    ValueError
        When the expression is not such a polynomial.

    Examples
    --------
    >>> angle_mean(PHI**2)
    polygamma(1, d/2)/2
    >>> sympy.factor(angle_mean(sympy.sin(PHI) ** 2 * sympy.cos(PHI) ** 2))
    (d - 1)/(d*(d + 2))
    """
    sine, cosine = sympy.symbols("sine cosine", real=True)
    body = sympy.expand(sympy.expand_trig(expr).subs({sympy.sin(PHI): sine, sympy.cos(PHI): cosine}))
    total = sympy.Integer(0)
    try:
        polynomial = sympy.Poly(body, PHI, sine, cosine)
    except sympy.PolynomialError as error:
        raise ValueError(f"not a polynomial in phi, sin(phi), cos(phi): {expr}") from error
    if any(c.has(PHI, sine, cosine) for c in polynomial.coeffs()):
        raise ValueError(f"not a polynomial in phi, sin(phi), cos(phi): {expr}")
    for (k, a, b), coefficient in polynomial.terms():
        if (k + a) % 2:
            continue  # odd in phi
        # sin^a = sin^(a mod 2) (1 - cos^2)^(a // 2)
        for i in range(a // 2 + 1):
            total += coefficient * sympy.binomial(a // 2, i) * (-1) ** i * _basic(k, a % 2, b + 2 * i, d)
    return _tidy(total)


def _basic(k: int, a: int, b: int, d: sympy.Expr) -> sympy.Expr:
    """E[phi^k sin^a cos^b], a in {0, 1}."""
    if a == 1:
        # by parts: sin cos^(b+d-2) = -(cos^(b+d-1))'/(b+d-1), the boundary term vanishes
        return sympy.Integer(k) / (b + d - 1) * _basic(k - 1, 0, b + 1, d)
    return cosine_power(b, d) * even_moment(k, d + b)


def cosine_power(b: int, d: sympy.Expr = D) -> sympy.Expr:
    """E cos(phi)^b, a beta integral.

    Examples
    --------
    >>> sympy.factor(cosine_power(2, D))
    (d - 1)/d
    """
    if b % 2 == 0:
        return sympy.rf((d - 1) / 2, b // 2).expand(func=True) / sympy.rf(d / 2, b // 2).expand(func=True)
    half = sympy.Rational(1, 2)
    return (
        sympy.gamma(d / 2)
        * sympy.gamma((d + b - 1) * half)
        / (sympy.gamma((d - 1) / 2) * sympy.gamma((d + b) * half))
    )


def even_moment(k: int, d: sympy.Expr = D) -> sympy.Expr:
    """E phi^k for even k, from log E cos(t phi) = -sum_r t^(2r)/r * psi_(2r-1)(d/2) / (4^r (2r-1)!)."""
    if k == 0:
        return sympy.Integer(1)
    log = sum(
        (
            -(_T ** (2 * r)) / r * sympy.polygamma(2 * r - 1, d / 2) / (4**r * sympy.factorial(2 * r - 1))
            for r in range(1, k // 2 + 1)
        ),
        sympy.Integer(0),
    )
    exponential = sum((log**i / sympy.factorial(i) for i in range(k // 2 + 1)), sympy.Integer(0))
    return sympy.expand(exponential).coeff(_T, k) * (-1) ** (k // 2) * sympy.factorial(k)


def _tidy(expr: sympy.Expr) -> sympy.Expr:
    """One polygamma argument modulo 1, factored rational coefficients."""
    expr = sympy.expand_func(sympy.expand(expr))
    gathered = sympy.collect(sympy.expand(expr), list(expr.atoms(sympy.polygamma)), evaluate=False)
    return sum((sympy.factor(sympy.gammasimp(c)) * f for f, c in gathered.items()), sympy.Integer(0))


def quadrature(expr: sympy.Expr, d: Any) -> Any:
    """The mean by numerical quadrature of the density, independent of every rule above."""
    function = sympy.lambdify(PHI, expr, "mpmath")
    half = mpmath.pi / 2
    nodes = mpmath.linspace(-half, half, 5)
    weight = mpmath.quad(lambda t: mpmath.cos(t) ** (d - 2), nodes)
    return mpmath.quad(lambda t: function(t) * mpmath.cos(t) ** (d - 2), nodes) / weight


def _point(rng: random.Random) -> dict[sympy.Symbol, Any]:
    return {D: mpmath.mpf(rng.randint(2, 40)), _T: mpmath.mpf(rng.randint(1, 9)) / 7}


def _characteristic(expr: sympy.Expr, point: dict[sympy.Symbol, Any]) -> Any:
    """Evaluate with M(d, t) and infinite products and sums computed numerically from the definition."""
    expr = expr.subs(
        {k: sympy.Integer(int(v)) if k == D else sympy.nsimplify(v, rational=True) for k, v in point.items()}
    )

    def mean(dim: sympy.Expr, t: sympy.Expr) -> sympy.Expr:
        return sympy.Float(quadrature(sympy.cos(t * PHI), mpmath.mpf(int(dim))), mpmath.mp.dps)

    expr = expr.replace(CHARACTERISTIC, mean)
    expr = expr.replace(
        sympy.Sum,
        lambda body, limits: sympy.Float(
            mpmath.nsum(sympy.lambdify(_J, body, "mpmath"), [0, mpmath.inf]), mpmath.mp.dps
        ),
    )
    return mpmath.mpmathify(expr.evalf(mpmath.mp.dps))


@lru_cache(maxsize=1)
def angle_derivation() -> Derivation:
    """The rules behind :func:`angle_mean`, from the density."""
    cos, sin = sympy.cos(PHI), sympy.sin(PHI)
    m = CHARACTERISTIC
    ratio = cosine_power(2, D)
    steps = [
        Step(
            "second derivative of a power of the cosine",
            sympy.diff(cos**D, PHI, 2),
            D * (D - 1) * cos ** (D - 2) - D**2 * cos**D,
            proved(lambda e: sympy.simplify(sympy.powsimp(sympy.expand(e.subs(sin**2, 1 - cos**2))))),
        ),
        # by parts twice against cos(t phi): d(d-1) int cos^(d-2) cos(t phi) = (d^2 - t^2) int cos^d cos(t phi)
        Step(
            "integration by parts, twice, against cos(t phi): recurrence in d",
            m(D, _T),
            (1 - _T**2 / D**2) * m(D + 2, _T),
            same_at(_point, _characteristic, _characteristic, digits=25),
        ),
        Step(
            "the recurrence iterated, M -> 1 as d -> infinity; logarithm of the product",
            sympy.log(m(D, _T)),
            sympy.Sum(sympy.log(1 - _T**2 / (D + 2 * _J) ** 2), (_J, 0, sympy.oo)),
            same_at(_point, _characteristic, _characteristic, digits=12),
        ),
    ]
    for r in (1, 2):
        steps.append(
            Step(
                f"sum of the terms of order t^{2 * r}: the polygamma function",
                sympy.Sum((D + 2 * _J) ** (-2 * r), (_J, 0, sympy.oo)),
                sympy.polygamma(2 * r - 1, D / 2) / (4**r * sympy.factorial(2 * r - 1)),
                same_at(_point, _characteristic, digits=14),
            )
        )
    judged = same_at(_point, lambda e, p: quadrature(e, p[D]), digits=25)
    for body in (PHI**2, PHI * sin * cos, sin**2 * cos**2, cos**4, PHI**4, PHI**2 * cos**2, cos**3):
        steps.append(
            Step(
                "mean over the angle",
                body,
                angle_mean(body),
                judged,
                left=rf"\mathbb{{E}}\left[{sympy.latex(body, symbol_names=LATEX_NAMES)}\right]",
            )
        )
    return Derivation(
        "means over the angle of a random direction",
        tuple(steps),
        {"ratio": ratio, "phi2": angle_mean(PHI**2)},
    )
