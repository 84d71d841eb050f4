"""What one trained network contributes to the estimates of A, A + B and the spike's overlap.

A network is the independent unit: its neurons share the batch, so a standard error over neurons is too
small by a factor of several. Each network becomes one row of numbers, and rows can be stored and merged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .gradient import DEFAULT_MEMORY, default_threads, single_blas_thread
from .network import Experiment, TrainedNetwork
from .streams import Trial

#: entries converted to float64 at a time
_ENTRIES = 1 << 17
#: up to this size the Gram matrix of the step is formed and diagonalised, beyond it Lanczos is faster
_DENSE = 300


@dataclass(frozen=True)
class NetworkStatistics:
    """Averages over the neurons of one network; w* is the trial's target direction.

    Attributes
    ----------
    norm2, along2 : float
        Means of ||w(1)||^2 and <w(1), w*>^2.
    norm2_change, along2_change : float
        The same less the parts whose means are known exactly: ||w(0)||^2 (mean 1) and <w(0), w*>^2
        (mean 1/d), and, with labels alone, the cross terms with w(0) (odd in the readout, mean 0).
    overlap2 : float
        <u, w*>^2 of the top eigenvector u of sum_j step_j step_j^T.
    hermite1, hermite2, hermite3 : float
        Batch means of He_k(s): mean 0 whatever the link.
    readout2 : float
        m mean(a^2)/varsigma^2 - 1: mean 0.
    label_output : float
        Batch mean of y f(x): odd in the readout, mean 0.
    loss : float
        (1/2) mean (f - y)^2 on the batch before the step; 0 with labels alone.
    """

    norm2: float
    along2: float
    norm2_change: float
    along2_change: float
    overlap2: float
    hermite1: float
    hermite2: float
    hermite3: float
    readout2: float
    label_output: float
    loss: float


def network_statistics(
    experiment: Experiment, trial: Trial, memory: int = DEFAULT_MEMORY, threads: int | None = None
) -> NetworkStatistics:
    """Train the network of one trial and take its averages.

    Examples
    --------
    >>> from spikesym.model import Model
    >>> experiment = Experiment.of(Model(d=20, n=40, m=30, eta=20))
    >>> row = network_statistics(experiment, Trial(seed=0, index=0))
    >>> 0 <= row.overlap2 <= 1
    True
    """
    if threads is None:
        d, n, m = experiment.sizes
        threads = default_threads(m, d, n)
    with single_blas_thread():
        return _statistics(experiment, experiment.train(trial, memory, threads))


def _statistics(experiment: Experiment, trained: TrainedNetwork) -> NetworkStatistics:
    model = experiment.model
    initial2, cross2, step2, initial_along2, cross_along2, step_along2 = _moments(trained)
    known_cross = model.residual == "labels"
    a = np.asarray(trained.initial.readout, dtype=np.float64)
    one, two, three = trained.moments.hermite
    return NetworkStatistics(
        norm2=initial2 + cross2 + step2,
        along2=initial_along2 + cross_along2 + step_along2,
        norm2_change=step2 if known_cross else cross2 + step2,
        along2_change=step_along2 if known_cross else cross_along2 + step_along2,
        overlap2=top_overlap2(trained.step, trained.teacher.direction),
        hermite1=one,
        hermite2=two,
        hermite3=three,
        readout2=len(a) * float(np.mean(a * a)) / float(model.readout_scale) ** 2 - 1,
        label_output=trained.moments.label_output,
        loss=trained.moments.loss,
    )


def _moments(trained: TrainedNetwork) -> np.ndarray:
    """Means over neurons of |w0|^2, 2<w0, step>, |step|^2 and the same along w*, summed in float64."""
    weights, direction = trained.initial.weights, trained.teacher.direction
    m, d = weights.shape
    sums = np.zeros(6)
    rows = max(1, _ENTRIES // d)
    for j in range(0, m, rows):
        w = weights[j : j + rows].astype(np.float64, copy=False)
        v = trained.step[j : j + rows].astype(np.float64, copy=False)
        p, q = w @ direction, v @ direction
        sums += [np.vdot(w, w), 2 * np.vdot(w, v), np.vdot(v, v), p @ p, 2 * (p @ q), q @ q]
    return sums / m


def top_overlap2(step: np.ndarray, direction: np.ndarray) -> float:
    """Squared overlap with ``direction`` of the top right singular vector of ``step``, shape (m, d).

    I + (d/m) step^T step estimates the covariance of the neurons trained on this batch (relative to
    initialisation), so the vector is the direction that the features of this network turn to.

    Examples
    --------
    >>> round(top_overlap2(np.array([[3.0, 4.0], [6.0, 8.0]]), np.array([1.0, 0.0])), 12)
    0.36
    """
    m, d = step.shape
    largest = float(np.abs(step).max())
    if largest == 0:
        return 0.0
    step = step / largest
    if min(m, d) <= _DENSE:
        step = step.astype(np.float64, copy=False)
        tall = d <= m
        top = np.linalg.eigh(step.T @ step if tall else step @ step.T)[1][:, -1]
        vector = top if tall else step.T @ top
    else:
        from scipy.sparse.linalg import LinearOperator, eigsh

        operator = LinearOperator((d, d), lambda v: step.T @ (step @ v), dtype=step.dtype)
        # the vector in d dimensions costs one product more than the shorter one, and needs no case
        start = step.T @ (step @ np.ones(d, step.dtype))
        vector = eigsh(operator, k=1, v0=start, tol=1e-9 if step.dtype == np.float64 else 1e-5)[1][:, 0]
    vector = vector.astype(np.float64)
    return float(vector @ direction) ** 2 / float(vector @ vector)
