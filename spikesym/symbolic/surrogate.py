r"""The surrogate's kernel against k1, expanded in the strength of the spike: the constants of the statement ``approx``.

Given the batch, the surrogate's features are N(0, Gamma_b/d), Gamma_b = I + d eps v v^T with v = X^T y/n and
eps = varsigma^2 eta^2 mu_1^2/m^2. Its kernel k1* is the mean over batches of the kernel of Gamma_b; k1 is the kernel of the
mean of Gamma_b. By Price's theorem, with x, x' fixed and (a, b) = (<v, x>, <v, x'>),

    k(Gamma_b) = sum_r (eps/2)^r/r! E (a d_1 + b d_2)^(2r) sigma(U) sigma(U'),

where d_1, d_2 raise the order of the derivative of the first and second factor. For typical points of high dimension U and
U' are independent N(0, 1), so that d_1^i d_2^j gives mu_i mu_j, and v = c_1 w* + noise of variance omega = E y^2 d/n along x
and along x'. The first order is the same in k1* and k1; the second is what they differ by.

For sigma = p z + q |z| the second order vanishes: functions of w that are homogeneous of degree 0 in the plane of x and x'
have a Laplacian of mean zero. What is left is of relative order eps, and 1/n.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Integer, Symbol

from .covariance_judges import Q_COEF
from .functions import make_function
from .moments import exact_coefficient
from .symbols import C1, EG2, EG2S2, LATEX_NAMES, MU1, MU2, SP, TAU2, B, D, N, S

#: strength of the surrogate's spike over d: varsigma^2 eta^2 mu_1^2 / m^2; B = d eps c_1^2 to leading order
EPS = Symbol("epsilon", positive=True)
#: variance of <v, x> from the noise of the batch, E y^2 d/n
OMEGA = Symbol("omega", positive=True)
#: omega/c_1^2 = E y^2 d/(n c_1^2), noise against signal in v = X^T y/n: 1/overlap^2 - 1
NOISE_RATIO = Symbol("r", positive=True)
#: s_g = E[(x^2 - 1) g^2]/2
S_G = Symbol("s_g", real=True)
LATEX_NAMES.update({EPS: r"\epsilon", OMEGA: r"\omega"})

#: derivatives of the first and second factor, as commuting symbols
FIRST, SECOND = sympy.symbols("delta_1 delta_2", real=True)
LATEX_NAMES.update({FIRST: r"\partial_1", SECOND: r"\partial_2"})


def mu(k: int) -> sympy.Expr:
    """mu_k = E[sigma He_k], as a symbol."""
    return {1: MU1, 2: MU2}.get(k, Symbol(f"mu_{k}", real=True))


def gaussian_average(expr: sympy.Expr, *variables: sympy.Symbol) -> sympy.Expr:
    """Mean of a polynomial in independent N(0, 1) variables.

    Examples
    --------
    >>> gaussian_average(S**4 + S**2 * SP**2 + S, S, SP)
    4
    """
    total = Integer(0)
    for powers, coefficient in sympy.Poly(sympy.expand(expr), *variables).terms():
        if all(p % 2 == 0 for p in powers):
            total += coefficient * sympy.Mul(*[sympy.factorial2(p - 1) for p in powers])
    return sympy.expand(total)


_ALONG = C1 * (S * FIRST + SP * SECOND)
_LAPLACIAN = FIRST**2 + SECOND**2


def batch_operator(order: int) -> sympy.Expr:
    """Mean over the batch of (a d_1 + b d_2)^(2r)/(2^r r!): order r of k1*.

    With a = c_1 s + omega^(1/2) g_1 and b alike, g_1 d_1 + g_2 d_2 is Gaussian of variance d_1^2 + d_2^2.

    Examples
    --------
    >>> batch_operator(1)
    c_1**2*(delta_1*s + delta_2*sp)**2/2 + omega*(delta_1**2 + delta_2**2)/2
    """
    total = sympy.Add(
        *[
            sympy.binomial(2 * order, 2 * j)
            * sympy.factorial2(2 * j - 1)
            * _ALONG ** (2 * order - 2 * j)
            * (OMEGA * _LAPLACIAN) ** j
            for j in range(order + 1)
        ]
    )
    return total / (2**order * sympy.factorial(order))


def annealed_operator(order: int) -> sympy.Expr:
    """The same for the mean covariance: the r-th power of E (a d_1 + b d_2)^2 / 2, over r!."""
    return batch_operator(1) ** order / sympy.factorial(order)


def excess_operator(order: int) -> sympy.Expr:
    """``batch_operator`` less ``annealed_operator``, expanded.

    Examples
    --------
    >>> excess_operator(1)
    0
    """
    return sympy.expand(batch_operator(order) - annealed_operator(order))


def on_independent(operator: sympy.Expr) -> sympy.Expr:
    """Put mu_i mu_j for d_1^i d_2^j: U and U' independent N(0, 1).

    Examples
    --------
    >>> on_independent(3 * FIRST**4 + FIRST * SECOND)
    3*mu_0*mu_4 + mu_1**2
    """
    terms = sympy.Poly(operator, FIRST, SECOND).terms()
    return sympy.Add(*[c * mu(i) * mu(j) for (i, j), c in terms])


@lru_cache(maxsize=8)
def excess(order: int) -> sympy.Expr:
    """Coefficient of eps^r in k1* - k1 at typical points, a polynomial in s, s'.

    Examples
    --------
    >>> excess(2).subs({S: 0, SP: 0}).factor()
    omega**2*(mu_0*mu_4 + mu_2**2)/2
    """
    return sympy.expand(on_independent(excess_operator(order)))


#: the two products of coefficients that the second order depends on
EVEN, ODD = mu(0) * mu(4) + MU2**2, MU1 * mu(3)


@lru_cache(maxsize=1)
def second_order_parts() -> dict[sympy.Expr, sympy.Expr]:
    """Coefficients of (mu_0 mu_4 + mu_2^2)^2 and (mu_1 mu_3)^2 in the mean square of the second order over s, s'."""
    square = gaussian_average(excess(2) ** 2, S, SP)
    even, odd = sympy.symbols("even odd")
    written = sympy.expand(square.subs(mu(0), (even - MU2**2) / mu(4)).subs(mu(3), odd / MU1))
    polynomial = sympy.Poly(written, even, odd)
    if set(polynomial.monoms()) != {(2, 0), (0, 2)}:
        raise ArithmeticError(f"not a sum of two squares: {written}")
    named = {(2, 0): EVEN, (0, 2): ODD}
    return {named[powers]: sympy.factor(c) for powers, c in polynomial.terms()}


