"""One trial of the comparison: a trained network and its kernels, fitted to the same fresh samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .batch import Batch
from .gradient import DEFAULT_MEMORY
from .kernels import Dual, FeatureKernel, batch_covariance, fast_dual, spiked_factor, square_root
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
    dual: Dual | None
    slope_dual: Dual | None

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
        dual = slope_dual = None
        if any(name not in _NETWORKS for name in methods):
            from ..numeric.dual import dual as dual_activation
            from ..symbolic.functions import make_function

            model = experiment.model
            activation = make_function(model.activation, "activation", model.parameters)
            dual = fast_dual(dual_activation(activation))
            if "k1_quenched" in methods:
                slope_dual = fast_dual(dual_activation(activation, 1, 1))
        return cls(experiment, tuple(methods), A, B, memory, dual, slope_dual)

    def trial(
        self, trial: Trial, sizes: Sequence[int], test_points: int, ridges: Sequence[float]
    ) -> TrialErrors:
        """Train the trial's network, fit every method to the first n fresh samples for each n, and test."""
        trained = self.experiment.train(trial, self.memory, threads=1)
        teacher = trained.teacher
        inputs, labels = Batch(
            teacher, max(sizes), trial, inputs=Role.FRESH_INPUTS, noise=Role.FRESH_NOISE
        ).arrays()
        tests = fill_normal(trial.stream(Role.TEST_INPUTS), np.empty((test_points, inputs.shape[1])))
        clean = teacher.clean(tests)
        errors = np.empty((len(self.methods), len(sizes)))
        chosen = np.empty_like(errors)
        for i, method in enumerate(self.methods):
            if method in _NETWORKS:
                network = trained.trained if method == "network" else trained.initial
                fits = _feature_fits(network, inputs, labels, tests, sizes)
            else:
                fits = _kernel_fits(self.kernel(method, trial, trained), inputs, labels, tests, sizes)
            for j, (path, across) in enumerate(fits):
                chosen[i, j] = path.best_ridge(ridges)
                predicted = across @ path.coefficients(chosen[i, j])
                errors[i, j] = np.mean((predicted - clean) ** 2)
        return TrialErrors(errors, chosen, float(np.mean(clean**2)))

    def kernel(self, method: str, trial: Trial, trained: TrainedNetwork) -> FeatureKernel:
        """The kernel of a method for this trial's target, or for its batch."""
        assert self.dual is not None
        if method == "k0":
            return FeatureKernel(self.dual)
        if method == "k1":
            return FeatureKernel(self.dual, spiked_factor(trained.teacher.direction, self.A, self.B))
        assert self.slope_dual is not None
        model = self.experiment.model
        assert model.d is not None and model.m is not None
        strength = model.d * (float(model.readout_scale) * model.eta_value / model.m) ** 2
        batch = self.experiment.batch(trial, trained.teacher)
        return FeatureKernel(self.dual, square_root(batch_covariance(batch, self.slope_dual, strength)))


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
    kernel: FeatureKernel, inputs: np.ndarray, labels: np.ndarray, tests: np.ndarray, sizes: Sequence[int]
) -> Fits:
    """For each size the ridge path and the kernel between test and training inputs."""
    matrix, across = kernel.matrix(inputs, inputs), kernel.matrix(tests, inputs)
    for n in sizes:
        yield RidgePath.of_kernel(matrix[:n, :n], labels[:n]), across[:, :n]
