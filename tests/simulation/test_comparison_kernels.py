"""Kernels of the comparison: spiked maps, and networks trained on one batch."""

import math

import numpy as np
import pytest

from spikesym.model import Model
from spikesym.numeric.kernel import Kernel
from spikesym.numeric.quenched import quenched_covariance
from spikesym.simulation.kernels import MappedKernel, spiked_factor
from spikesym.simulation.network import Experiment
from spikesym.simulation.streams import Trial

TRIAL = Trial(seed=4, index=1)


def arc_cosine(left, right, covariance):
    """k1 of ReLU by its closed form, entry by entry."""
    d = left.shape[1]
    result = np.empty((len(left), len(right)))
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            p, q = x @ covariance @ x, y @ covariance @ y
            theta = math.acos(max(-1.0, min(1.0, x @ covariance @ y / math.sqrt(p * q))))
            result[i, j] = (
                math.sqrt(p * q) * (math.sin(theta) + (math.pi - theta) * math.cos(theta)) / (2 * math.pi * d)
            )
    return result


def test_k1_is_k0_after_the_square_root_of_the_spiked_covariance(rng):
    d, w = 6, np.ones(6) / np.sqrt(6)
    left, right = rng.standard_normal((5, d)), rng.standard_normal((4, d))
    kernel = MappedKernel(Kernel("relu"), spiked_factor(w, 1.3, 4.0))
    covariance = 1.3 * np.eye(d) + 4.0 * np.outer(w, w)
    assert np.allclose(kernel.matrix(left, right), arc_cosine(left, right, covariance), rtol=1e-12)
    assert np.allclose(kernel.matrix(left), arc_cosine(left, left, covariance), rtol=1e-7)  # acos near 1
    other = Kernel("relu", A=1.3, B=4.0, w=w)
    assert np.allclose(kernel.matrix(left), other.matrix(left), rtol=1e-13)


@pytest.mark.parametrize("activation", ["relu", "erf", "leaky_relu(0.2)"])
def test_neurons_trained_on_one_batch_have_the_covariance_given_the_batch(activation):
    # given the batch and with labels alone, neurons are independent: here they may be the units
    d, n, m = 5, 12, 40000
    model = Model(
        link="s + he2(s)/sqrt(2)", activation=activation, d=d, n=n, m=m, eta=2 * m, residual="labels"
    )
    experiment = Experiment.of(model)
    trained = experiment.train(TRIAL)
    inputs, labels = experiment.batch(TRIAL, trained.teacher).arrays()
    covariance = quenched_covariance(model, inputs, labels).matrix()
    weights = trained.trained.weights
    directions = np.vstack([np.eye(d), trained.teacher.direction, labels @ inputs, np.ones(d), inputs[0]])
    for u in directions:
        u = u / np.linalg.norm(u)
        values = d * (weights @ u) ** 2
        z = (values.mean() - u @ covariance @ u) / (values.std(ddof=1) / np.sqrt(m))
        assert abs(z) < 5
    # far from the identity, and from the one direction of Gamma's spike
    assert np.linalg.eigvalsh(covariance)[-1] > 3
    # and a covariance a little off is told from it
    u = np.linalg.eigh(covariance)[1][:, -1]
    values = d * (weights @ u) ** 2
    assert abs(values.mean() - 1.05 * u @ covariance @ u) > 5 * values.std() / np.sqrt(m)


def test_features_of_a_wide_network_have_the_quenched_kernel():
    d, n, m = 6, 10, 40000
    # the features of a trained network are Gaussian given the batch only for a linear activation's slope; the
    # kernel of the second moment is exact there, and the network's own kernel is an average over its neurons
    model = Model(link="tanh", activation="identity", d=d, n=n, m=m, eta=m, residual="labels")
    experiment = Experiment.of(model)
    trained = experiment.train(TRIAL)
    covariance = quenched_covariance(model, *experiment.batch(TRIAL, trained.teacher).arrays()).matrix()
    points = np.random.default_rng(3).standard_normal((4, d))
    kernel = MappedKernel(Kernel("identity"), np.linalg.cholesky(covariance)).matrix(points)
    features = trained.trained.features(points) * np.sqrt(m)
    for i in range(4):
        for j in range(4):
            values = features[i] * features[j]
            assert abs(values.mean() - kernel[i, j]) < 5 * values.std(ddof=1) / np.sqrt(m)
