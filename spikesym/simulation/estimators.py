"""Estimates over independent networks, with standard errors that are honest.

Three things lower the variance without touching the mean. Parts of ||w(1)||^2 whose means are known
exactly are replaced by them. Regression on control variates whose mean is zero by the symmetry of the
inputs and of the readout alone removes most of what is left; no moment of the link is used, so a wrong
formula for the link cannot hide itself here. The jackknife over networks removes the O(1/R) bias of the
regression and gives the standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from ..model import Model
from ..progress import progress as progress_bar
from .gradient import DEFAULT_MEMORY
from .network import Experiment
from .statistics import NetworkStatistics, network_statistics
from .streams import Trial

#: below this many networks the coefficients of the control variates cost more than they save
CONTROLS_FROM = 30
_CONTROLS = ("hermite1", "hermite2", "hermite3", "readout2", "label_output")

Progress = Callable[[Iterable[int], str], Iterable[int]]


@dataclass(frozen=True)
class Estimate:
    """A mean over ``reps`` independent networks and its standard error.

    Attributes
    ----------
    mean, se : float
        The estimate and its standard error.
    reps : int
        Number of independent networks.
    plain_mean, plain_se : float
        The sample mean and its standard error without variance reduction.
    skewness : float
        Sample skewness of the values averaged; a positive one makes low z-scores likelier than high ones.
    controls : tuple of str
        Control variates used.
    """

    mean: float
    se: float
    reps: int
    plain_mean: float
    plain_se: float
    skewness: float
    controls: tuple[str, ...] = ()

    @property
    def variance_reduction(self) -> float:
        """Factor by which the variance fell: so many times more networks would be needed without."""
        return (self.plain_se / self.se) ** 2 if self.se > 0 else 1.0

    @property
    def reliable(self) -> bool:
        """Whether a z-score means what it says: at least 30 networks, and a skewness that they average out.

        Beyond it |z| > 5 happens by chance more often than about 3 times in 10^4 (see :func:`false_alarm_rate`):
        standard errors of skewed values are too small in just the runs whose mean is too low. The sample skewness
        is itself too low for very heavy tails, as at n or m below 10.
        """
        return self.reps >= CONTROLS_FROM and abs(self.skewness) <= 0.3 * math.sqrt(self.reps)

    def z(self, exact: float) -> float | None:
        """(mean - exact)/se; None when the standard error is zero."""
        return (self.mean - exact) / self.se if self.se > 0 else None

    def p_value(self, exact: float) -> float | None:
        """Two-sided p-value by Student's t with reps - 1 degrees of freedom."""
        z = self.z(exact)
        return None if z is None else false_alarm_rate(self.reps, abs(z))


def false_alarm_rate(reps: int, threshold: float = 5.0) -> float:
    """Chance that |z| exceeds the threshold although the theory is right, for normal values.

    Student's t with ``reps - 1`` degrees of freedom. The values of networks are skewed to the right, more so for
    small sizes and for A + B, and then low z-scores are likelier. Measured for |z| > 5, by resampling 20000 networks:

    ==================  ======  ======  ======  ======  ======
    networks                10      20      30      50     100
    ==================  ======  ======  ======  ======  ======
    normal                7e-4    8e-5    3e-5    8e-6    2e-6
    skewness 2            7e-3    2e-3    2e-4    2e-4  < 1e-4
    skewness 3            2e-2    5e-3    1e-3    9e-4    3e-4
    ==================  ======  ======  ======  ======  ======

    :attr:`Estimate.skewness` is below 1 at d = 100, n = 200, m = 150; take 100 networks or more.

    Examples
    --------
    >>> [f"{false_alarm_rate(reps):.1e}" for reps in (2, 10, 30, 100, 1000)]
    ['1.3e-01', '7.4e-04', '2.5e-05', '2.5e-06', '6.8e-07']
    """
    from scipy.special import stdtr  # scipy.stats would take a second to import

    return float(2 * stdtr(reps - 1, -threshold))


