"""Break points and pieces against the function itself; derivatives against their definition as distributions."""

import itertools
import math
import pickle

import mpmath
import pytest
import sympy
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import E, Rational, log, pi, sqrt

from spikesym.errors import InputError
from spikesym.symbolic.distributions import derivative
from spikesym.symbolic.functions import make_function
from spikesym.symbolic.pieces import SWITCHES, breakpoints, pieces
from spikesym.symbolic.roots import IsolatedRoot, enclose, isolate, sort_points
from spikesym.symbolic.symbols import X
from spikesym.symbolic.zeros import zeros

FINITE = [
    ("relu", [0]),
    ("max(0, x)*x", [0]),
    ("abs(s-1)", [1]),
    ("hardtanh", [-1, 1]),
    ("sign(s**2-1)", [-1, 1]),
    ("abs(s**2-2)", [-sqrt(2), sqrt(2)]),
    ("heaviside(s)*heaviside(1-s)", [0, 1]),
    ("abs(abs(s)-1)", [-1, 0, 1]),
    ("abs(abs(abs(s)-2)-1)", [-3, -2, -1, 0, 1, 2, 3]),
    ("max(s, s**2, 1)", [-1, 1]),
    ("max(s, 1-s, 0)", [Rational(1, 2)]),
    ("min(s, 1/2) + max(s, 1/2)", []),
    ("abs(s)*sign(s)", []),
    ("abs(s)**2", []),
    ("sqrt(abs(s))", [0]),
    ("log(abs(s))", [0]),
    ("1/s", [0]),
    ("1/(s**2-2)", [-sqrt(2), sqrt(2)]),
    ("abs(s)**3", [0]),
    ("erf(abs(s))", [0]),
    ("abs(tanh(s) - 1/3)", [log(2) / 2]),
    ("sign(exp(2*s) - 3)", [log(3) / 2]),
    ("abs(exp(2*s) - 3*exp(s) + 2)", [0, log(2)]),
    ("abs(log(1+s**2) - 1)", [-sqrt(E - 1), sqrt(E - 1)]),
    ("abs(erf(s) - 1/2)", [sympy.erfinv(Rational(1, 2))]),
    ("Piecewise((log(s), s > 1), (sqrt(1-s), True))", [1]),
    ("Piecewise((0, s < 1), (log(s), True))", [1]),
    ("Piecewise((1, -1 < s < 2 and s < 1), (s, True))", [-1, 1]),
    ("Piecewise((s, not (s > 0 or s < -1)), (1, True))", [-1, 0]),
    ("elu", [0]),
    ("sigmoid", []),
    ("atan(s) + 1/(1+s**2)", []),
    ("sqrt(1+s**2)", []),
    ("abs(sqrt(1+s**2) - 2)", [-sqrt(3), sqrt(3)]),
    ("heaviside(s**3 - 2)", [2 ** Rational(1, 3)]),
    ("max(tanh(s), s/2-1)", [3.998654987434289]),
    ("abs(s**5-s-1)", [1.1673039782614187]),
    ("abs(s**3-3*s+1)", [2 * math.cos(2 * math.pi * j / 9) for j in (4, 2, 1)]),
    ("sign(sin(s) - s/3)", [-2.2788626600758283, 0, 2.2788626600758283]),
]


def sample_points(found):
    """Points well inside the pieces."""
    inner = [float(sympy.N(b)) for b in found]
    ends = [min([-3.0, *inner]), *inner, max([3.0, *inner])]
    for low, high in itertools.pairwise(ends):
        if high > low:
            yield from (low + fraction * (high - low) for fraction in (0.013, 0.41, 0.97))


def value(expr, x):
    return mpmath.mpmathify(sympy.N(expr.subs(X, sympy.Rational(str(x))), 30))


