"""Given the training batch: the exact covariance of the features, its spike, and the law of X^T y.

With labels only, w_j(1) = w_j + eta a_j/(n sqrt m) sum_i y_i sigma'(<w_j, x_i>) x_i, and over the neurons of a network
trained on one batch

    Gamma_batch = I + kappa C,  C = n^-2 X^T (y y^T o K'(X, X)) X,  kappa = d varsigma^2 eta^2 / m^2,

where K'(x, x') = E sigma'(<w, x>) sigma'(<w, x'>). The paper's surrogate has sigma' replaced by its mean mu_1; then the
features are exactly Gaussian given the batch. Limits of the spike, the bulk and the overlap: :mod:`.covariance_quenched`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy import Function, Integer, Sum, Symbol

from .symbols import (
    EG2,
    ETA,
    KAPPA4,
    LATEX_NAMES,
    MU1,
    TAU2,
    VARSIGMA,
    D,
    M,
    N,
)

#: u^T Gamma_batch u for a unit vector u, and its square's counterpart d^2 E[<u, w(1)>^4]
VARIANCE_U = Symbol("Gamma_u", positive=True)
FOURTH_U = Symbol("F_u", positive=True)
#: <u, v> with v = X^T y / n
V_U = Symbol("v_u", real=True)
#: E y^4
LABEL4 = Symbol("Y_4", positive=True)
#: E of the fourth power of an entry of v orthogonal to w*
ENTRY4 = Symbol("v_4", positive=True)
LATEX_NAMES.update(
    {
        VARIANCE_U: r"u^{\top}\Gamma_{\text{batch}}u",
        FOURTH_U: r"d^{2}\,\mathbb{E}[\langle u,w(1)\rangle^{4}\mid X,y]",
        V_U: r"\langle u,v\rangle",
        LABEL4: r"\mathbb{E}[y^{4}]",
        ENTRY4: r"\mathbb{E}[v_{\perp,1}^{4}]",
    }
)

#: indices of samples
SAMPLE_I, SAMPLE_J = sympy.symbols("i j", integer=True, positive=True)
_a, _old, _new = sympy.symbols("a old new", real=True)


class SlopeKernel(Function):
    """K'(x_i, x_k) = E sigma'(<w, x_i>) sigma'(<w, x_k>) by the indices of two samples."""

    nargs = 2
    is_real = True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        i, k = (printer._print(a) for a in self.args)
        text = rf"K'(x_{{{i}}},x_{{{k}}})"
        return text if exp is None else rf"{text}^{{{exp}}}"


class ProjectedSample(Function):
    """<u, x_i> by the index of a sample."""

    nargs = 1
    is_real = True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"\langle u,x_{{{printer._print(self.args[0])}}}\rangle"
        return text if exp is None else rf"{text}^{{{exp}}}"


class Label(Function):
    """y_i by the index of a sample."""

    nargs = 1
    is_real = True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"y_{{{printer._print(self.args[0])}}}"
        return text if exp is None else rf"{text}^{{{exp}}}"


class Moment(Function):
    """mu_k = E[sigma He_k] with symbolic index."""

    nargs = 1
    is_real = True

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"\mu_{{{printer._print(self.args[0])}}}"
        return text if exp is None else rf"{text}^{{{exp}}}"


def strength() -> sympy.Expr:
    """kappa = d varsigma^2 eta^2 / m^2, the factor of C in Gamma_batch.

    Examples
    --------
    >>> strength()
    d*eta**2*varsigma**2/m**2
    """
    return D * _scale() ** 2 * VARSIGMA**2 / M


def _scale() -> sympy.Expr:
    """The factor of a_j (1/n) sum_i y_i sigma'SAMPLE_I x_i in the step."""
    return ETA / sympy.sqrt(M)


def readout_mean(expr: sympy.Expr) -> sympy.Expr:
    """Mean of a polynomial in ``a`` over a symmetric readout with E a^2 = varsigma^2/m and kurtosis kappa_4."""
    variance = VARSIGMA**2 / M
    moments = {0: Integer(1), 2: variance, 4: KAPPA4 * variance**2}
    polynomial = sympy.Poly(sympy.expand(expr), _a)
    return sympy.Add(*[c * moments[k] for (k,), c in polynomial.terms() if k % 2 == 0])


@lru_cache(maxsize=1)
def network_variance() -> sympy.Expr:
    """u^T Gamma_batch u of the network, by the square of the trained weight and the mean over a_j and w_j.

    Examples
    --------
    >>> network_variance().subs(N, 1).doit()
    d*eta**2*varsigma**2*Label(1)**2*ProjectedSample(1)**2*SlopeKernel(1, 1)/m**2 + 1
    """
    averaged = sympy.Poly(readout_mean((_old + _scale() * _a * _new) ** 2), _old, _new)
    pairs = Sum(
        Label(SAMPLE_I)
        * Label(SAMPLE_J)
        * SlopeKernel(SAMPLE_I, SAMPLE_J)
        * ProjectedSample(SAMPLE_I)
        * ProjectedSample(SAMPLE_J),
        (SAMPLE_I, 1, N),
        (SAMPLE_J, 1, N),
    )
    # the mean of <u, w> <u, sum_i ...> is not needed: it comes with E a = 0
    means = {(2, 0): 1 / D, (0, 2): pairs / N**2}
    return sympy.expand(D * sympy.Add(*[c * means[powers] for powers, c in averaged.terms()]))


@lru_cache(maxsize=1)
def surrogate_moments() -> dict[str, sympy.Expr]:
    """d E<u, z>^2 and d^2 E<u, z>^4 given the batch, for the surrogate z = w + eta mu_1 a v / sqrt(m).

    Examples
    --------
    >>> surrogate_moments()["variance"]
    d*eta**2*mu_1**2*v_u**2*varsigma**2/m**2 + 1
    >>> surrogate_moments()["fourth"].subs(KAPPA4, 3).factor()
    3*(d*eta**2*mu_1**2*v_u**2*varsigma**2 + m**2)**2/m**4
    """
    value = _old + _scale() * _a * MU1 * V_U
    found = {}
    for name, power in (("variance", 2), ("fourth", 4)):
        averaged = sympy.Poly(sympy.expand(readout_mean(value**power)), _old)
        moments = {0: Integer(1), 2: 1 / D, 4: 3 / D**2}
        found[name] = sympy.expand(
            D ** (power // 2) * sympy.Add(*[c * moments[k] for (k,), c in averaged.terms() if k % 2 == 0])
        )
    return found


def entry_fourth_moment() -> sympy.Expr:
    """E of the fourth power of an entry of v orthogonal to w*: v = U w* + (V/n)^(1/2) h with h Gaussian given U, V.

    Here U = mean(y s), V = mean(y^2); the entry is N(0, V/n) given V.

    Examples
    --------
    >>> entry_fourth_moment()
    (3*Y_4/n + 3*(1 - 1/n)*(G_2 + tau2)**2)/n**2
    """
    square = LABEL4 / N + (1 - 1 / N) * (EG2 + TAU2) ** 2
    return 3 * square / N**2
