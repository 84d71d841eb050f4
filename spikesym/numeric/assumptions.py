"""The paper's assumptions, checked for one model, each with what changes where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..gaussian import GaussianData
from ..model import Model
from ..symbolic.covariance_phases import phase
from .value import Value


@dataclass(frozen=True)
class Assumption:
    """One assumption: its name, whether it holds, and why or what follows."""

    name: str
    holds: bool
    detail: str


def assumptions(model: Model, link: GaussianData, activation: GaussianData) -> tuple[Assumption, ...]:
    """Centred link, c_1 != 0, Lipschitz and bounded link, Lipschitz activation, Gaussian readout, zeta in [1/2, 1).

    Examples
    --------
    >>> from spikesym.gaussian import gaussian_data
    >>> data = gaussian_data("relu", "link"), gaussian_data("relu", "activation")
    >>> [a.name for a in assumptions(Model(), *data) if not a.holds]
    ['E g = 0', 'g bounded']
    """
    return (
        _centred(link.coefficient(0)),
        _spiked(link),
        _finite("g Lipschitz", link.lipschitz, link.lipschitz_reason, "constant"),
        _finite("g bounded", link.bounded, link.bounded_reason, "|g| <="),
        _finite("sigma Lipschitz", activation.lipschitz, activation.lipschitz_reason, "constant"),
        _readout(model),
        _scaling(model),
    )


def _shown(value: Value) -> str:
    return value.text(6) if value.has_number else str(value.exact)


def _centred(c0: Value) -> Assumption:
    if not c0.has_number and c0.exact != 0:
        return Assumption("E g = 0", False, f"c_0 = {c0.exact}, which depends on parameters")
    if c0.is_zero is False:
        text = f"c_0 = {_shown(c0)}: A has the extra term varsigma^2 eta^2 c_0^2 mu_2^2/m^2, of the size of its 1/alpha term"
        return Assumption("E g = 0", False, text)
    return Assumption("E g = 0", True, "c_0 = 0" if c0.is_zero else "c_0 is zero to 50 digits, not proved")


def _spiked(link: GaussianData) -> Assumption:
    c1 = link.coefficient(1)
    if not c1.has_number and c1.exact != 0:
        return Assumption("c_1 != 0", True, f"c_1 = {c1.exact}, where the parameters do not make it zero")
    if c1.is_zero is False:
        return Assumption("c_1 != 0", True, f"c_1 = {_shown(c1)}")
    exponent = link.information_exponent
    name = (
        f"information exponent {exponent.k}"
        if exponent.k is not None
        else "no information exponent was found"
    )
    return Assumption(
        "c_1 != 0", False, f"c_1 = 0, {name}: the leading B is zero, B is of the next order in 1/d and 1/n"
    )


def _finite(name: str, value: Value | None, reason: str, label: str) -> Assumption:
    if value is None:
        return Assumption(name, False, f"{reason}; A and B hold all the same: they need only finite moments")
    return Assumption(name, True, f"{label} {_shown(value)}")


def _readout(model: Model) -> Assumption:
    name = "readout gaussian"
    if model.readout == "gaussian":
        return Assumption(name, True, "kurtosis 3")
    text = "readout +-varsigma/sqrt(m): the same Gamma to leading order, but the features are a mixture of two Gaussians"
    return Assumption(name, False, text)


def _scaling(model: Model) -> Assumption:
    name = "zeta in [1/2, 1)"
    if model.zeta is None:
        return Assumption(
            name, True, "no exponent is given: one step size belongs to every scaling eta_0 d^zeta"
        )
    found = phase(model.zeta)
    return Assumption(name, Fraction(1, 2) <= model.zeta < 1, f"zeta = {model.zeta}: {found.text}")
