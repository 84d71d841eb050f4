"""Ridge fits and leave-one-out errors against direct solves and refits."""

import numpy as np
import pytest
import scipy.linalg

from spikesym.errors import InputError, PostconditionError
from spikesym.simulation.ridge import RidgePath

RIDGES = [1e-4, 1e-2, 1.0, 30.0]


@pytest.fixture(params=["kernel", "wide features", "tall features", "deficient features"])
def problem(request):
    """(path, kernel matrix, labels): more features than samples, fewer, and fewer directions than either."""
    rng = np.random.default_rng(5)
    n = 25
    p = {"kernel": 40, "wide features": 40, "tall features": 10, "deficient features": 10}[request.param]
    features = rng.standard_normal((n, p)) / np.sqrt(p)
    if request.param == "deficient features":
        features[:, 5:] = features[:, :5]
    labels = features[:, 0] + 0.3 * rng.standard_normal(n)
    kernel = features @ features.T
    path = (
        RidgePath.of_kernel(kernel, labels)
        if request.param == "kernel"
        else RidgePath.of_features(features, labels)
    )
    return path, kernel, labels


@pytest.mark.parametrize("ridge", RIDGES)
def test_coefficients_by_direct_solve(problem, ridge):
    path, kernel, labels = problem
    expected = scipy.linalg.solve(kernel + ridge * np.eye(len(labels)), labels, assume_a="pos")
    assert np.allclose(path.coefficients(ridge), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("ridge", RIDGES)
def test_feature_weights_by_normal_equations(ridge):
    rng = np.random.default_rng(6)
    for n, p in ((30, 12), (12, 30)):
        features, labels = rng.standard_normal((n, p)), rng.standard_normal(n)
        weights = features.T @ RidgePath.of_features(features, labels).coefficients(ridge)
        expected = scipy.linalg.solve(features.T @ features + ridge * np.eye(p), features.T @ labels)
        assert np.allclose(weights, expected, rtol=1e-8, atol=1e-9)


def test_leave_one_out_by_refitting(problem):
    path, kernel, labels = problem
    errors = path.leave_one_out(RIDGES)
    n = len(labels)
    assert errors.shape == (n, len(RIDGES))
    for k, ridge in enumerate(RIDGES):
        for i in (0, 7, n - 1):
            rest = np.delete(np.arange(n), i)
            c = np.linalg.solve(kernel[np.ix_(rest, rest)] + ridge * np.eye(n - 1), labels[rest])
            assert errors[i, k] == pytest.approx(labels[i] - kernel[i, rest] @ c, rel=1e-7, abs=1e-9)


def test_the_best_ridge_has_the_least_leave_one_out_error(problem):
    path, kernel, labels = problem
    n = len(labels)
    ridges = list(np.logspace(-3, 2, 11))
    scores = []
    for ridge in ridges:
        inverse = np.linalg.inv(kernel + ridge * np.eye(n))
        scores.append(np.mean((inverse @ labels / np.diag(inverse)) ** 2))
    best = path.best_ridge(ridges)
    assert best == ridges[int(np.argmin(scores))]
    assert max(scores) > 1.2 * min(scores)


def test_a_matrix_that_is_no_kernel_is_an_error():
    kernel = np.diag([1.0, 0.5, -1e-6])
    with pytest.raises(PostconditionError, match="-1e-06"):
        RidgePath.of_kernel(kernel, np.ones(3))
    # rounding is not
    assert RidgePath.of_kernel(np.diag([1.0, 0.5, -1e-14]), np.ones(3)).eigenvalues.min() == 0


def test_not_finite_is_an_error():
    with pytest.raises(PostconditionError, match="not finite"):
        RidgePath.of_kernel(np.array([[1.0, np.nan], [np.nan, 1.0]]), np.ones(2))
    with pytest.raises(PostconditionError, match="not finite"):
        RidgePath.of_features(np.array([[np.inf], [1.0]]), np.ones(2))


def test_duplicated_samples_with_two_labels_need_a_ridge():
    # the kernel matrix is singular: without a ridge no fit exists, and rounding would decide
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    path = RidgePath.of_kernel(x @ x.T, np.array([0.0, 1.0, 2.0]))
    for ridge in (0.0, -1.0, np.nan, np.inf, 1e-18):
        with pytest.raises(InputError, match="ridge"):
            path.coefficients(ridge)
    fitted = x @ x.T @ path.coefficients(1e-9)
    assert np.allclose(fitted, [0.5, 0.5, 2.0], atol=1e-8)
    with pytest.raises(InputError):
        path.best_ridge([])
