"""The orders of k1 in B and the remainder, as matrices.

Order r is (B/d)^r (s s' d/dt + s^2 d/dq + s'^2 d/dq')^r k/r! at Gamma = A I. The remainder after order r is the integral

    (r + 1) int_0^1 (1 - l)^r [order r + 1 at Gamma = A I + l B w w^T] dl,

which has no cancellation, however small it is. For polynomials with a kink or jump at zero everything is written in
the angle and in the components u, v of the spike along x and along the part of x' orthogonal to x: the negative powers
of the sine cancel in these, so that values are finite and accurate for parallel and opposite vectors too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, factorial
from typing import Any

import numpy as np
import sympy
from flint import arb, fmpq
from numpy.typing import NDArray

from ..errors import InputError
from ..symbolic.dual_terms import decompose
from ..symbolic.kernel import MOST_ORDERS, along_spike
from ..symbolic.symbols import QP, SP, Q, S, T
from .angles import pair_frames
from .arb_eval import evaluate
from .dual_kink import COS, SIN, AngularFunction, by_degree, of_circle, on_circle
from .kernel import Kernel
from .kernel_inputs import CLOSE, Pairs, as_rows, close_pairs, inverse

Array = NDArray[Any]

_U, _V = sympy.symbols("u v", real=True)
_NODES = 10
#: below this relative spike (B/A)(s/|x|)^2 the remainder is integrated, above it is a difference
_SMALL_SPIKE = 0.5
#: sines below which kinked functions with break points elsewhere than at zero are evaluated by Arb, and how many at most
_CLOSE_SINE = 1e-4
_MOST_REPAIRED = 400
#: rows of a block
_ROWS = 256


@dataclass(frozen=True)
class Frame:
    """Pairs of rows under Gamma = A I, with the spike's components u (along x) and v (across), in units of U.

    ``mu`` is B/d; s = u root and s' = (u cosine + v sine) root_p.
    """

    pairs: Pairs
    u: Array
    v: Array

    def moved(self, mu: float) -> Frame:
        """The frame after the spike has grown to ``mu`` w w^T: a rank-one change of the metric in the plane of x, x'."""
        p, u, v = self.pairs, self.u, self.v
        stretch, both = 1 + mu * u**2, 1 + mu * (u**2 + v**2)
        first = (p.cosine + mu * u * (u * p.cosine + v * p.sine)) / np.sqrt(stretch)
        second = p.sine * np.sqrt(both / stretch)
        length = np.hypot(first, second)
        length = np.where(length > 0, length, 1.0)
        pairs = Pairs(p.root * np.sqrt(stretch), p.root_p * length, first / length, second / length)
        return Frame(pairs, u / np.sqrt(stretch), v / np.sqrt(stretch * both))


