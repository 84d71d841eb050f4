"""Labelled Gaussian data as a stream of blocks: y = g(<w*, x>) + eps, x ~ N(0, I_d).

A batch is never held whole unless asked for: it is drawn block after block from its own streams, and drawn
again, identically, each time it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .streams import Role, Trial, fill_normal

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Teacher:
    """The single-index target.

    Parameters
    ----------
    direction : array of shape (d,)
        w*, of unit norm.
    link : callable
        g, elementwise.
    noise_std : float
        tau, the standard deviation of the label noise.
    """

    direction: np.ndarray
    link: Function
    noise_std: float = 0.0

    def clean(self, inputs: np.ndarray) -> np.ndarray:
        """Labels without noise, g(<w*, x>), for inputs of shape (k, d); float64 of shape (k,)."""
        return np.asarray(self.link(inputs @ self.direction), dtype=np.float64)


@dataclass(frozen=True)
class Block:
    """Consecutive samples: inputs (k, d), projections s = <w*, x> (k,), labels (k,), and the first index.

    ``inputs`` is a view of a buffer that the next block overwrites.
    """

    start: int
    inputs: np.ndarray
    projections: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Batch:
    """``size`` labelled samples of a trial, read in blocks.

    Parameters
    ----------
    teacher : Teacher
    size : int
        Number of samples.
    trial : Trial
    inputs, noise : Role
        The streams that the inputs and the label noise come from.
    step : int
        Number of the batch within the trial: another step of training on fresh data reads another batch.
    dtype : numpy dtype
        float64 or float32, of the inputs; labels are float64, computed before rounding.

    Examples
    --------
    >>> teacher = Teacher(np.array([1.0, 0.0]), np.tanh)
    >>> batch = Batch(teacher, 5, Trial(seed=1))
    >>> whole, labels = batch.arrays()
    >>> pieces = [block.inputs.copy() for block in batch.blocks(2)]
    >>> bool(np.array_equal(whole, np.concatenate(pieces))), labels.shape
    (True, (5,))
    """

    teacher: Teacher
    size: int
    trial: Trial
    inputs: Role = Role.INPUTS
    noise: Role = Role.NOISE
    step: int = 0
    dtype: type = np.float64

    def blocks(self, rows: int) -> Iterator[Block]:
        """Read the batch from its start, at most ``rows`` samples at a time."""
        d = self.teacher.direction.size
        rows = min(rows, self.size)
        inputs = self.trial.stream(self.inputs, self.step)
        noise = self.trial.stream(self.noise, self.step)
        buffer = np.empty((rows, d))
        rounded = buffer if self.dtype == np.float64 else np.empty((rows, d), self.dtype)
        for start in range(0, self.size, rows):
            count = min(rows, self.size - start)
            x = fill_normal(inputs, buffer[:count])
            projections = x @ self.teacher.direction
            labels = np.asarray(self.teacher.link(projections), dtype=np.float64)
            if self.teacher.noise_std:
                labels = labels + self.teacher.noise_std * noise.standard_normal(count)
            if rounded is not buffer:
                rounded[:count] = x
            yield Block(start, rounded[:count], projections, labels)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The whole batch: inputs (size, d) and labels (size,)."""
        block = next(self.blocks(self.size))
        return block.inputs, block.labels
