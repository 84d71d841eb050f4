"""The gradient of the loss in the first layer, in closed form, streamed over samples and neurons.

With h_ij = <w_j, x_i> and residual r_i = y_i - f(x_i) (or y_i alone),

    dL/dw_j = -(a_j / (n sqrt(m))) sum_i r_i sigma'(h_ij) x_i,

which is two matrix products with an elementwise pass between them. The pass runs on pieces that stay in
cache, right after the product that made them; the only array of size samples x neurons is one block's, and
its number of samples follows from the memory allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from ..errors import InputError, PostconditionError
from .batch import Batch
from .elementwise import Activation

#: bytes that the arrays of one training step may take, unless told otherwise
DEFAULT_MEMORY = 1 << 30

#: neurons of one tile, the task of one thread: large enough for the products to run at full speed
_TILE = 512
_LEAST_TILE = 128
#: entries of the piece that the elementwise pass works on: it and its temporaries stay in the L2 cache
_PIECE = 1 << 15
#: samples of a block beyond which the matrix products gain nothing
_ROWS = 4096
#: multiplications below which handing tiles to threads costs more than it gives
_SMALL = 1 << 27


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads() -> int:
    """Threads that BLAS may use now (OMP_NUM_THREADS and threadpoolctl's limits are respected)."""
    counts = [lib.num_threads for lib in _controller().lib_controllers if lib.user_api == "blas"]
    return max(counts, default=1)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """BLAS on one thread inside, so that threads over tiles do not oversubscribe and small products do not wait."""
    if blas_threads() == 1:
        yield
    else:
        with _controller().limit(limits=1, user_api="blas"):
            yield


def default_threads(m: int, d: int, n: int) -> int:
    """Threads that a gradient of these sizes is worth: BLAS' own number, or one for small sizes."""
    return blas_threads() if m * d * n > _SMALL else 1


@dataclass(frozen=True)
class Plan:
    """How one gradient is cut: samples in a block, neurons in a tile, threads."""

    rows: int
    tile: int = _TILE
    threads: int = 1


def make_plan(
    m: int, d: int, n: int, dtype: Any = np.float64, memory: int = DEFAULT_MEMORY, threads: int | None = None
) -> Plan:
    """Choose the blocks of a gradient so that its arrays fit into ``memory`` bytes.

    Counted are the weights and the gradient (m d each), one block of samples with its slopes, and the
    scratch of each thread. Raises :class:`~spikesym.errors.InputError`, with the least that would do, when
    not even one sample fits.

    Examples
    --------
    >>> make_plan(m=20000, d=2000, n=20000, memory=1 << 30, threads=1).rows
    2205
    >>> make_plan(m=20000, d=2000, n=20000, memory=1 << 20, threads=1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    spikesym.errors.InputError: --memory: 1048576 bytes are too few for m = 20000, d = 2000; give at least ...
    """
    if threads is None:
        threads = default_threads(m, d, n)
    item = np.dtype(dtype).itemsize
    tile = min(m, max(_LEAST_TILE, min(_TILE, m // (2 * threads))))
    tiles = -(-m // tile)
    rounding = 0 if item == 8 else 8 * d
    resident = 2 * m * d * item + 8 * m + 8 * d
    scratch = threads * (4 * 8 * _PIECE + tile * d * item)
    row = m * item + 2 * d * item + rounding + 8 * tiles + 64
    rows = (memory - resident - scratch) // row
    if rows < 1:
        raise InputError(
            f"{memory} bytes are too few for m = {m}, d = {d}",
            "--memory",
            f"give at least {resident + scratch + row} bytes",
        )
    return Plan(rows=int(min(rows, n, _ROWS)), tile=tile, threads=threads)


@dataclass(frozen=True)
class BatchMoments:
    """Averages over the batch that the gradient's pass yields on the way.

    ``hermite`` holds the means of He_1(s), He_2(s), He_3(s); ``label_output`` is the mean of y f(x) and
    ``loss`` is (1/2) mean (f - y)^2, both 0 where the outputs were not needed (labels only).
    """

    hermite: tuple[float, float, float]
    label_output: float
    loss: float


def gradient(
    weights: np.ndarray,
    readout: np.ndarray,
    batch: Batch,
    activation: Activation,
    residual: str = "full",
    plan: Plan | None = None,
) -> tuple[np.ndarray, BatchMoments]:
    """Gradient of L = (1/2n) sum (f - y)^2 with respect to the first layer.

    Parameters
    ----------
    weights : array of shape (m, d)
        First layer, float64 or float32; the gradient has its dtype.
    readout : array of shape (m,)
        Second layer a.
    batch : Batch
        The samples, read in blocks; of the same dtype as the weights.
    activation : Activation
        sigma and sigma'.
    residual : {"full", "labels"}
        ``labels`` replaces y - f(x) by y: the gradient of -(1/n) sum y f.
    plan : Plan, optional
        Blocks; the result does not depend on them, up to rounding.

    Returns
    -------
    gradient : array of shape (m, d)
    moments : BatchMoments

    Raises
    ------
    PostconditionError
        When the gradient is not finite (the activation overflows on these data).
    """
    m, d = weights.shape
    n = batch.size
    if plan is None:
        plan = make_plan(m, d, n, weights.dtype)
    readout = readout.astype(weights.dtype, copy=False)
    result = np.empty_like(weights)
    tiles = [slice(j, min(j + plan.tile, m)) for j in range(0, m, plan.tile)]
    slopes = np.empty(m * plan.rows, weights.dtype)
    sums = np.zeros(5)

    def forward(block: np.ndarray, held: np.ndarray, tile: slice) -> np.ndarray:
        """Preactivations of a tile, their outputs summed, and then their slopes in their place."""
        h = held[tile]
        np.matmul(weights[tile], block.T, out=h)
        step = max(1, _PIECE // h.shape[1])
        total = np.zeros(h.shape[1])
        for j in range(0, len(h), step):
            piece = h[j : j + step]
            if residual == "full":
                total += readout[tile][j : j + step] @ activation.outputs_then_slopes(piece)
            else:
                piece[...] = activation.slope(piece)
        return total

    def backward(weighted: np.ndarray, held: np.ndarray, first: bool, tile: slice) -> None:
        if first:
            np.matmul(held[tile], weighted, out=result[tile])
        else:
            result[tile] += held[tile] @ weighted

    with _tile_map(plan.threads) as over_tiles:
        for block in batch.blocks(plan.rows):
            x, s, y = block.inputs, block.projections, block.labels
            held = slopes[: m * len(x)].reshape(m, len(x))
            outputs = sum(over_tiles(partial(forward, x, held), tiles)) / np.sqrt(m)
            weighted = x * (y - outputs).astype(x.dtype)[:, None]
            for _ in over_tiles(partial(backward, weighted, held, block.start == 0), tiles):
                pass
            error = outputs - y if residual == "full" else np.zeros(1)
            sums += [s.sum(), (s * s - 1).sum(), (s**3 - 3 * s).sum(), y @ outputs, 0.5 * (error @ error)]
    result *= (-readout / (n * np.sqrt(m))).astype(weights.dtype)[:, None]
    if not np.isfinite(sums).all() or not np.isfinite(result.sum(dtype=np.float64)):
        raise PostconditionError(
            f"the gradient is not finite (d = {d}, n = {n}, m = {m}, {weights.dtype}): "
            "the link or the activation overflows on these data"
        )
    one, two, three, label_output, loss = sums / n
    return result, BatchMoments((one, two, three), label_output, loss)


Tiled = Callable[[Callable[[slice], Any], Iterable[slice]], Iterable[Any]]


@contextmanager
def _tile_map(threads: int) -> Iterator[Tiled]:
    """``map`` over tiles, on this many threads, each with one BLAS thread; order is kept."""
    with single_blas_thread():
        if threads == 1:
            yield map
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield pool.map
