"""A and B in three forms, as derived: the rank-one surrogate, the leading order, and exactly at finite n, m, d.

The exact form here is that of activations p z + q|z| (relu, leaky relu, abs, identity), for both initialisations and
both residuals; other activations are in :mod:`.covariance_series`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sympy

from .covariance_exact import arrange, homogeneous_formula
from .covariance_expansion import leading_formulas
from .covariance_judges import EP2, EQ2, P_COEF, Q_COEF
from .covariance_links import LinkForms
from .covariance_steps import FULL, MOMENTS, second_moment
from .symbols import C1, EG2, EG2S2, ETA, LATEX_NAMES, MU1, VARSIGMA, D, M, N

FORMS = ("rank_one", "leading", "exact")


@dataclass(frozen=True)
class Pair:
    """A and B of one form; ``A_plus_B`` is what Monte Carlo estimates along w*."""

    A: sympy.Expr
    B: sympy.Expr

    @property
    def A_plus_B(self) -> sympy.Expr:
        """Second moment along w*, with the exact form's common output terms kept together."""
        return self.A + self.B


@lru_cache(maxsize=1)
def rank_one() -> Pair:
    """The paper's surrogate w + (mu eta/(n sqrt m)) a sum_i y_i x_i with mu = mu_1(sigma): slope constant, labels only.

    It is the network with activation mu_1 z, so its formulas are the exact ones at p = mu_1, q = 0 without output.

    Examples
    --------
    >>> rank_one().A
    d*eta**2*mu_1**2*varsigma**2*(G_2 + tau2)/(m**2*n) + 1
    """
    put = {P_COEF: MU1, Q_COEF: 0, FULL: 0}
    a, total = (homogeneous_formula(along).subs(put) for along in (False, True))
    scale = D * ETA**2 * VARSIGMA**2 * MU1**2 / M**2
    bracket = sympy.expand(sympy.cancel((total - a) / scale))
    # one sample: E[g^2 s^2] - E[g^2] = 2 s_g, the noise cancels
    constant = bracket.subs({EG2: 0, EG2S2: 0})
    return Pair(
        a, scale * ((1 - 1 / N) * sympy.cancel(constant / (1 - 1 / N)) + sympy.factor(bracket - constant))
    )


@lru_cache(maxsize=1)
def leading() -> Pair:
    """The leading order in n, m, d at fixed ratios, for every link and activation."""
    formulas = leading_formulas()
    return Pair(formulas["A"], formulas["B"])


@lru_cache(maxsize=8)
def exact_homogeneous(full: bool) -> Pair:
    """Exactly at finite n, m, d for the activation p z + q|z|; the link enters by P_2 = E P^2, Q_2 = E Q^2, c_1, moments.

    Examples
    --------
    >>> exact_homogeneous(False).A
    d*eta**2*varsigma**2*(4*Q_2*q**2*(1 - 1/n)/(d - 1) + (G_2 + tau2)*(p**2 + q**2)/n)/m**2 + 1
    """
    put = {FULL: int(full)}
    a, total = (homogeneous_formula(along).subs(put) for along in (False, True))
    return Pair(a, _difference(total, a))


#: the label means for v orthogonal to w*, where they differ from those along w*
ACROSS = {name: sympy.Symbol(f"M_{name}_across", real=True) for name in ("labels_one", "labels_two")}
LATEX_NAMES.update({s: LATEX_NAMES[MOMENTS[k]].replace("v,", r"v_{\perp},") for k, s in ACROSS.items()})


@lru_cache(maxsize=4)
def exact_general(full: bool) -> Pair:
    """Exactly at finite n, m, d for every activation, in the means of ``covariance_steps.MOMENTS`` over weights and data."""
    along = second_moment().subs(FULL, int(full)).subs(MOMENTS["initial"], 1 / D)
    a = arrange(along.subs({MOMENTS[k]: s for k, s in ACROSS.items()}))
    one, two = (MOMENTS[k] - s for k, s in ACROSS.items())
    return Pair(a, D * ETA**2 * VARSIGMA**2 / M**2 * (one / N + (1 - 1 / N) * two))


def _difference(total: sympy.Expr, a: sympy.Expr) -> sympy.Expr:
    """B = (A + B) - A: everything but the label terms cancels."""
    scale = D * ETA**2 * VARSIGMA**2 / M**2
    bracket = sympy.expand(sympy.expand(total - a) / scale)
    two = sympy.Add(*[t for t in sympy.Add.make_args(bracket) if not t.has(N)])
    one = sympy.expand((bracket - two * (1 - 1 / N)) * N)
    links = sympy.collect(two, [EP2, EQ2, C1], evaluate=False)
    together = sympy.Add(*[sympy.factor(c) * k for k, c in links.items()])
    return scale * (sympy.factor(one) / N + (1 - 1 / N) * together)


def with_activation(pair: Pair, p: sympy.Expr, q: sympy.Expr) -> Pair:
    """The exact formulas of one activation, coefficients simplified."""
    put = {P_COEF: p, Q_COEF: q}
    return Pair(*(_tidy(e.subs(put)) for e in (pair.A, pair.B)))


def with_link(pair: Pair, forms: LinkForms) -> Pair:
    """Put the closed E P^2, E Q^2 (and c_1 where it closes) of a link."""
    put = {EP2: forms.EP2, EQ2: forms.EQ2, C1: forms.c1}
    put = {k: v for k, v in put.items() if v is not None}
    return Pair(*(_tidy(e.subs(put)) for e in (pair.A, pair.B)))


def _tidy(expr: sympy.Expr) -> sympy.Expr:
    """Constants folded, structure kept: factors over n, m, d stay as derived."""
    return expr.replace(lambda e: e.is_Add and e.has(D) and not e.has(N, M, ETA, EP2, EQ2), _by_trigamma)


def _by_trigamma(expr: sympy.Expr) -> sympy.Expr:
    atoms = list(expr.atoms(sympy.polygamma))
    parts = sympy.collect(sympy.expand(expr), atoms, evaluate=False) if atoms else {sympy.Integer(1): expr}
    return sympy.Add(*[sympy.factor(c) * k for k, c in parts.items()])
