"""The kernels that the network is compared with: k0, k1 annealed over batches, and k1 of one batch.

All are k(x, x') = E sigma(<w, x>) sigma(<w, x'>), w ~ N(0, Gamma/d), that is k0 after a linear map of the
inputs; they differ in Gamma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numeric.dual import DualActivation
from ..numeric.kernel import Kernel
from .batch import Batch

#: entries of the block of kernel values held at a time
_BLOCK = 1 << 20


@dataclass(frozen=True)
class MappedKernel:
    """k0(L^T x, L^T x') for a square root L of Gamma: the kernel of neurons w ~ N(0, L L^T / d).

    One k0, whose derivation is done once, serves every trial.

    Parameters
    ----------
    base : Kernel
        k0 of the activation.
    factor : array of shape (d, d), or None for the identity

    Examples
    --------
    >>> kernel = MappedKernel(Kernel("identity"), np.diag([2.0, 1.0]))
    >>> kernel.matrix(np.eye(2)).round(12).tolist()
    [[2.0, 0.0], [0.0, 0.5]]
    """

    base: Kernel
    factor: np.ndarray | None = None

    def matrix(self, left: np.ndarray, right: np.ndarray | None = None) -> np.ndarray:
        """Kernel values of shape (k, l) for inputs of shapes (k, d) and (l, d); right = left by default."""
        if self.factor is not None:
            left = left @ self.factor
            right = None if right is None else right @ self.factor
        return self.base.matrix(left, right)


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


def batch_covariance(batch: Batch, slopes: DualActivation, strength: float) -> np.ndarray:
    """Gamma_batch: covariance of the neurons trained on this batch with the labels alone, shape (d, d).

    Gamma_batch = I + strength n^(-2) X^T (y y^T o K'(X, X)) X with K' = E sigma' sigma' and
    strength = d varsigma^2 eta^2 / m^2; exact at every size when the residual is the labels and
    w(0) ~ N(0, I/d). Holds the batch and a block of K'.

    Parameters
    ----------
    batch : Batch
    slopes : DualActivation
        The dual of sigma', E sigma'(U) sigma'(U').
    strength : float

    Examples
    --------
    >>> from spikesym.numeric.dual import dual
    >>> from spikesym.simulation.batch import Teacher
    >>> from spikesym.simulation.streams import Trial
    >>> batch = Batch(Teacher(np.array([1.0, 0.0]), np.tanh), 5, Trial())
    >>> inputs, labels = batch.arrays()
    >>> spike = inputs.T @ labels / 5
    >>> bool(np.allclose(batch_covariance(batch, dual("identity", 1, 1), 3.0), np.eye(2) + 3 * np.outer(spike, spike)))
    True
    """
    inputs, labels = batch.arrays()
    inputs = inputs.astype(np.float64, copy=False)
    n, d = inputs.shape
    variances = np.einsum("ij,ij->i", inputs, inputs) / d
    weighted = inputs * labels[:, None]
    total = np.zeros((d, d))
    rows = max(1, _BLOCK // n)
    for i in range(0, n, rows):
        part = slice(i, i + rows)
        products = inputs[part] @ inputs.T / d
        # the diagonal summed as the variances are, so that its correlation is exactly one
        np.fill_diagonal(products[:, i:], variances[part])
        values = slopes(variances[part, None], variances[None, :], products)
        total += weighted[part].T @ (values @ weighted)
    return (total + total.T) * (0.5 * strength / n**2) + np.eye(d)