class Expansion:
    """Orders and remainders of a kernel with Gamma = A I + B w w^T.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, w = rng.normal(size=(4, 30)), np.eye(30)[0]
    >>> k1 = Kernel("relu", A=1.2, B=0.5, w=w)
    >>> expansion = Expansion(k1)
    >>> total = sum(expansion.order(r, X) for r in range(3)) + expansion.remainder(2, X)
    >>> bool(np.allclose(total, k1.matrix(X), rtol=1e-13))
    True
    """

    def __init__(self, kernel: Kernel) -> None:
        covariance = kernel.covariance
        if covariance.matrix is not None:
            raise InputError("a general Gamma", "Gamma", "the expansion in B needs Gamma = A I + B w w^T")
        self.kernel, self.A, self.B, self.w = kernel, covariance.A, covariance.B, covariance.w
        self.base = Kernel(kernel.function, A=self.A)

    def order(self, order: int, X: Any, Y: Any = None) -> Array:
        """The term of this order, with its power of B/d: shape (n, m)."""
        _check_order(order)
        if order == 0:
            return self.base.matrix(X, Y)
        return self._blockwise(X, Y, lambda frame, d: self._term(order, frame) * (self.B / d) ** order)

    def remainder(self, order: int, X: Any, Y: Any = None) -> Array:
        """k1 less the orders 0, ..., ``order``: shape (n, m)."""
        _check_order(order + 1)
        return self._blockwise(X, Y, lambda frame, d: self._rest(order, frame, self.B / d))

    # ---- how it is done ----------------------------------------------------------------------------------------

    def _blockwise(self, X: Any, Y: Any, compute: Any) -> Array:
        X = as_rows(X, "X").astype(np.float64)
        Y = X if Y is None else as_rows(Y, "Y").astype(np.float64)
        d = X.shape[1]
        self.kernel.covariance.check_dimension(d)
        result = np.zeros((len(X), len(Y)))
        if self.B == 0:
            return result
        for low in range(0, len(X), _ROWS):
            with np.errstate(all="ignore"):
                result[low : low + _ROWS] = compute(self._frame(X[low : low + _ROWS], Y), d)
        return result

    def _frame(self, X: Array, Y: Array) -> Frame:
        assert self.w is not None
        d = X.shape[1]
        pairs = Pairs.of(X, Y, self.base.covariance)
        u = (X @ self.w)[:, None] * inverse(pairs.root)
        u_p = (Y @ self.w)[None, :] * inverse(pairs.root_p)
        sine = np.where(pairs.sine > 0, pairs.sine, 1.0)
        v = (u_p - u * pairs.cosine) / sine
        unit = np.sqrt(d / self.A)
        for i, j in close_pairs(pairs.sine**2, CLOSE, d):
            v[i, j] = unit * pair_frames(X[i], Y[j], self.w)[2]
        # k1 does not depend on B where one of the vectors is zero
        zero = (pairs.root == 0) | (pairs.root_p == 0)
        return Frame(pairs, np.where(zero, 0.0, u), np.where(zero, 0.0, v))

    def _term(self, order: int, frame: Frame) -> Array:
        """Coefficient of (B/d)^order."""
        if self.kernel.dual().kink is not None:
            return self._kinked_terms(order)(frame)
        p = frame.pairs
        s, s_p = frame.u * p.root, (frame.u * p.cosine + frame.v * p.sine) * p.root_p
        total = np.zeros_like(p.cosine)
        for j in range(2 * order + 1):
            moment = self.kernel.on_pairs(self.kernel.dual(j, 2 * order - j), p)
            # s = 0 where a variance is 0, whatever the moment
            moment = np.where((s == 0) & (s_p == 0), 0.0, moment)
            total += comb(2 * order, j) * s**j * s_p ** (2 * order - j) * moment
        return self._repaired(order, frame, total / (2.0**order * factorial(order)), s, s_p)

    def _repaired(self, order: int, frame: Frame, values: Array, s: Array, s_p: Array) -> Array:
        """Entries of kinked functions near parallel vectors, where point masses meet and cancel, by Arb.

        The order is continuous there: parallel vectors are moved apart by a tiny angle.
        """
        formula = self.kernel.formulas
        if not formula.closed or order < 2 or not self.kernel.function.breakpoints():
            return values
        p = frame.pairs
        arrays = [
            np.broadcast_to(x, values.shape) for x in (p.root, p.root_p, p.cosine, p.sine, frame.u, frame.v)
        ]
        close = (p.sine < _CLOSE_SINE) & (p.root > 0) & (p.root_p > 0)
        expr = formula.order(order)
        for place in np.argwhere(close)[:_MOST_REPAIRED]:
            root, root_p, cosine, sine, u, v = (Fraction(float(x[tuple(place)])) for x in arrays)
            values[tuple(place)] = _limit(expr, root, root_p, cosine, sine, u, v)
        return values

    def _rest(self, order: int, frame: Frame, mu: float) -> Array:
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        if self.kernel.function.expr is None:
            # derivatives of a callable cost accuracy: its remainder is a difference
            return self._values(frame.moved(mu).pairs) - self._sum(order, frame, mu)
        integral = np.zeros_like(frame.pairs.cosine)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            term = self._term(order + 1, frame.moved(node * mu))
            integral += weight * (1 - node) ** order * term
        integral *= (order + 1) * mu ** (order + 1)
        p = frame.pairs
        u_p = frame.u * p.cosine + frame.v * p.sine
        large = mu * np.maximum(frame.u**2, u_p**2) > _SMALL_SPIKE
        if large.any():
            total = self._values(frame.moved(mu).pairs) - self._sum(order, frame, mu)
            integral[large] = total[large]
        return integral

    def _sum(self, order: int, frame: Frame, mu: float) -> Array:
        total = self._values(frame.pairs)
        for r in range(1, order + 1):
            total = total + self._term(r, frame) * mu**r
        return total

    def _values(self, pairs: Pairs) -> Array:
        return self.kernel.on_pairs(self.kernel.dual(), pairs)

    def _kinked_terms(self, order: int) -> KinkedTerms:
        if order not in self._cache:
            self._cache[order] = KinkedTerms.of(self.kernel, order)
        return self._cache[order]

    @cached_property
    def _cache(self) -> dict[int, KinkedTerms]:
        return {}


