"""Random streams: one for each role of each trial, spawned from the root seed.

A stream depends on (root seed, trial, role, step) and on nothing else: not on how many workers ran, on
block sizes, or on what other roles drew. So a teacher never shares its numbers with the data, and two
trials never share theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

#: doubles drawn at a time when the destination is not a block of doubles itself
_DRAW = 1 << 16


class Role(IntEnum):
    """What a stream is for. The numbers are part of the seed: never renumber, only append."""

    TARGET = 0
    WEIGHTS = 1
    READOUT = 2
    INPUTS = 3
    NOISE = 4
    FRESH_INPUTS = 5
    FRESH_NOISE = 6
    TEST_INPUTS = 7


@dataclass(frozen=True)
class Trial:
    """One independent repetition: a network, its batch and whatever is measured on it.

    Parameters
    ----------
    seed : int
        Root seed of the whole run, at least 0.
    index : int
        Number of the trial in the run, at least 0.

    Examples
    --------
    >>> first = Trial(seed=0, index=0)
    >>> first.stream(Role.INPUTS).random() == first.stream(Role.INPUTS).random()
    True
    >>> first.stream(Role.INPUTS).random() == first.stream(Role.TARGET).random()
    False
    """

    seed: int = 0
    index: int = 0

    def stream(self, role: Role, step: int = 0) -> Generator:
        """A fresh generator at the start of this role's stream; ``step`` numbers the batches of a trial."""
        return Generator(PCG64(SeedSequence(self.seed, spawn_key=(self.index, int(role), step))))


def fill_normal(stream: Generator, out: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """Fill a C-contiguous array with N(0, scale^2) numbers, row after row, and return it.

    The draws are doubles whatever the dtype of ``out``, so float32 runs see the rounded numbers of float64
    runs, and filling an array in pieces gives the same numbers as filling it at once.
    """
    if out.dtype == np.float64:
        stream.standard_normal(out=out)
        if scale != 1.0:
            out *= scale
        return out
    flat = out.reshape(-1)
    for start in range(0, flat.size, _DRAW):
        part = flat[start : start + _DRAW]
        part[...] = scale * stream.standard_normal(part.size)
    return out