def assert_pieces_give_the_function(function, found, radius=None):
    for x in sample_points([p.lower for p in found[1:]]):
        piece = next(
            p
            for p in found
            if p.lower == -sympy.oo or float(p.lower) < x
            if p.upper == sympy.oo or x < float(p.upper)
        )
        assert not piece.expr.has(*SWITCHES)
        assert abs(value(piece.expr, x) - value(function.expr, x)) < mpmath.mpf(10) ** -25 * (
            1 + abs(value(piece.expr, x))
        )
    for left, right in itertools.pairwise(found):
        assert left.upper == right.lower


@pytest.mark.parametrize(("text", "expected"), FINITE, ids=[t for t, _ in FINITE])
def test_break_points_and_pieces(text, expected):
    function = make_function(text, "link")
    assert function.has_finite_breakpoints
    points = function.breakpoints()
    assert len(points) == len(expected)
    for point, wanted in zip(points, expected, strict=True):
        if isinstance(wanted, float):
            assert float(point.evalf(20)) == pytest.approx(wanted, rel=1e-14)
        else:
            assert sympy.simplify(point - wanted) == 0
    found = function.pieces()
    assert found[0].lower == -sympy.oo
    assert found[-1].upper == sympy.oo
    assert_pieces_give_the_function(function, found)


INFINITE = [
    ("abs(cos(s))", 5, [-3 * pi / 2, -pi / 2, pi / 2, 3 * pi / 2]),
    ("Piecewise((1, sin(s) > 0), (0, True))", 4, [-pi, 0, pi]),
    ("abs(sin(s**2))", 2, [-sqrt(pi), sqrt(pi)]),  # at 0 it touches zero without a kink
    ("abs(2*cos(3*s) - 1)", 1, [-pi / 9, pi / 9]),
    ("tan(s)", 2, [-pi / 2, pi / 2]),
    ("max(exp(s), 2+s)", 6, [-1.8414056604369606, 1.1461932206205825]),
]


@pytest.mark.parametrize(("text", "radius", "expected"), INFINITE, ids=[t for t, *_ in INFINITE])
def test_infinitely_many_break_points_by_radius(text, radius, expected):
    function = make_function(text, "link")
    assert not function.has_finite_breakpoints
    with pytest.raises(InputError, match="finitely many"):
        function.breakpoints()
    points = function.breakpoints(radius)
    assert [float(p.evalf(20)) for p in points] == pytest.approx(
        [float(e) for e in expected], rel=1e-13, abs=1e-13
    )
    found = function.pieces(3)
    assert_pieces_give_the_function(function, found)


def test_roots_without_closed_form_are_enclosed_to_any_precision():
    (root,) = make_function("max(tanh(s), s/2-1)", "link").breakpoints()
    assert isinstance(root, IsolatedRoot)
    with mpmath.workdps(120):
        reference = mpmath.findroot(lambda t: mpmath.tanh(t) - t / 2 + 1, 4)
        ball = root.ball(380)
        assert ball.rel_accuracy_bits() >= 370
        with ctx.workprec(400):
            assert abs(ball - arb(mpmath.nstr(reference, 118))) < arb("1e-112")
        assert abs(mpmath.mpmathify(root.evalf(100)) - reference) < mpmath.mpf(10) ** -98
    assert pickle.loads(pickle.dumps(root)) == root
    assert root > 3
    assert (root - root) == 0


def test_isolation_finds_every_zero_and_refuses_double_ones():
    assert [
        round(float(r.evalf()), 6) for r in isolate(sympy.cos(X) - X / 10, Rational(-12), Rational(12))
    ] == pytest.approx(sorted(_zeros_by_scanning(lambda t: mpmath.cos(t) - t / 10, -12, 12)), abs=2e-6)
    with pytest.raises(InputError, match="cannot be separated"):
        isolate(sympy.cos(X) - 1 + sympy.sin(X) ** 4, Rational(-1), Rational(1))


def _zeros_by_scanning(f, low, high, steps=4801):
    grid = [low + (high - low) * mpmath.mpf(i) / steps for i in range(steps + 1)]
    return [
        float(mpmath.findroot(f, (a, b), solver="anderson"))
        for a, b in itertools.pairwise(grid)
        if f(a) * f(b) < 0
    ]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-6, 6), min_size=2, max_size=8).filter(lambda c: c[0] and any(c[1:])))
