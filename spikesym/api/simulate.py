"""``spikesym simulate``: train networks by one step and hold the estimates against the theory."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..model import Model, exact_integer
from ..simulation.estimators import CovarianceEstimates, Estimate, estimate_covariance, false_alarm_rate
from ..simulation.gradient import DEFAULT_MEMORY
from ..simulation.reference import Reference, exact_covariance, leading_overlap

#: samples or neurons below which the values have tails too heavy for any standard error
_LEAST_SIZE = 10

#: |z| beyond which an estimate contradicts the theory
THRESHOLD = 5.0

_OVERLAP_NOTE = (
    "the leading value holds as n, m, d grow in proportion; at finite size it is off by O(1/d) and more for "
    "few neurons, so the distance in standard errors is no test"
)


@dataclass(frozen=True)
class Simulation:
    """Estimates from independent networks beside the theory's values.

    Attributes
    ----------
    model : Model
    estimates : CovarianceEstimates
    A, A_plus_B, overlap2 : Reference
        Exact values of A and A + B, and the leading value of the overlap.
    seed : int
    seconds : float
        Wall-clock time of the training.
    """

    model: Model
    estimates: CovarianceEstimates
    A: Reference
    A_plus_B: Reference
    overlap2: Reference
    seed: int
    seconds: float

    @property
    def reps(self) -> int:
        """Number of independent networks."""
        return self.estimates.A.reps

    @property
    def ok(self) -> bool:
        """Whether no z-score that can be relied on exceeds 5; True also where there is no exact value."""
        pairs = ((self.estimates.A, self.A), (self.estimates.A_plus_B, self.A_plus_B))
        scores = [e.z(r.value) for e, r in pairs if r.value is not None and self.reliable(e)]
        return all(z is None or abs(z) < THRESHOLD for z in scores)

    def reliable(self, estimate: Estimate) -> bool:
        """Whether an estimate's z-score is a test: enough networks for its skewness, and n, m of at least 10."""
        return estimate.reliable and min(self.model.n or 0, self.model.m or 0) >= _LEAST_SIZE

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """The document of ``spikesym simulate --json``."""
        overlap = self.estimates.overlap2
        deviation = None if self.overlap2.value is None else overlap.z(self.overlap2.value)
        return {
            "model": self.model.to_json(),
            "reps": self.reps,
            "seed": self.seed,
            "A": self._entry(self.estimates.A, self.A),
            "A_plus_B": self._entry(self.estimates.A_plus_B, self.A_plus_B),
            "overlap2": {
                "mean": overlap.mean,
                "se": overlap.se,
                "exact": None,
                "z": None,
                "leading": self.overlap2.value,
                "distance_from_leading_in_se": deviation,
                "reason": self.overlap2.reason or _OVERLAP_NOTE,
            },
            "false_alarm_rate": false_alarm_rate(self.reps, THRESHOLD),
            "seconds": self.seconds,
        }

    def text(self, digits: int = 15) -> str:
        """A table of the estimates, and what a z-score means with this many networks."""
        lines = [f"{'':<10}{'mean':>14}{'se':>12}{'exact':>16}{'z':>8}"]
        for name, entry, reference in (
            ("A", self.estimates.A, self.A),
            ("A + B", self.estimates.A_plus_B, self.A_plus_B),
        ):
            z = None if reference.value is None else entry.z(reference.value)
            exact = "–" if reference.value is None else f"{reference.value:.8g}"
            score = "–" if z is None else f"{z:.2f}"
            lines.append(f"{name:<10}{entry.mean:>14.8g}{entry.se:>12.2g}{exact:>16}{score:>8}")
        overlap, leading = self.estimates.overlap2, self.overlap2.value
        limit = "–" if leading is None else f"{leading:.4g} (leading)"
        lines.append(f"{'overlap²':<10}{overlap.mean:>14.6g}{overlap.se:>12.2g}{limit:>24}")
        gains = [e.variance_reduction for e in (self.estimates.A, self.estimates.A_plus_B)]
        chance = false_alarm_rate(self.reps, THRESHOLD)
        skewness = max(abs(e.skewness) for e in (self.estimates.A, self.estimates.A_plus_B))
        notes = [
            f"{self.reps} independent networks in {self.seconds:.2g} s; |z| > {THRESHOLD:g} happens by chance "
            f"with probability {chance:.1g} for normal values, more often for skewed ones (skewness here "
            f"{skewness:.1f}).",
            f"Control variates divide the variance by {gains[0]:.2g} (A) and {gains[1]:.2g} (A + B).",
            f"overlap²: {self.overlap2.reason or _OVERLAP_NOTE}.",
        ]
        if not all(self.reliable(e) for e in (self.estimates.A, self.estimates.A_plus_B)):
            notes.append(
                f"The z-scores are no test here: too few networks for such skewed values, or n or m below {_LEAST_SIZE}."
            )
        if self.A.reason:
            notes.append(f"No exact values: {self.A.reason}.")
        lines += [part for note in notes for part in textwrap.wrap(note, 98)]
        return "\n".join(lines)

    def latex(self) -> str:
        """A table of the estimates, for amsmath's ``aligned`` in a display."""
        rows = []
        for name, entry, reference in (
            ("A", self.estimates.A, self.A),
            ("A + B", self.estimates.A_plus_B, self.A_plus_B),
        ):
            row = rf"{name} &= {entry.mean:.6g} \pm {_latex_float(entry.se)}"
            if reference.value is not None:
                row += rf" && \text{{exact }} {reference.value:.8g}"
                z = entry.z(reference.value)
                row += "" if z is None else rf", \; z = {z:.2f}"
            rows.append(row)
        overlap = self.estimates.overlap2
        row = rf"\langle \hat{{u}}, w_\star\rangle^2 &= {overlap.mean:.4g} \pm {_latex_float(overlap.se)}"
        if self.overlap2.value is not None:
            row += rf" && \text{{leading }} {self.overlap2.value:.4g}"
        rows.append(row)
        return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"

    def _entry(self, estimate: Estimate, exact: Reference) -> dict[str, Any]:
        known = exact.value is not None
        return {
            "mean": estimate.mean,
            "se": estimate.se,
            "exact": exact.value,
            "z": estimate.z(exact.value) if exact.value is not None else None,
            "p_value": estimate.p_value(exact.value) if exact.value is not None else None,
            "reliable": self.reliable(estimate),
            "reason": None if known else exact.reason,
            "plain_mean": estimate.plain_mean,
            "plain_se": estimate.plain_se,
            "variance_reduction": estimate.variance_reduction,
            "skewness": estimate.skewness,
            "controls": list(estimate.controls),
        }


