"""What ``spikesym spectrum`` is given: dimension, activation, and A and B from numbers or from a model."""

from __future__ import annotations

from fractions import Fraction

import sympy
from flint import arb, fmpq

from ..errors import InputError
from ..model import Model, Number, exact_integer, exact_number
from ..numeric.spectrum import Encloser
from ..symbolic.functions import make_function

#: largest B/A that is looked at, in units of d; and the largest d
MOST_RATIO = 10**6
MOST_DIMENSION = 10**12


def dimension(model: Model | None, d: int | None) -> int:
    """The input dimension given, or the model's."""
    given = d if d is not None else (model.d if model is not None else None)
    if given is None:
        raise InputError("missing", "-d", "give the input dimension, such as -d 1000")
    number = exact_integer(given, "-d", 2)
    if number > MOST_DIMENSION:
        raise InputError(
            f"must be at most {MOST_DIMENSION:.0e}, got {given}", "-d", "give a smaller dimension"
        )
    return number


def activation(model: Model | None) -> tuple[sympy.Expr, sympy.Expr]:
    """(p, q) of the activation p z + q |z|; refused for any other."""
    model = model or Model()
    coefficients = make_function(
        model.activation, "activation", model.parameters
    ).piecewise_linear_coefficients()
    if coefficients is None:
        raise InputError(
            f"{model.activation} is not p z + q |z|",
            "--activation",
            "exact blocks exist for relu, leaky_relu(a), abs, identity and the like",
        )
    p, q = (sympy.sympify(c) for c in coefficients)
    free = sorted(str(s) for s in p.free_symbols | q.free_symbols)
    if free:
        raise InputError(
            f"no value for the parameter {free[0]}", "--activation", f"give it with --set {free[0]}=X"
        )
    return p, q


def strength(
    model: Model | None, A: Number | None, B: Number | None, d: int, warnings: list[str]
) -> tuple[Encloser, Encloser]:
    """A and B as functions from bits to balls."""
    if (A is None) != (B is None):
        missing = "--A" if A is None else "--B"
        raise InputError("missing", missing, "give both --A X and --B Y, or a model with sizes and neither")
    if A is not None and B is not None:
        a, b = exact_number(A, "--A"), exact_number(B, "--B")
        if a <= 0:
            raise InputError(
                f"must be positive, got {A}",
                "--A",
                "A is the variance of the features off the spike; 1 before the step",
            )
        if b <= -a:
            raise InputError(f"must be above -A, got {B}", "--B", "A + B is a variance")
        if b > MOST_RATIO * d * a:
            raise InputError(
                f"B/A above 10^6 d, got {B}",
                "--B",
                "the spike would hold all but a millionth of the features' energy",
            )
        return _exactly(a), _exactly(b)
    if model is None or not model.has_sizes or model.d != d:
        raise InputError("missing", "--A and --B", "give them, or a model with -d, -n, -m and a step size")
    return _from_model(model, warnings)


def _from_model(model: Model, warnings: list[str]) -> tuple[Encloser, Encloser]:
    from ..numeric.covariance import covariance

    result = covariance(model)
    for form in ("exact", "leading"):
        first, second = result.A[form], result.B[form]
        if first is None or second is None or first.value is None or second.value is None:
            continue
        warnings.append(f"A and B are the {form} ones of the model")
        if first.value.certified and second.value.certified:
            return first.value.ball, second.value.ball
        warnings.append("A and B are not certified for this link: the enclosures are for the values printed")
        return tuple(_exactly(exact_number(float(v), "A and B")) for v in (first.value, second.value))  # type: ignore[return-value]
    raise InputError("no values of A and B for this model", "--A and --B", "give them")


def _exactly(number: Fraction) -> Encloser:
    return lambda bits: arb(fmpq(number.numerator, number.denominator))
