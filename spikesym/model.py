"""The model and every convention, once: sizes, scalings, modes, validation.

No SymPy at import time, so that ``spikesym --help`` and every refusal of a wrong input answer at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import InputError

if TYPE_CHECKING:
    import sympy

Number = int | float | str | Fraction

READOUT_KURTOSIS = {"gaussian": 3, "rademacher": 1}
INITS = ("gaussian", "sphere")
RESIDUALS = ("full", "labels")

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?|[+-]?\d+\s*/\s*\d+")
_MAX_DIGITS = 400


def exact_number(value: Number, where: str) -> Fraction:
    """Read a number as the rational it is written as: ``0.1`` is 1/10.

    Raises :class:`~spikesym.errors.InputError` for anything that is not a finite decimal or fraction.

    Examples
    --------
    >>> exact_number("0.3", "--eta"), exact_number(2.5, "--eta"), exact_number("1e3", "-d")
    (Fraction(3, 10), Fraction(5, 2), Fraction(1000, 1))
    """
    remedy = "give a finite number such as 120, 0.5, 3/10 or 1e3"
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool):
        raise InputError(f"not a number: {value!r}", where, remedy)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"not finite: {value!r}", where, remedy)
        value = repr(value)
    text = str(value).strip()
    if len(text) > _MAX_DIGITS or not _NUMBER.fullmatch(text):
        raise InputError(f"not a finite number: {text!r}", where, remedy)
    try:
        number = Fraction(text.replace(" ", ""))
    except ZeroDivisionError:
        raise InputError(f"division by zero in {text!r}", where, remedy) from None
    if number and not -300 < math.log10(abs(number.numerator)) - math.log10(number.denominator) < 300:
        raise InputError(f"outside 1e-300 ... 1e300: {text!r}", where, remedy)
    return number


def exact_integer(value: Number, where: str, least: int) -> int:
    """Read an integer of at least ``least``; ``1e9`` and ``100.0`` are integers too."""
    number = exact_number(value, where)
    if number.denominator != 1:
        raise InputError(f"must be an integer, got {value}", where, f"give an integer of at least {least}")
    if number < least:
        raise InputError(
            f"must be at least {least}, got {value}", where, f"give an integer of at least {least}"
        )
    return int(number)


@dataclass(frozen=True)
class Model:
    """One-step training of f(x) = m^(-1/2) sum_j a_j sigma(<w_j, x>) on y = g(<w*, x>) + eps.

    Parameters
    ----------
    link, activation : str, SymPy expression or callable
        g as an expression in ``s`` and sigma as one in ``z`` (names such as ``relu`` serve for both).
    d, n, m : int, optional
        Input dimension (at least 2), samples in the gradient step, hidden neurons (at least 1).
    eta, or eta0 and zeta : number, optional
        Step size; ``eta = eta0 * d**zeta``. Positive.
    noise_var : number
        tau^2, the variance of the label noise.
    readout_scale : number
        varsigma, E a^2 = varsigma^2 / m.
    readout : {"gaussian", "rademacher"}
        Law of the readout; its kurtosis is 3 or 1.
    init : {"gaussian", "sphere"}
        w_j(0) ~ N(0, I/d), or uniform on the unit sphere.
    residual : {"full", "labels"}
        Gradient with residual y - f(x), or with the labels alone (f = 0 at initialisation).
    parameters : mapping
        Values of free parameters of the expressions, as ``{"a": 2}``.

    Numbers are kept exactly as written (decimals become rationals).

    Raises
    ------
    InputError
        When a size, a step or a mode is out of range.

    Examples
    --------
    >>> model = Model(link="relu", d=100, n=200, m=150, eta0=2, zeta="1/2")
    >>> model.eta_value, model.kappa4
    (20.0, 3)
    >>> Model(d=0)
    Traceback (most recent call last):
        ...
    spikesym.errors.InputError: -d: must be at least 2, got 0; give an integer of at least 2
    """

    link: Any = "relu"
    activation: Any = "relu"
    d: int | None = None
    n: int | None = None
    m: int | None = None
    eta: Fraction | None = None
    eta0: Fraction | None = None
    zeta: Fraction | None = None
    noise_var: Fraction = Fraction(0)
    readout_scale: Fraction = Fraction(1)
    readout: str = "gaussian"
    init: str = "gaussian"
    residual: str = "full"
    parameters: Mapping[str, Fraction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def put(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        for name, least in (("d", 2), ("n", 1), ("m", 1)):
            if getattr(self, name) is not None:
                put(name, exact_integer(getattr(self, name), f"-{name}", least))
        for name in ("eta", "eta0", "zeta", "noise_var", "readout_scale"):
            if getattr(self, name) is not None:
                put(name, exact_number(getattr(self, name), "--" + name.replace("_", "-")))
        for name in ("eta", "eta0", "readout_scale"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InputError(
                    f"must be positive, got {value}", "--" + name.replace("_", "-"), "give a positive number"
                )
        if self.noise_var < 0:
            raise InputError(
                f"must not be negative, got {self.noise_var}",
                "--noise-var",
                "give a variance, 0 for no noise",
            )
        if self.eta is not None and (self.eta0 is not None or self.zeta is not None):
            raise InputError(
                "given twice", "--eta and --eta0/--zeta", "give --eta X alone, or --eta0 X with --zeta Z"
            )
        if (self.eta0 is None) != (self.zeta is None):
            missing, there = ("--eta0", "--zeta") if self.eta0 is None else ("--zeta", "--eta0")
            raise InputError(
                f"missing beside {there}", missing, "give both --eta0 X and --zeta Z, or --eta X alone"
            )
        if self.zeta is not None and abs(self.zeta) > 10:
            raise InputError(
                f"outside -10 ... 10: {self.zeta}", "--zeta", "the theory is about zeta in [1/2, 1)"
            )
        for name, known in (("readout", tuple(READOUT_KURTOSIS)), ("init", INITS), ("residual", RESIDUALS)):
            if getattr(self, name) not in known:
                raise InputError(
                    f"unknown: {getattr(self, name)!r}", "--" + name, "choose " + " or ".join(known)
                )
        put("parameters", {str(k): exact_number(v, f"--set {k}") for k, v in dict(self.parameters).items()})

    @property
    def kappa4(self) -> int:
        """Kurtosis E a^4 / (E a^2)^2 of the readout."""
        return READOUT_KURTOSIS[self.readout]

    @property
    def has_sizes(self) -> bool:
        """Whether d, n, m and the step size are all given, so that numbers can be computed."""
        return None not in (self.d, self.n, self.m) and (self.eta is not None or self.eta0 is not None)

    @property
    def eta_value(self) -> float:
        """The step size as a float; needs ``eta``, or ``eta0``, ``zeta`` and ``d``."""
        if self.eta is not None:
            return float(self.eta)
        if self.eta0 is None or self.zeta is None or self.d is None:
            raise InputError("no step size", "--eta", "give --eta X, or --eta0 X --zeta Z with -d")
        return float(self.eta0) * float(self.d) ** float(self.zeta)

    def eta_exact(self) -> sympy.Expr:
        """The step size as an exact SymPy number, ``eta0 * d**zeta`` where it was given so."""
        import sympy

        if self.eta is not None:
            return sympy.Rational(self.eta.numerator, self.eta.denominator)
        if self.eta0 is None or self.zeta is None or self.d is None:
            raise InputError("no step size", "--eta", "give --eta X, or --eta0 X --zeta Z with -d")
        return sympy.Rational(str(self.eta0)) * sympy.Integer(self.d) ** sympy.Rational(str(self.zeta))

    def require_sizes(self) -> None:
        """Raise :class:`InputError` naming the first size that is missing."""
        for name in ("d", "n", "m"):
            if getattr(self, name) is None:
                raise InputError(
                    "missing", f"-{name}", f"give -{name} INT; this command needs d, n, m and a step size"
                )
        if self.eta is None and self.eta0 is None:
            raise InputError("missing", "--eta", "give --eta X, or --eta0 X --zeta Z")

    def with_(self, **changes: Any) -> Model:
        """A copy with some fields changed, validated again."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """The model as plain JSON values; rationals as strings such as ``"1/10"``."""
        document: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Fraction):
                value = int(value) if value.denominator == 1 else str(value)
            elif isinstance(value, Mapping):
                value = {k: str(v) for k, v in value.items()}
            elif f.name in ("link", "activation") and not isinstance(value, str):
                value = getattr(value, "__name__", str(value))
            document[f.name] = value
        document["kappa4"] = self.kappa4
        if self.eta is not None or (self.eta0 is not None and self.d is not None):
            document["eta_value"] = self.eta_value
        return document
