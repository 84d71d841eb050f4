"""Kernel matrices, gradients, orders and remainders in floating point."""

import pickle
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from spikesym.errors import InputError
from spikesym.numeric.dual import dual
from spikesym.numeric.kernel import Kernel
from spikesym.numeric.kernel_expansion import Expansion
from spikesym.numeric.kernel_inputs import Covariance
from spikesym.symbolic.kernel import along_spike
from spikesym.symbolic.symbols import QP, SP, Q, S, T

DIMENSION = 7


def hard_points(seed=1, n=24):
    """Rows with duplicates, opposite, zero, nearly parallel and nearly opposite ones, and very unequal norms."""
    rng = np.random.default_rng(np.random.SeedSequence((9, seed)))
    X = rng.normal(size=(n, DIMENSION))
    X[1], X[2], X[3] = X[0], -X[0], 0
    X[4] = 1e-3 * X[0] + 1e-12 * rng.normal(size=DIMENSION)
    X[5] = 1e6 * X[6]
    X[7] = X[6] + 1e-9 * rng.normal(size=DIMENSION)
    X[8] = -X[7] + 1e-9 * rng.normal(size=DIMENSION)
    return X


def axis(d=DIMENSION):
    return np.eye(1, d)[0]


def exact_law(x, y, a, b):
    """q, q', t of two float vectors as exact fractions, for the spike along the first axis."""

    def inner(u, v):
        total = sum(Fraction(float(i)) * Fraction(float(j)) for i, j in zip(u, v, strict=True))
        return Fraction(a) * total + Fraction(b) * Fraction(float(u[0])) * Fraction(float(v[0]))

    return tuple(inner(u, v) / len(x) for u, v in ((x, x), (y, y), (x, y)))


