"""Averages over training batches of the exact Gamma_batch: its mean is Gamma, and its top eigenvector's overlap has a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..gaussian import gaussian_data
from ..model import Model
from ..numeric.overlap import overlap_coefficient
from ..numeric.quenched import quenched_covariance, quenched_limits
from .estimators import Estimate, estimate, regressed
from .network import Experiment
from .reference import exact_covariance
from .slopes import Slope, fit_slope
from .streams import Trial


@dataclass(frozen=True)
class BatchAverage:
    """Means over batches of Gamma_batch along and across w*, beside the exact A and A + B.

    Attributes
    ----------
    A, A_plus_B : Estimate
    exact_A, exact_A_plus_B : float or None
        Labels only; None where there is no exact form.
    """

    A: Estimate
    A_plus_B: Estimate
    exact_A: float | None
    exact_A_plus_B: float | None

    @property
    def z(self) -> tuple[float | None, float | None]:
        """Deviations of A and A + B in standard errors."""
        pairs = ((self.A, self.exact_A), (self.A_plus_B, self.exact_A_plus_B))
        found = [None if exact is None else e.z(exact) for e, exact in pairs]
        return found[0], found[1]


def batch_average(model: Model, batches: int = 1000, seed: int = 0) -> BatchAverage:
    """Average the exact Gamma_batch over independent batches: E Gamma_batch = Gamma at every n, m, d, labels only.

    Examples
    --------
    >>> average = batch_average(Model(link="tanh(s)", d=5, n=8, m=6, eta=12, residual="labels"), batches=300)
    >>> all(abs(z) < 5 for z in average.z)
    True
    """
    experiment = Experiment.of(model)
    across, along = np.empty(batches), np.empty(batches)
    for b in range(batches):
        trial = Trial(seed, b)
        teacher = experiment.teacher(trial)
        gamma = quenched_covariance(model, *experiment.batch(trial, teacher).arrays()).matrix()
        along[b] = teacher.direction @ gamma @ teacher.direction
        across[b] = (np.trace(gamma) - along[b]) / (len(gamma) - 1)
    A, A_plus_B = exact_covariance(model)
    return BatchAverage(estimate(across), estimate(along), A.value, A_plus_B.value)


@dataclass(frozen=True)
class OverlapRow:
    """Mean squared overlap at one dimension, with its standard error and its limit.

    ``predicted`` adds the derived correction of order 1/d; None unless the activation is p z + q|z|.
    """

    d: int
    mean: float
    se: float
    limit: float
    predicted: float | None

    @property
    def deviation(self) -> float:
        """Distance from the limit."""
        return abs(self.mean - self.limit)


@dataclass(frozen=True)
class OverlapRate:
    """Overlap of Gamma_batch's top eigenvector with w* along d."""

    rows: tuple[OverlapRow, ...]

    @property
    def slope(self) -> Slope:
        """Fitted power of d of the distance from the limit: -1 by the theory."""
        return fit_slope(
            [r.d for r in self.rows], [r.deviation for r in self.rows], [r.se for r in self.rows]
        )

    def table(self) -> str:
        """One line per dimension, and the slope."""
        lines = [f"{'d':>7}{'overlap^2':>14}{'se':>10}{'limit':>10}{'d x deviation':>16}{'derived':>10}"]
        for r in self.rows:
            derived = "-" if r.predicted is None else f"{r.d * (r.predicted - r.limit):.4f}"
            deviation = r.d * (r.mean - r.limit)
            lines.append(
                f"{r.d:>7}{r.mean:>14.6f}{r.se:>10.1e}{r.limit:>10.6f}{deviation:>16.4f}{derived:>10}"
            )
        fit = self.slope
        return "\n".join([*lines, f"deviation falls as d^({fit.slope:.2f} +- {fit.se:.2f})"])


def overlap_rate(
    model: Model, dimensions: Sequence[int] = (25, 50, 100), batches: int = 200, seed: int = 0
) -> OverlapRate:
    """Squared overlap of Gamma_batch's top eigenvector with w* against alpha c_1^2/(alpha c_1^2 + E y^2).

    Parameters
    ----------
    model : Model
        With sizes at one dimension: n/d and m/d are kept along d; residual "labels". The step does not matter for the vector.
    dimensions : sequence of int
    batches : int
        Batches at each dimension, at least 10.
    seed : int

    Notes
    -----
    The deviation is of order 1/d while one batch fluctuates by d^(-1/2): mean(y s), mean(y^2) and |X_perp^T y|^2, whose means
    are known, are control variates.

    Examples
    --------
    >>> model = Model(link="tanh(s)", d=20, n=40, m=30, eta=30, residual="labels")
    >>> rate = overlap_rate(model, (20, 40), batches=40)
    >>> [abs(row.mean - row.limit) < 0.1 for row in rate.rows]
    [True, True]
    """
    model.require_sizes()
    if batches < 10:
        raise InputError(f"{batches} batches", "batches", "give at least 10")
    link = gaussian_data(model.link, "link", model.parameters)
    c1, power = float(link.coefficient(1)), float(link.second_moment) + float(model.noise_var)
    alpha, beta = (size / model.d for size in (model.n, model.m))  # type: ignore[operator]
    rows = []
    for index, d in enumerate(dimensions):
        sized = model.with_(d=d, n=round(alpha * d), m=round(beta * d))
        experiment = Experiment.of(sized)
        overlaps, controls = np.empty(batches), np.empty((batches, 3))
        for b in range(batches):
            trial = Trial(seed, index * 100_000 + b)
            teacher = experiment.teacher(trial)
            inputs, labels = experiment.batch(trial, teacher).arrays()
            _, vectors = quenched_covariance(sized, inputs, labels).top(1)
            overlaps[b] = (vectors[:, 0] @ teacher.direction) ** 2
            v = inputs.T @ labels / len(labels)
            along = v @ teacher.direction
            across = (v @ v - along**2) * len(labels) / (d - 1)
            controls[b] = along - c1, labels @ labels / len(labels) - power, across - power
        values = regressed(overlaps, controls / controls.std(axis=0))
        limit = float(quenched_limits(sized)["overlap2"])
        coefficient = overlap_coefficient(sized)
        predicted = None if coefficient is None else limit + coefficient / d
        se = float(values.std(ddof=1) / np.sqrt(batches))
        rows.append(OverlapRow(d, float(values.mean()), se, limit, predicted))
    return OverlapRate(tuple(rows))