def test_zeros_of_polynomials_are_those_of_numpy(coefficients):
    import numpy as np

    polynomial = sympy.Poly(coefficients, X)
    square_free = sympy.Poly(sympy.quo(polynomial, sympy.gcd(polynomial, polynomial.diff(X))), X)
    found = sort_points(zeros(polynomial.as_expr()))
    roots = np.roots([float(c) for c in square_free.all_coeffs()])
    expected = sorted(r.real for r in roots if abs(r.imag) < 1e-7)
    assert [float(sympy.N(z)) for z in found] == pytest.approx(expected, abs=1e-6)
    for z in found:
        with ctx.workprec(300):
            assert enclose(polynomial.as_expr(), enclose(z)).contains(0)


def test_order_of_points_is_decided_exactly():
    near = [
        sqrt(2) + sqrt(3),
        sympy.sqrt(5 + 2 * sqrt(6)),
        Rational(31462643699, 10**10),
        Rational(31462643700, 10**10),
    ]
    assert sort_points(near) == [near[2], near[0], near[3]]


# ---- parameters ----------------------------------------------------------------------------------------------


def test_parameters_in_break_points():
    a, b = sympy.symbols("a b", real=True)
    assert make_function("abs(s - b)", "link").breakpoints() == (b,)
    assert make_function("max(0, a*s + b)", "link").breakpoints() == (-b / a,)
    assert make_function("heaviside(s - a)*heaviside(s - a - 1)", "link").breakpoints() == (a + 1,)
    with pytest.raises(InputError, match="order of the break points"):
        make_function("heaviside(s - a)*heaviside(s)", "link").breakpoints()
    with pytest.raises(InputError, match="break points are open"):
        make_function("abs(s**2 - a)", "link").breakpoints()


@pytest.mark.parametrize(("a", "b"), [(2, 1), (-2, 1), (Rational(1, 3), -1), (-1, Rational(-1, 7))])
@pytest.mark.parametrize(
    "text", ["max(0, a*s + b)", "abs(a*s + b)", "sign(a*s + b)*s", "min(s, a*s + b, 2)", "heaviside(a*s+b)"]
)
def test_pieces_with_parameters_hold_for_either_sign(text, a, b):
    function = make_function(text, "link")
    try:
        found = function.pieces()
    except InputError:
        assert text.startswith("min")  # three lines: the order of their crossings is open
        return
    names = {v.name: v for v in function.parameters}
    values = {names[n]: v for n, v in (("a", a), ("b", b)) if n in names}
    for x in (-3.7, -0.9, -0.2, 0.1, 0.45, 1.3, 4.1):
        piece = next(p for p in found if p.lower.subs(values) < x < p.upper.subs(values))
        assert value(piece.expr.subs(values), x) == pytest.approx(
            value(function.expr.subs(values), x), rel=1e-20
        )


# ---- derivatives as distributions ----------------------------------------------------------------------------

SMOOTHABLE = [
    "relu", "abs(s-1/2)", "sign(s)", "sign(s**2-1)", "hardtanh", "max(0,s)**2", "heaviside(s-3/10)*exp(s)", "abs(s**2-1)",
    "exp(-abs(s))", "abs(s)*s + heaviside(s)", "erf(abs(s))", "max(s, s**2-1)", "elu", "tanh(s) + relu(s-1)",
    "Piecewise((s**3, s < 0), (cos(s), s < 1), (0, True))", "sqrt(1+s**2)*sign(s)", "max(tanh(s), s/2-1)",
]  # fmt: skip


