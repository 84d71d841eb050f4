"""Gamma_batch, the covariance of the features trained on a given batch, exactly and within a memory allowed.

With labels only, Gamma_batch = I + kappa n^-2 X^T (y y^T o K'(X, X)) X, kappa = d varsigma^2 eta^2/m^2 (registry: ``cond``
for the surrogate, ``quenched-exact`` for the network). K' is made tile by tile, half of it by symmetry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, PostconditionError
from ..gaussian import gaussian_data
from ..model import Model
from ..symbolic.covariance_quenched import quenched_formulas
from ..symbolic.functions import ScalarFunction, make_function
from .covariance import Constants
from .dual import DualActivation, dual
from .dual_series import HermiteTable
from .kernel_inputs import as_rows
from .slope_tiles import SlopeTiles, float_breakpoints
from .value import Value

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

Array = NDArray[np.float64]

#: bytes that the tiles may take, unless told otherwise
DEFAULT_MEMORY = 1 << 26
#: arrays of the size of a tile that live at once
_TILES = 6
_LARGEST_TILE = 2048
#: residual of an eigenpair, relative to the eigenvalue of C, that is accepted
_RESIDUAL = 1e-7


@dataclass(frozen=True)
class QuenchedCovariance:
    """Gamma_batch = I + strength n^-2 X^T (y y^T o K'(X, X)) X; make one with :func:`quenched_covariance`.

    Parameters
    ----------
    inputs : array of shape (n, d)
    labels : array of shape (n,)
    slopes : DualActivation
        E sigma'(U) sigma'(U').
    strength : float
        kappa = d varsigma^2 eta^2/m^2.
    memory : int
        Bytes that tiles of K' may take, kept ones included; beside them are two copies of X, and d^2 numbers for the matrix.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 8))
    >>> gamma = quenched_covariance(Model(d=8, n=50, m=6, eta=12, residual="labels"), X, np.tanh(X[:, 0]))
    >>> values, vectors = gamma.top(1)
    >>> bool(np.isclose(values[0], np.linalg.eigvalsh(gamma.matrix())[-1]))
    True
    """

    inputs: Array
    labels: Array
    slopes: DualActivation
    strength: float
    memory: int = DEFAULT_MEMORY
    _kept: list[tuple[slice, slice, Array]] = field(default_factory=list, repr=False, compare=False)

    @property
    def dimension(self) -> int:
        """d."""
        return int(self.inputs.shape[1])

    @cached_property
    def tiles(self) -> SlopeTiles:
        """K' on tiles."""
        return SlopeTiles(self.inputs, self.slopes)

    @cached_property
    def mean_slope_vector(self) -> Array:
        """n^-1 sum_i y_i D(|x_i|) x_i with D = E sigma'(<w, x_i>): the mean step of a neuron with unit readout, shape (d,)."""
        means = derivative_means(self.slopes.function, self.tiles.variances, 1)
        return np.asarray(self.inputs.T @ (self.labels * means) / len(self.labels))

    def matrix(self) -> Array:
        """Gamma_batch, shape (d, d), symmetric to the bit."""
        weighted = self.inputs * self.labels[:, None]
        total = np.zeros((self.dimension, self.dimension))
        for rows, columns in _grouped(self._pairs()):
            part = sum(self._half(rows, c) @ weighted[c] for c in columns)
            total += weighted[rows].T @ part
        total += total.T
        total *= self.strength / len(self.labels) ** 2
        total[np.diag_indices(self.dimension)] += 1.0
        return total

    def operator(self) -> LinearOperator:
        """Gamma_batch as a linear operator; tiles of K' that fit into the memory are kept, the rest is made again.

        Examples
        --------
        >>> X = np.random.default_rng(1).standard_normal((30, 5))
        >>> gamma = quenched_covariance(Model(d=5, n=30, m=6, eta=12, residual="labels"), X, X[:, 0])
        >>> bool(np.allclose(gamma.operator() @ np.eye(5), gamma.matrix()))
        True
        """
        from scipy.sparse.linalg import LinearOperator

        weighted = self.inputs * self.labels[:, None]
        scale = self.strength / len(self.labels) ** 2
        d = self.dimension

        def apply(vectors: Array) -> Array:
            columns = vectors.reshape(d, -1)
            projected = weighted @ columns
            result = np.zeros_like(projected)
            for left, right, tile in self._halves():
                result[left] += tile @ projected[right]
                result[right] += tile.T @ projected[left]
            return np.asarray((columns + scale * (weighted.T @ result)).reshape(vectors.shape))

        return LinearOperator(
            (d, d), matvec=apply, rmatvec=apply, matmat=apply, rmatmat=apply, dtype=np.float64
        )

    def top(self, count: int = 1) -> tuple[Array, Array]:
        """The largest eigenvalues, descending, shape (count,), and their eigenvectors, shape (d, count).

        By the matrix where it is no larger than the batch or fits into the memory, by Lanczos on the operator beyond.

        Raises
        ------
        PostconditionError
            When the residuals are larger than rounding allows.
        """
        d = self.dimension
        if not 1 <= count <= d:
            raise InputError(
                f"{count} eigenpairs of a {d} x {d} matrix", "count", f"give a number from 1 to {d}"
            )
        if d <= len(self.labels) or 8 * d * d <= self.memory or count >= d - 1:
            from scipy.linalg import eigh

            matrix: Any = self.matrix()
            values, vectors = eigh(matrix, subset_by_index=(d - count, d - 1))
        else:
            from scipy.sparse.linalg import eigsh

            matrix = self.operator()
            start = self.inputs.T @ self.labels
            start = start if np.any(start) else np.ones(d)
            values, vectors = eigsh(matrix, k=count, v0=start, tol=1e-10)
            order = np.argsort(values)
            values, vectors = values[order], vectors[:, order]
        residual = float(np.max(np.linalg.norm(matrix @ vectors - vectors * values, axis=0)))
        if residual > _RESIDUAL * max(float(values[-1]), 1.0):
            raise PostconditionError(
                f"residual {residual:.2g} of an eigenvector of the covariance given the batch"
            )
        return np.asarray(values[::-1]), np.asarray(vectors[:, ::-1])

    def along(self, directions: Any) -> Array:
        """u^T Gamma_batch u for unit vectors u, rows of shape (k, d): shape (k,)."""
        u = as_rows(np.atleast_2d(directions), "directions")
        return np.asarray(np.einsum("kd,dk->k", u, self.operator() @ u.T))

    # ---- tiles -------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> int:
        """Samples of a tile's side."""
        # half of the memory to work in, half for tiles that the operator keeps
        side = int(np.sqrt(self.memory / (16 * _TILES)))
        if side < 1:
            raise InputError(f"{self.memory} bytes", "--memory", f"give at least {16 * _TILES} bytes")
        return min(side, _LARGEST_TILE, len(self.labels))

    def _pairs(self) -> Iterator[tuple[slice, slice]]:
        n = len(self.labels)
        starts = range(0, n, self.rows)
        for i in starts:
            for k in range(i, n, self.rows):
                yield slice(i, min(i + self.rows, n)), slice(k, min(k + self.rows, n))

    def _half(self, rows: slice, columns: slice) -> Array:
        """A tile above the diagonal, or half a tile on it, so that the tiles and their transposes add up to K'."""
        tile = self.tiles(rows, columns)
        if rows == columns:
            tile *= 0.5
        return tile

    def _halves(self) -> Iterator[tuple[slice, slice, Array]]:
        """All half tiles; the first ones are kept for the next time as far as memory allows."""
        room = (
            (self.memory - 8 * _TILES * self.rows**2) // (8 * self.rows**2)
            if self.rows < len(self.labels)
            else 1
        )
        for index, (rows, columns) in enumerate(self._pairs()):
            if index < len(self._kept):
                yield self._kept[index]
                continue
            entry = (rows, columns, self._half(rows, columns))
            if index == len(self._kept) and index < room:
                self._kept.append(entry)
            yield entry


def _grouped(pairs: Iterator[tuple[slice, slice]]) -> Iterator[tuple[slice, list[slice]]]:
    """Tiles of the same rows together."""
    current: slice | None = None
    columns: list[slice] = []
    for rows, column in pairs:
        if current is not None and rows != current:
            yield current, columns
            columns = []
        current = rows
        columns.append(column)
    if current is not None:
        yield current, columns


def quenched_covariance(
    model: Model, inputs: Any, labels: Any, memory: int = DEFAULT_MEMORY
) -> QuenchedCovariance:
    """Gamma_batch of a network trained on this batch: exact at every size, labels only.

    Parameters
    ----------
    model : Model
        With sizes and a step; n is that of the batch.
    inputs : array of shape (n, d)
    labels : array of shape (n,)
    memory : int
        Bytes that tiles of K' may take.

    Raises
    ------
    InputError
        For the full residual (given the batch, it couples the neurons), for a batch that does not fit the model, for an
        activation that jumps, and for the sphere with an activation that is not p z + q|z| (K' is Gaussian here).
    """
    model.require_sizes()
    X = as_rows(inputs, "X").astype(np.float64, copy=False)
    y = np.asarray(labels, dtype=np.float64)
    if X.shape != (model.n, model.d):
        raise InputError(f"shape {X.shape}", "X", f"give n = {model.n} points of dimension d = {model.d}")
    if y.shape != (model.n,) or not np.isfinite(y).all():
        raise InputError(f"shape {y.shape} or not finite", "y", f"give n = {model.n} finite labels")
    if model.residual != "labels":
        raise InputError(
            "the covariance given the batch is exact for labels only", "--residual", "give --residual labels"
        )
    function = make_function(model.activation, "activation", model.parameters, allow_parameters=False)
    if model.init == "sphere" and function.piecewise_linear_coefficients() is None:
        raise InputError(
            f"{function.text} with weights on the sphere has another K'", "--init", "give --init gaussian"
        )
    return QuenchedCovariance(X, y, dual(function, 1, 1), batch_strength(model), memory)


def batch_strength(model: Model) -> float:
    """kappa = d varsigma^2 eta^2 / m^2 of a model with sizes.

    Examples
    --------
    >>> batch_strength(Model(d=100, n=200, m=150, eta=75))
    25.0
    """
    from ..symbolic.quenched import strength

    link, activation = (
        gaussian_data(s, r, model.parameters)
        for s, r in ((model.link, "link"), (model.activation, "activation"))
    )
    value = Constants(model, link, activation).value(strength())
    if value is None:
        raise InputError("free parameters", "--link, --activation", "give their values with --set NAME=VALUE")
    return float(value)


def quenched_limits(model: Model) -> dict[str, Value]:
    """``overlap2``, ``spike`` and ``bulk`` of Gamma_batch to leading order, at the model's sizes.

    Examples
    --------
    >>> limits = quenched_limits(Model(d=100, n=200, m=150, eta=75))
    >>> {name: value.text(6) for name, value in limits.items()}
    {'overlap2': '0.5', 'spike': '3.125', 'bulk': '1.02196'}
    """
    model.require_sizes()
    link, activation = (
        gaussian_data(s, r, model.parameters)
        for s, r in ((model.link, "link"), (model.activation, "activation"))
    )
    constants = Constants(model, link, activation)
    found = {}
    for name, formula in quenched_formulas().items():
        value = constants.value(formula)
        if value is None:
            raise InputError(
                "free parameters", "--link, --activation", "give their values with --set NAME=VALUE"
            )
        found[name] = value
    return found


def derivative_means(function: ScalarFunction, variances: Array, order: int) -> Array:
    """E f^(order)(sqrt(q) z) for z ~ N(0, 1), in the sense of distributions, at positive variances q.

    By Stein's lemma it is q^(-order/2) E[f(sqrt(q) z) He_order(z)], so no derivative is taken.

    Examples
    --------
    >>> relu = make_function("relu", "activation")
    >>> derivative_means(relu, np.array([1.0, 4.0]), 2).round(12).tolist()
    [0.398942280401, 0.199471140201]
    """
    table = HermiteTable(function.numpy(), float_breakpoints(function))
    safe = np.where(variances > 0, variances, 1.0)
    levels, index = np.unique(safe, return_inverse=True)
    coefficients = table.coefficients(levels, order + 1)[0][:, order]
    return np.asarray((np.sqrt(float(math.factorial(order))) * coefficients / levels ** (order / 2))[index])
