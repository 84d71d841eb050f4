"""Independent formulations of A and B that the registry's checks hold its formulas against.

None of the package's rules for these formulas is used: the readout is averaged by enumeration of a three-point law, the
means of the ReLU come from the gradient of the arc-cosine kernel (Cho and Saul 2009), polynomial networks are averaged
monomial by monomial, and small networks are trained.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy
from flint import arb

from ..numeric.arb_eval import evaluate
from ..symbolic.brute_force import BruteForce
from ..symbolic.means import TestModel, random_test_model
from ..symbolic.symbols import X
from .registry import Outcome

DIGITS = 30
_BITS = 180

Values = Mapping[sympy.Symbol, Any]


def ball(formula: sympy.Expr, values: Values) -> Any:
    """A formula at a point, as an mpmath number with some 45 digits."""
    # mpmath and SymPy numbers are exact rationals to Arb
    bound = {k: sympy.Float(v, 60) if isinstance(v, mpmath.mpf) else v for k, v in values.items()}
    result: arb = evaluate(formula, _BITS, bound)
    if not result.is_finite():
        raise ValueError(f"not a finite number: {result}")
    man, exp = result.mid().man_exp()
    return mpmath.mpf(int(man)) * mpmath.mpf(2) ** int(exp)


class Comparison:
    """Largest relative difference of pairs of numbers."""

    def __init__(self, digits: int = DIGITS) -> None:
        self.digits, self.worst, self.count = digits, mpmath.mpf(0), 0

    def add(self, left: Any, right: Any) -> None:
        """One pair."""
        scale = max(abs(left), abs(right), mpmath.mpf(10) ** -20)
        self.worst, self.count = max(self.worst, abs(left - right) / scale), self.count + 1

    def outcome(self, what: str) -> Outcome:
        """Passed when all pairs agree to the digits asked for."""
        passed = self.count > 0 and self.worst < mpmath.mpf(10) ** (-self.digits)
        return Outcome(
            bool(passed),
            f"{what}: {self.count} numbers, largest relative difference {mpmath.nstr(self.worst, 2)}",
        )


def average_by_enumeration(
    means: Mapping[str, Any], d: int, n: int, m: int, eta: Any, varsigma: Any, kappa4: Any, full: bool
) -> Any:
    """d E[(v.w_1(1))^2] from the means over weights and data, the readout averaged over all its values.

    The readout takes the values 0, +L, -L with variance varsigma^2/m and kurtosis kappa4; all 3^m readouts are summed.
    """
    variance, share = varsigma**2 / mpmath.mpf(m), 1 / mpmath.mpf(kappa4)
    level = mpmath.sqrt(variance * kappa4)
    root = mpmath.sqrt(mpmath.mpf(m))
    kinds = ["labels", "own", *["others"] * (m - 1)]
    pair = {k: mpmath.mpf(0) for k in itertools.product(range(m + 1), repeat=2)}
    single = [mpmath.mpf(0)] * (m + 1)
    for signs in itertools.product((0, 1, -1), repeat=m):
        weight = mpmath.mpf(1)
        for s in signs:
            weight *= share / 2 if s else 1 - share
        readout = [s * level for s in signs]
        # residual = y - f = sum of c_p times (label, outputs of the neurons)
        c = [mpmath.mpf(1), *[-a / root if full else mpmath.mpf(0) for a in readout]]
        for p in range(m + 1):
            single[p] += weight * readout[0] * c[p]
            for q in range(m + 1):
                pair[p, q] += weight * readout[0] ** 2 * c[p] * c[q]
    if any(abs(v) > mpmath.mpf(10) ** -30 for (p, q), v in pair.items() if p != q):
        raise AssertionError("products of different outputs do not average out")
    total = mpmath.mpf(d) * means["initial"] + 2 * eta * d / root * single[1] * means["cross"]
    for p, kind in enumerate(kinds):
        samples = means[f"{kind}_one"] / n + (1 - mpmath.mpf(1) / n) * means[f"{kind}_two"]
        total += d * eta**2 / m * pair[p, p] * samples
    return total


@lru_cache(maxsize=64)
def angle_mean(name: str, d: int) -> Any:
    """Mean over the angle theta of two random directions in R^d, by quadrature of the density sin(theta)^(d-2)."""
    pi, sin, cos = mpmath.pi, mpmath.sin, mpmath.cos
    functions: dict[str, Callable[[Any], Any]] = {
        # E[relu(u') relu'(u) x] = (sin(theta) w/|w| + (pi - theta) w')/(2 pi): the gradient of the arc-cosine kernel
        "along": lambda t: ((pi - t + sin(t) * cos(t)) / (2 * pi)) ** 2,
        "across": lambda t: (sin(t) ** 2 / (2 * pi)) ** 2,
        "norm": lambda t: ((pi - t) ** 2 + 2 * (pi - t) * sin(t) * cos(t) + sin(t) ** 2) / (4 * pi**2),
        "phi2": lambda t: (pi / 2 - t) ** 2,
        "rho2": lambda t: cos(t) ** 2,
        "rho4": lambda t: cos(t) ** 4,
        "rho6": lambda t: cos(t) ** 6,
        "abs_along": lambda t: ((pi / 2 - t + sin(t) * cos(t)) / pi) ** 2,
    }
    nodes = [0, pi / 2, pi]

    def mean(function: Callable[[Any], Any]) -> Any:
        return mpmath.quad(lambda t: function(t) * sin(t) ** (d - 2), nodes, method="gauss-legendre")

    return mean(functions[name]) / mean(lambda t: 1)


@lru_cache(maxsize=64)
def relu_means(d: int, tau2: Any, along: bool) -> dict[str, Any]:
    """The means over weights and data for ReLU activation and ReLU link, by quadrature of the arc-cosine gradient."""
    one, d_ = mpmath.mpf(1), mpmath.mpf(d)
    half = one / 2
    return {
        "initial": one / d_,
        "cross": half / d_,
        "labels_one": half * ((3 * half if along else half) + tau2),
        "labels_two": angle_mean("along", d) if along else angle_mean("across", d) / (d_ - 1),
        "own_one": half * (d_ + 2) / d_,
        "own_two": half**2 / d_,
        "others_one": half**2 * (d_ + 2) / d_,
        "others_two": angle_mean("norm", d) / d_,
    }


def random_sizes(rng: random.Random) -> dict[str, Any]:
    """Random small sizes and modes, the sizes within reach of the enumeration."""
    return {
        "d": rng.choice([2, 3, 5, 12]), "n": rng.randint(1, 6), "m": rng.randint(1, 4),
        "eta": mpmath.mpf(rng.randint(1, 40)) / 7, "varsigma": mpmath.mpf(rng.randint(2, 9)) / 5,
        "kappa4": mpmath.mpf(rng.randint(4, 12)) / 4, "tau2": mpmath.mpf(rng.randint(1, 9)) / 11,
    }  # fmt: skip


@lru_cache(maxsize=16)
def surrogate(seed: int) -> tuple[TestModel, sympy.Rational, sympy.Rational]:
    """A random rank-one surrogate (activation mu z, labels only) with polynomial link: exact A + B and A."""
    rng = random.Random(seed)
    model = random_test_model(
        rng, activation_degree=1, link_degree=3, sizes=(rng.choice([2, 3]), rng.choice([2, 3]), 1)
    )
    model = TestModel(**{**model.__dict__, "m": rng.randint(1, 5), "residual": "labels"})
    # the surrogate's other neurons do not matter: one is averaged, with readout variance varsigma^2/m
    single = TestModel(**{**model.__dict__, "m": 1, "varsigma": model.varsigma / model.m})
    network = BruteForce(single)
    return model, network.gamma(0), network.gamma(1)


def polynomial_moment(polynomial: sympy.Expr, degree: int = 0) -> sympy.Rational:
    """E[p(x) He_degree(x)] of a polynomial in X by Gaussian moments."""
    hermite = sympy.Poly(sympy.expand(_hermite(degree) * polynomial), X)
    return sympy.Add(*[c * sympy.factorial2(k - 1) for (k,), c in hermite.terms() if k % 2 == 0])


def _hermite(k: int) -> sympy.Expr:
    return (
        sympy.Integer(1)
        if k == 0
        else X
        if k == 1
        else sympy.expand(X * _hermite(k - 1) - (k - 1) * _hermite(k - 2))
    )


def train_once(
    rng: np.random.Generator, reps: int, d: int, n: int, m: int, eta: float,
    activation: Callable[..., Any], slope: Callable[..., Any], link: Callable[..., Any],
    noise: float = 0.0, varsigma: float = 1.0, full: bool = True, rademacher: bool = False, sphere: bool = False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Train ``reps`` independent networks by one explicit gradient step; per network, estimates of A + B and of A."""
    w = rng.standard_normal((reps, m, d)) / np.sqrt(d)
    if sphere:
        w /= np.linalg.norm(w, axis=2, keepdims=True)
    x = rng.standard_normal((reps, n, d))
    a = (
        (rng.choice([-1.0, 1.0], (reps, m)) if rademacher else rng.standard_normal((reps, m)))
        * varsigma
        / np.sqrt(m)
    )
    y = link(x[:, :, 0]) + noise * rng.standard_normal((reps, n))
    u = np.einsum("rmd,rnd->rmn", w, x)
    residual = y - np.einsum("rm,rmn->rn", a, activation(u)) / np.sqrt(m) if full else y
    gradient = -np.einsum("rm,rn,rmn,rnd->rmd", a, residual, slope(u), x, optimize=True) / (n * np.sqrt(m))
    w1 = w - eta * gradient
    return d * (w1[:, :, 0] ** 2).mean(axis=1), d * (w1[:, :, 1:] ** 2).mean(axis=(1, 2))


def z_score(sample: np.ndarray, expected: float) -> float:
    """Distance of a sample mean from its expected value in standard errors."""
    return float((sample.mean() - expected) / (sample.std(ddof=1) / np.sqrt(sample.size)))
