"""The language: what is read, as what, and what is refused at once."""

import math
import time
from fractions import Fraction

import mpmath
import pytest
import sympy
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from spikesym.errors import InputError, ParseError
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.parsing import parse_expression
from spikesym.symbolic.symbols import X

ATTACKS = [
    "__import__('os').system('touch pwned')",
    "().__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "9**9**9**9",
    "2**(2**(2**100))",
    "(s+1)**100000",
    "((s**100)**100)**100",
    "1e999999999",
    "1e-999999999",
    "9" * 1000,
    "1" * 5000,
    "(" * 200 + "s" + ")" * 200,
    "-" * 500 + "s",
    "+".join(["s"] * 900),
    "lambda: 1",
    "lambda s: s",
    "[s for s in s]",
    "(s for s in s)",
    "{s}",
    "s.real",
    "s[0]",
    "'a'",
    '"a"*9',
    "f's'",
    "f'{s}'",
    "b's'",
    "he1000000",
    "he1000(s)",
    "he99999999999999999999(s)",
    "he500(s)**9",
    "he900(1e9)",
    "s\0",
    "\0",
    "s²",
    "ѕ",
    "s\u200b",
    "s; import os",
    "s\nimport os",
    "exec(s)",
    "eval(s)",
    "print(s)",
    "open(s)",
    "__builtins__",
    "globals()",
    "s:=1",
    "await s",
    "yield s",
    "not s",
    "s and 1",
    "s if s>0 else 0",
    "sin(*s)",
    "sin(s=1)",
    "s(2)",
    "2(s)",
    "(sin)(s)(s)",
    "...",
    "None",
    "True",
    "1j",
    "0x10",
    "1_000",
    "s//2",
    "s%2",
    "s@s",
    "s<<2",
    "~s",
    "s>0",
    "s==0",
    "exp(exp(exp(100)))",
    "exp(1000)",
    "10**400",
    "1/0",
    "1/(s-s)",
    "0**(-1)",
    "sqrt(-1)",
    "log(0)",
    "log(-2)",
    "(-8)**(1/3)",
    "asin(2)",
    "s**s",
    "(-2)**s",
    "Piecewise()",
    "Piecewise(s)",
    "Piecewise((s, s))",
    "Piecewise((s, s == 0), (0, True))",
    "min()",
    "max(s)",
    "sin()",
    "sin(s, s)",
    "relu + 1",
    "he2 + s",
    "",
    "   ",
    "s s",
    "2s",
    "s +",
    "(s",
    "s)",
    "s^2",
    "s, s",
    "oo",
    "nan",
    "inf",
]


