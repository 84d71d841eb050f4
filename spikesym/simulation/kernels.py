"""The kernels that the network is compared with: k0, k1 annealed over batches, and k1 of one batch.

All are k(x, x') = E sigma(<w, x>) sigma(<w, x'>), w ~ N(0, Gamma/d), that is k0 after a linear map of the
inputs; they differ in Gamma.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .batch import Batch

if TYPE_CHECKING:
    from ..numeric.dual import DualActivation

#: E f(U) f(U') for centred Gaussians, from arrays of both variances and of the covariance
Dual = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

#: entries of the block of kernel values computed at a time, which with its temporaries stays in cache
_ENTRIES = 1 << 15
#: entries of the rows of kernel values held at a time in products
_BLOCK = 1 << 21


def fast_dual(dual: DualActivation) -> Dual:
    """The dual activation without its checks, with q q' - t^2 in plain floats, for whole kernel matrices.

    Full accuracy is kept on the diagonal, where the difference is exactly 0; elsewhere cancellation matters only
    between inputs that nearly coincide.

    Examples
    --------
    >>> from spikesym.numeric.dual import dual
    >>> from spikesym.symbolic.functions import make_function
    >>> relu = dual(make_function("relu", "activation"))
    >>> q, t = np.array([2.0, 1.0]), np.array([-0.5, 1.0])
    >>> bool(np.allclose(fast_dual(relu)(q, q, t), relu(q, q, t), rtol=1e-15))
    True
    """

    def values(q: np.ndarray, qp: np.ndarray, t: np.ndarray) -> np.ndarray:
        q, qp, t = np.broadcast_arrays(q, qp, t)
        discriminant = q * qp
        discriminant -= t * t
        return dual.at(q, qp, t, np.maximum(discriminant, 0.0, out=discriminant))

    return values


@dataclass(frozen=True)
class FeatureKernel:
    """k(x, x') = E sigma(<w, x>) sigma(<w, x'>) with w ~ N(0, factor factor^T / d).

    Parameters
    ----------
    dual : callable
        The dual activation E sigma(U) sigma(U') of variances q, q' and covariance t.
    factor : array of shape (d, d), or None for the identity
        Any square root of Gamma.

    Examples
    --------
    >>> linear = FeatureKernel(lambda q, qp, t: t)
    >>> linear.matrix(np.eye(2), np.eye(2)).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    dual: Dual
    factor: np.ndarray | None = None

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Kernel values of shape (k, l) for inputs of shapes (k, d) and (l, d)."""
        d = left.shape[1]
        symmetric = left is right
        if self.factor is not None:
            left = left @ self.factor
            right = left if symmetric else right @ self.factor
        # row by row the scaled norms are summed alike, so that q q' >= t^2 holds on the diagonal too
        q = np.einsum("ij,ij->i", left, left) / d
        qp = q if symmetric else np.einsum("ij,ij->i", right, right) / d
        result = left @ right.T
        result /= d
        if symmetric:
            np.fill_diagonal(result, q)
        rows = max(1, _ENTRIES // len(right))
        for i in range(0, len(left), rows):
            # of a symmetric matrix the part up to the diagonal block, mirrored
            columns = min(i + rows, len(right)) if symmetric else len(right)
            block = result[i : i + rows, :columns]
            block[...] = self.dual(q[i : i + rows, None], qp[None, :columns], block)
            if symmetric:
                result[:i, i : i + rows] = block[:, :i].T
        return result


def spiked_factor(direction: np.ndarray, A: float, B: float) -> np.ndarray:
    """The symmetric square root of A I + B w* w*^T, for A > 0 and A + B >= 0.

    Examples
    --------
    >>> f = spiked_factor(np.array([0.6, 0.8]), 1.0, 3.0)
    >>> bool(np.allclose(f @ f, np.eye(2) + 3 * np.outer([0.6, 0.8], [0.6, 0.8])))
    True
    """
    factor = np.sqrt(A) * np.eye(direction.size)
    factor += (np.sqrt(A + B) - np.sqrt(A)) * np.outer(direction, direction)
    return factor


def batch_covariance(batch: Batch, slope_dual: Dual, strength: float) -> np.ndarray:
    """Gamma_batch: covariance of the neurons trained on this batch with the labels alone, shape (d, d).

    Gamma_batch = I + strength n^(-2) X^T (y y^T o K'(X, X)) X with K' = E sigma' sigma' and
    strength = d varsigma^2 eta^2 / m^2; exact at every size when the residual is the labels and
    w(0) ~ N(0, I/d). Holds n x d and blocks of n columns.

    Parameters
    ----------
    batch : Batch
    slope_dual : callable
        The dual of sigma', E sigma'(U) sigma'(U').
    strength : float
    """
    inputs, labels = batch.arrays()
    inputs = inputs.astype(np.float64, copy=False)
    kernel = FeatureKernel(slope_dual)
    weighted = inputs * labels[:, None]
    n, d = inputs.shape
    total = np.zeros((d, d))
    rows = max(1, _BLOCK // n)
    for i in range(0, n, rows):
        part = slice(i, i + rows)
        values = kernel.matrix(inputs if rows >= n else inputs[part], inputs)
        total += weighted[part].T @ (values @ weighted)
    total = (total + total.T) * (0.5 * strength / n**2)
    return total + np.eye(d)


def square_root(covariance: np.ndarray) -> np.ndarray:
    """A factor L with L L^T = covariance, for a positive definite matrix."""
    factor: np.ndarray = np.linalg.cholesky(covariance)
    return factor
