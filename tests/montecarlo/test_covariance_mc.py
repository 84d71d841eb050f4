"""A and A + B against Monte Carlo of actual one-step training: links, activations, modes, by computed standard errors."""

import math

import numpy as np
import pytest
from scipy.special import erf

from spikesym.model import Model
from spikesym.numeric.covariance import covariance
from spikesym.results.covariance_checks import train_once, z_score

ACTIVATIONS = {
    "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
    "abs": (np.abs, np.sign),
    "leaky_relu(0.1)": (lambda u: np.where(u > 0, u, 0.1 * u), lambda u: np.where(u > 0, 1.0, 0.1)),
    "identity": (lambda u: u, np.ones_like),
    "tanh": (np.tanh, lambda u: 1 / np.cosh(u) ** 2),
    "gelu": (
        lambda u: u * (1 + erf(u / math.sqrt(2))) / 2,
        lambda u: (1 + erf(u / math.sqrt(2))) / 2 + u * np.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    ),
}
LINKS = {
    "relu": lambda s: np.maximum(s, 0),
    "tanh(2*s)": lambda s: np.tanh(2 * s),
    "abs(s-1)": lambda s: np.abs(s - 1),
    "exp(s/2)": lambda s: np.exp(s / 2),
    "s**2-1": lambda s: s**2 - 1,
    "cos(2*s+1)": lambda s: np.cos(2 * s + 1),
    "heaviside(s)": lambda s: (s > 0) * 1.0,
    "exp(-abs(s))": lambda s: np.exp(-np.abs(s)),
}
#: link, activation, (d, n, m, eta), residual, init, readout, noise variance
FAST = [
    ("relu", "relu", (6, 5, 4, 5), "full", "gaussian", "gaussian", 0),
    ("abs(s-1)", "leaky_relu(0.1)", (4, 6, 3, 3), "labels", "sphere", "rademacher", 0.25),
    ("tanh(2*s)", "tanh", (5, 4, 3, 4), "full", "sphere", "gaussian", 0),
]
SLOW = [
    ("exp(s/2)", "abs", (10, 8, 6, 5), "full", "sphere", "gaussian", 0.25),
    ("s**2-1", "relu", (10, 8, 6, 4), "labels", "gaussian", "rademacher", 0),
    ("cos(2*s+1)", "identity", (4, 6, 3, 6), "full", "gaussian", "rademacher", 0.25),
    ("heaviside(s)", "relu", (12, 6, 5, 9), "full", "gaussian", "gaussian", 0),
    ("exp(-abs(s))", "leaky_relu(0.1)", (3, 6, 4, 9), "labels", "gaussian", "gaussian", 0.25),
    ("relu", "gelu", (8, 8, 5, 5), "full", "gaussian", "rademacher", 0),
    ("abs(s-1)", "tanh", (8, 6, 4, 4), "labels", "gaussian", "gaussian", 0),
    ("tanh(2*s)", "gelu", (6, 5, 4, 6), "labels", "sphere", "gaussian", 0.25),
]


def _check(case, batches):
    link, activation, (d, n, m, eta), residual, init, readout, noise = case
    model = Model(
        link=link, activation=activation, d=d, n=n, m=m, eta=eta, noise_var=noise,
        residual=residual, init=init, readout=readout,
    )  # fmt: skip
    result = covariance(model)
    rng = np.random.default_rng(np.random.SeedSequence((7, len(str(case)))))
    along, across = [], []
    function, slope = ACTIVATIONS[activation]
    for _ in range(batches):
        a, b = train_once(
            rng, 10000, d, n, m, float(eta), function, slope, LINKS[link], noise=math.sqrt(noise),
            full=residual == "full", rademacher=readout == "rademacher", sphere=init == "sphere",
        )  # fmt: skip
        along.append(a)
        across.append(b)
    z_total = z_score(np.concatenate(along), float(result.A_plus_B["exact"].value))
    z_across = z_score(np.concatenate(across), float(result.A["exact"].value))
    assert abs(z_total) < 5, f"A + B: z = {z_total:.2f}"
    assert abs(z_across) < 5, f"A: z = {z_across:.2f}"


@pytest.mark.parametrize("case", FAST, ids=lambda c: f"{c[0]}-{c[1]}-{c[4]}-{c[3]}")
def test_trained_networks(case):
    _check(case, 4)


@pytest.mark.montecarlo
@pytest.mark.parametrize("case", SLOW, ids=lambda c: f"{c[0]}-{c[1]}-{c[4]}-{c[3]}")
def test_trained_networks_at_length(case):
    _check(case, 30)