def second_order() -> sympy.Expr:
    """Squared Hilbert-Schmidt norm of k1* - k1 over eps^4, to leading order, for any activation.

    Examples
    --------
    >>> second_order().subs({mu(0): 0, MU2: 0})
    4*c_1**4*mu_1**2*mu_3**2*omega**2
    """
    return sympy.Add(*[c * product**2 for product, c in second_order_parts().items()])


# ---- activations p z + q|z| ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def kinked_coefficients() -> dict[sympy.Symbol, sympy.Expr]:
    """mu_0, mu_2, ..., mu_6 of p z + q|z|; the odd ones beyond mu_1 vanish.

    Examples
    --------
    >>> kinked_coefficients()[MU2]
    sqrt(2)*q/sqrt(pi)
    """
    absolute = make_function("abs", "activation")
    found = {}
    for k in (0, 2, 3, 4, 5, 6):
        coefficient = exact_coefficient(absolute, k)
        assert coefficient is not None
        found[mu(k)] = Q_COEF * coefficient
    return found


def finite_batch_operator() -> sympy.Expr:
    """Coefficient of 1/n in the second order's operator: U = mean(y s) and V = mean(y^2) fluctuate, and v _|_ w* counts.

    v = U w* + (V/n)^(1/2) h with h Gaussian across w*, so that E (h d)^2 = |x|^2 d_1^2 + |x'|^2 d_2^2 less its part along w*.
    """
    small, label2 = sympy.symbols("h y2", positive=True)
    fluctuation = sympy.symbols("u_1 u_2", real=True)
    variance, mixed, other = sympy.symbols("var_u cov_uv var_v")
    root = sympy.sqrt(small)
    u, noise = C1 + root * fluctuation[0], OMEGA + root * fluctuation[1]
    along, across = (S * FIRST + SP * SECOND) ** 2, FIRST**2 + SECOND**2
    # d V/n (|x|^2/d - s^2/d): the noise along x, to first order in h = 1/n
    noisy = noise * across - small * label2 * along

    def mean(expr: sympy.Expr) -> sympy.Expr:
        moments = {(0, 0): 1, (2, 0): variance, (1, 1): mixed, (0, 2): other}
        terms = sympy.Poly(sympy.expand(expr), *fluctuation).terms()
        # odd moments and those beyond the second are of higher order in h
        return sympy.Add(*[c * moments.get(k, 0) for k, c in terms])

    fourth = u**4 * along**2 + 6 * u**2 * along * noisy + 3 * noisy**2
    second = mean(u**2 * along + noisy)
    linear = sympy.expand((mean(fourth) - second**2) / 8).coeff(small, 1)
    # what multiplies a mean Laplacian goes for p z + q|z|; the covariances of U and V are only there
    return sympy.expand(linear.subs({variance: EG2S2 + TAU2 - C1**2, label2: EG2 + TAU2}))


