"""A and B exactly at finite n, m, d for activations p z + q |z|: relu, leaky relu, abs, identity.

Only E nu^2 = 1 enters, so the formulas hold for Gaussian and for sphere initialisation alike. The link enters by
P(rho) = E[s g(s) Phi(kappa s)] and Q(rho) = E[g(s) phi(kappa s)], kappa = rho / sqrt(1 - rho^2).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy

from . import covariance_judges as judges
from .angle import PHI, angle_mean
from .covariance_judges import EP2, EQ2, P_COEF, Q_COEF, parameters
from .covariance_steps import FULL, MOMENTS, second_moment
from .derivation import Derivation, Step, same_at
from .means import ZETA1, DirectionMean, GaussianMean, Link
from .symbols import C1, EG2, EG2S2, ETA, KAPPA4, TAU2, VARSIGMA, D, M, N, S

#: signs of the two Gaussian variables z' = r cos t and z = r sin(t + phi) on the four arcs of the circle
_T = sympy.Symbol("t", real=True)
_EDGE = sympy.Symbol("kappa_s", real=True)
_ARCS = (
    (-sympy.pi / 2, -PHI, 1, -1),
    (-PHI, sympy.pi / 2, 1, 1),
    (sympy.pi / 2, sympy.pi - PHI, -1, 1),
    (sympy.pi - PHI, 3 * sympy.pi / 2, -1, -1),
)


def activation(z: sympy.Expr, sign: sympy.Expr) -> sympy.Expr:
    """p z + q |z|, with the sign of z given."""
    return P_COEF * z + Q_COEF * sign * z


def slope(sign: sympy.Expr) -> sympy.Expr:
    """Derivative p + q sign(z)."""
    return P_COEF + Q_COEF * sign


def radial_moment(k: int) -> sympy.Expr:
    """E r^k of the Rayleigh radius of a Gaussian pair."""
    return sympy.Integer(2) ** sympy.Rational(k, 2) * sympy.gamma(sympy.Rational(k, 2) + 1)


def polar_mean(function: Any, degree: int) -> sympy.Expr:
    """E of ``function(z', z, zeta, sign z', sign z)``, homogeneous of this degree, z = sin(phi) z' + cos(phi) zeta.

    In polar coordinates the mean is an integral of trigonometric polynomials over four arcs.

    Examples
    --------
    >>> polar_mean(lambda z1, z, zeta, sign1, sign: sign1 * sign, 0)
    2*phi/pi
    """
    first, zeta = sympy.cos(_T), sympy.sin(_T)
    z = sympy.expand_trig(sympy.sin(_T + PHI))
    total = sympy.Integer(0)
    for low, high, sign1, sign in _ARCS:
        total += _trigonometric_integral(sympy.expand(function(first, z, zeta, sign1, sign)), low, high)
    sine, cosine = sympy.symbols("sine cosine")
    total = sympy.expand_trig(total).subs({sympy.sin(PHI): sine, sympy.cos(PHI): cosine})
    # sin^2 = 1 - cos^2: a normal form, without searching
    total = sympy.rem(sympy.expand(total), sine**2 + cosine**2 - 1, sine)
    total = total.subs({sine: sympy.sin(PHI), cosine: sympy.cos(PHI)})
    return sympy.expand(total * radial_moment(degree) / (2 * sympy.pi))


def _trigonometric_integral(expr: sympy.Expr, low: sympy.Expr, high: sympy.Expr) -> sympy.Expr:
    """Integral over t of a polynomial in sin t and cos t."""
    sine, cosine = sympy.symbols("sine cosine")
    total = sympy.Integer(0)
    for (a, b), c in sympy.Poly(
        expr.subs({sympy.sin(_T): sine, sympy.cos(_T): cosine}), sine, cosine
    ).terms():
        primitive = _primitive(a, b)
        total += c * (primitive.subs(_T, high) - primitive.subs(_T, low))
    return total


@lru_cache(maxsize=256)
def _primitive(a: int, b: int) -> sympy.Expr:
    return sympy.integrate(sympy.sin(_T) ** a * sympy.cos(_T) ** b, _T)


def line_mean(function: Any) -> sympy.Expr:
    """E of ``function(z, sign z)``, a polynomial in z on either side of zero."""
    r = sympy.Symbol("r", positive=True)
    total = sympy.Integer(0)
    for sign in (1, -1):
        for (k,), c in sympy.Poly(sympy.expand(function(sign * r, sign)), r).terms():
            # E[r^k; r > 0] of a standard Gaussian
            total += (
                c
                * sympy.Integer(2) ** sympy.Rational(k, 2)
                * sympy.gamma(sympy.Rational(k + 1, 2))
                / (2 * sympy.sqrt(sympy.pi))
            )
    return sympy.factor(sympy.expand(total))


def _pair_mean(integrand: sympy.Expr) -> sympy.Expr:
    return GaussianMean(integrand, S, ZETA1)


@lru_cache(maxsize=1)
def homogeneous_derivation() -> Derivation:
    """Every mean of the second moment for the activation p z + q|z|; results by name, across and along w*."""
    z = sympy.sin(PHI) * S + sympy.cos(PHI) * ZETA1
    steps: list[Step] = []

    def line(name: str, function: Any) -> sympy.Expr:
        after = line_mean(function)
        before = GaussianMean(function(S, sympy.sign(S)), S)
        steps.append(
            Step(
                f"Gaussian moments on either side of zero ({name})",
                before,
                after,
                same_at(parameters, judges.line),
            )
        )
        return after

    def circle(name: str, function: Any, degree: int) -> sympy.Expr:
        after = polar_mean(function, degree)
        before = _pair_mean(function(S, z, ZETA1, sympy.sign(S), sympy.sign(z)))

        steps.append(
            Step(
                f"integral over the circle ({name})",
                before,
                after,
                same_at(parameters, judges.circle, digits=12),
            )
        )
        return after

    def squared(u: Any, sign: Any) -> sympy.Expr:
        return (activation(u, sign) * slope(sign)) ** 2

    # the norm of a weight enters by nu^2 alone, whose mean is 1: set nu = 1
    sizes = line("own output, one sample", lambda u, s: squared(u, s) * u**2), line("own output", squared)
    values = {
        "initial": 1 / D,
        "cross": line("output against weight", lambda u, s: u * activation(u, s) * slope(s)) / D,
        "own_one": (sizes[0] + (D - 1) * sizes[1]) / D,
    }
    values["own_two"] = (values["cross"] * D) ** 2 / D
    slope2 = line("slope squared", lambda u, s: slope(s) ** 2)
    energy = line("activation squared", lambda u, s: activation(u, s) ** 2)

    def pair(rule: str, function: Any, after: sympy.Expr) -> sympy.Expr:
        """Mean over both data and weights, judged with a polynomial link."""
        before = DirectionMean(_pair_mean(function(S, z, ZETA1, sympy.sign(S), sympy.sign(z))), PHI)
        steps.append(
            Step(
                rule,
                before,
                after,
                same_at(parameters, judges.defined, judges.with_link_data, digits=11),
            )
        )
        return after

    # sigma'^2 = p^2 + q^2 + 2 p q sign(<w, x>), and the last term is odd in w: it averages to zero at any x
    odd = "the odd part of the squared slope averages to zero over +-w"
    values["others_one"] = pair(
        odd + ", other outputs",
        lambda a, b, c, sa, sb: activation(a, sa) ** 2 * slope(sb) ** 2 * (a**2 + c**2 + D - 2),
        slope2 * energy * (D + 2),
    ) / D  # fmt: skip
    label2 = Link(0, S) ** 2 + TAU2
    values["labels_one"] = pair(
        odd + ", labels, along w*",
        lambda a, b, c, sa, sb: label2 * a**2 * slope(sb) ** 2,
        slope2 * (EG2S2 + TAU2),
    )
    across_one = pair(
        odd + ", labels, beside w*",
        lambda a, b, c, sa, sb: label2 * slope(sb) ** 2 * (c**2 + D - 2) / (D - 1),
        slope2 * (EG2 + TAU2),
    )
    towards = circle(
        "gradient along the other weight", lambda a, b, c, sa, sb: a * activation(a, sa) * slope(sb), 2
    )
    beside = circle(
        "gradient beside the other weight", lambda a, b, c, sa, sb: c * activation(a, sa) * slope(sb), 2
    )
    joint = sympy.expand(towards**2 + beside**2)
    averaged = angle_mean(joint)
    steps.append(
        Step(
            "mean over the angle of the two weights",
            DirectionMean(joint, PHI),
            averaged,
            same_at(parameters, judges.angle, digits=25),
        )
    )
    values["others_two"] = averaged / D
    steps.extend(_label_steps())
    results = {
        **values,
        "labels_two": steps[-2].after,
        "across_labels_one": across_one,
        "across_labels_two": steps[-1].after / (D - 1),
    }
    return Derivation("means for the activation p z + q|z|", tuple(steps), results)


@lru_cache(maxsize=1)
def conditional_derivation() -> Derivation:
    """E[sign | s] = 2 Phi(kappa s) - 1 and E[zeta sign | s] = 2 phi(kappa s), which make P and Q."""
    kappa = sympy.tan(PHI)
    density = sympy.exp(-(ZETA1**2) / 2) / sympy.sqrt(2 * sympy.pi)
    steps = []
    for rule, factor in (
        ("sign of the preactivation given s", sympy.Integer(1)),
        ("Stein's coordinate given s", ZETA1),
    ):
        primitive = sympy.integrate(factor * density, ZETA1)
        high, low, edge = (sympy.limit(primitive, ZETA1, e) for e in (sympy.oo, -sympy.oo, -_EDGE))
        after = sympy.simplify(high + low - 2 * edge).subs(_EDGE, kappa * S)
        before = GaussianMean(factor * sympy.sign(kappa * S + ZETA1), ZETA1)
        steps.append(Step(rule, before, after, same_at(judges.conditional_point, judges.conditional)))
    return Derivation("the preactivation given s", tuple(steps), {})


def _label_steps() -> list[Step]:
    """E_x[y sigma'(<w, x>) x] along w* and beside it, squared and averaged over the direction of the weight."""
    # E[sign | s] = 2 Phi(kappa s) - 1 and E[zeta sign | s] = 2 phi(kappa s): see conditional_derivation
    p_rho, q_rho, p_mean = sympy.Symbol("P_rho"), sympy.Symbol("Q_rho"), C1 / 2
    along = sympy.Poly(sympy.expand((P_COEF * C1 + Q_COEF * (2 * p_rho - C1)) ** 2), p_rho)
    # P(-rho) + P(rho) = c_1, as Phi(-u) + Phi(u) = 1: E P(rho) = c_1 / 2
    means = {0: sympy.Integer(1), 1: p_mean, 2: EP2}
    averaged = sympy.expand(sum(c * means[k] for (k,), c in along.terms()))
    beside = sympy.expand((2 * Q_COEF * q_rho) ** 2).subs(q_rho**2, EQ2)

    steps = []
    for factor, after, which in ((S, averaged, "along w*, with E P = c_1/2"), (ZETA1, beside, "beside w*")):
        z = sympy.sin(PHI) * S + sympy.cos(PHI) * ZETA1
        before = DirectionMean(_pair_mean(factor * Link(0, S) * slope(sympy.sign(z))) ** 2, PHI)
        judge = same_at(parameters, judges.defined, judges.with_link_data, digits=11)
        steps.append(Step(f"square of the mean gradient {which}", before, after, judge))
    return steps


@lru_cache(maxsize=2)
def homogeneous_formula(along: bool) -> sympy.Expr:
    """A + B (``along``) or A for the activation p z + q|z|, any link, in the symbols of the theory.

    The residual mode is the symbol F (1 full, 0 labels only); the link enters by c_1, E g^2, E g^2 s^2, E P^2, E Q^2.
    """
    values = dict(homogeneous_derivation().results)
    if not along:
        values["labels_one"], values["labels_two"] = values["across_labels_one"], values["across_labels_two"]
    return arrange(second_moment().subs({MOMENTS[k]: values[k] for k in MOMENTS}))


def arrange(expr: sympy.Expr) -> sympy.Expr:
    """Order a second moment as 1 + (d eta^2 varsigma^2/m^2)[labels] + F(output terms)."""
    polynomial = sympy.Poly(sympy.expand(expr), ETA, VARSIGMA, FULL)
    total = sympy.Integer(0)
    for (i, j, f), coefficient in polynomial.terms():
        monomial = ETA**i * VARSIGMA**j * FULL**f
        if (i, j) == (0, 0):
            total += sympy.cancel(coefficient)
        elif (i, j) == (2, 2):
            total += monomial * D / M**2 * _by_samples(coefficient * M**2 / D)
        elif (i, j) == (2, 4):
            bracket = sympy.expand(coefficient * M**4)
            own = bracket.coeff(KAPPA4, 1)
            others = sympy.expand(bracket.coeff(KAPPA4, 0)).coeff(M, 1)  # it is (m - 1) times this
            total += (
                monomial
                / M**4
                * sympy.Add(KAPPA4 * _by_samples(own), (M - 1) * _by_samples(others), evaluate=True)
            )
        else:
            total += monomial * sympy.factor(coefficient)
    return total


def _by_samples(expr: sympy.Expr) -> sympy.Expr:
    """Write c0 + c1/n as (c0 + c1)/n + (1 - 1/n) c0: one sample and two samples."""
    expanded = sympy.expand(expr)
    zero = sympy.Add(*[t for t in sympy.Add.make_args(expanded) if not t.has(N)])
    single = sympy.expand(sympy.expand((expanded - zero) * N) + zero)
    return _compact(single) / N + (1 - 1 / N) * _compact(zero)


def _compact(expr: sympy.Expr) -> sympy.Expr:
    special = [*expr.atoms(sympy.polygamma), EP2, EQ2]
    gathered = sympy.collect(sympy.expand(expr), special, evaluate=False)
    return sympy.Add(*[_shortest(c) * f for f, c in gathered.items()])


def _shortest(expr: sympy.Expr) -> sympy.Expr:
    """A coefficient as a product, or as a sum over powers of p, q with factored coefficients: whichever is shorter."""
    whole = sympy.factor(expr)
    if not expr.has(P_COEF, Q_COEF):
        pieces = sympy.Add(
            *[
                sympy.factor(c) * f
                for f, c in sympy.collect(sympy.expand(expr), sympy.pi, evaluate=False).items()
            ]
        )
    else:
        polynomial = sympy.Poly(sympy.expand(expr), P_COEF, Q_COEF)
        pieces = sympy.Add(*[sympy.factor(c) * P_COEF**i * Q_COEF**j for (i, j), c in polynomial.terms()])
    return min(whole, pieces, key=sympy.count_ops)
