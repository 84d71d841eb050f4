"""K'(x_i, x_k) = E sigma'(<w, x_i>) sigma'(<w, x_k>), w ~ N(0, I/d), on tiles of a batch.

Three ways, by activation. Polynomials with a kink at zero: a function of the cosine, computed in place. Other closed forms:
as they stand. The rest: sum_k rho^k m_k(q_i) m_k(q_k) with the Hermite coefficients m_k of the slope at each variance, made
once for the batch; a tile of typical samples (rho of order d^(-1/2)) needs few terms, and the diagonal has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..errors import CertificationError, InputError
from ..symbolic.functions import ScalarFunction
from .angles import discriminant
from .dual import DualActivation
from .dual_series import HermiteTable
from .kernel_inputs import CLOSE, Covariance, close_pairs, inverse, norms

Array = NDArray[np.float64]

#: terms of the series that are made for every sample; pairs that need more are computed one by one
_TERMS = 48
#: what a cut series may miss, relative to the root mean squares of the slopes
_TAIL = 1e-14
#: samples whose Hermite coefficients are made at a time
_ROWS = 2048
#: accuracy, in the same units, that pairs with a slower series must reach
_ACCEPTED = 1e-8


class SlopeTiles:
    """Tiles of K'(X, X).

    Parameters
    ----------
    inputs : array of shape (n, d)
    slopes : DualActivation
        The dual of sigma' with itself, ``dual(sigma, 1, 1)``.

    Raises
    ------
    InputError
        When E sigma'^2 is infinite (an activation that jumps).
    CertificationError
        From a tile, where the series is not accurate (an activation with kinks, many nearly parallel samples).

    Examples
    --------
    >>> from spikesym.numeric.dual import dual
    >>> tiles = SlopeTiles(np.eye(2), dual("relu", 1, 1))
    >>> tiles(slice(0, 2), slice(0, 2)).tolist()
    [[0.5, 0.25], [0.25, 0.5]]
    """

    def __init__(self, inputs: Array, slopes: DualActivation) -> None:
        self.inputs, self.slopes = inputs, slopes
        self.d = inputs.shape[1]
        self.root = norms(inputs) / np.sqrt(self.d)
        self.variances = self.root**2
        self._tile = self._choose()
        with np.errstate(divide="ignore"):
            self.diagonal = self._on_diagonal()
        if not np.isfinite(self.diagonal).all():
            raise InputError(
                f"E sigma'^2 is infinite for {slopes.function.text}",
                "--activation",
                "given the batch, the step needs an activation without jumps",
            )

    def __call__(self, rows: slice, columns: slice) -> Array:
        """K' for consecutive samples, shape (len(rows), len(columns)); the entry of a sample with itself is exact."""
        tile = self._tile(rows, columns)
        low, high = max(rows.start, columns.start), min(rows.stop, columns.stop)
        if low < high:
            own = np.arange(low, high)
            tile[own - rows.start, own - columns.start] = self.diagonal[own]
        return tile

    # ---- the three ways ----------------------------------------------------------------------------------------

    def _choose(self) -> Callable[[slice, slice], Array]:
        if self.slopes.exact is None:
            return self._series
        return self._closed if self.slopes.kink is None else self._angular

    def _on_diagonal(self) -> Array:
        if self.slopes.exact is None:
            return np.asarray(self._coefficients[1])
        # samples at zero drop out of every product with X: any finite value does
        q = np.where(self.variances == 0, 1.0, self.variances)
        return np.asarray(self.slopes.at(q, q, q, np.zeros_like(q)))

    @cached_property
    def _units(self) -> Array:
        return self.inputs * inverse(self.root * np.sqrt(self.d))[:, None]

    def _cosines(self, rows: slice, columns: slice) -> Array:
        cosine = self._units[rows] @ self._units[columns].T
        return np.clip(cosine, -1.0, 1.0, out=cosine)

    def _angular(self, rows: slice, columns: slice) -> Array:
        kink = self.slopes.kink
        assert kink is not None
        cosine = self._cosines(rows, columns)
        square = 1.0 - cosine * cosine
        close = close_pairs(square, CLOSE, self.d)
        root, root_p = self.root[rows], self.root[columns]
        tile = kink.of_cosine(cosine, np.sqrt(square, out=square), root, root_p)
        for i, k in close:
            # the cosine alone has lost the angle of nearly parallel samples
            angle = Covariance().angles(self.inputs[rows][i], self.inputs[columns][k])
            tile[i, k] = kink.at_angle(root[i], root_p[k], *angle)
        return np.asarray(tile)

    def _closed(self, rows: slice, columns: slice) -> Array:
        t = self.inputs[rows] @ self.inputs[columns].T / self.d
        bound = self.root[rows, None] * self.root[None, columns]
        np.clip(t, -bound, bound, out=t)
        q, qp, t = np.broadcast_arrays(self.variances[rows, None], self.variances[None, columns], t)
        return np.asarray(self.slopes.at(q, qp, t, discriminant(q, qp, t)))

    @cached_property
    def _coefficients(self) -> tuple[Array, Array, Array]:
        """Coefficients of shape (n, terms), E sigma'^2 and what the terms leave of it, per sample."""
        table = HermiteTable(self.slopes.function.derivative_numpy(), float_breakpoints(self.slopes.function))
        n = len(self.variances)
        coefficients, squares = np.empty((n, _TERMS)), np.empty(n)
        for low in range(0, n, _ROWS):
            part = slice(low, low + _ROWS)
            coefficients[part], squares[part], _ = table.coefficients(self.variances[part], _TERMS)
        rest = np.maximum(squares - np.sum(coefficients**2, axis=1), 0.0)
        return coefficients, squares, rest

    def _series(self, rows: slice, columns: slice) -> Array:
        coefficients, squares, rest = self._coefficients
        left, right = coefficients[rows], coefficients[columns]
        rho = self._cosines(rows, columns)
        own = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
        rho[own - rows.start, own - columns.start] = 0.0
        size = np.sqrt(squares[rows, None] * squares[None, columns])
        # |rho|^K sqrt(rest rest'): all terms for every pair that they suffice for, by Cauchy-Schwarz
        missed = np.abs(rho) ** _TERMS * np.sqrt(rest[rows, None] * rest[None, columns])
        slow = missed > _TAIL * size
        usual = float(np.max(np.abs(rho), where=~slow, initial=0.0))
        terms = _TERMS
        tail = np.sqrt(np.cumsum((coefficients**2).max(axis=0)[::-1])[::-1] + rest.max())
        while terms > 1 and usual ** (terms - 1) * tail[terms - 1] ** 2 <= _TAIL * size.min():
            terms -= 1
        total = np.zeros_like(rho)
        for k in range(terms - 1, -1, -1):
            total *= rho
            total += left[:, k, None] * right[None, :, k]
        self._replace_slow(total, slow, rho, rows, columns)
        return total

    def _replace_slow(
        self, total: Array, slow: NDArray[np.bool_], rho: Array, rows: slice, columns: slice
    ) -> None:
        i, k = np.nonzero(slow)
        if not len(i):
            return
        q, qp = self.variances[rows][i], self.variances[columns][k]
        found = self.slopes.evaluate(q, qp, rho[i, k] * np.sqrt(q * qp))
        size = np.sqrt(self._coefficients[1][rows][i] * self._coefficients[1][columns][k])
        worst = float(np.max(found.bound / size))
        if worst > _ACCEPTED:
            raise CertificationError(
                f"{len(i)} pairs of samples are too close to parallel for the Hermite series of the slope: "
                f"relative accuracy {worst:.1g}"
            )
        total[i, k] = found.values


def float_breakpoints(function: ScalarFunction) -> tuple[float, ...]:
    """Break points of a function as floats; within [-60, 60] where there are infinitely many."""
    if function.expr is None:
        return ()
    points = function.breakpoints() if function.has_finite_breakpoints else function.breakpoints(60)
    return tuple(float(p.ball(80).mid()) if hasattr(p, "ball") else float(p) for p in points)
