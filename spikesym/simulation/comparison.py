"""One trial of the comparison: a trained network and its kernels, fitted to the same fresh samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..numeric.kernel import Kernel
from ..numeric.quenched import QuenchedCovariance, batch_strength
from .batch import Batch
from .gradient import DEFAULT_MEMORY
from .kernels import MappedKernel, spiked_factor
from .network import Experiment, Network, TrainedNetwork
from .ridge import RidgePath
from .streams import Role, Trial, fill_normal

#: method names with what they are
METHODS = {
    "network": "one-step network, ridge readout",
    "k1": "kernel k1 (annealed)",
    "k1_quenched": "kernel k1 of the batch (quenched)",
    "k0": "kernel k0",
    "random_features": "random features (no step)",
}
_NETWORKS = ("network", "random_features")
#: how the ridge of a fit is chosen among the candidates
RIDGE_RULES = {
    "leave-one-out": "least leave-one-out error on the training samples, in closed form",
    "oracle": "least error on the test points themselves (a lower bound, no method)",
}


@dataclass(frozen=True)
class Design:
    """What is fitted and tested in every trial.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of fresh samples, ascending.
    test_points : int
    ridges : tuple of float
        Candidates.
    rule : str
        Of ``RIDGE_RULES``.
    """

    sizes: tuple[int, ...]
    test_points: int
    ridges: tuple[float, ...]
    rule: str = "leave-one-out"


@dataclass(frozen=True)
class TrialErrors:
    """Test errors and chosen ridges, both (methods, sizes), and the error of predicting zero."""

    errors: np.ndarray
    ridges: np.ndarray
    null: float


@dataclass(frozen=True)
class Comparison:
    """The methods to compare and what all trials share; make one with :meth:`of`."""

    experiment: Experiment
    methods: tuple[str, ...]
    A: float
    B: float
    memory: int
    base: Kernel | None
    strength: float

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        methods: Sequence[str],
        A: float = 1.0,
        B: float = 0.0,
        memory: int = DEFAULT_MEMORY,
    ) -> Comparison:
        """Compile the kernels that the methods need; A and B are those of the annealed k1."""
        base, strength = None, 0.0
        if any(name not in _NETWORKS for name in methods):
            from ..symbolic.functions import make_function

            model = experiment.model
            base = Kernel(make_function(model.activation, "activation", model.parameters))
            # derived here once, before trials run in threads
            base.dual()
            if "k1_quenched" in methods:
                base.dual(1, 1)
                strength = batch_strength(model)
        return cls(experiment, tuple(methods), A, B, memory, base, strength)

    def trial(self, trial: Trial, design: Design) -> TrialErrors:
        """Train the trial's network, fit every method to the first n fresh samples for each n, and test."""
        trained = self.experiment.train(trial, self.memory, threads=1)
        teacher = trained.teacher
        inputs, labels = Batch(
            teacher, max(design.sizes), trial, inputs=Role.FRESH_INPUTS, noise=Role.FRESH_NOISE
        ).arrays()
        tests = fill_normal(trial.stream(Role.TEST_INPUTS), np.empty((design.test_points, inputs.shape[1])))
        clean = teacher.clean(tests)
        errors = np.empty((len(self.methods), len(design.sizes)))
        chosen = np.empty_like(errors)
        for i, method in enumerate(self.methods):
            if method in _NETWORKS:
                network = trained.trained if method == "network" else trained.initial
                fits = _feature_fits(network, inputs, labels, tests, design.sizes)
            else:
                fits = _kernel_fits(self.kernel(method, trial, trained), inputs, labels, tests, design.sizes)
            for j, (path, across) in enumerate(fits):
                ridges = design.ridges
                if design.rule == "leave-one-out":
                    ridges = (path.best_ridge(ridges),)
                tested = [float(np.mean((across @ path.coefficients(r) - clean) ** 2)) for r in ridges]
                errors[i, j], chosen[i, j] = min(zip(tested, ridges, strict=True))
        return TrialErrors(errors, chosen, float(np.mean(clean**2)))

    def kernel(self, method: str, trial: Trial, trained: TrainedNetwork) -> MappedKernel:
        """The kernel of a method for this trial's target, or for its batch."""
        assert self.base is not None
        if method == "k0":
            return MappedKernel(self.base)
        if method == "k1":
            return MappedKernel(self.base, spiked_factor(trained.teacher.direction, self.A, self.B))
        inputs, labels = self.experiment.batch(trial, trained.teacher).arrays()
        gamma = QuenchedCovariance(inputs.astype(np.float64), labels, self.base.dual(1, 1), self.strength)
        return MappedKernel(self.base, np.linalg.cholesky(gamma.matrix()))


Fits = Iterator[tuple[RidgePath, np.ndarray]]


def _feature_fits(
    network: Network, inputs: np.ndarray, labels: np.ndarray, tests: np.ndarray, sizes: Sequence[int]
) -> Fits:
    """For each size the ridge path and the inner products of test and training features."""
    features = network.features(inputs).astype(np.float64, copy=False)
    across = network.features(tests).astype(np.float64, copy=False) @ features.T
    for n in sizes:
        yield RidgePath.of_features(features[:n], labels[:n]), across[:, :n]


def _kernel_fits(
    kernel: MappedKernel, inputs: np.ndarray, labels: np.ndarray, tests: np.ndarray, sizes: Sequence[int]
) -> Fits:
    """For each size the ridge path and the kernel between test and training inputs."""
    matrix, across = kernel.matrix(inputs), kernel.matrix(tests, inputs)
    for n in sizes:
        yield RidgePath.of_kernel(matrix[:n, :n], labels[:n]), across[:, :n]
