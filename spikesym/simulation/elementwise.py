"""The elementwise pass of training: outputs sigma(h) and slopes sigma'(h) of a piece of preactivations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .batch import Function

if TYPE_CHECKING:
    from ..symbolic.functions import ScalarFunction


@dataclass(frozen=True)
class Activation:
    """sigma and sigma' for arrays.

    Parameters
    ----------
    value, slope : callable
        Elementwise; float32 stays float32.

    Examples
    --------
    >>> h = np.array([-1.0, 2.0])
    >>> tanh = Activation(np.tanh, lambda z: 1 - np.tanh(z) ** 2)
    >>> bool(np.array_equal(tanh.outputs_then_slopes(h), np.tanh([-1.0, 2.0]))), h.round(3).tolist()
    (True, [0.42, 0.071])
    """

    value: Function
    slope: Function

    def __call__(self, h: np.ndarray) -> np.ndarray:
        """sigma(h)."""
        return self.value(h)

    def outputs_then_slopes(self, h: np.ndarray) -> np.ndarray:
        """Return sigma(h) and overwrite h by sigma'(h)."""
        outputs = self.value(h)
        h[...] = self.slope(h)
        return outputs


@dataclass(frozen=True)
class HomogeneousActivation(Activation):
    """sigma(z) = p z + q |z|, whose outputs are slope times argument: one pass gives both.

    The slopes are p + q right of zero and p - q left of it and at zero.

    Examples
    --------
    >>> relu = HomogeneousActivation.of(0.5, 0.5)
    >>> h = np.array([-1.0, 2.0])
    >>> relu.outputs_then_slopes(h).tolist(), h.tolist()
    ([-0.0, 2.0], [0.0, 1.0])
    """

    p: float = 0.0
    q: float = 0.0

    @classmethod
    def of(cls, p: float, q: float) -> HomogeneousActivation:
        """The activation p z + q |z|."""

        def slope(h: np.ndarray) -> np.ndarray:
            slopes = h.copy()
            _to_slopes(slopes, p, q)
            return slopes

        return cls(lambda h: slope(h) * h, slope, p, q)

    def outputs_then_slopes(self, h: np.ndarray) -> np.ndarray:
        """Return sigma(h) and overwrite h by sigma'(h)."""
        outputs = h.copy()
        _to_slopes(h, self.p, self.q)
        outputs *= h
        return outputs


def _to_slopes(h: np.ndarray, p: float, q: float) -> None:
    # a comparison into booleans is far cheaper than the sign
    np.copyto(h, h > 0)
    if q != 0.5:
        h *= 2 * q
    if p != q:
        h += p - q


def compile_activation(function: ScalarFunction) -> Activation:
    """The activation of an expression or callable, by the shortest way there is.

    Examples
    --------
    >>> from spikesym.symbolic.functions import make_function
    >>> compile_activation(make_function("leaky_relu(0.5)", "activation"))(np.array([-2.0, 2.0])).tolist()
    [-1.0, 2.0]
    """
    coefficients = function.piecewise_linear_coefficients()
    if coefficients is not None and not any(c.free_symbols for c in coefficients):
        return HomogeneousActivation.of(*(float(c) for c in coefficients))
    return Activation(function.numpy(), function.derivative_numpy())
