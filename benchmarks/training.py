"""One training step against its floor, the two bare matrix products, and against the plain NumPy step; and memory.

All are timed in turns in one run, with the same threads and dtype, on data that exist already; ratios of medians
are printed. The peak memory is that of the arrays of a training step with the batch streamed.

    python benchmarks/training.py [--d 1000 --n 4000 --m 4000 --activation relu --dtype float64 --rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np

from spikesym.model import Model
from spikesym.simulation.batch import Batch, Block
from spikesym.simulation.gradient import blas_threads, gradient
from spikesym.simulation.network import Experiment
from spikesym.simulation.streams import Trial


class Held(Batch):
    """A batch that is in memory, so that drawing it is not timed."""

    def __init__(self, batch: Batch) -> None:
        super().__init__(**vars(batch))
        x, y = batch.arrays()
        object.__setattr__(self, "whole", Block(0, x, x @ self.teacher.direction, y))

    def blocks(self, rows: int) -> Iterator[Block]:
        for i in range(0, self.size, rows):
            part = slice(i, i + rows)
            yield Block(i, self.whole.inputs[part], self.whole.projections[part], self.whole.labels[part])


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("d", 1000), ("n", 4000), ("m", 4000), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--activation", default="relu")
    parser.add_argument("--dtype", default="float64", choices=("float64", "float32"))
    a = parser.parse_args()
    experiment = Experiment.of(Model(d=a.d, n=a.n, m=a.m, eta=1, activation=a.activation), a.dtype)
    trial = Trial(seed=0)
    network, teacher = experiment.initial(trial), experiment.teacher(trial)
    batch = Held(experiment.batch(trial, teacher))
    weights, x, y = network.weights, batch.whole.inputs, batch.whole.labels
    readout = network.readout.astype(weights.dtype)

    def floor() -> np.ndarray:
        return (weights @ x.T) @ x

    def step() -> np.ndarray:
        return gradient(weights, readout, batch, experiment.activation)[0]

    def plain() -> np.ndarray:
        h = weights @ x.T
        r = y - readout @ experiment.activation(h) / a.m**0.5
        slopes = experiment.activation.slope(h) * (readout[:, None] * r.astype(h.dtype)[None, :])
        return slopes @ x / (-a.n * a.m**0.5)

    assert np.allclose(step(), plain(), rtol=1e-3, atol=1e-4 * float(np.abs(plain()).max()))
    works = {"two bare GEMMs": floor, "one training step": step, "plain NumPy step": plain}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(a.rounds):
        for name, work in works.items():
            times[name].append(seconds(work))
    print(
        f"d = {a.d}, n = {a.n}, m = {a.m}, {a.activation}, {a.dtype}, {blas_threads()} BLAS threads, "
        f"median of {a.rounds} in turns"
    )
    base = statistics.median(times["two bare GEMMs"])
    for name, values in times.items():
        print(f"{name:<20} {statistics.median(values):8.3f} s   ratio {statistics.median(values) / base:.3f}")
    ratios = sorted(s / f for s, f in zip(times["one training step"], times["two bare GEMMs"], strict=True))
    print(f"step over GEMMs round by round: {ratios[0]:.3f} to {ratios[-1]:.3f}")

    for memory in (1 << 27, 1 << 30):
        tracemalloc.start()
        try:
            experiment.train(trial, memory=memory)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        whole = a.n * a.m * np.dtype(a.dtype).itemsize
        print(
            f"memory setting {memory / 2**20:.0f} MiB: peak {peak / 2**20:.0f} MiB (n x m alone is {whole / 2**20:.0f} MiB)"
        )


if __name__ == "__main__":
    main()