def regressed(values: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """Jackknife pseudo-values of the mean of ``values`` adjusted to the controls' known mean, zero.

    Parameters
    ----------
    values : array of shape (R,)
    controls : array of shape (R, q)
        Each column has mean zero in expectation.

    Returns
    -------
    array of shape (R,)
        Their mean is the estimate, bias of order 1/R removed; their standard deviation over sqrt(R) is the
        jackknife standard error, which counts the fitting of the coefficients.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> c = rng.standard_normal((50, 1))
    >>> bool(np.allclose(regressed(3 + 2 * c[:, 0], c), 3))
    True
    """
    reps = len(values)
    design = np.column_stack([np.ones(reps), controls])
    q, r = np.linalg.qr(design)
    coefficients = np.linalg.solve(r, q.T @ values)
    residuals = values - design @ coefficients
    weights = np.linalg.solve(r, q.T)[0]
    leverage = np.minimum((q * q).sum(axis=1), 1 - 1e-12)
    # intercept without row i: the closed form of deleting one row of a least-squares fit
    deleted = coefficients[0] - weights * residuals / (1 - leverage)
    pseudo: np.ndarray = reps * coefficients[0] - (reps - 1) * deleted
    return pseudo


def estimate(
    plain: np.ndarray, reduced: np.ndarray | None = None, controls: Mapping[str, np.ndarray] | None = None
) -> Estimate:
    """Mean and standard error from one value per network.

    Parameters
    ----------
    plain : array of shape (R,)
        The quantity itself.
    reduced : array of shape (R,), optional
        A quantity of the same expectation and less variance.
    controls : mapping of arrays of shape (R,), optional
        Control variates of mean zero; used from ``CONTROLS_FROM`` networks on.
    """
    reps = len(plain)
    values = plain if reduced is None else reduced
    scale = float(np.std(values))
    used: dict[str, np.ndarray] = {}
    if controls and reps >= CONTROLS_FROM and scale > 0:
        used = {name: c for name, c in controls.items() if np.std(c) > 1e-12}
    if used:
        columns = np.column_stack([c / np.std(c) for c in used.values()])
        values = regressed(values, columns)
    spread = float(np.std(values))
    skewness = float(np.mean((values - values.mean()) ** 3)) / spread**3 if spread > 0 else 0.0
    return Estimate(
        mean=float(values.mean()),
        se=float(np.std(values, ddof=1)) / math.sqrt(reps),
        reps=reps,
        plain_mean=float(plain.mean()),
        plain_se=float(np.std(plain, ddof=1)) / math.sqrt(reps),
        skewness=skewness,
        controls=tuple(used),
    )


@dataclass(frozen=True)
class CovarianceEstimates:
    """Estimates of the second moment A I + B w* w*^T of trained neurons, and of the spike's overlap.

    Attributes
    ----------
    A, A_plus_B : Estimate
    overlap2 : Estimate
        <u, w*>^2, u the direction that the features of one network turn to.
    rows : tuple of NetworkStatistics
        One per network, in order of trials.
    """

    A: Estimate
    A_plus_B: Estimate
    overlap2: Estimate
    rows: tuple[NetworkStatistics, ...]


def from_rows(rows: Sequence[NetworkStatistics], d: int) -> CovarianceEstimates:
    """Combine the rows of independent networks of input dimension d.

    A is the mean over the d - 1 directions orthogonal to w*: d (E||w||^2 - E<w, w*>^2)/(d - 1); A + B is
    d E<w, w*>^2.
    """
    table = dict(
        zip((f.name for f in fields(NetworkStatistics)), np.array([astuple(r) for r in rows]).T, strict=True)
    )
    controls = {name: table[name] for name in _CONTROLS}
    across = d / (d - 1)
    return CovarianceEstimates(
        A=estimate(
            across * (table["norm2"] - table["along2"]),
            1 + across * (table["norm2_change"] - table["along2_change"]),
            controls,
        ),
        A_plus_B=estimate(d * table["along2"], 1 + d * table["along2_change"], controls),
        overlap2=estimate(table["overlap2"]),
        rows=tuple(rows),
    )


def estimate_covariance(
    model: Model,
    reps: int = 100,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
    dtype: Any = np.float64,
    progress: Progress | None = None,
) -> CovarianceEstimates:
    """Train ``reps`` independent networks by one step and estimate A, A + B and the overlap.

    Parameters
    ----------
    model : Model
        With all sizes and a step.
    reps : int
        Independent networks, at least 2.
    seed : int
        Root seed; network k uses the streams of trial k, so a longer run extends a shorter one.
    memory : int
        Bytes for the arrays of one training step.
    dtype : numpy dtype
        float64 or float32; sums are always float64.
    progress : callable, optional
        Wraps the iteration, as ``progress(range(reps), "networks")``; a bar on a terminal by default.

    Examples
    --------
    >>> result = estimate_covariance(Model(d=20, n=40, m=30, eta=20), reps=40)
    >>> result.A.reps, result.A.variance_reduction > 1
    (40, True)
    """
    experiment = Experiment.of(model, dtype)
    bar = progress_bar if progress is None else progress
    rows = [
        network_statistics(experiment, Trial(seed, index), memory)
        for index in bar(range(reps), "training networks")
    ]
    return from_rows(rows, experiment.sizes[0])
