"""Evaluation in scaled floats: each number is a mantissa times exp of a float, so nothing overflows early."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numpy as np
import sympy

from .hermite_series import orthonormal_hermite
from .symbols import X
from .vocabulary import HermiteProb

Array = Any
_BIG = 1e100


class Scaled(NamedTuple):
    """mantissa * exp(log)."""

    mantissa: Array
    log: Array

    @property
    def value(self) -> Array:
        """As plain floats; what is out of range becomes infinite or zero."""
        with np.errstate(all="ignore"):
            return np.where(self.mantissa == 0, 0.0, self.mantissa * np.exp(self.log))


class ScaledEvaluator:
    """An expression in ``X`` evaluated on float64 arrays of one dimension.

    Examples
    --------
    >>> tanh = (sympy.exp(X) - sympy.exp(-X)) / (sympy.exp(X) + sympy.exp(-X))
    >>> ScaledEvaluator(tanh)(np.array([-800.0, 800.0]))
    array([-1.,  1.])
    """

    def __init__(self, expr: sympy.Expr) -> None:
        self.expr = expr

    def __call__(self, x: Array) -> Array:
        """The values, infinite only where they are out of range."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self._evaluate(self.expr, x).value, x.shape)

    def _evaluate(self, node: sympy.Expr, x: Array) -> Scaled:
        if not node.has(X):
            return _constant(node)
        if node == X:
            return Scaled(x, np.zeros_like(x))
        parts = [] if isinstance(node, sympy.Piecewise) else [self._evaluate(a, x) for a in node.args]
        if isinstance(node, sympy.Add):
            return _add(parts)
        if isinstance(node, sympy.Mul):
            return _normalised(math.prod(p.mantissa for p in parts), sum(p.log for p in parts))
        if isinstance(node, sympy.Pow):
            return self._power(node, parts, x)
        if isinstance(node, sympy.exp):
            return Scaled(np.ones_like(x), parts[0].value)
        if isinstance(node, sympy.log):
            return Scaled(_log(parts[0]), np.zeros_like(x))
        if isinstance(node, sympy.sinh | sympy.cosh):
            u = parts[0].value
            sign = -1 if isinstance(node, sympy.sinh) else 1
            head = np.where(u < 0, sign, 1) * (1 + sign * np.exp(-2 * np.abs(u))) / 2
            return Scaled(head, np.abs(u))
        if isinstance(node, sympy.Abs):
            return Scaled(np.abs(parts[0].mantissa), parts[0].log)
        if isinstance(node, sympy.sign | sympy.Heaviside):
            sign = np.sign(parts[0].mantissa)
            return Scaled(sign if isinstance(node, sympy.sign) else (1 + sign) / 2, np.zeros_like(x))
        if isinstance(node, sympy.Max | sympy.Min):
            return _extreme(parts, np.argmax if isinstance(node, sympy.Max) else np.argmin)
        if isinstance(node, HermiteProb):
            k = int(node.args[0])
            return Scaled(orthonormal_hermite(k, parts[1].value), np.full_like(x, math.lgamma(k + 1) / 2))
        if isinstance(node, sympy.Piecewise):
            return self._piecewise(node, x)
        from .compile import UNARY

        return Scaled(UNARY[type(node)](parts[0].value), np.zeros_like(x))

    def _power(self, node: sympy.Pow, parts: list[Scaled], x: Array) -> Scaled:
        base, exponent = parts
        if node.exp.has(X):
            return Scaled(np.ones_like(x), exponent.value * _log(base))
        p = float(node.exp)
        return _normalised(np.power(base.mantissa, p), base.log * p)

    def _piecewise(self, node: sympy.Piecewise, x: Array) -> Scaled:
        from .compile import build_condition

        def build(side: sympy.Expr) -> Callable[[Array], Array]:
            return lambda points: self._evaluate(side, points).value

        mantissa, log = np.full_like(x, np.nan), np.zeros_like(x)
        left = np.arange(x.size)
        for branch, condition in node.args:
            holds = np.broadcast_to(build_condition(condition, build)(x[left]), left.shape)
            chosen = left[holds]
            if chosen.size:
                value = self._evaluate(branch, x[chosen])
                mantissa[chosen], log[chosen] = value.mantissa, value.log
            left = left[~holds]
        return Scaled(mantissa, log)


def _constant(node: sympy.Expr) -> Scaled:
    value = mpmath.mpf(sympy.N(node, 25)._to_mpmath(80))
    if value == 0:
        return Scaled(0.0, 0.0)
    log = float(mpmath.log(abs(value)))
    return Scaled(float(mpmath.sign(value) * mpmath.exp(mpmath.log(abs(value)) - log)), log)


def _normalised(mantissa: Array, log: Array) -> Scaled:
    size = np.abs(mantissa)
    wild = (size > _BIG) | ((size < 1 / _BIG) & (size > 0))
    if np.any(wild):
        shift = np.where(wild & np.isfinite(size), np.log(np.where(wild, size, 1.0)), 0.0)
        mantissa, log = np.where(wild, np.sign(mantissa), mantissa), log + shift
    return Scaled(mantissa, log)


def _common(parts: list[Scaled]) -> tuple[list[Array], Array]:
    """Mantissas on the scale of the largest logarithm among the parts that are not zero."""
    logs = [np.where(np.asarray(p.mantissa) == 0, -np.inf, p.log) for p in parts]
    top = logs[0]
    for log in logs[1:]:
        top = np.maximum(top, log)
    top = np.where(np.isfinite(top), top, np.where(top > 0, top, 0.0))
    same = [np.where(log == top, 1.0, np.exp(log - top)) for log in logs]
    return [p.mantissa * s for p, s in zip(parts, same, strict=True)], top


def _add(parts: list[Scaled]) -> Scaled:
    mantissas, top = _common(parts)
    return Scaled(sum(mantissas), top)


def _log(part: Scaled) -> Array:
    near_one = part.value
    # log(m e^L): where the number is near one the sum of the two logarithms would cancel
    return np.where(np.abs(near_one - 1) < 0.5, np.log(near_one), np.log(part.mantissa) + part.log)


def _extreme(parts: list[Scaled], choose: Callable[..., Array]) -> Scaled:
    mantissas, top = _common(parts)
    stack = np.stack(np.broadcast_arrays(*mantissas))
    chosen = choose(stack, axis=0)
    return Scaled(np.take_along_axis(stack, chosen[None], 0)[0], np.broadcast_to(top, chosen.shape))