@pytest.mark.parametrize("text", ATTACKS, ids=lambda t: ascii(t)[:40])
def test_refused_in_one_line_at_once(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = time.process_time()
    with pytest.raises(ParseError) as caught:
        parse_expression(text, "s", where="--link")
    assert time.process_time() - start < 1
    message = str(caught.value)
    assert message.startswith("--link: ")
    assert "\n" not in message
    assert "; " in message  # the remedy
    assert len(message) < 320
    assert not list(tmp_path.iterdir())


LANGUAGE = [
    ("relu", sympy.Max(0, X)),
    ("he0", sympy.Integer(1)),
    ("he1", X),
    ("he2", X**2 - 1),
    ("he5(s)", X**5 - 10 * X**3 + 15 * X),
    ("he3(2*s)", 8 * X**3 - 6 * X),
    ("he4(2)", sympy.Integer(-5)),
    ("leaky_relu(0.1)", sympy.Rational(1, 10) * X + sympy.Rational(9, 10) * sympy.Max(0, X)),
    ("leaky_relu(s, 1/10)", sympy.Rational(1, 10) * X + sympy.Rational(9, 10) * sympy.Max(0, X)),
    ("abs", sympy.Abs(X)),
    ("Abs(x)", sympy.Abs(X)),
    ("sign", sympy.sign(X)),
    ("heaviside(s)", sympy.Heaviside(X)),
    ("Heaviside(x)*Heaviside(1-x)", sympy.Heaviside(X) * sympy.Heaviside(1 - X)),
    ("erf", sympy.erf(X)),
    ("erfc", sympy.erfc(X)),
    ("Phi", (1 + sympy.erf(X / sympy.sqrt(2))) / 2),
    ("tanh", sympy.tanh(X)),
    ("sigmoid", 1 / (1 + sympy.exp(-X))),
    ("softplus", sympy.log(1 + sympy.exp(X))),
    ("gelu", X * (1 + sympy.erf(X / sympy.sqrt(2))) / 2),
    ("swish", X / (1 + sympy.exp(-X))),
    ("identity", X),
    ("sin", sympy.sin(X)),
    ("cos(2*s+1)", sympy.cos(2 * X + 1)),
    ("exp(-0.3*s**2)", sympy.exp(-sympy.Rational(3, 10) * X**2)),
    ("log(1+s**2)", sympy.log(1 + X**2)),
    ("sqrt(abs(s))", sympy.sqrt(sympy.Abs(X))),
    ("sinh(s/2)+cosh(s/2)", sympy.sinh(X / 2) + sympy.cosh(X / 2)),
    ("atan(s)", sympy.atan(X)),
    ("max(s, 0, 1-s)", sympy.Max(X, 0, 1 - X)),
    ("Max(0,x)", sympy.Max(0, X)),
    ("min(s, 1)", sympy.Min(X, 1)),
    ("Piecewise((s, s>0), (0, True))", sympy.Piecewise((X, X > 0), (0, True))),
    (
        "Piecewise((-1, s < -1), (s, -1 <= s < 1 and s > -3), (1, True))",
        sympy.Piecewise((-1, X < -1), (X, (X >= -1) & (X < 1) & (X > -3)), (1, True)),
    ),
    ("Piecewise((1, (s > 2) | (s < -2)), (0, True))", sympy.Piecewise((1, (X > 2) | (X < -2)), (0, True))),
    ("pi*s", sympy.pi * X),
    ("3/10", sympy.Rational(3, 10)),
    ("0.3*s", sympy.Rational(3, 10) * X),
    ("1e-3 + s", X + sympy.Rational(1, 1000)),
    ("1.50*s", sympy.Rational(3, 2) * X),
    ("s**0.5*0 + 2**s", 2**X),
    ("--s", X),
    ("s + he2(s)/sqrt(2)", X + (X**2 - 1) / sympy.sqrt(2)),
    ("0", sympy.Integer(0)),
    ("2**(1/2)*s", sympy.sqrt(2) * X),
    ("1/((1 + 1e-20) - 1)*s", 10**20 * X),
]


@pytest.mark.parametrize(("text", "expected"), LANGUAGE, ids=[t for t, _ in LANGUAGE])
def test_what_the_language_means(text, expected):
    found = parse_expression(text, "s", where="--link")
    assert found == expected or sympy.expand(found - expected) == 0
    assert not found.atoms(sympy.Float)


def test_links_and_activations_have_their_own_variable():
    assert parse_expression("tanh(z)", "z", where="--activation") == sympy.tanh(X)
    assert parse_expression("tanh(x)", "z", where="--activation") == sympy.tanh(X)
    with pytest.raises(ParseError, match=r"variable 'z' at column 6; the variable here is s"):
        parse_expression("tanh(z)", "s", where="--link")
    with pytest.raises(ParseError, match="both s and x"):
        parse_expression("s + x", "s", where="--link")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("tanhh(s)", "unknown name 'tanhh' at column 1; did you mean tanh"),
        ("s + Relu(s)", "unknown name 'Relu' at column 5; did you mean relu"),
        ("sofplus(s)", "did you mean softplus"),
        ("foo*s", "unknown name 'foo'"),
        ("gamma(s)", "unknown name 'gamma'"),
        ("beta(s, 2)", "unknown name 'beta'"),
        ("zeta(s)", "unknown name 'zeta'"),
        ("lambda*s", "reserved word"),
        ("s^2", r"write powers with \*\*"),
        ("e**s", "ambiguous"),
        ("E*s", "ambiguous"),
        ("t*s", "stands for something else"),
        ("zeta*s", "stands for something else"),
        ("a + b", "does not depend on s"),
        ("relu + 1", r"write relu\(s\)"),
        ("Piecewise((s, s))", "not a condition at column 15"),
    ],
)
def test_errors_say_where_and_what_to_do(text, hint):
    with pytest.raises(ParseError, match=hint):
        parse_expression(text, "s", where="--link")


@pytest.mark.parametrize(
    "name", ["beta", "gamma", "S", "N", "Q", "O", "I", "C", "a", "b", "a1", "a_2", "theta"]
)
def test_names_of_parameters_never_take_another_meaning(name):
    expr = parse_expression(f"{name}*s", "s", where="--link")
    assert expr == sympy.Symbol(name, real=True) * X
    assert parse_expression(f"{name}*s", "s", where="--link", parameters={name: Fraction(2, 3)}) == 2 * X / 3
    with pytest.raises(ParseError, match="unknown name"):
        parse_expression(f"{name}*s", "s", where="--link", allow_parameters=False)


@pytest.mark.parametrize("name", ["e", "E", "zeta", "t", "width", "lam"])
def test_other_names_are_parameters_once_they_have_a_value(name):
    assert parse_expression(
        f"tanh({name}*s)", "s", where="--link", parameters={name: Fraction(2)}
    ) == sympy.tanh(2 * X)


@pytest.mark.parametrize("name", ["relu", "pi", "s", "x", "he3", "Piecewise2!", "a b", ""])
def test_parameters_cannot_take_names_of_the_language(name):
    with pytest.raises(InputError):
        parse_expression("s", "s", where="--link", parameters={name: Fraction(1)})


def test_parameters_are_exact():
    assert parse_expression(
        "tanh(a*s)", "s", where="--link", parameters={"a": Fraction("0.1")}
    ) == sympy.tanh(X / 10)


