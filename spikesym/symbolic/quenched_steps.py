"""The steps from one gradient step on a given batch to Gamma_batch, each judged by exact arithmetic.

The judges average small networks with polynomial activations monomial by monomial, at random rational batches.
"""

from __future__ import annotations

import random
from functools import lru_cache

import sympy
from sympy import Integer, Rational, Sum

from .brute_force import BruteForce
from .covariance_quenched import batch_vector_moments, quenched_formulas
from .derivation import Derivation, Step, equal_exactly, proved, random_rational
from .dual import dual_formula
from .functions import make_function
from .means import TestModel, random_test_model
from .quenched import (
    ENTRY4,
    FOURTH_U,
    LABEL4,
    SAMPLE_I,
    SAMPLE_J,
    V_U,
    VARIANCE_U,
    Label,
    Moment,
    ProjectedSample,
    SlopeKernel,
    entry_fourth_moment,
    network_variance,
    surrogate_moments,
)
from .symbols import C1, EG2, EG2S2, ETA, KAPPA4, MU1, QP, RHO, TAU2, VARSIGMA, D, K, M, N, Q, T, X


def polynomial_moments(polynomial: sympy.Expr, count: int) -> list[sympy.Expr]:
    """mu_0, ..., mu_(count-1) of a polynomial in X: means of its derivatives under N(0, 1)."""
    found = []
    for _ in range(count):
        terms = sympy.Poly(polynomial, X).terms()
        found.append(sympy.Add(*[c * sympy.factorial2(j - 1) for (j,), c in terms if j % 2 == 0]))
        polynomial = sympy.diff(polynomial, X)
    return found


