"""The two-layer network and its training by one gradient step, as the theory defines it.

f(x) = m^(-1/2) sum_j a_j sigma(<w_j, x>); the readout a is frozen, and w(1) = w(0) - eta dL/dw.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..model import Model
from .batch import Batch, Function, Teacher
from .elementwise import Activation, compile_activation
from .gradient import DEFAULT_MEMORY, BatchMoments, gradient, make_plan, single_blas_thread
from .streams import Role, Trial, fill_normal


@dataclass(frozen=True)
class Network:
    """f(x) = m^(-1/2) sum_j a_j sigma(<w_j, x>).

    Parameters
    ----------
    weights : array of shape (m, d)
    readout : array of shape (m,)
    activation : Activation
    """

    weights: np.ndarray
    readout: np.ndarray
    activation: Activation

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """m^(-1/2) sigma(<w_j, x>) for inputs of shape (k, d): shape (k, m).

        Inner products of features are then a random kernel whose mean over Gaussian neurons is k0 or k1.
        """
        return self.activation(inputs @ self.weights.T) / np.sqrt(len(self.weights))

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs f(x) for inputs of shape (k, d): shape (k,)."""
        outputs: np.ndarray = self.features(inputs) @ self.readout
        return outputs


@dataclass(frozen=True)
class TrainedNetwork:
    """A network before its step and the step that it took.

    Parameters
    ----------
    initial : Network
    step : array of shape (m, d)
        w(1) - w(0).
    teacher : Teacher
    moments : BatchMoments
        Averages over the batch of the step.
    """

    initial: Network
    step: np.ndarray
    teacher: Teacher
    moments: BatchMoments

    @property
    def trained(self) -> Network:
        """The network after the step (the sum is a new array)."""
        return Network(self.initial.weights + self.step, self.initial.readout, self.initial.activation)


@dataclass(frozen=True)
class Experiment:
    """A model with sizes, its functions compiled for arrays, ready to draw trials.

    Make one with :meth:`of`. All draws are rounded from doubles, so ``float32`` trains the same networks.

    Examples
    --------
    >>> experiment = Experiment.of(Model(d=20, n=40, m=30, eta=20))
    >>> trained = experiment.train(Trial(seed=0, index=0))
    >>> trained.step.shape
    (30, 20)
    """

    model: Model
    link: Function
    activation: Activation
    dtype: Any = np.float64

    @classmethod
    def of(cls, model: Model, dtype: Any = np.float64) -> Experiment:
        """Compile the link and the activation of a model that has all its sizes."""
        from ..symbolic.functions import make_function

        model.require_sizes()
        link = make_function(model.link, "link", model.parameters, allow_parameters=False)
        activation = make_function(model.activation, "activation", model.parameters, allow_parameters=False)
        return cls(model, link.numpy(), compile_activation(activation), np.dtype(dtype).type)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """d, n and m."""
        model = self.model
        model.require_sizes()
        return int(model.d or 0), int(model.n or 0), int(model.m or 0)

    def teacher(self, trial: Trial) -> Teacher:
        """The target of a trial: a direction uniform on the sphere."""
        direction = fill_normal(trial.stream(Role.TARGET), np.empty(self.sizes[0]))
        return Teacher(direction / np.linalg.norm(direction), self.link, float(self.model.noise_var) ** 0.5)

    def batch(self, trial: Trial, teacher: Teacher, step: int = 0) -> Batch:
        """The samples of a training step."""
        return Batch(teacher, self.sizes[1], trial, step=step, dtype=self.dtype)

    def initial(self, trial: Trial) -> Network:
        """The network before training."""
        d, _, m = self.sizes
        weights = np.empty((m, d), self.dtype)
        if self.model.init == "sphere":
            fill_normal(trial.stream(Role.WEIGHTS), weights)
            weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        else:
            fill_normal(trial.stream(Role.WEIGHTS), weights, d**-0.5)
        stream = trial.stream(Role.READOUT)
        scale = float(self.model.readout_scale) / m**0.5
        signs = self.model.readout == "rademacher"
        readout = 2.0 * stream.integers(0, 2, m) - 1.0 if signs else stream.standard_normal(m)
        return Network(weights, scale * readout, self.activation)

    def train(self, trial: Trial, memory: int = DEFAULT_MEMORY, threads: int | None = None) -> TrainedNetwork:
        """Draw a network and its batch, and take one step.

        Parameters
        ----------
        trial : Trial
        memory : int
            Bytes that the arrays of the step may take; samples are streamed in blocks that fit.
        threads : int, optional
            Threads over blocks of neurons; BLAS' own number by default, one for small sizes.

        Raises
        ------
        InputError
            When the memory is too small for the weights.
        PostconditionError
            When the step is not finite.
        """
        d, n, m = self.sizes
        plan = make_plan(m, d, n, self.dtype, memory, threads)
        with single_blas_thread():
            teacher, initial = self.teacher(trial), self.initial(trial)
            batch = self.batch(trial, teacher)
            step, moments = gradient(
                initial.weights, initial.readout, batch, self.activation, self.model.residual, plan
            )
        step *= self.dtype(-self.model.eta_value)
        return TrainedNetwork(initial, step, teacher, moments)
