"""The kernels that the network is compared with: k0, k1 annealed over batches, and k1 of one batch.

All are k(x, x') = E sigma(<w, x>) sigma(<w, x'>), w ~ N(0, Gamma/d), that is k0 after a linear map of the
inputs; they differ in Gamma.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..numeric.kernel import Kernel


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
