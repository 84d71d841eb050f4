"""Ridge regression with one decomposition for all ridges and leave-one-out errors in closed form.

The fit solves (K + delta I) c = y, so delta has the scale of the kernel and no intercept is added: for
features F of shape (n, p), K = F F^T and the weights are F^T c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, PostconditionError

#: eigenvalues below -_INDEFINITE * n * largest are no rounding: the matrix is not a kernel
_INDEFINITE = 1e-12


@dataclass(frozen=True)
class RidgePath:
    """The ridge fits of one training set, for every ridge.

    Make one with :meth:`of_kernel` or :meth:`of_features`.

    Attributes
    ----------
    eigenvalues : array of shape (r,)
        Of the kernel matrix, not negative; r = n for a kernel, min(n, p) for features of shape (n, p).
        Those that are missing are zeros.
    vectors : array of shape (n, r)
        Orthonormal eigenvectors.
    labels : array of shape (n,)

    Examples
    --------
    >>> x = np.array([[1.0], [2.0], [3.0]])
    >>> path = RidgePath.of_features(x, np.array([1.0, 2.0, 3.0]))
    >>> round(float((x.T @ path.coefficients(1.0))[0]), 12) == round(14 / 15, 12)
    True
    """

    eigenvalues: np.ndarray
    vectors: np.ndarray
    labels: np.ndarray
    _projected: np.ndarray
    _rest: np.ndarray | None

    @classmethod
    def of_kernel(cls, kernel: np.ndarray, labels: np.ndarray) -> RidgePath:
        """Decompose a kernel matrix of shape (n, n), symmetric and positive semidefinite.

        Raises
        ------
        PostconditionError
            When an eigenvalue is negative beyond rounding, with its value.
        """
        n = len(labels)
        _require_finite(kernel)
        eigenvalues, vectors = np.linalg.eigh(kernel)
        largest = float(eigenvalues[-1])
        if eigenvalues[0] < -_INDEFINITE * n * max(largest, 0.0):
            raise PostconditionError(
                f"the kernel matrix is not positive semidefinite: eigenvalues from {eigenvalues[0]:.3g} "
                f"to {largest:.3g}"
            )
        return cls._of(np.maximum(eigenvalues, 0.0), vectors, labels)

    @classmethod
    def of_features(cls, features: np.ndarray, labels: np.ndarray) -> RidgePath:
        """Decompose the kernel of features of shape (n, p), through the smaller side."""
        n, p = features.shape
        if p >= n:
            return cls.of_kernel(features @ features.T, labels)
        _require_finite(features)
        vectors, singular, _ = np.linalg.svd(features, full_matrices=False)
        return cls._of(singular**2, vectors, labels)

    @classmethod
    def _of(cls, eigenvalues: np.ndarray, vectors: np.ndarray, labels: np.ndarray) -> RidgePath:
        labels = np.asarray(labels, dtype=np.float64)
        projected = vectors.T @ labels
        complete = vectors.shape[0] == vectors.shape[1]
        rest = None if complete else labels - vectors @ projected
        return cls(eigenvalues, vectors, labels, projected, rest)

    def condition(self, ridge: float) -> float:
        """Condition number of K + ridge I."""
        n, r = self.vectors.shape
        least = float(self.eigenvalues.min()) if r == n else 0.0
        return (float(self.eigenvalues.max()) + ridge) / (least + ridge)

    def coefficients(self, ridge: float) -> np.ndarray:
        """c = (K + ridge I)^(-1) y, shape (n,).

        Raises :class:`~spikesym.errors.InputError` for a ridge that is not positive, or so small that
        rounding would decide the fit.
        """
        return self._coefficients(self._checked([ridge]))[:, 0]

    def leave_one_out(self, ridges: Sequence[float]) -> np.ndarray:
        """Errors y_i - f_i(x_i), f_i fitted without sample i, for each ridge: shape (n, len(ridges)).

        In closed form c_i / [(K + ridge I)^(-1)]_ii. Raises as :meth:`coefficients`.
        """
        delta = self._checked(ridges)
        squares = self.vectors**2
        n, r = squares.shape
        inverse = squares @ (1 / (self.eigenvalues[:, None] + delta))
        if r < n:
            inverse += np.maximum(1 - squares.sum(axis=1), 0.0)[:, None] / delta
        result: np.ndarray = self._coefficients(delta) / inverse
        return result

    def best_ridge(self, ridges: Sequence[float]) -> float:
        """The ridge of least mean squared leave-one-out error on the noisy training labels."""
        if len(ridges) == 0:
            raise InputError("no ridge given", "ridges", "give at least one positive number")
        errors = np.mean(self.leave_one_out(ridges) ** 2, axis=0)
        return float(ridges[int(np.argmin(errors))])

    def _coefficients(self, delta: np.ndarray) -> np.ndarray:
        result: np.ndarray = self.vectors @ (self._projected[:, None] / (self.eigenvalues[:, None] + delta))
        if self._rest is not None:
            result += self._rest[:, None] / delta
        return result

    def _checked(self, ridges: Sequence[float]) -> np.ndarray:
        for ridge in ridges:
            if not ridge > 0 or not np.isfinite(ridge):
                raise InputError(
                    f"must be positive and finite, got {ridge}", "ridge", "give a number such as 1e-3"
                )
        condition = self.condition(min(ridges))
        if condition * np.finfo(np.float64).eps > 1e-4:
            raise InputError(
                f"{min(ridges):.3g} leaves K + ridge I with condition number {condition:.2g}, "
                "beyond double precision",
                "ridge",
                f"give at least {float(self.eigenvalues.max()) * 1e-11:.1e}",
            )
        return np.asarray(ridges, dtype=np.float64)


def _require_finite(matrix: np.ndarray) -> None:
    if not np.isfinite(matrix).all():
        raise PostconditionError(
            f"a kernel or feature matrix of shape {matrix.shape} is not finite: the activation or the spike "
            "overflows on these data"
        )