@pytest.mark.parametrize("text", SMOOTHABLE)
@pytest.mark.parametrize("order", [1, 3])
def test_derivatives_by_their_definition(text, order):
    """<f^(n), psi> = (-1)^n <f, psi^(n)> for a Gaussian bump psi."""
    function = make_function(text, "link")
    bump = sympy.exp(-((X - Rational(3, 10)) ** 2))
    distribution = function.derivative(order)
    with mpmath.workdps(30):
        left = _integral(distribution.pieces, bump)
        for atom in distribution.atoms:
            left += (-1) ** atom.order * mpmath.mpmathify(
                sympy.N((atom.weight * bump.diff(X, atom.order)).subs(X, atom.point), 30)
            )
        right = (-1) ** order * _integral(function.pieces(), bump.diff(X, order))
        assert abs(left - right) < mpmath.mpf(10) ** -20


def _integral(found, weight):
    total = mpmath.mpf(0)
    for piece in found:
        low = mpmath.mpf(-9) if piece.lower == -sympy.oo else mpmath.mpmathify(sympy.N(piece.lower, 40))
        high = mpmath.mpf(9) if piece.upper == sympy.oo else mpmath.mpmathify(sympy.N(piece.upper, 40))
        if piece.expr != 0:
            ends = [low, *[mpmath.mpf(j) for j in range(-8, 9, 2) if low < j < high], high]
            total += mpmath.quad(sympy.lambdify(X, piece.expr * weight, "mpmath"), ends)
    return total


def test_no_delta_is_lost():
    second = make_function("Piecewise((s, s > 0), (0, True))", "link").derivative(2)
    assert [(a.point, a.weight, a.order) for a in second.atoms] == [(0, 1, 0)]
    assert all(p.expr == 0 for p in second.pieces)
    third = make_function("heaviside(s)", "link").derivative(3)
    assert [(a.point, a.weight, a.order) for a in third.atoms] == [(0, 1, 2)]
    assert make_function("tanh", "link").derivative(4).is_function


@pytest.mark.parametrize(
    ("text", "order"), [("1/s", 1), ("log(abs(s))", 1), ("sqrt(abs(s))", 2), ("abs(s)**(-1/3)", 1)]
)
def test_derivatives_that_are_no_functions_plus_point_masses_are_refused(text, order):
    with pytest.raises(InputError, match="not a function plus point masses"):
        make_function(text, "link").derivative(order)


def test_a_singular_derivative_that_is_integrable_is_a_function():
    first = make_function("sqrt(abs(s))", "link").derivative()
    assert first.is_function
    assert sympy.simplify(first.pieces[1].expr - 1 / (2 * sqrt(X))) == 0


def test_derivatives_within_a_radius():
    second = make_function("abs(cos(s))", "link").derivative(2, radius=2)
    assert [(a.point, a.weight) for a in second.atoms] == [(-pi / 2, 2), (pi / 2, 2)]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-4, 4), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_random_splines(parts, order):
    """f = sum a (s - b)_+^n: the derivatives are known by hand."""
    terms = [sympy.Piecewise((a * (X - b) ** n, b < X), (0, True)) for a, b, n in parts]
    found = derivative(sympy.Add(*terms), order)
    expected: dict[tuple[int, int], int] = {}
    for a, b, n in parts:
        if order > n:
            key = (b, order - n - 1)
            expected[key] = expected.get(key, 0) + a * math.factorial(n)
    assert {(a.point, a.order): a.weight for a in found.atoms} == {k: v for k, v in expected.items() if v}
    for x in (-4.5, -1.5, 0.5, 3.5, 6.5):
        by_hand = sum(
            a * math.perm(n, order) * (x - b) ** (n - order) if x > b and n >= order else 0
            for a, b, n in parts
        )
        piece = next(p for p in found.pieces if p.lower < x < p.upper)
        assert float(piece.expr.subs(X, Rational(str(x)))) == pytest.approx(by_hand)


def test_pieces_are_functions_of_expressions_too():
    assert breakpoints(sympy.Max(0, X - 1)) == (1,)
    assert len(pieces(sympy.Abs(X**2 - 1))) == 3
    with pytest.raises(InputError, match="no branch holds"):
        pieces(sympy.Piecewise((X, X > 1000)))