def simulate(
    model: Model,
    reps: int = 100,
    seed: int = 0,
    memory: int = DEFAULT_MEMORY,
    dtype: str = "float64",
    progress: Callable[[Iterable[int], str], Iterable[int]] | None = None,
) -> Simulation:
    """Train ``reps`` independent networks by one step; estimate A, A + B and the spike's overlap.

    Parameters
    ----------
    model : Model
        With all sizes and a step.
    reps : int
        Independent networks, at least 2. Few networks make z-scores heavy-tailed;
        :func:`~spikesym.simulation.estimators.false_alarm_rate` says how often |z| > 5 happens by chance.
    seed : int
        Root seed; the same seed trains the same networks.
    memory : int
        Bytes for the arrays of one training step; the batch is streamed in blocks that fit.
    dtype : {"float64", "float32"}
        Of the training; sums over neurons are always float64.
    progress : callable, optional
        Wraps the iteration, as ``progress(range(reps), description)``; by default a bar on a terminal.

    Raises
    ------
    InputError
        For missing sizes, fewer than 2 networks, a dtype that is not known, or too little memory.

    Examples
    --------
    >>> result = simulate(Model(d=20, n=40, m=30, eta=20), reps=50)
    >>> result.ok, abs(result.to_json()["A_plus_B"]["z"]) < 5
    (True, True)
    """
    reps = exact_integer(reps, "--reps", 2)
    if dtype not in ("float64", "float32"):
        raise InputError(f"unknown: {dtype!r}", "dtype", "choose float64 or float32")
    model.require_sizes()
    A, A_plus_B = exact_covariance(model)
    start = time.perf_counter()
    estimates = estimate_covariance(model, reps, seed, memory, dtype, progress)
    return Simulation(
        model, estimates, A, A_plus_B, leading_overlap(model), seed, time.perf_counter() - start
    )


def _latex_float(number: float) -> str:
    mantissa, _, exponent = f"{number:.1e}".partition("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if int(exponent) < -3 else f"{number:.2g}"
