"""The model: exact numbers, validation, scalings."""

import pickle
from fractions import Fraction

import pytest
import sympy

from spikesym.errors import InputError
from spikesym.model import Model, exact_integer, exact_number


def test_decimals_are_the_rationals_they_are_written_as():
    model = Model(d="1e2", n=200, m="150.0", eta=0.1, noise_var="3/10")
    assert (model.d, model.m, model.eta, model.noise_var) == (100, 150, Fraction(1, 10), Fraction(3, 10))


@pytest.mark.parametrize(
    ("options", "where", "what"),
    [
        ({"d": 0}, "-d", "at least 2"),
        ({"d": 1}, "-d", "at least 2"),
        ({"d": 2.5}, "-d", "integer"),
        ({"n": -5}, "-n", "at least 1"),
        ({"m": 0}, "-m", "at least 1"),
        ({"eta": float("nan")}, "--eta", "not finite"),
        ({"eta": "nan"}, "--eta", "not a finite number"),
        ({"eta": "inf"}, "--eta", "not a finite number"),
        ({"eta": 0}, "--eta", "positive"),
        ({"eta": "1e999999999"}, "--eta", "not a finite number"),
        ({"eta": "1e9999"}, "--eta", "1e300"),
        ({"eta": "1/0"}, "--eta", "division by zero"),
        ({"eta": "__import__('os')"}, "--eta", "not a finite number"),
        ({"eta": True}, "--eta", "not a number"),
        ({"noise_var": -1}, "--noise-var", "negative"),
        ({"readout_scale": 0}, "--readout-scale", "positive"),
        ({"readout": "uniform"}, "--readout", "unknown"),
        ({"init": "zeros"}, "--init", "unknown"),
        ({"residual": "half"}, "--residual", "unknown"),
        ({"eta": 1, "eta0": 1, "zeta": 1}, "--eta and", "twice"),
        ({"eta0": 1}, "--zeta", "missing"),
        ({"zeta": 1}, "--eta0", "missing"),
        ({"eta0": 1, "zeta": 1000}, "--zeta", "outside"),
    ],
)
def test_wrong_input_names_what_where_and_what_to_do(options, where, what):
    with pytest.raises(InputError) as caught:
        Model(**options)
    error = caught.value
    assert error.where.startswith(where)
    assert what in str(error)
    assert error.remedy
    assert "\n" not in str(error)
    assert error.exit_status == 2


def test_step_size_from_its_exponent():
    model = Model(d=400, eta0="3/2", zeta="1/2")
    assert model.eta_value == 30.0
    assert model.eta_exact() == 30
    assert Model(d=10, eta0=2, zeta="3/4").eta_exact() == 2 * sympy.Integer(10) ** sympy.Rational(3, 4)
    with pytest.raises(InputError, match="--eta"):
        Model(d=10).eta_exact()


def test_missing_sizes_are_named():
    with pytest.raises(InputError, match="^-n: missing"):
        Model(d=10).require_sizes()
    with pytest.raises(InputError, match="^--eta: missing"):
        Model(d=10, n=5, m=5).require_sizes()
    Model(d=10, n=5, m=5, eta0=1, zeta="1/2").require_sizes()


def test_copies_are_validated_again():
    with pytest.raises(InputError):
        Model().with_(d=1)


def test_json_is_plain():
    document = Model(link="relu", d=10, eta0=1, zeta="1/2", noise_var="0.1").to_json()
    assert document["noise_var"] == "1/10"
    assert document["kappa4"] == 3
    assert document["eta_value"] == pytest.approx(10**0.5, rel=1e-15)


def test_errors_survive_a_process_boundary():
    error = InputError("a", "b", "c")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)


def test_a_long_input_stays_one_short_line():
    with pytest.raises(InputError) as caught:
        exact_number("9" * 100000, "--eta")
    assert len(str(caught.value)) < 500
    with pytest.raises(InputError):
        exact_integer("9" * 500, "-d", 2)
