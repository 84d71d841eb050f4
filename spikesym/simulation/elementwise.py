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
        """The activation with slopes p + q and p - q right and left of zero, and p at zero."""

        def slope(h: np.ndarray) -> np.ndarray:
            slopes = np.sign(h)
            slopes *= q
            slopes += p
            return slopes

        return cls(lambda h: slope(h) * h, slope, p, q)

    def outputs_then_slopes(self, h: np.ndarray) -> np.ndarray:
        """Return sigma(h) and overwrite h by sigma'(h)."""
        slopes = self.slope(h)
        outputs = h * slopes
        h[...] = slopes
        return outputs


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
