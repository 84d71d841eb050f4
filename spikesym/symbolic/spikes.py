"""How many spikes the feature matrix has: powers of the rank-one step against the bulk (Moniri et al. 2024).

After the step the preactivation of neuron j at a fresh input moves by delta_j = eta a_j mu_1 <v, x>/sqrt(m), v = X^T y/n: a
factor of the neuron times one of the input. Expanding sigma in it, the k-th term has the rank-one part (mu_k/k!) delta^k with
singular value sqrt(n m E delta^(2k)) mu_k/k!, which stands out of a bulk of order sqrt(d) when it grows faster. So with mu_1,
..., mu_l and c_1 not zero there are as many spikes as powers k of positive exponent.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy import Symbol

from .symbols import ALPHA, BETA, ELL, ETA, ETA0, LATEX_NAMES, MU1, VARSIGMA, ZETA, D, M, N

#: order of the term in the expansion of the activation
ORDER = Symbol("k", positive=True, integer=True)
#: |v|^2, of order one
SIGNAL2 = Symbol("v_2", positive=True)
LATEX_NAMES[SIGNAL2] = r"\lVert v\rVert^{2}"


def term_size() -> sympy.Expr:
    """Squared singular value of the k-th term over (mu_k/k!)^2: n m E delta^(2k), a_j and <v, x> Gaussian.

    Examples
    --------
    >>> sympy.simplify(term_size().subs(ORDER, 1))
    eta**2*mu_1**2*n*v_2*varsigma**2/m
    """
    gaussian = sympy.factorial2(2 * ORDER - 1)
    readout = gaussian * (VARSIGMA**2 / M) ** ORDER
    projection = gaussian * SIGNAL2**ORDER
    return N * M * (ETA**2 * MU1**2 / M) ** ORDER * readout * projection


@lru_cache(maxsize=1)
def spike_formulas() -> dict[str, sympy.Expr]:
    """``exponent`` of the k-th spike over the bulk, ``count`` of spikes, and the ends of zeta's interval for l of them.

    Examples
    --------
    >>> spike_formulas()["exponent"], spike_formulas()["lower"]
    (k*(zeta - 1) + 1/2, 1 - 1/(2*ell))
    >>> spike_formulas()["count"].subs(ZETA, sympy.Rational(4, 5))
    2
    """
    scaled = term_size().subs(
        {N: ALPHA * D, M: BETA * D, ETA: ETA0 * D**ZETA, MU1: Symbol("mu_1", positive=True)}
    )
    growth = sympy.expand_log(sympy.log(scaled), force=True)
    # singular values are square roots; those of the bulk grow as d^(1/2)
    exponent = sympy.expand(growth).coeff(sympy.log(D), 1) / 2 - sympy.Rational(1, 2)
    exponent = sympy.collect(sympy.expand(exponent), ORDER)
    (critical,) = sympy.solve(exponent, ORDER)
    at = Symbol("z", real=True)
    ends = {}
    for name, power in (("lower", ELL), ("upper", ELL + 1)):
        (end,) = sympy.solve((exponent.subs(ORDER, power)).subs(ZETA, at), at)
        ends[name] = sympy.apart(sympy.simplify(end), ELL)
    # powers below the critical one stand out
    return {"exponent": exponent, "count": sympy.ceiling(sympy.simplify(critical)) - 1, **ends}
