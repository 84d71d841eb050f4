"""The expansion of A and B in 1/d for one model: the coefficients of its link and activation put in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from flint import arb

from ..gaussian import GaussianData, gaussian_data
from ..model import Model
from ..symbolic.covariance_expansion import expansion
from ..symbolic.covariance_series import family_of
from ..symbolic.symbols import ALPHA, BETA, EG2S2, ETA0, KAPPA4, TAU2, VARSIGMA, ZETA, D, X
from ..symbolic.vocabulary import hermite_polynomial
from .arb_eval import evaluate
from .value import Value

#: closed coefficients longer than this stay symbols in the formulas
_LONGEST = 60


@dataclass(frozen=True)
class Term:
    """One term ``coefficient * d**exponent``.

    ``exponent`` is linear in zeta; ``coefficient`` is in alpha, beta, eta_0 and the Hermite coefficients of link and
    activation; ``closed`` has those put in where they close; ``value`` is the number of the coefficient where the model
    gives alpha, beta and eta_0.
    """

    exponent: sympy.Expr
    coefficient: sympy.Expr
    closed: sympy.Expr
    value: Value | None


@dataclass(frozen=True)
class CovarianceExpansion:
    """A = 1 + sum of ``A``, B = sum of ``B``, each to ``order`` orders of 1/d beyond the first."""

    A: tuple[Term, ...]
    B: tuple[Term, ...]
    order: int

    def formula(self, quantity: str) -> sympy.Expr:
        """The expansion as one expression in d, zeta, alpha, beta and eta_0."""
        terms = self.A if quantity == "A" else self.B
        return sympy.Add(int(quantity == "A"), *[t.closed * D**t.exponent for t in terms])

    def at(self, quantity: str, zeta: Any) -> sympy.Expr:
        """:meth:`formula` at one exponent zeta of the step size."""
        return self.formula(quantity).subs(ZETA, sympy.Rational(str(zeta)))


def covariance_expansion(model: Model, order: int = 2) -> CovarianceExpansion:
    """A and B at n = alpha d, m = beta d, eta = eta_0 d^zeta as d grows.

    Parameters
    ----------
    model : Model
        Link, activation and modes; sizes serve for the numbers only.
    order : int
        Orders of 1/d beyond the leading one.

    Examples
    --------
    >>> terms = covariance_expansion(Model(residual="labels"), order=1).B
    >>> terms[0].exponent, terms[0].closed
    (2*zeta - 1, eta_0**2*varsigma**2/(16*beta**2))
    """
    link = gaussian_data(model.link, "link", model.parameters)
    activation = gaussian_data(model.activation, "activation", model.parameters)
    source = Coefficients(link, activation)
    # for p z + q|z| only E nu^2 = 1 enters, so both initialisations have the same A and B
    init = "sphere" if activation.function.piecewise_linear_coefficients() is not None else model.init
    found = expansion(order, init, model.residual == "full")
    terms = {
        quantity: tuple(_term(exponent, expr, source, model) for exponent, expr in found[quantity].items())
        for quantity in ("A", "B")
    }
    return CovarianceExpansion(
        tuple(t for t in terms["A"] if t.closed != 0), tuple(t for t in terms["B"] if t.closed != 0), order
    )


class Coefficients:
    """Values of the Hermite coefficients of g, g^2, sigma, sigma'^2, sigma^2 and sigma^2 sigma'^2."""

    def __init__(self, link: GaussianData, activation: GaussianData) -> None:
        self.link, self.activation = link, activation
        self._product: GaussianData | None = None
        self._known: dict[tuple[str, int], Value] = {}

    def value(self, family: str, k: int) -> Value:
        """E[F He_k] of a family F (see ``covariance_series.FAMILIES``)."""
        if (family, k) not in self._known:
            self._known[family, k] = self._make(family, k)
        return self._known[family, k]

    def _make(self, family: str, k: int) -> Value:
        squares: dict[str, Callable[..., Value]] = {
            "gamma": partial(self.link.expectation, 2),
            "delta": partial(self.activation.expectation, 2, 1),
            "pi": partial(self.activation.expectation, 2),
        }
        if family == "c":
            return self.link.coefficient(k)
        if family == "mu":
            return self.activation.coefficient(k)
        hermite = sympy.expand(hermite_polynomial(k, X))
        if family == "omega":
            return self._own_product().expectation(2, polynomial=hermite)
        return squares[family](polynomial=hermite)

    def _own_product(self) -> GaussianData:
        """Gaussian data of sigma sigma'."""
        if self._product is None:
            expr = self.activation.function.symbolic()
            slopes = self.activation.function.piecewise_linear_coefficients()
            if slopes is not None:
                p, q = slopes
                product = (p**2 + q**2) * X + 2 * p * q * sympy.Abs(X)
            else:
                product = expr * sympy.diff(expr, X)
            self._product = gaussian_data(product, "activation")
        return self._product


def _term(exponent: sympy.Expr, expr: sympy.Expr, source: Coefficients, model: Model) -> Term:
    values: dict[sympy.Symbol, Value] = {}
    put: dict[sympy.Symbol, sympy.Expr] = {}
    for symbol in expr.free_symbols:
        index = family_of(symbol)
        if index is None:
            continue
        value = values[symbol] = source.link.second_moment_x2 if symbol == EG2S2 else source.value(*index)
        if value.exact is not None and value.exact.count_ops() <= _LONGEST:
            put[symbol] = value.exact
    closed = sympy.factor_terms(sympy.expand(expr.subs(put)))
    return Term(exponent, expr, closed, _value(expr, values, model))


def _value(expr: sympy.Expr, values: dict[sympy.Symbol, Value], model: Model) -> Value | None:
    if (
        model.eta0 is None
        or None in (model.d, model.n, model.m)
        or not all(v.has_number for v in values.values())
    ):
        return None
    assert model.d is not None
    fixed: dict[sympy.Symbol, Any] = {
        ALPHA: sympy.Rational(model.n or 0, model.d), BETA: sympy.Rational(model.m or 0, model.d),
        ETA0: sympy.Rational(str(model.eta0)), KAPPA4: model.kappa4,
        TAU2: sympy.Rational(str(model.noise_var)), VARSIGMA: sympy.Rational(str(model.readout_scale)),
    }  # fmt: skip

    def enclose(bits: int) -> arb:
        return evaluate(expr, bits, {**fixed, **{k: v.ball for k, v in values.items()}})

    return Value(
        encloser=enclose,
        certified=all(v.certified for v in values.values()),
        method="coefficient of the expansion",
    )


def next_order(source: CovarianceExpansion) -> Term | None:
    """The first term of B that does not vanish: what is left where c_1 mu_1 = 0."""
    return source.B[0] if source.B else None
