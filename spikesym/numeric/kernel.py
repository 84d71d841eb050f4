"""Kernels k(x, x') = E sigma(<w, x>) sigma(<w, x'>), w ~ N(0, Gamma/d), as objects with matrices and gradients."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..symbolic.functions import ScalarFunction, make_function
from ..symbolic.kernel import KernelFormulas
from .angles import discriminant
from .dual import DualActivation, dual
from .dual_kink import KinkDual
from .kernel_inputs import CLOSE, Covariance, Pairs, as_rows, close_pairs, inverse, norms

Array = NDArray[Any]

#: rows of a block, by default such that a block holds about this many entries
_BLOCK_ENTRIES = 1 << 22
#: rows of a block of a symmetric matrix: small, since blocks on the diagonal are computed in full
_SYMMETRIC_ROWS = 256
#: entries of a tile of the elementwise part, which should stay in cache
_TILE = 1 << 15


class Kernel:
    """The kernel of an activation and a covariance Gamma of the features.

    Parameters
    ----------
    activation : ScalarFunction, or what makes one
        sigma, without free parameters.
    A, B : float
        Gamma = A I + B w w^T; k0 is A = 1, B = 0.
    w : array of shape (d,), optional
        Unit vector; needed when B is not 0.
    Gamma : array of shape (d, d), optional
        A general covariance, in place of A, B, w.

    Examples
    --------
    >>> k0 = Kernel("relu")
    >>> X = np.array([[3.0, 4.0], [3.0, 4.0], [-3.0, -4.0], [0.0, 0.0]])
    >>> k0.matrix(X).round(12).tolist()[0]
    [6.25, 6.25, 0.0, 0.0]
    >>> k1 = Kernel("relu", A=1.5, B=2.0, w=[1.0, 0.0])
    >>> bool(np.isclose(k1.diagonal(X)[0], (1.5 * 25 + 2 * 9) / 4))
    True
    """

    def __init__(
        self,
        activation: ScalarFunction | Any,
        A: float = 1.0,
        B: float = 0.0,
        w: Any = None,
        Gamma: Any = None,
    ) -> None:
        self.function = make_function(activation, "activation")
        if self.function.parameters:
            names = ", ".join(map(str, self.function.parameters))
            raise InputError(f"free parameters {names}", "--activation", "give them with --set NAME=VALUE")
        direction = None if w is None else np.asarray(w)
        self.covariance = Covariance(float(A), float(B), direction, Gamma)
        self._duals: dict[tuple[int, int], DualActivation] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"function": self.function, "covariance": self.covariance, "_duals": self._duals}

    @cached_property
    def formulas(self) -> KernelFormulas:
        """The symbolic forms."""
        return KernelFormulas(self.dual().exact)

    def dual(self, i: int = 0, j: int = 0) -> DualActivation:
        """The dual activation E[sigma^(i)(U) sigma^(j)(U')] behind the kernel and its derivatives."""
        if (i, j) not in self._duals:
            self._duals[i, j] = dual(self.function, i, j)
        return self._duals[i, j]

    def matrix(self, X: Any, Y: Any = None, block: int | None = None) -> Array:
        """Kernel matrix of shape (n, m).

        Parameters
        ----------
        X : array of shape (n, d)
        Y : array of shape (m, d), optional
            X by default; the result is then symmetric to the bit, as it is when the same array is given twice.
        block : int, optional
            Rows computed at a time; beside the result, memory is a few blocks of this many rows.

        Returns
        -------
        array of shape (n, m)
            float32 if both inputs are, float64 otherwise.

        Raises
        ------
        InputError
            For arrays that are not finite, two-dimensional and of one dimension d.
        """
        symmetric = Y is None or Y is X
        X = as_rows(X, "X")
        Y = X if symmetric else as_rows(Y, "Y")
        if X.shape[1] != Y.shape[1]:
            raise InputError(
                f"dimensions {X.shape[1]} and {Y.shape[1]}", "X and Y", "give points of one dimension"
            )
        dtype = np.result_type(X, Y)
        X, Y = X.astype(dtype, copy=False), Y.astype(dtype, copy=False)
        Z = self.covariance.root_map(X)
        Zp = Z if symmetric else self.covariance.root_map(Y)
        root = norms(Z)
        root_p = root if symmetric else norms(Zp)
        if self.dual().kink is not None:
            # the product of unit rows is the cosine: two passes over the matrix less
            Z = Z * inverse(root).astype(dtype)[:, None]
            Zp = Z if symmetric else Zp * inverse(root_p).astype(dtype)[:, None]
        n, m = len(Z), len(Zp)
        if block is not None and block < 1:
            raise InputError(f"must be at least 1, got {block}", "block", "give a number of rows")
        rows = min(n, block or (_SYMMETRIC_ROWS if symmetric else max(16, _BLOCK_ENTRIES // m)))
        result = np.empty((n, m), dtype=dtype)
        for low in range(0, n, rows):
            high = min(low + rows, n)
            first = low if symmetric else 0
            view = result[low:high, first:]
            np.matmul(Z[low:high], Zp[first:].T, out=view)
            self._elementwise(view, X[low:high], Y[first:], root[low:high], root_p[first:], symmetric)
            if symmetric:
                square = view[:, : high - low]
                square[:] = np.triu(square) + np.triu(square, 1).T
                result[high:, low:high] = view[:, high - low :].T
        if symmetric:
            np.fill_diagonal(result, self._on_diagonal(root))
        return result

    def diagonal(self, X: Any) -> Array:
        """k(x, x) for each row, shape (n,)."""
        X = as_rows(X, "X")
        return self._on_diagonal(norms(self.covariance.root_map(X))).astype(X.dtype)

    def gradient(self, X: Any, Y: Any) -> Array:
        """Gradient of k(x, y) in x, for all pairs: shape (n, m, d).

        It is Gamma (E[sigma'' sigma] x + E[sigma' sigma'] y)/d. At x = 0 a kink at zero has no gradient along x, and that
        part is left out.
        """
        X, Y = as_rows(X, "X"), as_rows(Y, "Y")
        d = X.shape[1]
        pairs = Pairs.of(X, Y, self.covariance)
        with np.errstate(invalid="ignore"):
            radial = self.on_pairs(self.dual(2, 0), pairs)
        along = self.on_pairs(self.dual(1, 1), pairs)
        radial[pairs.root[:, 0] == 0] = 0.0
        mapped, mapped_p = self.covariance.apply(X), self.covariance.apply(Y)
        return np.asarray(
            (radial[:, :, None] * mapped[:, None, :] + along[:, :, None] * mapped_p[None, :, :]) / d
        )

    # ---- how it is done ----------------------------------------------------------------------------------------

    def _elementwise(
        self, view: Array, X: Array, Y: Array, root: Array, root_p: Array, on_diagonal: bool
    ) -> None:
        """Turn cosines (kinked polynomials) or inner products into kernel values, in place, tile by tile.

        ``on_diagonal`` says that row i and column i are the same point; these entries are filled in later.
        """
        step = max(1, _TILE // view.shape[1])
        kink = self.dual().kink
        for low in range(0, len(view), step):
            tile, high = view[low : low + step], min(low + step, len(view))
            if kink is None:
                q, qp = root[low:high, None] ** 2, root_p[None, :] ** 2
                tile[:] = self._smooth(tile.astype(np.float64), q, qp)
                continue
            if on_diagonal:
                tile[np.arange(high - low), np.arange(low, high)] = 0.0
            self._kinked(kink, tile, X[low:high], Y, root[low:high], root_p)

    def _kinked(self, kink: KinkDual, tile: Array, X: Array, Y: Array, root: Array, root_p: Array) -> None:
        one = tile.dtype.type(1)
        np.clip(tile, -one, one, out=tile)
        square = one - tile * tile
        close = close_pairs(square, CLOSE if tile.dtype == np.float64 else 5 * CLOSE, X.shape[1])
        tile[:] = kink.of_cosine(tile, np.sqrt(square, out=square), root, root_p)
        for i, j in close:
            cosine, sine = self.covariance.angles(X[i], Y[j])
            zero = (root[i] == 0) | (root_p[j] == 0)
            tile[i, j] = kink.at_angle(root[i], root_p[j], cosine, np.where(zero, 1.0, sine))

    def _smooth(self, t: Array, q: Array, qp: Array) -> Array:
        delta = discriminant(*np.broadcast_arrays(q, qp, t))
        return self.dual().at(q, qp, t, delta)

    def _on_diagonal(self, root: Array) -> Array:
        q = root**2
        return self.dual().at(q, q, q, np.zeros_like(q))

    def on_pairs(self, activation: DualActivation, pairs: Pairs) -> Array:
        """A dual activation at the variances and angles of a block of pairs."""
        if activation.kink is not None:
            return activation.kink.at_angle(pairs.root, pairs.root_p, pairs.cosine, pairs.sine)
        q, qp = pairs.root**2, pairs.root_p**2
        t = pairs.root * pairs.root_p * pairs.cosine
        # closed forms with q - t need a discriminant that belongs to this t
        return activation.at(q, qp, t, discriminant(*np.broadcast_arrays(q, qp, t)))
