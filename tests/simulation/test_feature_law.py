"""The law of the features against explicitly trained neurons, for the three readouts."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from spikesym.errors import InputError
from spikesym.model import Model
from spikesym.numeric.covariance import covariance
from spikesym.simulation.feature_law import FeatureLaw, Marginal

SLOPES = {"relu": lambda h: (h > 0).astype(float), "tanh": lambda h: 1 / np.cosh(h) ** 2}


def trained_neurons(rng, model, X, y, readout, count):
    """sqrt(d) w(1) of independent neurons by one explicit step on the labels; the signs of their readouts too."""
    n, d = X.shape
    w = rng.standard_normal((count, d)) / np.sqrt(d)
    scale = float(model.readout_scale) / np.sqrt(model.m)
    if readout == "gaussian":
        a = scale * rng.standard_normal(count)
    elif readout == "rademacher":
        a = scale * rng.choice([-1.0, 1.0], count)
    else:
        a = np.full(count, scale)
    slopes = SLOPES[model.activation](w @ X.T)
    step = model.eta_value / (n * np.sqrt(model.m)) * a[:, None] * ((slopes * y) @ X)
    return np.sqrt(d) * (w + step), np.sign(a)


def z_score(sample, expected):
    return (sample.mean() - expected) / (sample.std(ddof=1) / np.sqrt(sample.size))


@pytest.mark.parametrize("readout", ["gaussian", "rademacher", "constant"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_moments_given_the_batch_are_exact(rng, readout, activation):
    d, n = 12, 20
    model = Model(activation=activation, d=d, n=n, m=16, eta=25, readout_scale="3/2", residual="labels")
    X = rng.standard_normal((n, d))
    y = np.maximum(X[:, 0], 0) + 0.3 * rng.standard_normal(n)
    law = FeatureLaw.given_batch(model, X, y, readout)
    features, signs = trained_neurons(rng, model, X, y, readout, 150_000)
    for u in (np.eye(d)[0], rng.standard_normal(d)):
        u = u / np.linalg.norm(u)
        along = features @ u
        marginal = law.marginal(u)
        assert abs(z_score(along, marginal.mean)) < 5
        assert abs(z_score(along**2, marginal.second_moment)) < 5
        assert marginal.second_moment == pytest.approx(u @ law.second_moment @ u, rel=1e-12)
        if readout == "rademacher":
            for component, sign in zip(law.components, (-1, 1), strict=True):
                own = along[signs == sign]
                assert abs(z_score(own, component.mean @ u)) < 5
                square = component.covariance.variance(u) + (component.mean @ u) ** 2
                assert abs(z_score(own**2, square)) < 5


def test_second_moments_of_a_gaussian_readout_and_of_signs_agree_and_a_constant_one_differs_by_the_cross_term(
    rng,
):
    d, n = 6, 15
    model = Model(d=d, n=n, m=10, eta=12, residual="labels")
    X = rng.standard_normal((n, d))
    gamma, signs, constant = (FeatureLaw.given_batch(model, X, X[:, 0] ** 2, r).second_moment for r in
                              ("gaussian", "rademacher", "constant"))  # fmt: skip
    assert np.allclose(gamma, signs, rtol=1e-12)
    # Stein: E[w sigma'(<w, x>)] = x E sigma''(<w, x>)/d, and E sigma'' = (2 pi q)^(-1/2) for relu at variance q
    q = np.sum(X**2, axis=1) / d
    weights = X[:, 0] ** 2 / np.sqrt(2 * np.pi * q)
    step = 12 * 1.0 / 10
    cross = 2 * step * (X.T @ (X * weights[:, None])) / n
    assert np.allclose(constant - gamma, cross, rtol=1e-10)


@pytest.mark.parametrize("readout", ["gaussian", "rademacher"])
def test_annealed_law_has_the_exact_gamma(readout):
    d = 40
    model = Model(link="relu", d=d, n=80, m=60, eta=50, residual="labels", readout=readout)
    w = np.full(d, d**-0.5)
    law, exact = FeatureLaw.annealed(model, w), covariance(model)
    A, total = float(exact.A["exact"].value), float(exact.A_plus_B["exact"].value)
    assert law.marginal(w).second_moment == pytest.approx(total, rel=1e-12)
    across = np.zeros(d)
    across[:2] = 0.5**0.5, -(0.5**0.5)
    assert law.marginal(across).second_moment == pytest.approx(A, rel=1e-12)
    assert np.allclose(law.second_moment, A * np.eye(d) + (total - A) * np.outer(w, w))


@pytest.mark.parametrize("readout", ["gaussian", "rademacher", "constant"])
def test_samples_follow_the_marginals(rng, readout):
    d = 15
    model = Model(d=d, n=30, m=20, eta=20, residual="labels")
    X = rng.standard_normal((30, d))
    for law in (
        FeatureLaw.given_batch(model, X, X[:, 0], readout),
        FeatureLaw.annealed(model, np.eye(d)[0], readout),
    ):
        rows = law.sample(rng, 20_000)
        assert rows.shape == (20_000, d)
        for u in (np.eye(d)[0], rng.standard_normal(d)):
            u = u / np.linalg.norm(u)
            result = kstest(np.sqrt(d) * rows @ u, law.marginal(u).cdf)
            assert result.pvalue > 1e-6


def test_the_shape_is_right_for_each_readout_and_wrong_for_the_others(rng):
    """Empirical law along w* over many batches: distance to its own law is a fraction of that to the others."""
    d, n, m = 200, 400, 100
    model = Model(d=d, n=n, m=m, eta=140, link="s", residual="labels")
    w = np.eye(d)[0]
    laws = {r: FeatureLaw.annealed(model, w, r).marginal(w) for r in ("gaussian", "rademacher", "constant")}
    for readout, law in laws.items():
        sample = []
        for _ in range(40):
            X = rng.standard_normal((n, d))
            features, _ = trained_neurons(rng, model, X, X[:, 0], readout, 200)
            sample.append(features[:, 0])
        along = np.concatenate(sample)
        own = kstest(along, law.cdf).statistic
        others = [kstest(along, other.cdf).statistic for name, other in laws.items() if name != readout]
        assert own < 0.25 * min(others)


def test_density_is_that_of_the_distribution_function():
    law = Marginal(np.array([0.25, 0.75]), np.array([-1.0, 2.0]), np.array([0.5, 1.5]))
    assert quad(law.pdf, -12, 14, points=[-1, 2])[0] == pytest.approx(1, abs=1e-9)
    assert quad(law.pdf, -12, 0.7, points=[-1])[0] == pytest.approx(float(law.cdf(0.7)), abs=1e-9)
    assert quad(lambda x: x * x * law.pdf(x), -12, 16, points=[-1, 2])[0] == pytest.approx(
        law.second_moment, abs=1e-8
    )


def test_statements_say_what_changes():
    model = Model(d=5, n=9, m=4, eta=3, residual="labels")
    texts = {
        r: FeatureLaw.annealed(model, np.eye(5)[0], r).statement
        for r in ("gaussian", "rademacher", "constant")
    }
    assert "mixture of two Gaussians" in texts["rademacher"]
    assert "second moment only" in texts["constant"]
    assert len(set(texts.values())) == 3


def test_refusals():
    model = Model(d=5, n=9, m=4, eta=3)
    with pytest.raises(InputError, match="constant readout"):
        FeatureLaw.annealed(model, np.eye(5)[0], "constant")
    with pytest.raises(InputError, match="choose gaussian, rademacher, constant"):
        FeatureLaw.annealed(model, np.eye(5)[0], "uniform")
    with pytest.raises(InputError, match="labels only"):
        FeatureLaw.given_batch(model, np.ones((9, 5)), np.ones(9))
