"""Values: every printed digit is right, and a radius is never understated."""

import mpmath
import pytest
import sympy
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from spikesym.errors import CertificationError, InputError
from spikesym.numeric.value import Value, ball_text, radius_text


def test_every_digit_is_right_at_any_length():
    value = Value(exact=1 / sympy.sqrt(2 * sympy.pi))
    with mpmath.workdps(1100):
        truth = 1 / mpmath.sqrt(2 * mpmath.pi)
        for digits in (1, 2, 15, 50, 300, 1000):
            assert value.text(digits) == mpmath.nstr(truth, digits)


def test_cancellation_raises_the_precision_instead_of_losing_digits():
    # pi minus its 60-digit truncation: 1e-60-sized, all leading digits cancel
    with mpmath.workdps(140):
        cut = mpmath.nstr(mpmath.pi, 60)
        truth = mpmath.nstr(mpmath.pi - mpmath.mpf(cut), 15)
    assert Value(exact=sympy.pi - sympy.Rational(cut)).text(15) == truth


@settings(max_examples=60, deadline=None)
@given(st.fractions(min_value=-(10**6), max_value=10**6, max_denominator=10**9), st.integers(1, 40))
def test_rationals_are_correctly_rounded(q, digits):
    text = Value(exact=sympy.Rational(q.numerator, q.denominator)).text(digits)
    if q == 0:
        assert text == "0"
        return
    error = abs(sympy.Rational(text) - sympy.Rational(q.numerator, q.denominator))
    exponent = sympy.floor(sympy.log(abs(sympy.Rational(q.numerator, q.denominator)), 10))
    assert error <= sympy.Rational(1, 2) * sympy.Integer(10) ** (exponent + 1 - digits)


def test_zero_exact_and_zero_within_radius():
    assert Value(exact=sympy.Integer(0)).is_zero is True
    assert Value(exact=sympy.Integer(0)).text() == "0"
    fuzzy = Value(encloser=lambda bits: arb(0, arb(2) ** (-bits)))
    assert fuzzy.is_zero is None
    assert fuzzy.text() == "0"
    assert Value(exact=sympy.sqrt(2)).is_zero is False


def test_radius_is_rounded_up():
    assert radius_text(arb(1, 0)) == "0"
    ball = arb("1 +/- 1.234e-20")
    assert float(radius_text(ball)) >= float(ball.rad())
    assert float(radius_text(ball)) < 1.2 * float(ball.rad())
    assert radius_text(arb("1 +/- 9.999e-29")) == "1.0e-28"


def test_an_enclosure_that_does_not_shrink_is_refused():
    with pytest.raises(CertificationError, match="no enclosure to 18 digits; reached"):
        ball_text(lambda bits: arb("1 +/- 0.1"), 15)


def test_free_parameter_has_no_number():
    value = Value(exact=sympy.Symbol("a", real=True) * 2)
    assert not value.has_number
    assert value.to_json()["value"] is None
    with pytest.raises(InputError, match="free parameters"):
        value.text()
