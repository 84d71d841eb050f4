"""Arb evaluation of SymPy expressions against mpmath and published values."""

import mpmath
import pytest
import sympy
from flint import acb, arb, ctx
from sympy import (
    Abs,
    CRootOf,
    DiracDelta,
    Heaviside,
    I,
    Integral,
    Max,
    Min,
    Piecewise,
    Rational,
    Symbol,
    acos,
    asin,
    atan,
    atan2,
    beta,
    binomial,
    cos,
    erf,
    erfc,
    exp,
    floor,
    gamma,
    hyper,
    log,
    loggamma,
    lowergamma,
    oo,
    pi,
    polygamma,
    rf,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

from spikesym.errors import CertificationError
from spikesym.numeric.arb_eval import compile, evaluate
from spikesym.symbolic.vocabulary import HermiteProb

x = Symbol("x", real=True)
d = Symbol("d", positive=True, integer=True)
HALF = Rational(1, 2)


def _contains(ball: arb, text: str, ulps: int = 1) -> bool:
    """The decimal ``text`` agrees with the ball to its last digit."""
    ctx.prec = 500
    digits = text.split("e")[0].replace("-", "").replace(".", "").lstrip("0")
    unit = mpmath.mpf(10) ** (mpmath.floor(mpmath.log10(abs(mpmath.mpf(text)))) + 1 - len(digits))
    return bool(abs(ball - arb(text)) <= arb(str(unit * ulps)) and ball.rad() < arb(str(unit)))


HUGE = [
    (gamma((d + 1) / 2) / gamma(d / 2), 10**6, "707.1066044098743248785"),
    (gamma((d + 1) / 2) / gamma(d / 2), 10**9, "22360.67976940772702104"),
    (exp(loggamma((d + 1) / 2) - loggamma(d / 2)), 10**9, "22360.67976940772702104"),
    (beta(HALF, (d - 1) / 2), 10**9, "7.926654601157012979e-5"),
    (beta(HALF, (d - 1) / 2), 10**6, "0.002506630154604164781"),
    (hyper((HALF, HALF), (d / 2,), Rational(9, 10)), 10**4, "1.000045009114094885"),
    (hyper((HALF, HALF), (d / 2,), Rational(9, 10)), 10**6, "1.000000450000911252"),
    (hyper((HALF, HALF), (d / 2,), Rational(9, 10)), 10**9, "1.00000000045000000091"),
    (hyper((HALF, HALF), (d / 2,), 1), 10**4, "1.000050011252438009"),
    (polygamma(1, d / 2), 10**9, "2.00000000200000000133333333333e-9"),
]


@pytest.mark.parametrize(("expr", "size", "value"), HUGE, ids=lambda v: str(v)[:40])
def test_huge_arguments(expr, size, value):
    assert _contains(evaluate(expr, 200, {d: size}), value)


@pytest.mark.parametrize(
    ("parameters", "z", "value"),
    [
        (((100, 100), (300,)), -HALF, "3.950425914539975318e-7"),
        (((1000, -1000), (2000,)), HALF, "2.307048334895234103e-114"),
        (((-10, 200000010), (Rational(200000001, 2),)), Rational(0.49995), "8.031243299242588499e-40"),
        # the decimal itself, not the double next to it: that changes the twelfth digit
        (((-10, 200000010), (Rational(200000001, 2),)), Rational(49995, 100000), "8.031243299219529168e-40"),
    ],
)
def test_hypergeometric_functions_that_break_scipy(parameters, z, value):
    assert _contains(evaluate(hyper(*parameters, z), 400), value)


CONSTANTS = [
    pi * sqrt(2) - exp(Rational(1, 3)),
    erf(HALF) + erfc(sqrt(2)),
    asin(Rational(3, 10)) * acos(Rational(-4, 5)) + atan(7),
    atan2(-1, -sqrt(3)),
    tan(1) * sinh(Rational(7, 3)) / tanh(sqrt(3)),
    Rational(2, 7) ** Rational(5, 3) + 10 ** Rational(-1, 7),
    log(1 + sqrt(5)) * cos(exp(1)) * sin(100),
    polygamma(1, Rational(7, 2)) + polygamma(0, Rational(1, 3)),
    binomial(Rational(9, 2), 3) * rf(Rational(1, 3), 5),
    lowergamma(Rational(3, 2), 2) / gamma(Rational(3, 2)),
    hyper((Rational(1, 3),), (Rational(5, 2),), -4),
    hyper((Rational(1, 3), 1), (Rational(5, 2),), Rational(-3, 2)),
    Max(pi, 3, exp(1)) - Min(sqrt(2), Rational(7, 5)),
    Abs(sqrt(2) - 2) * sign(1 - pi) + floor(10 * pi),
    Heaviside(pi - 3) + Piecewise((1, pi < 3), (7, sympy.And(pi > 3, exp(1) < 3)), (9, True)),
    sqrt(-2) * sqrt(-3) + exp(I * pi / 3) + exp(-I * pi / 3),
]


@pytest.mark.parametrize("expr", CONSTANTS, ids=str)
def test_constants_contain_the_value_of_mpmath(expr):
    ball = evaluate(expr, 150)
    ctx.prec = 300
    with mpmath.workdps(60):
        # SymPy's own evaluation runs on mpmath, not on Arb
        value = sympy.N(expr, 50, chop=True)
        assert abs(ball - arb(str(value))) < arb("1e-40")
    assert ball.rad() < 1e-35


def test_algebraic_number_is_the_right_root():
    roots = [CRootOf(x**3 - 5 * x + 1, i) for i in range(3)]
    balls = [evaluate(r, 120) for r in roots]
    assert balls[0] < balls[1]
    assert balls[1] < balls[2]
    for ball in balls:
        assert (ball**3 - 5 * ball + 1).contains(0)
        assert ball.rad() < 1e-30
    with pytest.raises(CertificationError, match="real root"):
        evaluate(CRootOf(x**3 - x + 1, 2), 60)


def test_undecided_conditions_and_signs_are_enclosed_not_guessed():
    zero = sqrt(2) * sqrt(3) - sqrt(6) + (exp(1) ** 2 - exp(2))
    tiny = sin(pi / 7) ** 2 + cos(pi / 7) ** 2 - 1
    assert evaluate(sign(tiny), 80).contains(0)
    branches = evaluate(Piecewise((3, tiny > 0), (5, True)), 80)
    assert branches.contains(3)
    assert branches.contains(5)
    assert evaluate(zero, 80).contains(0)


@pytest.mark.parametrize(
    "expr", [DiracDelta(1 + x), Integral(sin(x), (x, 0, 1)), oo, sympy.zoo, Symbol("q") + 1, sqrt(-2) + 1]
)
def test_what_has_no_ball_is_refused_by_name(expr):
    with pytest.raises(CertificationError) as caught:
        evaluate(expr, 64, {x: 1})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("expr", [Abs(x), Max(x, 1), sign(x), Heaviside(x), Piecewise((x, x > 0), (0, True))])
def test_nonanalytic_functions_of_a_complex_variable_are_refused(expr):
    with pytest.raises(CertificationError, match="not analytic"):
        compile(expr, (x,))
    value = compile(expr, (x,), real=True)(arb(-0.5, 1))
    for point in (-1.5, -0.25, 0.5):
        assert value.contains(arb(str(sympy.N(expr.subs(x, point)))))


ANALYTIC = [
    (log(1 + exp(x)), -3, 2),
    (sqrt(1 + x**2), -3, 2),
    (sqrt(x), 0.5, 4),
    (log(x) * x, 0.25, 4),
    ((2 + x) ** Rational(1, 3), -1.9, 3),
    ((2 + x) ** Rational(-3, 2), -1.5, 3),
    (atan(3 * x) + asin(x / 9) + acos(x / 8), -2, 3),
    (tanh(5 * x) * erf(x), -2, 3),
    (1 / (1 + 25 * x**2), -1, 1),
    (2**x * x**3, -1, 2),
    (sympy.acosh(x) + sympy.asinh(x), 1.5, 4),
    (loggamma(x), 0.5, 6),
]


@pytest.mark.parametrize(("expr", "low", "high"), ANALYTIC, ids=lambda v: str(v))
def test_compiled_functions_integrate_rightly(expr, low, high):
    """The flag ``analytic`` is honoured: acb.integral agrees with tanh-sinh quadrature by mpmath."""
    ctx.prec = 120
    function = compile(expr, (x,))
    ball = acb.integral(lambda z, analytic: function(z, analytic=analytic), low, high).real
    with mpmath.workdps(40):
        value = mpmath.quad(sympy.lambdify(x, expr, "mpmath"), [low, (low + high) / 2, high])
        assert abs(ball.mid() - arb(str(value))) < arb("1e-30")
    assert ball.rad() < 1e-30


@pytest.mark.parametrize("expr", [sqrt(x), log(x), x ** Rational(1, 3), asin(x), sympy.acosh(x), loggamma(x)])
def test_balls_that_touch_a_branch_cut_are_not_finite(expr):
    function = compile(expr, (x,))
    across = acb(arb(-2.5, 0.25), arb(0, 0.25))
    assert not function(across, analytic=True).is_finite()
    beside = acb(arb(0.5, 0.125), arb(1.5, 0.125))
    assert function(beside, analytic=True).is_finite()


@pytest.mark.parametrize(
    ("degree", "at", "value"),
    [
        (100, Rational(43, 10), "9.972972573424412395e79"),
        (40, Rational(5), "1.5681257243296727e26"),
    ],
)
def test_high_hermite_polynomials_by_recurrence(degree, at, value):
    assert _contains(evaluate(HermiteProb(degree, at), 400), value)
    k = Symbol("k", integer=True)
    assert _contains(evaluate(sympy.hermite_prob(k, x), 400, {k: degree, x: at}), value)
    normalised = HermiteProb(304, Rational(1)) / sqrt(sympy.factorial(304, evaluate=False))
    assert _contains(evaluate(normalised, 400), "0.046134383396566062")


def test_an_integral_with_decimal_coefficients():
    """int_0^1 2.06 (t + 0.2)/(t + 0.34)^2 dt, on which a symbolic integral with floats gives 1e15."""
    ctx.prec = 120
    integrand = compile(Rational(103, 50) * (x + Rational(1, 5)) / (x + Rational(17, 50)) ** 2, (x,))
    ball = acb.integral(lambda z, analytic: integrand(z, analytic=analytic), 0, 1).real
    assert _contains(ball, "2.192235893668952824")


def test_symbols_are_bound_without_subs():
    a = Symbol("a", positive=True)
    expr = gamma(a * d) / gamma(a * d - 1)
    for value in (Rational(3, 2), arb("1.5"), lambda bits: arb(3) / 2):
        assert (evaluate(expr, 128, {a: value, d: 10**6}) - 1499999).contains(0)


def test_precision_follows_the_context_and_is_restored():
    ctx.prec = 71
    evaluate(pi, 300)
    assert ctx.prec == 71
    function = compile(pi * x, (x,))
    ctx.prec = 60
    coarse = function(acb(1)).real.rad()
    ctx.prec = 300
    fine = function(acb(1)).real.rad()
    assert fine < coarse * 1e-60
