"""Learning curves: test error against the number of fresh samples, for the network and its kernels.

One trial draws a network and its batch, trains by one step, then draws fresh samples and test points, all
from streams of their own; every method sees the same samples. Trials are independent, and error bars are
over trials.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InputError
from ..model import Model, exact_integer
from ..progress import progress as progress_bar
from .comparison import METHODS, RIDGE_RULES, Comparison, Design, TrialErrors
from .gradient import DEFAULT_MEMORY, blas_threads, single_blas_thread
from .network import Experiment
from .streams import Trial

DEFAULT_METHODS = ("network", "k1", "k0")
DEFAULT_RIDGES = tuple(10.0**k for k in np.arange(-5, 3.01, 0.5))
NORMALISATION = "mean of (f(x) - g(s))^2 over the test points, labels without noise, not divided by anything"


@dataclass(frozen=True)
class Curve:
    """Test errors of one method.

    Attributes
    ----------
    method, label : str
    sizes : array of shape (p,)
        Fresh samples n_2.
    errors, ridges : array of shape (R, p)
        Test error and chosen ridge of each independent trial.
    """

    method: str
    label: str
    sizes: np.ndarray
    errors: np.ndarray
    ridges: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean test error over trials, shape (p,)."""
        result: np.ndarray = self.errors.mean(axis=0)
        return result

    @property
    def se(self) -> np.ndarray:
        """Standard error of the mean over independent trials, shape (p,)."""
        result: np.ndarray = self.errors.std(axis=0, ddof=1) / math.sqrt(len(self.errors))
        return result