def _limit(
    expr: sympy.Expr,
    root: Fraction,
    root_p: Fraction,
    cosine: Fraction,
    sine: Fraction,
    u: Fraction,
    v: Fraction,
) -> float:
    """The order at sine at least 1e-30, with a covariance that belongs to it."""
    apart = max(sine, Fraction(1, 10**30))

    def along(bits: int) -> arb:
        square = 1 - apart * apart
        return arb(fmpq(square.numerator, square.denominator)).sqrt() * (1 if cosine > 0 else -1)

    def ball(value: Fraction) -> arb:
        return arb(fmpq(value.numerator, value.denominator))

    at = {
        Q: root * root,
        QP: root_p * root_p,
        T: lambda bits: ball(root * root_p) * along(bits),
        S: u * root,
        SP: lambda bits: (ball(u) * along(bits) + ball(v * apart)) * ball(root_p),
    }
    for bits in (1000, 2000, 4000):
        value = evaluate(expr, bits, at)
        if value.is_finite() and (value.rel_accuracy_bits() > 60 or value.abs_upper() < 1e-40):
            return float(value.mid())
    return float("nan")


@dataclass(frozen=True)
class KinkedTerms:
    """(s s' d/dt + s^2 d/dq + s'^2 d/dq')^r k/r! as a sum of q^(a/2) q'^(b/2) u^i v^j f(theta).

    ``parts`` holds (a, b, i, j, f).
    """

    parts: tuple[tuple[int, int, int, int, AngularFunction], ...]

    @classmethod
    def of(cls, kernel: Kernel, order: int) -> KinkedTerms:
        """From the closed form, by substituting s = u, s' = u cos + v sin on the unit circle."""
        parts = []
        for (a, b), formula in by_degree(decompose(kernel.function)).items():
            moved = on_circle(along_spike(formula, order))
            moved = _reduced(moved.subs({S: _U, SP: _U * COS + _V * SIN}, simultaneous=True))
            for (i, j), coefficient in sympy.Poly(moved, _U, _V).terms():
                parts.append((a, b, i, j, of_circle(coefficient)))
        return cls(tuple(parts))

    def __call__(self, frame: Frame) -> Array:
        """Values on a block of pairs."""
        p = frame.pairs
        total = np.zeros_like(p.cosine)
        for a, b, i, j, function in self.parts:
            value = function(p.cosine, p.sine)
            value *= frame.u**i * frame.v**j * p.root ** float(a) * p.root_p ** float(b)
            total += value
        return total


def _reduced(expr: sympy.Expr) -> sympy.Expr:
    """Powers of the cosine lowered to 0 or 1, so that negative powers of the sine cancel."""
    expanded = sympy.expand(expr)
    total = sympy.Integer(0)
    for term in sympy.Add.make_args(expanded):
        coefficient, power = term.as_coeff_exponent(COS)
        total += coefficient * COS ** (power % 2) * (1 - SIN**2) ** (power // 2)
    return sympy.expand(total)


def _check_order(order: int) -> None:
    if not 0 <= order <= MOST_ORDERS:
        raise InputError(f"order {order}", "--order", f"give an order from 0 to {MOST_ORDERS}")
