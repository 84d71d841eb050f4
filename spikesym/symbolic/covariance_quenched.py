"""Given the training batch: spike, bulk and overlap of the features' covariance over the neurons, to leading order.

For labels only, Gamma_batch = I + (d varsigma^2 eta^2/m^2) C with C = n^-2 X^T (y y^T o K'(X, X)) X. Its rank-one part is
mu_1^2 v v^T with v = X^T y/n; the rest has the trace that the annealed A and B leave for it.
"""

from __future__ import annotations

from functools import lru_cache

import sympy

from .covariance_expansion import leading_formulas
from .symbols import C1, EG2, EG2S2, ETA, MU1, TAU2, VARSIGMA, D, M, N


def batch_vector_moments() -> dict[str, sympy.Expr]:
    """E <v, w*>^2 and E |v|^2 of v = X^T y / n, exactly: one sample and two samples.

    Examples
    --------
    >>> batch_vector_moments()["along"]
    c_1**2*(1 - 1/n) + (G_22 + tau2)/n
    """
    label2, along = EG2 + TAU2, EG2S2 + TAU2
    two = (1 - 1 / N) * C1**2
    return {"along": along / N + two, "norm": (along + (D - 1) * label2) / N + two}


@lru_cache(maxsize=1)
def quenched_formulas() -> dict[str, sympy.Expr]:
    """Squared overlap of the top eigenvector with w*, spike along it, and bulk, as n, m, d grow in proportion.

    Examples
    --------
    >>> quenched_formulas()["overlap2"]
    c_1**2/(c_1**2 + d*(G_2 + tau2)/n)
    """
    growth = sympy.Symbol("x", positive=True)
    sizes = {N: growth * N, D: growth * D, M: growth * M}
    moments = {k: sympy.limit(v.subs(sizes), growth, sympy.oo) for k, v in batch_vector_moments().items()}
    norm = C1**2 + sympy.factor(sympy.expand(moments["norm"] - C1**2))
    scale = VARSIGMA**2 * ETA**2 / M**2
    spike = D * scale * MU1**2 * norm
    annealed = leading_formulas()
    # the trace of Gamma_batch has the mean d A + B; what the spike does not take is spread over d directions
    rest = sympy.expand((annealed["A"] - 1 + (annealed["B"] - spike) / D) / scale)
    parts = sympy.collect(rest, 1 / N, evaluate=False)
    bulk = 1 + scale * sympy.Add(*[sympy.factor(c) * k for k, c in parts.items()])
    return {"overlap2": moments["along"] / norm, "spike": spike, "bulk": bulk}
