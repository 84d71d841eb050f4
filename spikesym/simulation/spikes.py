"""Spikes of the feature matrix: singular values of a trained network's features that stand out of the bulk."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..errors import InputError
from ..model import Model
from ..symbolic.covariance_phases import spike_count
from .batch import Batch
from .network import Experiment
from .streams import Role, Trial

#: fluctuations of the bulk's edge are of relative order d^(-2/3); so many of them count as standing out
EDGE_WIDTHS = 3.0


@dataclass(frozen=True)
class FeatureSpikes:
    """Singular values of the centred features sigma(X W^T) - E sigma(z) on fresh inputs, over sqrt(d).

    Attributes
    ----------
    zeta : Fraction
    initial, trained : array
        The largest singular values before and after the step, descending.
    edge : float
        What counts as the end of the bulk: the largest initial one times 1 + 3 d^(-2/3).
    predicted : int or None
        The number of spikes that the theory gives (registry: ``spikes``); None where it has none (zeta a boundary, or 1 and more).
    """

    zeta: Fraction
    initial: np.ndarray
    trained: np.ndarray
    edge: float
    predicted: int | None

    @property
    def count(self) -> int:
        """Singular values of the trained features beyond the edge."""
        return int(np.sum(self.trained > self.edge))

    def table(self) -> str:
        """The singular values on two lines, those that stand out marked."""
        before = " ".join(f"{v:8.3f} " for v in self.initial)
        after = " ".join(f"{v:8.3f}{'*' if v > self.edge else ' '}" for v in self.trained)
        return f"zeta = {self.zeta}: {self.count} beyond {self.edge:.3f}, predicted {self.predicted}\nbefore {before}\nafter  {after}"


def feature_spikes(
    model: Model, trial: Trial | None = None, samples: int | None = None, shown: int = 8
) -> FeatureSpikes:
    """Train a network by one step and count the singular values of its features that leave the bulk.

    Parameters
    ----------
    model : Model
        With sizes and a step ``eta0 * d**zeta``.
    trial : Trial, optional
    samples : int, optional
        Fresh inputs, d by default.
    shown : int
        Singular values kept.

    Notes
    -----
    The theory is asymptotic: near a boundary in zeta, or with coefficients that vanish (mu_3 of relu), a spike that should be
    there hides in the bulk at any d within reach.

    Examples
    --------
    >>> model = Model(link="3*tanh(s)/2", activation="sin(z) + cos(z)", d=200, n=800, m=200, eta0=4, zeta="0.65")
    >>> spikes = feature_spikes(model)
    >>> spikes.count, spikes.predicted
    (1, 1)
    """
    from ..gaussian import gaussian_data

    if model.zeta is None:
        raise InputError("missing", "--zeta", "give the step as --eta0 X --zeta Z")
    experiment, trial = Experiment.of(model), trial or Trial()
    d = experiment.sizes[0]
    network = experiment.train(trial)
    fresh, _ = Batch(
        network.teacher, samples or d, trial, inputs=Role.FRESH_INPUTS, noise=Role.FRESH_NOISE
    ).arrays()
    mean = float(gaussian_data(model.activation, "activation", model.parameters).coefficient(0))
    found = []
    for state in (network.initial, network.trained):
        features = state.activation(fresh @ state.weights.T) - mean
        found.append(np.linalg.svd(features, compute_uv=False)[:shown] / np.sqrt(d))
    edge = float(found[0][0] * (1 + EDGE_WIDTHS * d ** (-2 / 3)))
    return FeatureSpikes(model.zeta, found[0], found[1], edge, spike_count(model.zeta))
