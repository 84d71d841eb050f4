"""Expectations as symbolic nodes: over Gaussian variables, over a random direction, over the norm of a weight.

A node stays unevaluated in a derivation. For polynomial link and activation it has an exact rational value
(:func:`exact_mean`), which is how the general steps are checked without trusting any of the rules used in them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.function import ArgumentIndexError

from .derivation import random_rational
from .symbols import LATEX_NAMES, RHO, X

#: norm of a weight vector; component of the data orthogonal to w* in the plane of the weight
NU = sympy.Symbol("nu", positive=True)
ZETA1 = sympy.Symbol("z_1", real=True)
LATEX_NAMES.setdefault(ZETA1, r"\zeta")


class Activation(sympy.Function):
    """sigma^(k)(u) with symbolic argument: ``Activation(k, u)``; its derivative in u raises k."""

    nargs = 2
    letter = r"\sigma"

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """Derivative in the argument u; the order k is not a variable."""
        if argindex != 2:
            raise ArgumentIndexError(self, argindex)
        order, argument = self.args
        return self.func(order + 1, argument)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        order, argument = self.args
        prime = "'" * int(order) if order <= 3 else f"^{{({order})}}"
        text = rf"{self.letter}{prime}\left({printer._print(argument)}\right)"
        return text if exp is None else rf"{text}^{{{exp}}}"


class Link(Activation):
    """g^(k)(s) with symbolic argument: ``Link(k, s)``."""

    letter = "g"


class _Mean(sympy.Expr):
    """A mean: first argument the integrand, then the bound variables."""

    is_commutative = True
    is_real = True
    subscript = ""

    @property
    def integrand(self) -> sympy.Expr:
        """What is averaged."""
        return self.args[0]

    @property
    def variables(self) -> tuple[sympy.Symbol, ...]:
        """The variables averaged over."""
        return tuple(self.args[1:])

    @property
    def free_symbols(self) -> set[sympy.Symbol]:
        """Symbols that are not averaged over."""
        return set(self.integrand.free_symbols - set(self.variables))

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        text = rf"\mathbb{{E}}{self.subscript}\left[{printer._print(self.integrand)}\right]"
        return text if exp is None else rf"{text}^{{{exp}}}"


class GaussianMean(_Mean):
    """Mean over independent standard Gaussian variables: ``GaussianMean(integrand, s, zeta)``.

    Examples
    --------
    >>> exact_mean(GaussianMean(X**4 + RHO * X**2, X))
    rho + 3
    """


class DirectionMean(_Mean):
    """Mean over rho, a coordinate of a uniform point of the sphere in R^d: ``DirectionMean(integrand, rho)``."""

    subscript = r"_{\rho}"


class NormMean(_Mean):
    """Mean over nu, the norm of a weight at initialisation: ``NormMean(integrand, nu)``."""

    subscript = r"_{\nu}"


def direction_moment(k: int | sympy.Expr, d: sympy.Expr | int) -> sympy.Expr:
    """E rho^(2k) = (1/2)_k / (d/2)_k.

    Examples
    --------
    >>> direction_moment(2, 3)
    1/5
    """
    return sympy.rf(sympy.Rational(1, 2), k) / sympy.rf(sympy.sympify(d) / 2, k)


def norm_moment(k: int, d: sympy.Expr | int, init: str) -> sympy.Expr:
    """E nu^(2k): (d/2)_k (2/d)^k for w ~ N(0, I/d), 1 on the sphere."""
    if init == "sphere":
        return sympy.Integer(1)
    return sympy.rf(sympy.sympify(d) / 2, k) * (2 / sympy.sympify(d)) ** k


@dataclass(frozen=True)
class TestModel:
    """A network with polynomial activation and link at small sizes, where every mean is a rational number."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    d: int
    n: int
    m: int
    activation: sympy.Expr
    link: sympy.Expr
    eta: sympy.Rational
    tau2: sympy.Rational
    varsigma: sympy.Rational
    kappa4: sympy.Rational
    init: str
    residual: str = "full"

    def resolve(self, expr: sympy.Expr) -> sympy.Expr:
        """Put the polynomials in the place of g and sigma."""

        def put(polynomial: sympy.Expr) -> Any:
            return lambda order, argument: sympy.diff(polynomial, X, int(order)).subs(X, argument)

        return expr.replace(Link, put(self.link)).replace(Activation, put(self.activation))


def random_test_model(
    rng: random.Random,
    init: str | None = None,
    activation_degree: int = 2,
    link_degree: int = 2,
    sizes: tuple[int, int, int] | None = None,
) -> TestModel:
    """A random test model of random small sizes (or the sizes d, n, m given)."""

    def polynomial(degree: int) -> sympy.Expr:
        return sum((random_rational(rng, -2, 2, 3) * X**k for k in range(degree + 1)), sympy.Integer(0))

    d, n, m = sizes or (rng.choice([2, 3]), rng.choice([1, 2, 3]), rng.choice([1, 2, 3]))
    positive = [abs(random_rational(rng)) for _ in range(4)]
    return TestModel(
        d, n, m, polynomial(activation_degree), polynomial(link_degree),
        eta=positive[0], tau2=positive[1], varsigma=positive[2], kappa4=positive[3],
        init=init or rng.choice(["gaussian", "sphere"]),
    )  # fmt: skip


def exact_mean(expr: sympy.Expr, model: TestModel | None = None) -> sympy.Expr:
    """The exact value of every mean in ``expr``, for polynomial integrands (innermost first).

    Raises
    ------
    ValueError
        When an integrand is not a polynomial in what is averaged.
    """
    if model is not None:
        expr = model.resolve(expr)
    if not expr.has(_Mean):
        return expr
    if not isinstance(expr, _Mean):
        return expr.func(*[exact_mean(a, model) for a in expr.args])
    integrand = sympy.expand(exact_mean(expr.integrand, model))
    try:
        polynomial = sympy.Poly(integrand, *expr.variables)
    except sympy.PolynomialError as error:
        raise ValueError(f"not a polynomial in {expr.variables}: {integrand}") from error
    total = sympy.Integer(0)
    for exponents, coefficient in polynomial.terms():
        total += coefficient * sympy.Mul(*[_moment(expr, e, model) for e in exponents])
    return sympy.expand(total)


def _moment(node: _Mean, exponent: int, model: TestModel | None) -> sympy.Expr:
    if isinstance(node, GaussianMean):
        return (
            sympy.Integer(0)
            if exponent % 2
            else sympy.factorial2(exponent - 1)
            if exponent
            else sympy.Integer(1)
        )
    if model is None:
        raise ValueError("a mean over a direction or a norm needs the sizes of a model")
    if isinstance(node, DirectionMean):
        return sympy.Integer(0) if exponent % 2 else direction_moment(exponent // 2, model.d)
    if exponent % 2:
        raise ValueError("an odd power of the norm has no rational mean")
    return norm_moment(exponent // 2, model.d, model.init)


def stein(node: GaussianMean, variable: sympy.Symbol) -> GaussianMean:
    """Stein's lemma: E[zeta F] = E[dF/dzeta], applied to a mean whose integrand has the factor ``variable``.

    Examples
    --------
    >>> s = sympy.Symbol("s", real=True)
    >>> stein(GaussianMean(s * Link(0, s), s), s)
    GaussianMean(Link(1, s), s)
    """
    rest = sympy.cancel(node.integrand / variable)
    return GaussianMean(sympy.diff(rest, variable), *node.variables)


#: rho and its companion sqrt(1 - rho^2)
COMPANION = sympy.sqrt(1 - RHO**2)
