"""Statement about the features given the training batch, to leading order."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy

from ..gaussian import gaussian_data
from ..model import Model
from ..numeric.covariance import Constants
from ..symbolic.brute_force import BruteForce
from ..symbolic.covariance_quenched import quenched_formulas
from ..symbolic.means import TestModel, random_test_model
from ..symbolic.symbols import C0, C1, EG2, ETA, MU1, TAU2, VARSIGMA, D, M, N
from . import covariance_checks as checks
from .covariance import polynomial_network
from .covariance_common import ASSUMPTIONS, latex_of
from .registry import Check, Formulas, Outcome, Statement, register


@lru_cache(maxsize=8)
def _batch_moments(seed: int) -> tuple[TestModel, sympy.Expr, sympy.Expr]:
    """E <v, w*>^2 and E |v|^2 of v = X^T y/n for a random polynomial link, as functions of n and d, by interpolation."""
    model = random_test_model(random.Random(seed), link_degree=2)
    numbers: dict[tuple[str, int, int], sympy.Rational] = {}
    for n in (1, 2):
        for d in (2, 3):
            network = BruteForce(TestModel(**{**model.__dict__, "n": n, "d": d, "m": 1}))
            v = [sum((network.y(i) * network.x[i][c] for i in range(n)), network.ring(0)) for c in range(2)]
            along, across = (network.mean(e**2) / n**2 for e in v)
            numbers["along", n, d], numbers["norm", n, d] = along, along + (d - 1) * across
    a0, a1, b0, b1 = sympy.symbols("a0 a1 b0 b1")
    # one sample and two samples: (a0 + a1 d)/n + (b0 + b1 d)(1 - 1/n)
    shape = (a0 + a1 * D) / N + (b0 + b1 * D) * (1 - 1 / N)
    fitted = []
    for name in ("along", "norm"):
        equations = [shape.subs({N: n, D: d}) - numbers[name, n, d] for n in (1, 2) for d in (2, 3)]
        fitted.append(shape.subs(sympy.solve(equations, [a0, a1, b0, b1], dict=True)[0]))
    return model, fitted[0], fitted[1]


def _check_batch(formulas: Formulas, seed: int) -> Outcome:
    """Against interpolated exact moments of X^T y/n at d = 10^45, and the trace of the annealed covariance."""
    with mpmath.workdps(120):
        comparison = checks.Comparison(digits=30)
        for k in range(2):
            model, along, norm = _batch_moments(2 * seed + k)
            values, across, total = polynomial_network(2 * seed + k)
            own = {**values, TAU2: model.tau2}
            for symbol, moment in ((C0, (model.link, 0)), (C1, (model.link, 1)), (EG2, (model.link**2, 0))):
                own[symbol] = checks.polynomial_moment(*moment)
            d, n = own[D], own[N]
            limit_along, limit_norm = (e.subs({N: n, D: d}) for e in (along, norm))
            scale = d * own[VARSIGMA] ** 2 * own[ETA] ** 2 * own[MU1] ** 2 / own[M] ** 2
            comparison.add(_number(formulas["overlap2"], own), _ratio(limit_along / limit_norm))
            comparison.add(_number(formulas["spike"], own), _ratio(scale * limit_norm))
            spike = _number(formulas["spike"], values)
            trace = _ratio((across - 1) + (total - across) / values[D])
            comparison.add(_number(formulas["bulk"] - 1, values) + spike / _ratio(values[D]), trace)
        return comparison.outcome("exact moments at d = 1e45")


def _number(formula: sympy.Expr, values: Mapping[sympy.Symbol, Any]) -> Any:
    return _ratio(sympy.nsimplify(formula.subs(values), rational=True))


def _ratio(number: sympy.Expr) -> Any:
    rational = sympy.Rational(number)
    return mpmath.mpf(rational.p) / rational.q


def _check_overlap(formulas: Formulas, seed: int) -> Outcome:
    """Top eigenvector of the batch covariance of a ReLU network at d = 200, against the leading overlap."""
    d, n = 200, 600
    rng = np.random.default_rng(np.random.SeedSequence((seed, 418)))
    overlaps = []
    for _ in range(12):
        x = rng.standard_normal((n, d))
        y = np.maximum(x[:, 0], 0.0)
        gram = x @ x.T
        norms = np.sqrt(np.diag(gram))
        angle = np.arccos(np.clip(gram / norms / norms[:, None], -1, 1))
        c = x.T @ (np.outer(y, y) * (np.pi - angle) / (2 * np.pi)) @ x / n**2
        overlaps.append(float(np.linalg.eigh(c)[1][0, -1] ** 2))
    values = {C1: 0.5, EG2: 0.5, TAU2: 0.0, D: d, N: n}
    predicted = float(formulas["overlap2"].subs(values))
    mean, error = float(np.mean(overlaps)), float(np.std(overlaps, ddof=1) / np.sqrt(len(overlaps)))
    # the prediction is of leading order: its own error is of relative order n/(d n), allowed for beside the sampling error
    passed = abs(mean - predicted) < 5 * error + 10 / d
    return Outcome(passed, f"overlap^2 {mean:.4f} +- {error:.4f}, predicted {predicted:.4f}")


def _evaluate_quenched(name: str, model: Model) -> float:
    """Overlap, spike or bulk of a model."""
    constants = Constants(
        model,
        *(
            gaussian_data(s, r, model.parameters)
            for s, r in ((model.link, "link"), (model.activation, "activation"))
        ),
    )
    value = constants.value(quenched_formulas()[name])
    return float(value) if value is not None else float("nan")


register(
    Statement(
        id="quenched-leading",
        statement="Given the batch (labels only), the features' covariance has a spike along X^T y and a bulk; the squared "
        "overlap of X^T y with w* is c_1^2/(c_1^2 + E y^2 d/n).",
        assumptions=(*ASSUMPTIONS, "labels only", "n, m, d grow in proportion", "c_1 mu_1 != 0"),
        source="derived in spikesym.symbolic.covariance_quenched; compare Cui et al. 2024 (2402.04980)",
        formulas=cache(quenched_formulas),
        evaluate=_evaluate_quenched,
        latex=latex_of,
        checks=(
            Check("exact moments of X^T y/n", "numeric", _check_batch),
            Check("top eigenvector at d = 200", "montecarlo", _check_overlap, level="full"),
        ),
    )
)