@dataclass(frozen=True)
class LearningCurves:
    """Curves of several methods on the same trials.

    Attributes
    ----------
    model : Model
    sizes : tuple of int
    curves : dict from method to Curve
    null_error : float
        Test error of predicting zero: E g(s)^2 as measured on the test points.
    A, B : float or None
        Of the annealed k1, where it is among the methods; ``form`` says which of the forms they are.
    test_points, reps, seed : int
    ridge_rule, normalisation : str
    seconds : float
    """

    model: Model
    sizes: tuple[int, ...]
    curves: dict[str, Curve]
    null_error: float
    A: float | None
    B: float | None
    form: str
    test_points: int
    reps: int
    seed: int
    seconds: float
    ridge_rule: str
    normalisation: str = NORMALISATION

    def series(self) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Label -> (sizes, mean, standard error), as figures take them."""
        return {c.label: (c.sizes, c.mean, c.se) for c in self.curves.values()}

    def gap(self, better: str, worse: str) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error of error(worse) - error(better), paired over trials."""
        difference = self.curves[worse].errors - self.curves[better].errors
        return difference.mean(axis=0), difference.std(axis=0, ddof=1) / math.sqrt(len(difference))

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """Plain JSON values: per method the sizes, means, standard errors and median ridges."""
        return {
            "model": self.model.to_json(),
            "sizes": list(self.sizes),
            "curves": [
                {
                    "method": name,
                    "label": curve.label,
                    "mean": curve.mean.tolist(),
                    "se": curve.se.tolist(),
                    "ridge": np.median(curve.ridges, axis=0).tolist(),
                }
                for name, curve in self.curves.items()
            ],
            "null_error": self.null_error,
            "A": self.A,
            "B": self.B,
            "form": self.form,
            "reps": self.reps,
            "test_points": self.test_points,
            "ridge_rule": self.ridge_rule,
            "normalisation": self.normalisation,
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def text(self, digits: int = 4) -> str:
        """A table, one line per method."""
        width = max(len(c.label) for c in self.curves.values())
        lines = [f"{'fresh samples':<{width}}  " + "".join(f"{size:>16}" for size in self.sizes)]
        for curve in self.curves.values():
            cells = (f"{m:.4f} ± {s:.4f}" for m, s in zip(curve.mean, curve.se, strict=True))
            lines.append(f"{curve.label:<{width}}  " + "".join(f"{cell:>16}" for cell in cells))
        lines.append(f"test error: {self.normalisation}; predicting zero gives {self.null_error:.4f}")
        lines.append(f"ridge: {self.ridge_rule}; ± is the standard error over {self.reps} trials")
        return "\n".join(lines)


def learning_curves(
    model: Model,
    sizes: Sequence[int] = (50, 100, 200, 400, 800),
    reps: int = 10,
    test_points: int = 1000,
    ridges: Sequence[float] = DEFAULT_RIDGES,
    seed: int = 0,
    methods: Sequence[str] = DEFAULT_METHODS,
    ridge_rule: str = "leave-one-out",
    spike: tuple[float, float] | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Callable[[Iterable[int], str], Iterable[int]] | None = None,
) -> LearningCurves:
    """Test error of the one-step network and of kernel ridge regression on fresh samples.

    Parameters
    ----------
    model : Model
        With all sizes and a step.
    sizes : sequence of int
        Numbers of fresh samples; smaller sets are the beginnings of larger ones.
    reps : int
        Independent trials, at least 2.
    test_points : int
        Test points of each trial.
    ridges : sequence of float
        Candidates for delta in (K + delta I) c = y; one alone is a fixed ridge.
    seed : int
    methods : sequence of str
        Of ``METHODS``. ``k1_quenched`` takes the covariance given the batch, exact for the residual
        ``labels`` and ``init="gaussian"``.
    ridge_rule : {"leave-one-out", "oracle"}
        How each fit chooses among the ridges; ``oracle`` looks at the test points.
    spike : (A, B), optional
        For the annealed k1; the model's own by default.
    memory : int
        Bytes for the arrays of a training step, and for those of the trials that run at one time.
    progress : callable, optional
        Wraps the iteration over trials; a bar on a terminal by default.

    Raises
    ------
    InputError
        For an unknown method, fewer than two trials, or a wrong size.

    Examples
    --------
    >>> curves = learning_curves(Model(d=10, n=30, m=20, eta=10), (5, 10), 2, 50, spike=(1.1, 2.0))
    >>> sorted(curves.curves), curves.curves["k1"].mean.shape
    (['k0', 'k1', 'network'], (2,))
    """
    start = time.perf_counter()
    sizes = tuple(sorted({exact_integer(size, "sizes", 2) for size in sizes}))
    reps, test_points = exact_integer(reps, "reps", 2), exact_integer(test_points, "test points", 1)
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods or not sizes:
        raise InputError(
            f"unknown or missing: {unknown}", "methods or sizes", "choose from " + ", ".join(METHODS)
        )
    if ridge_rule not in RIDGE_RULES:
        raise InputError(f"unknown: {ridge_rule!r}", "ridge rule", "choose from " + ", ".join(RIDGE_RULES))
    design = Design(sizes, test_points, tuple(map(float, ridges)), ridge_rule)
    experiment = Experiment.of(model)
    A, B, form = _spike(model, spike) if "k1" in methods else (None, None, "not used")
    comparison = Comparison.of(experiment, methods, A or 1.0, B or 0.0, memory)
    bar = progress_bar if progress is None else progress
    trials = _run(comparison, design, seed, bar(range(reps), "learning curves"), reps)
    curves = {
        name: Curve(
            name,
            METHODS[name],
            np.array(sizes),
            np.array([t.errors[i] for t in trials]),
            np.array([t.ridges[i] for t in trials]),
        )
        for i, name in enumerate(methods)
    }
    nulls = [t.null for t in trials]
    return LearningCurves(
        model, sizes, curves, float(np.mean(nulls)), A, B, form, test_points, reps, seed,
        time.perf_counter() - start, RIDGE_RULES[ridge_rule],
    )  # fmt: skip


def _spike(model: Model, given: tuple[float, float] | None) -> tuple[float, float, str]:
    """A and B of the annealed k1: those given, or the model's."""
    if given is not None:
        return float(given[0]), float(given[1]), "given"
    from .reference import annealed_spike

    return annealed_spike(model)


def _run(
    comparison: Comparison, design: Design, seed: int, ticks: Iterable[int], reps: int
) -> list[TrialErrors]:
    """All trials, each on one BLAS thread, as many at a time as there are threads and memory for.

    Decompositions of a few hundred rows gain little from threaded BLAS; independent trials gain fully.
    """
    (d, _, m), most = comparison.experiment.sizes, max(design.sizes)
    held = 8 * (6 * most**2 + 2 * most * design.test_points)
    held += 8 * m * (2 * d + most + design.test_points)
    workers = max(1, min(blas_threads(), reps, comparison.memory // held))
    with single_blas_thread(), ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(comparison.trial, Trial(seed, k), design) for k in range(reps)]
        try:
            return [futures[k].result() for k in ticks]
        finally:
            for future in futures:
                future.cancel()