#: the harmonic of degree 4 in the plane: all that is left for p z + q|z|
QUARTIC = S**4 - 6 * S**2 * SP**2 + SP**4


@lru_cache(maxsize=1)
def kinked_excess() -> dict[str, sympy.Expr]:
    """k1* - k1 for p z + q|z| at typical points over s^4 - 6 s^2 s'^2 + s'^4: its parts ``third`` and ``finite``.

    ``third`` multiplies eps^3, ``finite`` eps^2/n; the second order itself vanishes.

    Examples
    --------
    >>> sympy.expand(excess(2).subs(kinked_coefficients()))
    0
    >>> kinked_excess()["third"]
    c_1**4*omega*q**2/pi
    """
    put = kinked_coefficients()
    forms = {"third": excess(3), "finite": on_independent(finite_batch_operator())}
    found = {}
    for name, form in forms.items():
        value = sympy.expand(form.subs(put))
        factor = value.coeff(S, 4).coeff(SP, 0)
        if sympy.expand(value - factor * QUARTIC) != 0:
            raise ArithmeticError(
                f"the {name} part is not the quartic form that its symmetry demands: {value}"
            )
        found[name] = factor
    return found


def kinked_order() -> sympy.Expr:
    """Squared Hilbert-Schmidt norm of k1* - k1 for p z + q|z|, to leading order."""
    parts = kinked_excess()
    factor = EPS**3 * parts["third"] + EPS**2 * parts["finite"] / N
    return gaussian_average(QUARTIC**2, S, SP) * factor**2


def noise_ratio() -> sympy.Expr:
    """r = E y^2 d/(n c_1^2)."""
    return (EG2 + TAU2) * D / (N * C1**2)


@lru_cache(maxsize=1)
def surrogate_formulas() -> dict[str, sympy.Expr]:
    """Squared Hilbert-Schmidt norms of k1* - k1 in B, d, n, r: ``smooth`` (any activation) and ``kinked`` (p z + q|z|).

    ``smooth`` is the second order and vanishes for p z + q|z|, where ``kinked`` is what is left.

    Examples
    --------
    >>> surrogate_formulas()["kinked"]
    192*B**4*q**4*(B*r/d + (1 - 2*s_g/c_1**2)/n)**2/(pi**2*d**4)
    """
    put = {EPS: B / (D * C1**2), OMEGA: NOISE_RATIO * C1**2, EG2S2: EG2 + 2 * S_G}
    scale = (B / D) ** 2
    smooth = sympy.Add(
        *[sympy.factor((c * EPS**4).subs(put) / scale**2) * p**2 for p, c in second_order_parts().items()]
    )
    parts = kinked_excess()
    third, finite = (
        sympy.expand((parts[name] * EPS**power).subs(put) / (scale * Q_COEF**2 / sympy.pi))
        for name, power in (("third", 3), ("finite", 2))
    )
    common = gaussian_average(QUARTIC**2, S, SP) * Q_COEF**4 / sympy.pi**2
    return {"smooth": scale**2 * smooth, "kinked": common * scale**2 * (third + finite / N) ** 2}
