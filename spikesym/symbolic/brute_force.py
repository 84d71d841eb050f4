"""The one-step network at small sizes with polynomial link and activation, averaged exactly, straight from the definition.

Weights, inputs, readout and noise are generators of a polynomial ring; the gradient is the derivative of the loss
polynomial; the mean replaces monomials by moments. No step of the theory is used, so this judges the steps.
"""

from __future__ import annotations

from functools import lru_cache

import sympy
from sympy.polys.rings import PolyElement, ring

from .means import TestModel
from .symbols import X


class BruteForce:
    """Exact means in one test model.

    The first coordinate axis is w*; the second is the direction orthogonal to it.

    Examples
    --------
    >>> from sympy import Rational
    >>> model = TestModel(2, 1, 1, X, X, *[Rational(1)] * 3, Rational(3), "gaussian", residual="labels")
    >>> BruteForce(model).gamma(0), BruteForce(model).gamma(1)
    (9, 5)
    """

    def __init__(self, model: TestModel) -> None:
        self.model = model
        d, n, m = model.d, model.n, model.m
        names = [f"w{j}_{c}" for j in range(m) for c in range(d)] + [
            f"x{i}_{c}" for i in range(n) for c in range(d)
        ]
        names += [f"a{j}" for j in range(m)] + [f"e{i}" for i in range(n)] + ["h"]
        self.ring, *gens = ring(names, sympy.QQ)
        self.w = [gens[j * d : (j + 1) * d] for j in range(m)]
        self.x = [gens[(m + i) * d : (m + i + 1) * d] for i in range(n)]
        self.a = gens[(m + n) * d : (m + n) * d + m]
        self.e = gens[(m + n) * d + m : -1]
        self.h = gens[-1]

    def _apply(self, polynomial: sympy.Expr, argument: PolyElement) -> PolyElement:
        result = self.ring(0)
        for coefficient in sympy.Poly(polynomial, X).all_coeffs():
            result = result * argument + sympy.QQ(coefficient.p, coefficient.q)
        return result

    def u(self, j: int, i: int) -> PolyElement:
        """Preactivation <w_j, x_i>."""
        return sum((p * q for p, q in zip(self.w[j], self.x[i], strict=True)), self.ring(0))

    def sigma(self, j: int, i: int) -> PolyElement:
        """sigma(<w_j, x_i>)."""
        return self._apply(self.model.activation, self.u(j, i))

    def dsigma(self, j: int, i: int) -> PolyElement:
        """sigma'(<w_j, x_i>)."""
        return self._apply(sympy.diff(self.model.activation, X), self.u(j, i))

    def y(self, i: int) -> PolyElement:
        """The label g(<w*, x_i>) + eps_i."""
        return self._apply(self.model.link, self.x[i][0]) + self.e[i]

    def output(self, i: int) -> PolyElement:
        """f(x_i), with h in the place of m^(-1/2)."""
        return self.h * sum((self.a[j] * self.sigma(j, i) for j in range(self.model.m)), self.ring(0))

    def loss(self) -> PolyElement:
        """(1/2n) sum (f - y)^2, or its part linear in f (residual: labels only)."""
        total = self.ring(0)
        for i in range(self.model.n):
            f, y = self.output(i), self.y(i)
            total += (f - y) ** 2 if self.model.residual == "full" else -2 * f * y
        return total * sympy.QQ(1, 2 * self.model.n)

    def trained(self, direction: int) -> PolyElement:
        """Component of w_1 after one gradient step along a coordinate axis."""
        before = self.w[0][direction]
        eta = self.model.eta
        return before - sympy.QQ(eta.p, eta.q) * self.loss().diff(before)

    def gamma(self, direction: int) -> sympy.Rational:
        """d E[w_c(1)^2]: A + B for the axis w* (0), A for the axis orthogonal to it (1)."""
        return self.model.d * self.mean(self.trained(direction) ** 2)

    def mean(self, polynomial: PolyElement) -> sympy.Rational:
        """Mean over weights, inputs, readout and noise."""
        total = sympy.Integer(0)
        for exponents, coefficient in polynomial.terms():
            weight = self._monomial_mean(tuple(exponents))
            if weight:
                total += sympy.Rational(int(coefficient.numerator), int(coefficient.denominator)) * weight
        return total

    def _monomial_mean(self, exponents: tuple[int, ...]) -> sympy.Rational:
        if any(k % 2 for k in exponents):
            return sympy.Integer(0)
        model = self.model
        d, n, m = model.d, model.n, model.m
        result = sympy.Integer(1)
        for j in range(m):
            result *= _weight_moment(exponents[j * d : (j + 1) * d], d, model.init)
        for k in exponents[m * d : (m + n) * d]:
            result *= _gaussian_moment(k)
        for k in exponents[(m + n) * d : (m + n) * d + m]:
            if k > 4:
                raise ValueError("moments of the readout beyond the fourth do not enter")
            result *= {
                0: sympy.Integer(1),
                2: model.varsigma**2 / m,
                4: model.kappa4 * model.varsigma**4 / m**2,
            }[k]
        for k in exponents[(m + n) * d + m : -1]:
            result *= _gaussian_moment(k) * model.tau2 ** (k // 2)
        return result / sympy.Integer(m) ** (exponents[-1] // 2)

    def moment(self, name: str, direction: int) -> sympy.Rational:
        """One of the means that the readout average leaves (see ``covariance_steps.MOMENTS``), for v a coordinate axis."""
        c = direction
        if name == "initial":
            return self.mean(self.w[0][c] ** 2)
        first = self.dsigma(0, 0) * self.x[0][c]
        second = self.dsigma(0, 1) * self.x[1][c] if self.model.n > 1 else self.ring(0)
        if name == "cross":
            return self.mean(self.sigma(0, 0) * first * self.w[0][c])
        if name.startswith("labels"):
            left, right = self.y(0), self.y(1) if self.model.n > 1 else self.ring(0)
        else:
            j = 0 if name.startswith("own") else 1
            if j >= self.model.m:
                return sympy.Integer(0)
            left, right = self.sigma(j, 0), self.sigma(j, 1) if self.model.n > 1 else self.ring(0)
        return self.mean((left * first) ** 2 if name.endswith("one") else left * first * right * second)


@lru_cache(maxsize=100000)
def _weight_moment(exponents: tuple[int, ...], d: int, init: str) -> sympy.Rational:
    """Mean of a monomial in one weight vector."""
    if init == "gaussian":
        total = sympy.Integer(1)
        for k in exponents:
            total *= _gaussian_moment(k) / sympy.Integer(d) ** (k // 2)
        return total
    half = sympy.Rational(1, 2)
    top = sympy.Mul(*[sympy.rf(half, k // 2) for k in exponents])
    return top / sympy.rf(sympy.Rational(d, 2), sum(exponents) // 2)


def _gaussian_moment(k: int) -> sympy.Rational:
    return sympy.factorial2(k - 1) if k else sympy.Integer(1)
