"""A and B of a model in three forms, with certified values at the user's own n, m, d."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import sympy
from flint import arb, ctx

from ..errors import InputError, SpikesymError
from ..gaussian import GaussianData, gaussian_data
from ..model import Model
from ..symbolic.covariance import (
    ACROSS,
    Pair,
    exact_general,
    exact_homogeneous,
    leading,
    rank_one,
    with_activation,
    with_link,
)
from ..symbolic.covariance_judges import EP2, EQ2
from ..symbolic.covariance_steps import MOMENTS
from ..symbolic.symbols import C0, C1, EDSIGMA2, EG2, EG2S2, ETA, KAPPA4, MU1, MU2, TAU2, VARSIGMA, D, M, N
from .arb_eval import evaluate
from .covariance_general import GeneralMeans
from .link_means import LinkMeans, link_means
from .value import Value

FORMS = ("rank_one", "leading", "exact")


@dataclass(frozen=True)
class Form:
    """One quantity in one form.

    ``formula`` is in the symbols of the theory; ``closed`` has the constants of this link and activation put in where
    they close; ``value`` is the number at the model's sizes, None without sizes.
    """

    formula: sympy.Expr
    closed: sympy.Expr
    value: Value | None


@dataclass(frozen=True)
class CovarianceResult:
    """A, B and A + B by form (``rank_one``, ``leading``, ``exact``).

    ``exact`` entries are None where no exact form is known; ``warnings`` says why.
    ``link`` and ``activation`` are the Gaussian data; ``means`` the E P^2 and E Q^2 behind the exact form.
    """

    model: Model
    A: dict[str, Form | None]
    B: dict[str, Form | None]
    A_plus_B: dict[str, Form | None]
    link: GaussianData
    activation: GaussianData
    means: LinkMeans | None
    warnings: tuple[str, ...]

    def correction(self, quantity: str, approximate: str = "leading") -> float | None:
        """Size of the finite-size correction: (exact - approximate)/exact of A - 1, ``B`` or ``A_plus_B``."""
        exact, other = getattr(self, quantity)["exact"], getattr(self, quantity)[approximate]
        if exact is None or other is None or exact.value is None or other.value is None:
            return None
        shift = 1 if quantity == "A" else 0
        # balls, since the values of a steep link may be beyond the range of doubles
        with ctx.workprec(120):
            a, b = exact.value.enclosure(20), other.value.enclosure(20)
            return None if (a - shift).contains(0) else float(((a - b) / (a - shift)).mid())


def covariance(model: Model) -> CovarianceResult:
    """A and B of Gamma = d E[w(1) w(1)^T] = A I + B w* w*^T for this model.

    Parameters
    ----------
    model : Model
        Link, activation and modes; with d, n, m and a step size there are numbers, without them formulas.

    Raises
    ------
    InputError, NotIntegrableError
        For a link or activation outside the theory.

    Examples
    --------
    >>> result = covariance(Model(d=60, n=120, m=90, eta=120))
    >>> result.A["exact"].value.text(15), result.A_plus_B["exact"].value.text(15)
    ('1.25591750754041', '8.44326565048166')
    >>> result.B["leading"].closed
    d*eta**2*varsigma**2/(16*m**2)
    """
    link = gaussian_data(model.link, "link", model.parameters)
    activation = gaussian_data(model.activation, "activation", model.parameters)
    constants = Constants(model, link, activation)
    warnings: list[str] = []
    pairs: dict[str, tuple[Pair, Pair] | None] = {}
    for name, pair in (("rank_one", rank_one()), ("leading", leading())):
        pairs[name] = (pair, Pair(constants.close(pair.A), constants.close(pair.B)))
    pairs["exact"] = _exact(constants, warnings)
    quantities: dict[str, dict[str, Form | None]] = {"A": {}, "B": {}, "A_plus_B": {}}
    for name, both in pairs.items():
        for quantity in quantities:
            entry = None
            if both is not None:
                formula, closed = (getattr(p, quantity) for p in both)
                entry = Form(formula, closed, constants.value(formula))
            quantities[quantity][name] = entry
    warnings.extend(_vanishing(constants))
    warnings.extend(w for data in (link, activation) for w in data.warnings)
    return CovarianceResult(
        model,
        quantities["A"],
        quantities["B"],
        quantities["A_plus_B"],
        link,
        activation,
        constants.means,
        tuple(warnings),
    )


class Constants:
    """The numbers of a model by symbol, made when a formula asks for them."""

    def __init__(self, model: Model, link: GaussianData, activation: GaussianData) -> None:
        self.model, self.link, self.activation = model, link, activation
        self._sources: dict[sympy.Symbol, Callable[[], Value]] = {
            C0: lambda: link.coefficient(0),
            C1: lambda: link.coefficient(1),
            EG2: lambda: link.second_moment,
            EG2S2: lambda: link.second_moment_x2,
            MU1: lambda: activation.coefficient(1),
            MU2: lambda: activation.coefficient(2),
            EDSIGMA2: lambda: activation.derivative_second_moment,
            EP2: lambda: self._mean("EP2"),
            EQ2: lambda: self._mean("EQ2"),
        }
        for name, symbol in MOMENTS.items():
            self._sources[symbol] = partial(self._general, name)
        for name, symbol in ACROSS.items():
            self._sources[symbol] = partial(self._general, f"{name}_across")

    @cached_property
    def means(self) -> LinkMeans | None:
        """E P^2 and E Q^2 of the link."""
        return link_means(self.link, self.model.d)

    @cached_property
    def general(self) -> GeneralMeans:
        """The means over weights and data for an activation that is not p z + q|z|."""
        assert self.model.d is not None
        return GeneralMeans(
            self.link, self.activation, self.model.d, _rational(self.model.noise_var), self.model.init
        )

    def _general(self, name: str) -> Value:
        if self.model.d is None or any(data.function.expr is None for data in (self.link, self.activation)):
            return Value(method="needs d and expressions")
        how = "Hermite series in rho" if self.general.certified else "Hermite series, two rules over the norm"
        return Value(encloser=partial(self.general.ball, name), certified=self.general.certified, method=how)

    def _mean(self, name: str) -> Value:
        if self.means is None:
            raise InputError("no exact form", "--link", "give an expression without free parameters")
        value: Value = getattr(self.means, name)
        return value

    def constant(self, symbol: sympy.Symbol) -> Value | None:
        """The value behind a symbol of the link or activation, None for any other symbol."""
        source = self._sources.get(symbol)
        return None if source is None else source()

    def close(self, formula: sympy.Expr) -> sympy.Expr:
        """Put the closed forms of the constants."""
        put = {}
        for symbol in formula.free_symbols:
            value = self.constant(symbol)
            if value is not None and value.exact is not None and symbol not in (EP2, EQ2):
                put[symbol] = value.exact
        return formula.subs(put)

    def inputs(self, formula: sympy.Expr) -> Iterator[tuple[sympy.Symbol, Any]]:
        """What every symbol of a formula stands for, for ``arb_eval.evaluate``."""
        model = self.model
        fixed = {
            D: model.d, N: model.n, M: model.m, ETA: model.eta_exact(), KAPPA4: model.kappa4,
            TAU2: _rational(model.noise_var), VARSIGMA: _rational(model.readout_scale),
        }  # fmt: skip
        for symbol in sorted(formula.free_symbols, key=str):
            if symbol in fixed:
                yield symbol, fixed[symbol]
            else:
                value = self.constant(symbol)
                if value is None:
                    raise InputError(f"no number for {symbol}", "formula", "give its value with --set")
                yield symbol, value

    def value(self, formula: sympy.Expr) -> Value | None:
        """The number of a formula at the model's sizes; None without sizes or with free parameters."""
        if not self.model.has_sizes or any(data.function.parameters for data in (self.link, self.activation)):
            return None
        inputs = dict(self.inputs(formula))
        certified = all(v.certified for v in inputs.values() if isinstance(v, Value))

        def enclose(bits: int) -> arb:
            return evaluate(
                formula, bits, {k: v.ball if isinstance(v, Value) else v for k, v in inputs.items()}
            )

        return Value(encloser=enclose, certified=certified, method="formula at the model's sizes")


