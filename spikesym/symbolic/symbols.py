"""Every symbol of the theory, once, with its assumptions.

SymPy treats ``Symbol('x')`` and ``Symbol('x', real=True)`` as different; all modules import theirs from here.
"""

from __future__ import annotations

from sympy import Symbol

#: the argument of a link (s = <w*, x>), of an activation (z), and the canonical argument of both
S = Symbol("s", real=True)
Z = Symbol("z", real=True)
X = Symbol("x", real=True)

#: sizes: input dimension, samples of the gradient step, hidden neurons, harmonic degree and sector
D = Symbol("d", positive=True, integer=True)
N = Symbol("n", positive=True, integer=True)
M = Symbol("m", positive=True, integer=True)
ELL = Symbol("ell", nonnegative=True, integer=True)
K = Symbol("k", nonnegative=True, integer=True)

#: step size and its scaling eta = eta0 d**zeta; ratios alpha = n/d, beta = m/d
ETA = Symbol("eta", positive=True)
ETA0 = Symbol("eta_0", positive=True)
ZETA = Symbol("zeta", real=True)
ALPHA = Symbol("alpha", positive=True)
BETA = Symbol("beta", positive=True)

#: noise variance tau^2, readout scale varsigma, readout kurtosis kappa_4
TAU2 = Symbol("tau2", nonnegative=True)
VARSIGMA = Symbol("varsigma", positive=True)
KAPPA4 = Symbol("kappa_4", positive=True)

#: spiked covariance Gamma = A I + B w* w*^T, and b = B/A
A = Symbol("A", positive=True)
B = Symbol("B", nonnegative=True)
b = Symbol("b", nonnegative=True)

#: a coordinate of a uniform point of the sphere, and the angle of two vectors
RHO = Symbol("rho", real=True)
THETA = Symbol("theta", nonnegative=True)

#: Gaussian data of the link: c_0, c_1, E g^2, E g^2 s^2;  of the activation: mu_1, mu_2, E sigma'^2
C0 = Symbol("c_0", real=True)
C1 = Symbol("c_1", real=True)
EG2 = Symbol("G_2", positive=True)
EG2S2 = Symbol("G_22", positive=True)
MU1 = Symbol("mu_1", real=True)
MU2 = Symbol("mu_2", real=True)
EDSIGMA2 = Symbol("D_2", positive=True)

#: dual activations: variances q, q' and covariance t of the two preactivations
Q = Symbol("q", positive=True)
QP = Symbol("qp", positive=True)
T = Symbol("t", real=True)

#: kernels: p = x^T Gamma x, p' = x'^T Gamma x' (t is x^T Gamma x' there), the norms of x and x', and s' = <w*, x'>
P = Symbol("p", positive=True)
PP = Symbol("pp", positive=True)
NORM = Symbol("nx", positive=True)
NORMP = Symbol("nxp", positive=True)
SP = Symbol("sp", real=True)

#: how these print in LaTeX (pass to ``sympy.latex(..., symbol_names=LATEX_NAMES)``)
LATEX_NAMES = {
    TAU2: r"\tau^{2}",
    VARSIGMA: r"\varsigma",
    ELL: r"\ell",
    EG2: r"\mathbb{E}[g^{2}]",
    EG2S2: r"\mathbb{E}[g^{2}s^{2}]",
    EDSIGMA2: r"\mathbb{E}[\sigma'^{2}]",
    QP: "q'",
    PP: "p'",
    NORM: r"\lVert x\rVert",
    NORMP: r"\lVert x'\rVert",
    SP: "s'",
}