def exact_relu(q, qp, t):
    """The arc-cosine kernel at 120 digits, from exact fractions."""
    with mpmath.workdps(120):
        if q == 0 or qp == 0:
            return mpmath.mpf(0)
        square = q * qp - t * t
        if square == 0:
            # parallel: |t|/2, opposite: 0, where 120 digits of pi would leave a trace
            return max(mpmath.mpf(t.numerator) / t.denominator, mpmath.mpf(0)) / 2
        root = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        product = mpmath.sqrt(mpmath.mpf((q * qp).numerator) / (q * qp).denominator)
        theta = mpmath.atan2(root, mpmath.mpf(t.numerator) / t.denominator)
        return product * (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / (2 * mpmath.pi)


@pytest.mark.parametrize(("a", "b"), [(1, 0), (1.25, 5.0), (1, 1000.0)])
def test_relu_to_twelve_digits_at_every_angle(a, b):
    X = hard_points()
    matrix = Kernel("relu", A=a, B=b, w=axis()).matrix(X)
    for i in range(len(X)):
        for j in range(len(X)):
            exact = exact_relu(*exact_law(X[i], X[j], a, b))
            assert abs(matrix[i, j] - exact) <= 1e-12 * exact, (i, j)


def test_a_general_covariance_to_twelve_digits():
    """Gamma = A I + B w w^T as a matrix goes another way and gives the same."""
    X = hard_points()
    rng = np.random.default_rng(np.random.SeedSequence(11))
    w = rng.normal(size=DIMENSION)
    w /= np.linalg.norm(w)
    spiked = Kernel("relu", A=1.5, B=4.0, w=w).matrix(X)
    general = Kernel("relu", Gamma=1.5 * np.eye(DIMENSION) + 4 * np.outer(w, w)).matrix(X)
    assert np.all(np.abs(spiked - general) <= 1e-11 * np.abs(spiked))


@pytest.mark.parametrize(
    "text", ["relu", "sign", "max(z, 0)**2", "erf(z)", "tanh(z)", "gelu", "max(-1, min(1, z))"]
)
def test_matrices_are_symmetric_finite_and_semidefinite(text):
    X = hard_points()
    X[5] *= 1e-6
    kernel = Kernel(text, A=1.2, B=3.0, w=axis())
    matrix = kernel.matrix(X)
    assert np.isfinite(matrix).all()
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(np.diag(matrix), kernel.diagonal(X))
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert eigenvalues[0] > -1e-13 * eigenvalues[-1]


@pytest.mark.parametrize("text", ["relu", "tanh(z)", "erf(z)"])
def test_blocks_and_the_two_argument_form_give_the_same(text):
    X = hard_points()
    X[5] *= 1e-6
    kernel = Kernel(text, A=1.2, B=3.0, w=axis())
    whole = kernel.matrix(X)
    for other in (kernel.matrix(X, block=5), kernel.matrix(X, X.copy()), kernel.matrix(X, X.copy(), block=7)):
        assert np.all(np.abs(other - whole) <= 1e-13 * np.abs(whole).max())
    rectangle = kernel.matrix(X[:5], X[3:])
    assert rectangle.shape == (5, len(X) - 3)
    assert np.all(np.abs(rectangle - whole[:5, 3:]) <= 1e-13 * np.abs(whole).max())


def test_kernels_can_be_sent_to_other_processes():
    X = hard_points()
    for text in ("relu", "gelu", "tanh(z)"):
        kernel = Kernel(text, A=1.2, B=3.0, w=axis())
        matrix = kernel.matrix(X[:4])
        assert np.array_equal(pickle.loads(pickle.dumps(kernel)).matrix(X[:4]), matrix)


def test_float32():
    X = hard_points().astype(np.float32)
    single = Kernel("relu").matrix(X)
    assert single.dtype == np.float32
    assert np.isfinite(single).all()
    double = Kernel("relu").matrix(X.astype(np.float64))
    assert np.all(np.abs(single - double) <= 1e-5 * double)
    assert Kernel("relu").matrix(X, X.astype(np.float64)).dtype == np.float64


@pytest.mark.parametrize("text", ["relu", "tanh(z)", "max(-1, min(1, z))"])
def test_gradients_by_differences(text):
    rng = np.random.default_rng(np.random.SeedSequence(12))
    X, Y = rng.normal(size=(2, 4, DIMENSION))
    kernel = Kernel(text, A=1.2, B=3.0, w=axis())
    gradient = kernel.gradient(X, Y)
    assert gradient.shape == (4, 4, DIMENSION)
    for k in (0, DIMENSION - 1):

        def along(step, k=k):
            return kernel.matrix(X + step * np.eye(DIMENSION)[k], Y)

        h = 1e-2
        # sixth order: what is left is h^6 and rounding over h
        difference = (
            45 * (along(h) - along(-h)) - 9 * (along(2 * h) - along(-2 * h)) + (along(3 * h) - along(-3 * h))
        ) / (60 * h)
        assert np.abs(gradient[:, :, k] - difference).max() < 2e-10


def test_the_gradient_at_special_points_is_finite():
    X = hard_points()
    for text in ("relu", "gelu", "tanh(z)"):
        assert np.isfinite(Kernel(text).gradient(X[:6], X[:6])).all()
    # k(x, x) = |x|^2/(2d) for relu: half of its gradient is the gradient in the first argument
    x = hard_points()[10:11]
    assert Kernel("relu").gradient(x, x)[0, 0] == pytest.approx(x[0] / (2 * DIMENSION), rel=1e-13)


@pytest.mark.parametrize("text", ["relu", "max(z, 0)**2", "leaky_relu(1/10)", "erf(z)", "sin(z)"])
def test_orders_against_differentiation_of_the_closed_form(text):
    """Each order at 60 digits: mpmath differentiates the closed form along the spike numerically."""
    rng = np.random.default_rng(np.random.SeedSequence(13))
    X, Y = rng.normal(size=(2, 3, DIMENSION))
    a, b = 1.25, 0.5
    expansion = Expansion(Kernel(text, A=a, B=b, w=axis()))
    most = 3 if text == "relu" else 2
    orders = [expansion.order(r, X, Y) for r in range(most + 1)]
    formula = dual(text).exact
    mpmath.mp.dps = 60
    import sympy

    function = sympy.lambdify((Q, QP, T), formula, "mpmath")
    for i in range(3):
        for j in range(3):
            q, qp, t = (mpmath.mpf(v.numerator) / v.denominator for v in exact_law(X[i], Y[j], a, 0))
            s, s_p = mpmath.mpf(X[i, 0]), mpmath.mpf(Y[j, 0])

            def moved(size, q=q, qp=qp, t=t, s=s, s_p=s_p):
                return function(q + size * s * s, qp + size * s_p * s_p, t + size * s * s_p)

            coefficients = mpmath.taylor(moved, 0, most)
            for r, coefficient in enumerate(coefficients):
                expected = coefficient * (mpmath.mpf(b) / DIMENSION) ** r
                scale = abs(coefficients[0]) * (b / DIMENSION) ** r
                assert abs(orders[r][i, j] - expected) < 1e-13 * scale + 1e-12 * abs(expected)


@pytest.mark.parametrize("text", ["relu", "sign", "erf(z)", "tanh(z)", "max(z - 1/2, 0)"])
def test_orders_and_remainder_add_up(text):
    X = hard_points(n=12)[[0, 1, 2, 3, 9]]
    for b in (0.5, 40.0) if text == "relu" else (0.5,):
        kernel = Kernel(text, A=1.2, B=b, w=axis())
        expansion = Expansion(kernel)
        total = sum(expansion.order(r, X) for r in range(2)) + expansion.remainder(1, X)
        assert np.abs(total - kernel.matrix(X)).max() < 3e-14


@pytest.mark.parametrize("text", ["relu", "leaky_relu(1/10)", "erf(z)"])
def test_the_remainder_has_its_order_down_to_tiny_spikes(text):
    """|R_r| ~ B^(r+1), by its slope between B = 1e-6 and 1e-3, where differences would show nothing but rounding."""
    rng = np.random.default_rng(np.random.SeedSequence(14))
    X, Y = rng.normal(size=(2, 4, DIMENSION))
    for r in range(3):
        norms = [
            np.linalg.norm(Expansion(Kernel(text, A=1.2, B=b, w=axis())).remainder(r, X, Y))
            for b in (1e-6, 1e-3)
        ]
        slope = np.log(norms[1] / norms[0]) / np.log(1e3)
        assert abs(slope - (r + 1)) < 1e-3


def test_orders_at_parallel_vectors():
    """k1(x, x) = (A |x|^2 + B s^2)/(2 d) for relu is linear in B: all orders beyond the first vanish there."""
    X = hard_points()
    expansion = Expansion(Kernel("relu", A=1.2, B=3.0, w=axis()))
    assert np.allclose(np.diag(expansion.order(1, X)), 3 * X[:, 0] ** 2 / (2 * DIMENSION), rtol=1e-13, atol=0)
    for r in (2, 3):
        assert np.abs(np.diag(expansion.order(r, X))).max() == 0
    # nearly parallel rows: finite, and small as the cube of the angle
    near = expansion.order(2, X[6:7], X[7:8])[0, 0]
    assert np.isfinite(near)
    assert abs(near) < 1e-24


def test_a_kink_elsewhere_at_parallel_vectors():
    """The second order of max(z - 1/2, 0) at x' = x: (B/d)^2 s^4/2 d^2/dq^2 of E sigma(sqrt(q) z)^2."""
    x = hard_points()[10:11]
    b, a = 0.5, 1.25
    mpmath.mp.dps = 50
    q = mpmath.mpf(a) * mpmath.fsum(mpmath.mpf(float(v)) ** 2 for v in x[0]) / DIMENSION

    def second_moment(v):
        h = 1 / (2 * mpmath.sqrt(v))
        return (v + 0.25) * mpmath.ncdf(-h) - mpmath.sqrt(v) * mpmath.npdf(h) / 2

    expected = (b / DIMENSION * x[0, 0] ** 2) ** 2 * mpmath.diff(second_moment, q, 2) / 2
    value = Expansion(Kernel("max(z - 1/2, 0)", A=a, B=b, w=axis())).order(2, x, x.copy())[0, 0]
    assert value == pytest.approx(float(expected), rel=1e-12)


def test_b_zero_has_only_order_zero():
    X = hard_points(n=10)
    expansion = Expansion(Kernel("relu", A=1.2))
    assert not expansion.order(1, X).any()
    assert not expansion.remainder(0, X).any()
    assert np.array_equal(expansion.order(0, X), Kernel("relu", A=1.2).matrix(X))


def test_the_symbolic_order_is_the_numeric_one():
    """Kinked terms in the components of the spike against the formula in q, q', t, s, s'."""
    from spikesym.numeric.arb_eval import evaluate

    rng = np.random.default_rng(np.random.SeedSequence(15))
    X, Y = rng.normal(size=(2, 1, DIMENSION))
    a, b = 1.25, 2.0
    value = Expansion(Kernel("relu", A=a, B=b, w=axis())).order(3, X, Y)[0, 0]
    q, qp, t = exact_law(X[0], Y[0], a, 0)
    at = {Q: q, QP: qp, T: t, S: Fraction(float(X[0, 0])), SP: Fraction(float(Y[0, 0]))}
    exact = evaluate(along_spike(dual("relu").exact, 3), 200, at)
    assert value == pytest.approx(float(exact.mid()) * (b / DIMENSION) ** 3, rel=1e-12)


@pytest.mark.montecarlo
@pytest.mark.parametrize("text", ["relu", "tanh(z)", "max(-1, min(1, z))", "gelu"])
def test_kernels_of_sampled_features(text):
    """m = 10^5 sampled features at 30 pairs: |z| < 5 with the sample's own standard error."""
    rng = np.random.default_rng(np.random.SeedSequence(16))
    X, Y = rng.normal(size=(2, 30, DIMENSION))
    kernel = Kernel(text, A=1.2, B=5.0, w=axis())
    exact = np.diag(kernel.matrix(X, Y))
    w = rng.normal(size=(100_000, DIMENSION)) * np.sqrt(np.array([6.2] + [1.2] * (DIMENSION - 1)) / DIMENSION)
    sigma = kernel.function.numpy()
    products = sigma(w @ X.T) * sigma(w @ Y.T)
    z = (products.mean(axis=0) - exact) / (products.std(axis=0, ddof=1) / np.sqrt(len(w)))
    assert np.abs(z).max() < 5


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"A": 0.0}, "must be positive"),
        ({"A": 1.0, "B": -2.0, "w": [1.0, 0.0]}, "A \\+ B"),
        ({"B": 1.0}, "missing"),
        ({"B": 1.0, "w": [1.0, 1.0]}, "norm"),
        ({"Gamma": [[1.0, 2.0], [0.0, 1.0]]}, "not symmetric"),
        ({"Gamma": [[1.0, 2.0], [2.0, 1.0]]}, "negative"),
        ({"Gamma": [1.0, 2.0]}, "square matrix"),
        ({"A": float("nan")}, "must be positive"),
    ],
)
def test_wrong_covariances_are_refused(arguments, what):
    with pytest.raises(InputError, match=what):
        Kernel("relu", **arguments).matrix(np.ones((2, 2)))


