"""Square integrability, parity, Lipschitz constant and bound: known answers, and the reasons of refusals."""

import numpy as np
import pytest
from flint import arb

from spikesym.errors import InputError, NotIntegrableError
from spikesym.numeric.integrability import check_square_integrable
from spikesym.numeric.properties import bound, lipschitz, parity
from spikesym.symbolic.functions import make_function


def link(text):
    return make_function(text, "link")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exp(s**2/4)", "infinite: g(s) grows as fast as exp(x^2/4)"),
        ("exp(s**2/4-s)", "as s -> -infinity"),
        ("exp(s**2)", "grows faster than exp(x^2/4)"),
        ("exp(exp(s))", "s -> +infinity"),
        ("1/s", "grows like |s|^(-2) at s = 0"),
        ("abs(s)**(-1/2)", "grows like |s|^(-1) at s = 0"),
        ("1/(s-2)", "|s - 2|^(-2)"),
        ("1/(s**2-2)", "sqrt(2)"),
        ("1/(tanh(s)-1/2)", "log(3)/2"),
        ("tan(s)", "pi/2"),
        ("1/sin(s)", "|s|^(-2)"),
        ("exp(1/s)", "exponential of a pole"),
    ],
)
def test_infinite_second_moments_are_refused_with_the_reason(text, reason):
    with pytest.raises(NotIntegrableError) as caught:
        check_square_integrable(link(text), "--link")
    message = str(caught.value)
    assert reason in message
    assert "infinite" in message
    assert message.startswith("--link: ")
    assert "\n" not in message


@pytest.mark.parametrize("text", ["sqrt(s)", "log(s)", "asin(s)", "sqrt(s**2-1/10)"])
def test_functions_that_are_not_real_are_refused(text):
    with pytest.raises(InputError, match="not a real number"):
        check_square_integrable(link(text), "--link")


@pytest.mark.parametrize(
    "text",
    [
        "log(abs(s))",
        "abs(s)**(-1/3)",
        "abs(s)**(-0.49)",
        "exp(s**2/4.01)",
        "exp(s**2/4-abs(s))",
        "sin(s)/s",
        "exp(-1/s**2)",
    ],
)
def test_finite_second_moments_are_accepted(text):
    check_square_integrable(link(text), "--link")


def test_the_border_of_integrability_is_where_it_should_be():
    """|s|^(-p) has a second moment for p < 1/2, exp(a s^2) for a < 1/4."""
    for text in ("abs(s)**(-0.4999)", "exp(0.2499*s**2)"):
        check_square_integrable(link(text), "--link")
    for text in ("abs(s)**(-0.5001)", "exp(0.2501*s**2)"):
        with pytest.raises(NotIntegrableError):
            check_square_integrable(link(text), "--link")


PARITY = [
    ("tanh(3*s)-s/2", "odd"),
    ("sigmoid(s)-1/2", "odd"),
    ("erf(s)", "odd"),
    ("s**3-3*s", "odd"),
    ("max(-1, min(1, s))", "odd"),
    ("heaviside(s)-1/2", "odd"),
    ("sign(s)", "odd"),
    ("abs(s)", "even"),
    ("softplus(s)-s/2", "even"),
    ("abs(cos(s))", "even"),
    ("sign(s**2-1)", "even"),
    ("s*erf(s)", "even"),
    ("relu(s)*relu(-s+1)", None),
    ("relu(s)", None),
    ("gelu", None),
    ("heaviside(s)", None),
    ("tanh(s)+1/1000000000", None),
]


@pytest.mark.parametrize(("text", "expected"), PARITY)
def test_parity(text, expected):
    assert parity(link(text)) == expected


def test_parity_with_a_free_parameter():
    assert parity(link("tanh(a*s)")) == "odd"
    assert parity(link("tanh(a*s+b)")) is None


#: text, sup|f'| or None, a word of the reason
LIPSCHITZ = [
    ("relu", "1", ""),
    ("leaky_relu(s, 1/10)", "1", ""),
    ("max(3*s, s**2*0-s)", "3", ""),
    ("tanh(3*s)-s/2", "2.5", ""),
    ("softplus", "1", ""),
    ("softplus(10*s)/10", "1", ""),
    ("log(cosh(s))", "1", ""),
    ("sigmoid(s)", "0.25", ""),
    ("sin(5*s)", "5", ""),
    ("abs(sin(s))+s", "2", ""),
    ("1/(1+s**2)", "0.649519052838329", ""),  # 3 sqrt(3)/8
    ("exp(-s**2/2)", "0.606530659712633", ""),
    ("atan(2*s)", "2", ""),
    ("sqrt(1+s**2)", "1", ""),
    ("sign", None, "jumps at x = 0"),
    ("heaviside(s-1/3)", None, "jumps at x = 1/3"),
    ("s**2", None, "grows without bound as x"),
    ("sqrt(abs(s))", None, "near x = 0"),
    ("log(abs(s-1))", None, "near x = 1"),
]


@pytest.mark.parametrize(("text", "constant", "reason"), LIPSCHITZ)
def test_lipschitz_constants(text, constant, reason):
    found = lipschitz(link(text))
    if constant is None:
        assert found.value is None
        assert reason in found.reason
        assert "not Lipschitz" in found.reason
    else:
        assert found.value.text(15) == constant
        assert found.value.certified


@pytest.mark.parametrize("text", ["gelu", "swish", "erf(abs(s))", "cos(5*s)/(1+s**2)", "tanh(s)**2*s"])
def test_lipschitz_constants_against_a_grid(text):
    """No slope on a fine grid exceeds the constant, and the largest comes close to it."""
    constant = float(lipschitz(link(text)).value)
    slopes = np.abs(link(text).derivative_numpy()(np.linspace(-30, 30, 600001)))
    assert slopes.max() <= constant * (1 + 1e-12)
    assert slopes.max() > constant * (1 - 1e-7)


BOUNDS = [
    ("tanh(s)", "1"),
    ("2*sigmoid(s)-3", "3"),
    ("atan(s)", "1.5707963267949"),
    ("sin(s)", "1"),
    ("s*exp(-s**2)", "0.428881942480353"),
    ("exp(-abs(s))", "1"),
    ("max(-1, min(1, s))", "1"),
    ("relu", None),
    ("gelu", None),
    ("log(abs(s))", None),
    ("abs(s)**(-1/3)", None),
]


@pytest.mark.parametrize(("text", "constant"), BOUNDS)
def test_bounds(text, constant):
    found = bound(link(text))
    if constant is None:
        assert found.value is None
        assert "grows without bound" in found.reason
    else:
        assert found.value.text(15) == constant


def test_a_supremum_that_cannot_be_had_is_bounded_and_said_so():
    found = bound(link("sin(s)/s"))
    assert found.value is not None
    assert "upper bound" in found.value.method
    assert 1 <= float(found.value) < 1.01


def test_callables_and_free_parameters_are_not_decided():
    assert bound(make_function(np.tanh, "link")).value is None
    assert "parameters" in lipschitz(link("tanh(a*s)")).reason


def test_the_constant_is_had_to_fifty_digits():
    ball = lipschitz(link("1/(1+s**2)")).value.enclosure(50)
    with_root = 3 * arb(3).sqrt() / 8
    assert ball.rad() < 1e-50
    assert abs(ball - with_root) < 1e-14
