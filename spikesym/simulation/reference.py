"""What the theory says about the quantities that a simulation measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import CertificationError
from ..model import Model

if TYPE_CHECKING:
    from ..numeric.covariance import Form


@dataclass(frozen=True)
class Reference:
    """A value of the theory, or the reason why there is none.

    Attributes
    ----------
    value : float or None
    reason : str
        Empty where there is a value.
    """

    value: float | None
    reason: str = ""


def exact_covariance(model: Model) -> tuple[Reference, Reference]:
    """The exact finite-size A and A + B of a model.

    Raises :class:`~spikesym.errors.NotIntegrableError` where the theory has no finite A and B at all.

    Examples
    --------
    >>> A, A_plus_B = exact_covariance(Model(d=60, n=120, m=90, eta=120))
    >>> round(A_plus_B.value, 9)
    8.44326565
    """
    from ..numeric.covariance import covariance

    try:
        result = covariance(model)
    except CertificationError as error:
        missing = Reference(None, str(error))
        return missing, missing
    A, A_plus_B = _number(result.A["exact"]), _number(result.A_plus_B["exact"])
    if A is None or A_plus_B is None:
        reasons = [w for w in result.warnings if w.startswith("no exact form")]
        missing = Reference(None, "; ".join(reasons) or "no exact form is known for this model")
        return missing, missing
    return Reference(A), Reference(A_plus_B)


def annealed_spike(model: Model) -> tuple[float, float, str]:
    """A and B of a model in the best form there is, and that form's name (``exact`` or ``leading``)."""
    from ..numeric.covariance import covariance

    result = covariance(model)
    for form in ("exact", "leading"):
        A, B = _number(result.A[form]), _number(result.B[form])
        if A is not None and B is not None:
            return A, B, form
    raise AssertionError("the leading form has a value for every model with sizes")


def leading_overlap(model: Model) -> Reference:
    """alpha c_1^2 / (alpha c_1^2 + E y^2): the limit of <u, w*>^2 as n, m, d grow in proportion.

    Examples
    --------
    >>> round(leading_overlap(Model(d=100, n=200, m=150, eta=100)).value, 12)
    0.5
    """
    from ..numeric.quenched import quenched_limits

    try:
        return Reference(float(quenched_limits(model)["overlap2"]))
    except CertificationError as error:
        return Reference(None, str(error))


def _number(form: Form | None) -> float | None:
    return None if form is None or form.value is None else float(form.value)