def test_he999_is_read_quickly():
    start = time.process_time()
    expr = parse_expression("he999(s)", "s", where="--link")
    assert time.process_time() - start < 2
    assert sympy.Poly(expr, X).degree() == 999
    assert sympy.Poly(expr, X).coeff_monomial(X) == -math.prod(range(1, 1000, 2))


# ---- any text ------------------------------------------------------------------------------------------------

WORDS = [
    "s", "x", "z", "a", "relu", "he2", "he30(", "tanh(", "max(", "Piecewise((", "abs(", "log(", "sqrt(", "exp(", "(", ")", ",",
    "+", "-", "*", "/", "**", "^", "<", ">", "<=", " and ", " or ", " if ", " else ", "not ", "True", "0", "1", "2", "0.5", "1e9",
    "1e-300", "999", ".", "'", "_", "lambda", ":", "[", "]", "pi", "heaviside(", "sign(", "1/0", "**99", "sin(", "erf(",
]  # fmt: skip


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=14).map("".join)))
@example("max(s,1e9**99)")
@example("log(sin(s)-sin(s))")
@example("abs(s)**-999**2")
def test_any_text_is_read_or_refused(text):
    start = time.process_time()
    try:
        expr = parse_expression(text, "s", where="--link")
    except ParseError:
        return
    finally:
        assert time.process_time() - start < 1
    assert isinstance(expr, sympy.Expr)
    assert all(v == X or v.is_real for v in expr.free_symbols)


# ---- valid expressions: the same function as another reading of the same tree ---------------------------------


def _numbers():
    def pair(n, d):
        return f"({n}/{d})", lambda x, n=n, d=d: mpmath.mpf(n) / d

    decimals = st.integers(-300, 300).map(lambda n: (f"({n / 100})", lambda x, n=n: mpmath.mpf(n) / 100))
    return st.one_of(st.builds(pair, st.integers(-9, 9), st.integers(1, 7)), decimals)


def _step(v):
    return (1 + mpmath.sign(v)) / 2


UNARY = {
    "tanh": mpmath.tanh,
    "sin": mpmath.sin,
    "erf": mpmath.erf,
    "abs": abs,
    "relu": lambda v: max(v, mpmath.mpf(0)),
    "sign": mpmath.sign,
    "heaviside": _step,
    "sigmoid": lambda v: 1 / (1 + mpmath.exp(-v)),
    "softplus": lambda v: mpmath.log1p(mpmath.exp(v)),
    "gelu": lambda v: v * mpmath.ncdf(v),
    "Phi": mpmath.ncdf,
    "he3": lambda v: v**3 - 3 * v,
    "atan": mpmath.atan,
    "cos": mpmath.cos,
}
BINARY = {
    "({} + {})": lambda a, b: a + b,
    "({} - {})": lambda a, b: a - b,
    "({}*{})": lambda a, b: a * b,
    "max({}, {})": max,
    "min({}, {})": min,
    "({}/(1 + abs({})))": lambda a, b: a / (1 + abs(b)),
    "Piecewise(({0}, {1} > 1/3), ({1}, True))": lambda a, b: a if b > mpmath.mpf(1) / 3 else b,
}


def _grow(children):
    unary = st.builds(
        lambda name, c: (f"{name}({c[0]})", lambda x, f=UNARY[name], g=c[1]: f(g(x))),
        st.sampled_from(sorted(UNARY)),
        children,
    )
    binary = st.builds(
        lambda form, a, b: (form.format(a[0], b[0]), lambda x, f=BINARY[form], g=a[1], h=b[1]: f(g(x), h(x))),
        st.sampled_from(sorted(BINARY)),
        children,
        children,
    )
    return st.one_of(unary, binary)


TREES = st.recursive(st.one_of(st.just(("s", lambda x: x)), _numbers()), _grow, max_leaves=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
def test_valid_text_is_parsed_and_compiled_as_it_is_written(pair):
    text, reference = pair
    function = make_function(text, "link")
    values = function.numpy()(POINTS)
    with mpmath.workdps(40):
        for point, value in zip(POINTS, values, strict=True):
            expected = reference(mpmath.mpf(point))
            near = [reference(mpmath.mpf(point) * (1 + side * mpmath.mpf(10) ** -13)) for side in (-1, 1)]
            # the rounding of floats amounts to moving the point by a few units in the last place
            slack = 20 * sum(abs(v - expected) for v in near) + mpmath.mpf(10) ** -11 * (1 + abs(expected))
            if any(abs(v - expected) > 1e-6 for v in near):
                continue  # a jump within rounding of the point
            assert abs(value - expected) <= slack, (point, value)
            exact = function.expr.subs(X, sympy.Rational(float(point)))
            assert abs(mpmath.mpmathify(sympy.N(exact, 30)) - expected) <= slack * mpmath.mpf(10) ** -3


POINTS = [-2.2360679, -1.1234567, -0.4142135, 0.2718281, 0.8660254, 1.7320508, 3.1622776]