@pytest.mark.parametrize(
    ("X", "Y", "what"),
    [
        (np.ones(3), None, "shape"),
        (np.ones((2, 3)), np.ones((2, 4)), "dimensions 3 and 4"),
        (np.full((2, 3), np.nan), None, "not finite"),
        (np.array([["a"]]), None, "not real"),
        (np.ones((2, 3)) * 1j, None, "not real"),
        (np.ones((0, 3)), None, "shape"),
    ],
)
def test_wrong_points_are_refused(X, Y, what):
    with pytest.raises(InputError, match=what):
        Kernel("relu").matrix(X, Y)


def test_other_wrong_input_is_refused():
    with pytest.raises(InputError, match="dimension 3"):
        Kernel("relu", B=1.0, w=[1.0, 0.0]).matrix(np.ones((2, 3)))
    with pytest.raises(InputError, match="free parameters a"):
        Kernel("erf(a*z)")
    with pytest.raises(InputError, match="block"):
        Kernel("relu").matrix(np.ones((2, 2)), block=0)
    with pytest.raises(InputError, match="general Gamma"):
        Expansion(Kernel("relu", Gamma=np.eye(2)))
    with pytest.raises(InputError, match="order"):
        Expansion(Kernel("relu")).order(-1, np.ones((2, 2)))


def test_a_large_spike_is_mapped_without_cancellation():
    w = axis(3)
    for b in (1e-14, 1.0, 1e14):
        root = Covariance(2.0, b, w).root_map(np.eye(3)) * np.sqrt(3)
        assert root @ root.T == pytest.approx(2 * np.eye(3) + b * np.outer(w, w), rel=1e-14)