def _rational(number: Any) -> sympy.Rational:
    return sympy.Rational(number.numerator, number.denominator)


def _exact(constants: Constants, warnings: list[str]) -> tuple[Pair, Pair] | None:
    """The exact pair and its closed version, or None with the reason in ``warnings``."""
    model = constants.model
    slopes = constants.activation.function.piecewise_linear_coefficients()
    if slopes is None:
        return _general(constants, warnings)
    pair = with_activation(exact_homogeneous(model.residual == "full"), *slopes)
    try:
        means = constants.means
    except SpikesymError as error:
        warnings.append(f"no exact form: {error}")
        return None
    if means is None and any(e.has(EP2, EQ2) for e in (pair.A, pair.B)):
        warnings.append(
            f"no exact form for the link {constants.link.function.text}: it needs an expression without free parameters"
        )
        return None
    closed = pair
    if (
        means is not None
        and means.forms is not None
        and means.forms.EP2 is not None
        and means.forms.EQ2 is not None
    ):
        closed = with_link(pair, means.forms)
    return pair, Pair(constants.close(closed.A), constants.close(closed.B))


def _general(constants: Constants, warnings: list[str]) -> tuple[Pair, Pair] | None:
    """The exact pair of an activation that is not p z + q|z|, with a value where its series can be certified."""
    model = constants.model
    if any(
        data.function.expr is None or data.function.parameters
        for data in (constants.link, constants.activation)
    ):
        warnings.append("no exact form: link and activation must be expressions without free parameters")
        return None
    pair = exact_general(model.residual == "full")
    if not model.has_sizes:
        return pair, pair
    try:
        value = constants.value(pair.A)
        assert value is not None
        reached = value.enclosure(15)
    except SpikesymError as error:
        warnings.append(f"no exact value: {error}")
        return None
    if not constants.general.certified:
        radius = float(reached.rad())
        warnings.append(
            f"the exact values average over the norm of the weights by two rules that differ by {radius:.1e}: not certified"
        )
    return pair, pair


def _vanishing(constants: Constants) -> list[str]:
    """Say so when the leading B is zero, and what is left."""
    found = []
    for data, symbol, name, what in (
        (constants.link, C1, "c_1", "link"),
        (constants.activation, MU1, "mu_1", "activation"),
    ):
        value = constants.constant(symbol)
        if value is None or not value.has_number or value.is_zero is False:
            continue
        text = f"{name} = 0 for the {what} {data.function.text}: the leading B is zero, the rest is smaller by 1/n and 1/d"
        if what == "link":
            exponent = data.information_exponent
            text += f" (information exponent {exponent.k}: {exponent.detail})"
        if value.is_zero is None:
            text += "; zero to 50 digits, not proved"
        found.append(text)
    return found
