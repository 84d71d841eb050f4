"""P(rho) and Q(rho) of a link in closed form, and E P^2, E Q^2 over the direction of the weight where those close.

P(rho) = E[s g(s) Phi(kappa s)] and Q(rho) = E[g(s) phi(kappa s)] with kappa = rho/sqrt(1 - rho^2) = tan(phi). With r
standard Gaussian, differentiating along the angle puts s on the line orthogonal to the weight, where s = cos(phi) r:

    Q = cos(phi) E[g(cos(phi) r)] / sqrt(2 pi),    dP/dphi = cos(phi) E[r^2 g(cos(phi) r)] / sqrt(2 pi),    P(0) = c_1/2.

Only the even part of the link enters beyond c_1.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy

from .angle import PHI, angle_mean, quadrature
from .derivation import Derivation, Step, same_at
from .means import DirectionMean, GaussianMean
from .symbols import RHO, D, S, X

_A = sympy.Symbol("a_0", real=True)
_MAX_DEGREE = 40


@dataclass(frozen=True)
class LinkForms:
    """What closes for a link.

    ``family`` names why ("polynomial on either side of zero", "exponential polynomial"). ``P`` and ``Q`` are
    functions of the angle phi (rho = sin phi); ``c1`` is E[g s]; ``EP2`` and ``EQ2`` are functions of d, None where only
    P and Q close.
    """

    family: str
    P: sympy.Expr
    Q: sympy.Expr
    c1: sympy.Expr
    EP2: sympy.Expr | None
    EQ2: sympy.Expr | None

    def in_rho(self, expr: sympy.Expr) -> sympy.Expr:
        """A function of the angle as a function of rho = sin(phi)."""
        root = sympy.sqrt(1 - RHO**2)
        expr = sympy.expand_trig(expr).subs(
            {sympy.tan(PHI): RHO / root, sympy.sin(PHI): RHO, sympy.cos(PHI): root}
        )
        return expr.subs(PHI, sympy.asin(RHO))


def link_forms(link: sympy.Expr) -> LinkForms | None:
    """Closed forms for a link given as an expression in ``symbols.X``; None where P and Q do not close.

    Polynomials, relu, abs, sign, heaviside, x|x| and every other link that is a polynomial on either side of zero;
    sums of x^k exp(-b x^2 + a x), which covers exp, sin, cos, sinh, cosh and Gaussians; every odd link.

    Examples
    --------
    >>> link_forms(sympy.Max(0, X)).EQ2
    (d - 1)*(d + 1)/(4*pi**2*d*(d + 2))
    >>> link_forms(sympy.tanh(X)).family
    'odd'
    """
    if link.free_symbols - {X}:
        return None
    sides = _sides(link)
    if sides is not None:
        return _from_even_part(*sides)
    terms = _exponential_terms(link)
    if terms is not None:
        return _from_exponentials(terms)
    if is_odd(link):
        half = _half_mean(link)
        return LinkForms("odd", half / 2, sympy.Integer(0), half, half**2 / 4, sympy.Integer(0))
    return None


def is_odd(link: sympy.Expr) -> bool:
    """Whether SymPy sees at once that g(-x) = -g(x)."""
    return bool(sympy.expand(link.subs(X, -X) + link) == 0)


def _half_mean(link: sympy.Expr) -> sympy.Expr:
    """c_1 as a symbol: an odd link enters by c_1 alone, whatever its closed form is."""
    from .symbols import C1

    return C1


def _sides(link: sympy.Expr) -> tuple[sympy.Poly, sympy.Poly] | None:
    """The link for x > 0 and (reflected) for x < 0, if both are polynomials."""
    r = sympy.Symbol("r", positive=True)
    polynomials = []
    for sign in (1, -1):
        try:
            side = sympy.Poly(sympy.expand(sympy.piecewise_fold(link.subs(X, sign * r)).doit()), r)
        except (sympy.PolynomialError, TypeError, ValueError):
            return None
        if side.degree() > _MAX_DEGREE or any(c.has(r) for c in side.coeffs()):
            return None
        polynomials.append(side)
    return polynomials[0], polynomials[1]


def absolute_moment(k: int) -> sympy.Expr:
    """E |r|^k of a standard Gaussian."""
    return (
        sympy.Integer(2) ** sympy.Rational(k, 2)
        * sympy.gamma(sympy.Rational(k + 1, 2))
        / sympy.sqrt(sympy.pi)
    )


def _from_even_part(right: sympy.Poly, left: sympy.Poly) -> LinkForms:
    cos = sympy.cos(PHI)
    even, odd = ((right + left) * sympy.Rational(1, 2), (right - left) * sympy.Rational(1, 2))
    even, odd = (sympy.Poly(e, right.gen) for e in (even, odd))
    c1 = sum((c * absolute_moment(k + 1) for (k,), c in odd.terms()), sympy.Integer(0))
    scale = 1 / sympy.sqrt(2 * sympy.pi)
    q = sum((c * absolute_moment(k) * cos ** (k + 1) for (k,), c in even.terms()), sympy.Integer(0)) * scale
    p = c1 / 2
    for (k,), c in even.terms():
        p += c * absolute_moment(k + 2) * scale * _cosine_primitive(k + 1)
    p, q = sympy.expand(p), sympy.expand(q)
    return LinkForms(
        "polynomial on either side of zero", p, q, sympy.simplify(c1), angle_mean(p**2), angle_mean(q**2)
    )


def _cosine_primitive(k: int) -> sympy.Expr:
    """Integral of cos^k from 0 to phi, by the reduction formula (integration by parts)."""
    sin, cos = sympy.sin(PHI), sympy.cos(PHI)
    if k == 0:
        return PHI
    if k == 1:
        return sin
    return sympy.expand(cos ** (k - 1) * sin / k + sympy.Rational(k - 1, k) * _cosine_primitive(k - 2))


def _exponential_terms(link: sympy.Expr) -> list[tuple[sympy.Expr, int, sympy.Expr, sympy.Expr]] | None:
    """The link as a sum of c x^k exp(-b x^2 + a x), a real or imaginary, b > -1/4; None when it is not one."""
    if not link.is_polynomial(X) and link.has(
        sympy.Abs, sympy.sign, sympy.Heaviside, sympy.Max, sympy.Min, sympy.Piecewise
    ):
        return None
    expanded = sympy.expand(sympy.expand(link.rewrite(sympy.exp), power_exp=False))
    terms = []
    for term in sympy.Add.make_args(sympy.powsimp(expanded)):
        coefficient, rest = term.as_independent(X, as_Add=False)
        power, exponent = 0, sympy.Integer(0)
        for factor in sympy.Mul.make_args(rest):
            base, raised = factor.as_base_exp()
            if base == X and raised.is_Integer and 0 <= raised <= _MAX_DEGREE:
                power += int(raised)
            elif base == sympy.E:
                exponent += raised
            elif factor != 1:
                return None
        try:
            polynomial = sympy.Poly(exponent, X)
        except sympy.PolynomialError:
            return None
        if polynomial.degree() > 2:
            return None
        a, b = polynomial.coeff_monomial(X), -polynomial.coeff_monomial(X**2)
        if not (b.is_real and (4 * b + 1).is_positive and (a.is_real or (a / sympy.I).is_real)):
            return None
        terms.append((coefficient * sympy.exp(polynomial.coeff_monomial(1)), power, a, b))
    return terms


def _from_exponentials(terms: list[tuple[sympy.Expr, int, sympy.Expr, sympy.Expr]]) -> LinkForms:
    """Derivatives in a of E[exp(a s - b s^2) Phi(kappa s)] and of the same with phi, by completing the square."""
    sin, cos = sympy.sin(PHI), sympy.cos(PHI)
    p, q, c1 = sympy.Integer(0), sympy.Integer(0), sympy.Integer(0)
    for c, k, a, b in terms:
        # a = i omega: differentiate in the real omega, d/da = -i d/domega; g is real, so real parts of the terms suffice
        turned = not a.is_real
        at, square, odd = (a / sympy.I, -(_A**2), sympy.erfi) if turned else (a, _A**2, sympy.erf)
        # under the tilted Gaussian of variance v and mean a v, Phi(kappa s) has mean Phi(kappa a v / sqrt(1 + kappa^2 v))
        v = 1 / (1 + 2 * b)
        shrink = sympy.Integer(1) if b == 0 else sympy.sqrt(cos**2 + v * sin**2)
        tilted = sympy.sqrt(v) * sympy.exp(square * v / 2)
        skewed = tilted * odd(_A * v * sin / (sympy.sqrt(2) * shrink))
        root = cos / (sympy.Integer(1) if b == 0 else sympy.sqrt(1 + 2 * b * cos**2))
        lowered = root * sympy.exp(square * root**2 / 2) / sympy.sqrt(2 * sympy.pi)

        def derivative(
            expr: sympy.Expr, order: int, phase: sympy.Expr, c: Any = c, at: Any = at, turned: bool = turned
        ) -> sympy.Expr:
            factor = sympy.re(sympy.expand(c * (-sympy.I) ** order * phase)) if turned else c
            return factor * sympy.diff(expr, _A, order).subs(_A, at)

        whole = derivative(tilted, k + 1, sympy.Integer(1))
        c1 += whole
        p += whole / 2 + derivative(skewed, k + 1, sympy.I if turned else sympy.Integer(1)) / 2
        q += derivative(lowered, k, sympy.Integer(1))
    p, q, c1 = (sympy.powsimp(sympy.expand(e)) for e in (p, q, c1))
    means = [sympy.simplify(e**2) if not e.has(PHI) else None for e in (p, q)]
    return LinkForms("exponential polynomial", p, q, c1, means[0], means[1])


def link_derivation(link: sympy.Expr) -> Derivation:
    """The closed forms of a link as checked steps: P, Q by their definitions, E P^2, E Q^2 by the density."""
    forms = link_forms(link)
    if forms is None:
        raise ValueError(f"P and Q do not close for {link}")
    g = link.subs(X, S)
    kappa = sympy.tan(PHI)
    normal = (1 + sympy.erf(kappa * S / sympy.sqrt(2))) / 2
    density = sympy.exp(-((kappa * S) ** 2) / 2) / sympy.sqrt(2 * sympy.pi)
    steps = [
        Step(
            "integral along the angle (P)",
            GaussianMean(S * g * normal, S),
            forms.P,
            same_at(_angle_point, _along_line, digits=20),
        ),
        Step(
            "Gaussian mean on the orthogonal line (Q)",
            GaussianMean(g * density, S),
            forms.Q,
            same_at(_angle_point, _along_line, digits=20),
        ),
    ]
    for body, closed in ((forms.P, forms.EP2), (forms.Q, forms.EQ2)):
        if closed is not None:
            judge = same_at(_angle_point, lambda e, p: quadrature(e.integrand, p[D]), digits=25)
            steps.append(Step("mean over the angle", DirectionMean(body**2, PHI), closed, judge))
    return Derivation(f"closed forms of the link {link}", tuple(steps), {"P": forms.P, "Q": forms.Q})


def _angle_point(rng: random.Random) -> dict[sympy.Symbol, Any]:
    return {PHI: mpmath.mpf(rng.randint(-12, 12)) / 9, D: mpmath.mpf(rng.randint(2, 30))}


def _along_line(expr: sympy.Expr, point: dict[sympy.Symbol, Any]) -> Any:
    function = sympy.lambdify((S, PHI), expr.integrand, "mpmath")
    return mpmath.quad(
        lambda s: function(s, point[PHI]) * mpmath.npdf(s), [-25, -12, -6, -3, 0, 3, 6, 12, 25]
    )
