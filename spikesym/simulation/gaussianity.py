"""How Gaussian are the features? Distances of the marginals of w_j(1) from N(0, Gamma/d), and of the kernel from k1, against d.

Given its weight w_j(0) and the batch, sqrt(d) <w_j(1), u> with a Gaussian readout is N(z, G^2), z = sqrt(d) <w_j(0), u>: the
readout is averaged exactly, so that the law is a mean of distribution functions over neurons. Its noise is low: z is
stratified for every weight across u (only a rank-one change of the preactivations), and over batches the variance
u^T Gamma_batch u is a control variate, whose mean is the exact u^T Gamma u.

Along w* the averaged law has a skewness of order d^(-1/2) when mu_2 E[y s^2] is not zero: G grows with z,
G = kappa^(1/2) (mu_1 c_1 + mu_2 E[y s^2] z/sqrt(d) + ...), so that E z G^2 is not zero. Otherwise the distance is of order 1/d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ..errors import InputError
from ..gaussian import gaussian_data
from ..model import Model
from ..numeric.kernel import Kernel
from ..numeric.quenched import batch_strength
from .batch import Batch, Function, Teacher
from .network import Experiment
from .reference import annealed_spike
from .slopes import Slope, fit_slope
from .streams import Role, Trial, fill_normal

#: points at which distribution functions are compared, within so many standard deviations
_POINTS, _REACH = 81, 5.0
#: strata of z for every weight, in each of which G is evaluated at one random point and the law at several
_STRATA, _WITHIN = 32, 2
#: weights drawn at a time
_NEURONS = 500
#: fresh inputs for the kernel
_INPUTS = 60

DIRECTIONS = ("along w*", "random")
LAWS = ("averaged", "given batch")


@dataclass(frozen=True)
class Distance:
    """A mean with its standard error."""

    mean: float
    se: float


@dataclass(frozen=True)
class GaussianityRow:
    """Distances at one dimension.

    Attributes
    ----------
    d : int
    ks, w1 : dict
        Kolmogorov-Smirnov and Wasserstein-1 distance of sqrt(d) <w(1), u> from N(0, u^T Gamma u), by direction and law:
        averaged over batches, or given one batch (a mean over batches).
    kernel : Distance
        Relative L^2 error of the network's kernel, m features, against k1.
    predicted_ks : float
        Kolmogorov-Smirnov distance of the averaged law along w* from its skewness, to leading order; 0 where that vanishes.
    """

    d: int
    ks: dict[tuple[str, str], Distance]
    w1: dict[tuple[str, str], Distance]
    kernel: Distance
    predicted_ks: float


@dataclass(frozen=True)
class Gaussianity:
    """Distances along d with fitted slopes; ``table()`` prints them."""

    rows: tuple[GaussianityRow, ...]

    def slope(self, name: str, direction: str = DIRECTIONS[0], law: str = LAWS[0]) -> Slope:
        """Fitted power of d of ``"ks"``, ``"w1"`` or ``"kernel"``."""
        found = [r.kernel if name == "kernel" else getattr(r, name)[direction, law] for r in self.rows]
        return fit_slope([r.d for r in self.rows], [v.mean for v in found], [v.se for v in found])

    def table(self) -> str:
        """One line per distance: its values along d and its slope with standard error."""
        head = f"{'distance':<30}" + "".join(f"{'d = ' + str(r.d):>22}" for r in self.rows) + f"{'slope':>16}"
        lines = [head]
        names = [(n, u, law) for n in ("ks", "w1") for u in DIRECTIONS for law in LAWS]
        for name, u, law in [*names, ("kernel", DIRECTIONS[0], LAWS[0])]:
            values = [r.kernel if name == "kernel" else getattr(r, name)[u, law] for r in self.rows]
            label = "kernel, relative L2" if name == "kernel" else f"{name.upper()} {u}, {law}"
            line = f"{label:<30}" + "".join(f"{f'{v.mean:.3e} +- {v.se:.1e}':>22}" for v in values)
            try:
                fit = self.slope(name, u, law)
                line += f"{f'{fit.slope:.2f} +- {fit.se:.2f}':>16}"
            except InputError:
                line += f"{'-':>16}"
            lines.append(line)
        return "\n".join(lines)


def gaussianity(
    model: Model,
    dimensions: Sequence[int] = (40, 80, 160),
    batches: int = 40,
    neurons: int = 300,
    networks: int = 6,
    seed: int = 0,
) -> Gaussianity:
    """Measure the distances of the features from N(0, Gamma/d) along d.

    Parameters
    ----------
    model : Model
        With sizes at one dimension: n/d and m/d are kept along d, and so are eta_0 and zeta. Gaussian readout, weights
        N(0, I/d), residual "labels".
    dimensions : sequence of int
    batches, neurons : int
        Training batches, and weights drawn for each.
    networks : int
        Networks whose kernels are compared with k1.
    seed : int

    Raises
    ------
    InputError
        For another readout, initialisation or residual, and without an exact Gamma.

    Examples
    --------
    >>> model = Model(link="s", d=40, n=80, m=40, eta0=2, zeta="1/2", residual="labels")
    >>> found = gaussianity(model, dimensions=(20, 40), batches=10, neurons=100, networks=2)
    >>> len(found.rows), bool(found.rows[0].ks["along w*", "given batch"].mean > 0)
    (2, True)
    """
    _check(model)
    alpha, beta = (size / model.d for size in (model.n, model.m))  # type: ignore[operator]
    rows = []
    for index, d in enumerate(dimensions):
        sized = model.with_(d=d, n=round(alpha * d), m=round(beta * d))
        A, B, form = annealed_spike(sized)
        if form != "exact":
            raise InputError(
                f"no exact Gamma for {model.activation}", "--activation", "choose one of exact A and B"
            )
        rows.append(_Measurement(sized, A, B, seed, index).row(batches, neurons, networks))
    return Gaussianity(tuple(rows))


def _check(model: Model) -> None:
    model.require_sizes()
    for name, wanted in (("readout", "gaussian"), ("init", "gaussian"), ("residual", "labels")):
        if getattr(model, name) != wanted:
            raise InputError(
                f"{getattr(model, name)} is not measured", "--" + name, f"give --{name} {wanted}"
            )
    if model.zeta is None:
        raise InputError("missing", "--zeta", "give the step as --eta0 X --zeta Z")


class _Side:
    """The law over the neurons of one batch along one direction, accumulated over weights."""

    def __init__(self, grid: np.ndarray, along: np.ndarray, d: int, labels: np.ndarray, root: float) -> None:
        self.grid, self.along, self.d = grid, along, d
        self.projected = root * labels * along / len(labels)
        self.total, self.square, self.count = np.zeros_like(grid), 0.0, 0

    def add(
        self, products: np.ndarray, own: np.ndarray, slope: Function, stream: np.random.Generator
    ) -> None:
        """Weights by their products with the inputs, shape (k, n), and with the direction, shape (k,)."""
        across = products - own[:, None] * self.along
        k = len(own)
        steps = np.empty((k, _STRATA))
        for stratum in range(_STRATA):
            z = ndtri((stratum + stream.random(k)) / _STRATA)
            steps[:, stratum] = slope(across + (z / np.sqrt(self.d))[:, None] * self.along) @ self.projected
        steps = np.maximum(np.abs(steps), 1e-300)
        # one G for all z of a weight: its law is known, and most of the noise of z cancels in the difference
        level = np.sqrt((steps**2).mean(axis=1))
        self.total += ndtr(self.grid / np.sqrt(1 + level[:, None] ** 2)).sum(axis=0) * _STRATA
        for stratum in range(_STRATA):
            parts = (np.arange(_WITHIN) + stream.random((k, _WITHIN))) / _WITHIN
            shifted = self.grid - ndtri((stratum + parts) / _STRATA)[:, :, None]
            law = ndtr(shifted / steps[:, stratum, None, None]) - ndtr(shifted / level[:, None, None])
            self.total += law.mean(axis=1).sum(axis=0)
        self.square += float(np.sum(steps**2))
        self.count += k * _STRATA

    def law(self) -> tuple[np.ndarray, float]:
        """Distribution function on the grid, and variance."""
        return self.total / self.count, 1 + self.square / self.count


@dataclass(frozen=True)
class _Measurement:
    """The measurements at one dimension."""

    model: Model
    A: float
    B: float
    seed: int
    index: int

    def row(self, batches: int, neurons: int, networks: int) -> GaussianityRow:
        gamma = {"along w*": self.A + self.B, "random": self.A}
        grids = {u: np.linspace(-_REACH, _REACH, _POINTS) * np.sqrt(g) for u, g in gamma.items()}
        normal = {u: ndtr(grids[u] / np.sqrt(gamma[u])) for u in DIRECTIONS}
        experiment = Experiment.of(self.model)
        laws: dict[str, list[np.ndarray]] = {u: [] for u in DIRECTIONS}
        spread: dict[str, list[float]] = {u: [] for u in DIRECTIONS}
        for b in range(batches):
            trial = Trial(self.seed, self.index * 100_000 + b)
            for u, (law, variance) in self._batch_laws(experiment, trial, neurons, grids).items():
                laws[u].append(law)
                spread[u].append(variance)
        ks, w1 = {}, {}
        for u in DIRECTIONS:
            step = grids[u][1] - grids[u][0]
            differences = np.array(laws[u]) - normal[u]
            single = np.abs(differences)
            ks[u, "given batch"] = _mean(single.max(axis=1))
            w1[u, "given batch"] = _mean(single.sum(axis=1) * step)
            # the derivative of the normal law in its variance: what a fluctuating variance does to first order
            slope = (
                -grids[u]
                / (2 * gamma[u] ** 1.5)
                * np.exp(-(grids[u] ** 2) / (2 * gamma[u]))
                / np.sqrt(2 * np.pi)
            )
            reduced = differences - np.outer(np.array(spread[u]) - gamma[u], slope)
            ks[u, "averaged"] = _jackknife(reduced, lambda m: float(np.abs(m).max()))
            w1[u, "averaged"] = _jackknife(reduced, lambda m, step=step: float(np.abs(m).sum() * step))
        return GaussianityRow(
            int(self.model.d or 0), ks, w1, self._kernel(experiment, networks), self._predicted()
        )

    def _predicted(self) -> float:
        """sup |skewness/6 (x^2 - 1) phi(x)|, attained at 0; skewness 3 E[z G^2]/(u^T Gamma u)^(3/2)."""
        link = gaussian_data(self.model.link, "link", self.model.parameters)
        activation = gaussian_data(self.model.activation, "activation", self.model.parameters)
        along2 = float(link.coefficient(0)) + float(link.coefficient(2))
        product = (
            float(activation.coefficient(1)) * float(activation.coefficient(2)) * float(link.coefficient(1))
        )
        third = 6 * batch_strength(self.model) * product * along2 / np.sqrt(int(self.model.d or 0))
        return float(abs(third) / (self.A + self.B) ** 1.5 / 6 / np.sqrt(2 * np.pi))

    def _batch_laws(
        self, experiment: Experiment, trial: Trial, neurons: int, grids: dict[str, np.ndarray]
    ) -> dict[str, tuple[np.ndarray, float]]:
        """Distribution function and variance of sqrt(d) <w(1), u> over the neurons of one batch, for both directions."""
        d = int(self.model.d or 0)
        teacher = experiment.teacher(trial)
        inputs, labels = experiment.batch(trial, teacher).arrays()
        directions = np.column_stack([teacher.direction, _orthogonal(trial, teacher)])
        root = np.sqrt(batch_strength(self.model))
        stream = trial.stream(Role.WEIGHTS)
        sides = [
            _Side(grids[u], inputs @ direction, d, labels, root)
            for u, direction in zip(DIRECTIONS, directions.T, strict=True)
        ]
        for start in range(0, neurons, _NEURONS):
            w = fill_normal(stream, np.empty((min(_NEURONS, neurons - start), d)), d**-0.5)
            products = w @ inputs.T
            for side, direction in zip(sides, directions.T, strict=True):
                side.add(products, w @ direction, experiment.activation.slope, stream)
        return {u: side.law() for u, side in zip(DIRECTIONS, sides, strict=True)}

    def _kernel(self, experiment: Experiment, networks: int) -> Distance:
        errors = []
        for b in range(networks):
            trial = Trial(self.seed, self.index * 100_000 + 50_000 + b)
            trained = experiment.train(trial)
            fresh, _ = Batch(
                trained.teacher, _INPUTS, trial, inputs=Role.FRESH_INPUTS, noise=Role.FRESH_NOISE
            ).arrays()
            features = trained.trained.features(fresh)
            k1 = Kernel(self.model.activation, A=self.A, B=self.B, w=trained.teacher.direction).matrix(fresh)
            off = ~np.eye(len(k1), dtype=bool)
            errors.append(float(np.linalg.norm((features @ features.T - k1)[off]) / np.linalg.norm(k1[off])))
        return _mean(np.array(errors))


def _orthogonal(trial: Trial, teacher: Teacher) -> np.ndarray:
    """A random unit vector across w*."""
    u = fill_normal(trial.stream(Role.TEST_INPUTS), np.empty(teacher.direction.size))
    u -= (u @ teacher.direction) * teacher.direction
    return np.asarray(u / np.linalg.norm(u))


def _mean(values: np.ndarray) -> Distance:
    if len(values) < 2:
        raise InputError(f"{len(values)} repetitions", "repetitions", "give at least 2")
    return Distance(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def _jackknife(rows: np.ndarray, distance: Any) -> Distance:
    """A distance of the mean of rows, with the jackknife's bias correction and standard error."""
    count = len(rows)
    total = rows.sum(axis=0)
    whole = distance(total / count)
    left = np.array([distance((total - row) / (count - 1)) for row in rows])
    mean = count * whole - (count - 1) * left.mean()
    return Distance(float(mean), float(np.sqrt((count - 1) / count * np.sum((left - left.mean()) ** 2))))