class FixedBatch:
    """A random rational batch in a small network with polynomial activation: every mean over the neurons is rational.

    Attributes
    ----------
    network : BruteForce
        Its polynomials, the batch put in.
    inputs, labels : lists of rationals
    """

    def __init__(self, seed: int, activation_degree: int = 3) -> None:
        rng = random.Random(seed)
        sizes = (rng.choice([2, 3]), rng.choice([1, 2, 3]), rng.randint(2, 9))
        model = random_test_model(rng, "gaussian", activation_degree, 1, sizes)
        self.model = TestModel(**{**model.__dict__, "residual": "labels", "link": X})
        # with labels only neurons do not meet: one of them, whose readout has the variance of a_j/sqrt(m)
        self.network = BruteForce(
            TestModel(**{**self.model.__dict__, "m": 1, "varsigma": model.varsigma / model.m})
        )
        d, n = self.model.d, self.model.n
        self.inputs = [[random_rational(rng) for _ in range(d)] for _ in range(n)]
        self.labels = [random_rational(rng) for _ in range(n)]
        # the link is the identity and the noise makes up the label
        self._values = []
        for i in range(n):
            self._values += list(zip(self.network.x[i], self.inputs[i], strict=True))
            self._values.append((self.network.e[i], self.labels[i] - self.inputs[i][0]))

    def moment(self, power: int, slope: sympy.Expr | None = None) -> sympy.Rational:
        """d^(power/2) E[w_1(1)^power] of the first entry over weights and readout; ``slope`` replaces sigma'."""
        network, model = self.network, self.model
        ring = network.ring
        q = [sympy.QQ(v.p, v.q) for v in (model.eta, sympy.sympify(slope or 1))]
        total = ring(0)
        for i in range(model.n):
            factor = network.dsigma(0, i) if slope is None else ring(q[1])
            total += network.y(i) * factor * network.x[i][0]
        entry = network.w[0][0] + q[0] / model.n * network.a[0] * total
        for symbol, value in self._values:
            entry = entry.subs(symbol, sympy.QQ(value.p, value.q))
        return sympy.Integer(model.d) ** (power // 2) * network.mean(entry**power)

    def values(self, formula: sympy.Expr) -> sympy.Expr:
        """A formula of this module at this batch, K' by its closed form for polynomials."""
        model = self.model
        dual = dual_formula(make_function(model.activation, "activation"), 1, 1)
        assert dual is not None

        def kernel(i: sympy.Integer, k: sympy.Integer) -> sympy.Expr:
            left, right = self.inputs[int(i) - 1], self.inputs[int(k) - 1]
            products = [
                sum(p * q for p, q in zip(a, b, strict=True))
                for a, b in ((left, left), (right, right), (left, right))
            ]
            return dual.subs(
                dict(zip((Q, QP, T), [v / model.d for v in products], strict=True)), simultaneous=True
            )

        average = sum(y * x[0] for y, x in zip(self.labels, self.inputs, strict=True)) / model.n
        written = formula.subs(N, model.n).doit()
        written = written.replace(SlopeKernel, kernel)
        written = written.replace(Label, lambda i: self.labels[int(i) - 1])
        written = written.replace(ProjectedSample, lambda i: self.inputs[int(i) - 1][0])
        numbers = {
            D: model.d, M: model.m, ETA: model.eta, VARSIGMA: model.varsigma, KAPPA4: model.kappa4,
            V_U: average, MU1: self.slope, N: model.n,
        }  # fmt: skip
        return sympy.nsimplify(written.subs(numbers), rational=True)

    @property
    def slope(self) -> sympy.Rational:
        """The mean slope mu_1 that the surrogate is judged with."""
        return polynomial_moments(self.model.activation, 2)[1]


def _defined(expr: sympy.Expr, batch: FixedBatch) -> sympy.Expr:
    power, surrogate = {VARIANCE_U: (2, False), FOURTH_U: (4, True), V_U: (2, True)}[expr]
    return batch.moment(power, batch.slope if surrogate else None)


def _label_moments(rng: random.Random) -> tuple[TestModel, BruteForce]:
    model = random_test_model(rng, activation_degree=1, link_degree=2, sizes=(2, rng.choice([1, 2]), 1))
    return model, BruteForce(model)


def _entry_defined(expr: sympy.Expr, drawn: tuple[TestModel, BruteForce]) -> sympy.Expr:
    """Moments of v = X^T y/n over random batches, monomial by monomial."""
    model, network = drawn
    along, across = (
        sum((network.y(i) * network.x[i][c] for i in range(model.n)), network.ring(0)) for c in (0, 1)
    )
    means = {
        ENTRY4: lambda: network.mean(across**4) / Integer(model.n) ** 4,
        V_U: lambda: network.mean(along**2) / Integer(model.n) ** 2,
    }
    return means[expr]()


def _entry_formula(expr: sympy.Expr, drawn: tuple[TestModel, BruteForce]) -> sympy.Expr:
    model, network = drawn
    y, s = network.y(0), network.x[0][0]
    values = {
        N: Integer(model.n), LABEL4: network.mean(y**4), TAU2: model.tau2,
        EG2: network.mean(y**2) - model.tau2, EG2S2: network.mean(y**2 * s**2) - model.tau2, C1: network.mean(y * s),
    }  # fmt: skip
    return expr.subs(values)


def _draw_polynomial(rng: random.Random) -> tuple[sympy.Expr, sympy.Rational]:
    polynomial = sum((random_rational(rng) * X**k for k in range(5)), Integer(0))
    return polynomial, Rational(rng.randint(-6, 6), 7)


def _mehler_defined(expr: sympy.Expr, drawn: tuple[sympy.Expr, sympy.Rational]) -> sympy.Expr:
    polynomial, rho = drawn
    dual = dual_formula(make_function(polynomial, "activation"), 1, 1)
    assert dual is not None
    return dual.subs({Q: 1, QP: 1, T: rho}, simultaneous=True)


def _mehler_sum(expr: sympy.Expr, drawn: tuple[sympy.Expr, sympy.Rational]) -> sympy.Expr:
    polynomial, rho = drawn
    moments = polynomial_moments(polynomial, 6)

    def finite(term: sympy.Expr, limits: sympy.Tuple) -> sympy.Expr:
        # the series of a polynomial ends
        return sympy.Add(*[term.subs(K, k) for k in range(5)])

    written = expr.replace(Sum, finite)
    return written.replace(Moment, lambda j: moments[int(j)]).subs(RHO, rho)


@lru_cache(maxsize=1)
def batch_derivation() -> Derivation:
    """From one gradient step on a given batch to Gamma_batch, its rank-one part and the law of X^T y.

    Examples
    --------
    >>> derivation = batch_derivation()
    >>> all(check.passed for check in derivation.check())
    True
    """
    surrogate = surrogate_moments()
    series = Sum(Moment(K + 1) ** 2 * RHO**K / sympy.factorial(K), (K, 0, sympy.oo))
    double = Sum(
        Label(SAMPLE_I) * Label(SAMPLE_J) * ProjectedSample(SAMPLE_I) * ProjectedSample(SAMPLE_J),
        (SAMPLE_I, 1, 3),
        (SAMPLE_J, 1, 3),
    )
    square = Sum(Label(SAMPLE_I) * ProjectedSample(SAMPLE_I), (SAMPLE_I, 1, 3)) ** 2
    along = batch_vector_moments()["along"]
    limits = quenched_formulas()
    steps = (
        Step(
            "square of the trained weight, mean over the symmetric readout and over w ~ N(0, I/d)",
            VARIANCE_U,
            network_variance(),
            equal_exactly(lambda rng: FixedBatch(rng.randint(0, 10**6)), _defined, lambda e, b: b.values(e)),
        ),
        Step(
            "Price's theorem in the correlation, at norms sqrt(d)",
            SlopeKernel(SAMPLE_I, SAMPLE_J),
            series,
            equal_exactly(_draw_polynomial, _mehler_defined, _mehler_sum),
        ),
        Step(
            "the term k = 0 is a square: rank one along v = X^T y/n (written out for n = 3)",
            sympy.expand(double.doit()),
            square.doit(),
            proved(sympy.expand),
        ),
        Step(
            "the surrogate, sigma' replaced by mu_1: variance given the batch",
            V_U,
            surrogate["variance"],
            equal_exactly(lambda rng: FixedBatch(rng.randint(0, 10**6)), _defined, lambda e, b: b.values(e)),
            left=r"d\,\mathbb{E}[\langle u,z\rangle^{2}\mid X,y]",
        ),
        Step(
            "its fourth moment: three times the squared variance when the readout is Gaussian (kappa_4 = 3)",
            FOURTH_U,
            surrogate["fourth"],
            equal_exactly(lambda rng: FixedBatch(rng.randint(0, 10**6)), _defined, lambda e, b: b.values(e)),
            left=r"d^{2}\,\mathbb{E}[\langle u,z\rangle^{4}\mid X,y]",
        ),
        Step(
            "v along w*: one sample and two samples",
            V_U,
            along,
            equal_exactly(_label_moments, _entry_defined, _entry_formula),
            left=r"\mathbb{E}\langle v,w_{*}\rangle^{2}",
        ),
        Step(
            "v across w* is Gaussian given the labels, of variance mean(y^2)/n in every direction",
            ENTRY4,
            entry_fourth_moment(),
            equal_exactly(_label_moments, _entry_defined, _entry_formula),
        ),
    )
    results = {
        "variance": network_variance(),
        **{f"surrogate_{k}": v for k, v in surrogate.items()},
        **limits,
    }
    return Derivation("The covariance given the batch", steps, results)
