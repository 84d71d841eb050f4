"""Powers of d from measurements: weighted fits of log(value) against log(d), with a standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class Slope:
    """A fitted power.

    Attributes
    ----------
    slope, se : float
        The exponent and its standard error.
    misfit : float
        Chi-square per degree of freedom of the fit; where it exceeds one the standard error has been widened by its root,
        since the points then bend away from a power.
    """

    slope: float
    se: float
    misfit: float

    def z(self, expected: float) -> float:
        """(slope - expected)/se."""
        return (self.slope - expected) / self.se


def fit_slope(d: Sequence[float], values: Sequence[float], errors: Sequence[float]) -> Slope:
    """Fit values = C d^slope.

    Parameters
    ----------
    d, values, errors : sequences of one length, at least 2
        Positive values with their standard errors.

    Examples
    --------
    >>> fit = fit_slope([10, 100, 1000], [1.0, 0.1, 0.01], [0.01, 0.001, 0.0001])
    >>> round(fit.slope, 6), round(fit.se, 6)
    (-1.0, 0.003071)
    """
    x, v, e = np.log(np.asarray(d, float)), np.asarray(values, float), np.asarray(errors, float)
    if len(x) < 2 or len(x) != len(v) or len(v) != len(e):
        raise InputError(f"{len(x)} points", "slope", "give at least two dimensions with values and errors")
    if np.any(v <= 0) or np.any(e <= 0):
        raise InputError(
            "not positive", "slope", "give positive values and standard errors; raise the repetitions"
        )
    weights = (v / e) ** 2
    center = float(weights @ x / weights.sum())
    spread = float(weights @ (x - center) ** 2)
    slope = float(weights @ ((x - center) * np.log(v)) / spread)
    level = float(weights @ np.log(v) / weights.sum())
    residual = np.log(v) - level - slope * (x - center)
    freedom = len(x) - 2
    misfit = float(weights @ residual**2) / freedom if freedom else 1.0
    return Slope(slope, float(np.sqrt(max(misfit, 1.0) / spread)), misfit)
