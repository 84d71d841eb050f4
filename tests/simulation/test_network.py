"""One gradient step against its definition: loops, finite differences of the loss, any blocks, bounded memory."""

import tracemalloc

import numpy as np
import pytest

from spikesym.errors import InputError, PostconditionError
from spikesym.model import Model
from spikesym.simulation.gradient import Plan, blas_threads, gradient, make_plan, single_blas_thread
from spikesym.simulation.network import Experiment
from spikesym.simulation.streams import Trial
from spikesym.symbolic.functions import make_function

ACTIVATIONS = ["relu", "tanh", "leaky_relu(0.1)", "gelu", "softplus", "abs"]
TRIAL = Trial(seed=11, index=2)


def draw(activation="relu", residual="full", d=7, n=9, m=5, **more):
    model = Model(link="s + he2(s)/sqrt(2)", activation=activation, d=d, n=n, m=m, eta=3, noise_var="1/4",
                  residual=residual, **more)  # fmt: skip
    experiment = Experiment.of(model)
    teacher = experiment.teacher(TRIAL)
    return experiment, experiment.initial(TRIAL), experiment.batch(TRIAL, teacher)


def outputs(weights, readout, inputs, sigma):
    """f(x_i) by loops over samples and neurons."""
    m = len(weights)
    return np.array(
        [
            sum(readout[j] * float(sigma(np.array([weights[j] @ x]))[0]) for j in range(m)) / m**0.5
            for x in inputs
        ]
    )


@pytest.mark.parametrize("residual", ["full", "labels"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_by_double_loop(activation, residual):
    experiment, network, batch = draw(activation, residual)
    result, moments = gradient(network.weights, network.readout, batch, experiment.activation, residual)
    # the compiled derivative, not the fused pass that the gradient takes
    function = make_function(activation, "activation")
    sigma, slope = function.numpy(), function.derivative_numpy()
    inputs, labels = batch.arrays()
    f = outputs(network.weights, network.readout, inputs, sigma)
    expected = np.zeros_like(network.weights)
    for j, w in enumerate(network.weights):
        for x, y, fx in zip(inputs, labels, f, strict=True):
            r = y - fx if residual == "full" else y
            expected[j] -= network.readout[j] * r * float(slope(np.array([w @ x]))[0]) * x
    expected /= len(labels) * len(network.weights) ** 0.5
    assert np.allclose(result, expected, rtol=0, atol=1e-14 * np.abs(expected).max() * 10)
    if residual == "full":
        assert moments.loss == pytest.approx(np.mean((f - labels) ** 2) / 2, rel=1e-13)
        assert moments.label_output == pytest.approx(np.mean(f * labels), rel=1e-12)
    s = inputs @ batch.teacher.direction
    assert moments.hermite == pytest.approx([s.mean(), (s**2 - 1).mean(), (s**3 - 3 * s).mean()], rel=1e-12)


@pytest.mark.parametrize("residual", ["full", "labels"])
@pytest.mark.parametrize(("activation", "h", "tolerance"), [
    # fourth-order differences: rounding 1e-16/h, truncation h^4
    ("tanh", 1e-3, 1e-11), ("softplus", 1e-3, 1e-11), ("gelu", 1e-3, 1e-11),
    # linear between kinks, none of which lies within h: rounding alone
    ("relu", 1e-6, 1e-9), ("leaky_relu(0.1)", 1e-6, 1e-9),
])  # fmt: skip
def test_gradient_by_finite_differences_of_the_loss(activation, h, tolerance, residual):
    experiment, network, batch = draw(activation, residual)
    result, _ = gradient(network.weights, network.readout, batch, experiment.activation, residual)
    inputs, labels = batch.arrays()
    sigma = make_function(activation, "activation").numpy()

    def loss(weights):
        f = sigma(inputs @ weights.T) @ network.readout / len(weights) ** 0.5
        return np.mean((f - labels) ** 2) / 2 if residual == "full" else -np.mean(labels * f)

    for j, i in [(0, 0), (1, 3), (4, 6), (2, 5), (3, 1)]:
        e = np.zeros_like(network.weights)
        e[j, i] = h
        w = network.weights
        slope = (8 * (loss(w + e) - loss(w - e)) - (loss(w + 2 * e) - loss(w - 2 * e))) / (12 * h)
        assert result[j, i] == pytest.approx(slope, rel=0, abs=tolerance)
        assert abs(slope) > 100 * tolerance


def test_the_step_is_minus_eta_times_the_gradient():
    experiment, network, batch = draw()
    trained = experiment.train(TRIAL)
    expected, _ = gradient(network.weights, network.readout, batch, experiment.activation)
    assert np.array_equal(trained.initial.weights, network.weights)
    assert np.allclose(trained.step, -3.0 * expected, rtol=1e-13)
    assert np.allclose(trained.trained.weights, network.weights - 3.0 * expected, rtol=1e-13)
    inputs, _ = batch.arrays()
    sigma = make_function("relu", "activation").numpy()
    assert np.allclose(
        trained.trained(inputs), outputs(trained.trained.weights, network.readout, inputs, sigma)
    )


@pytest.mark.parametrize("residual", ["full", "labels"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_blocks_and_threads_change_nothing_but_rounding(activation, residual):
    experiment, network, batch = draw(activation, residual, d=30, n=101, m=67)
    run = lambda plan: gradient(  # noqa: E731
        network.weights, network.readout, batch, experiment.activation, residual, plan
    )
    whole, moments = run(Plan(rows=101, tile=67))
    scale = np.abs(whole).max()
    for plan in (Plan(1, 1), Plan(7, 10), Plan(100, 66), Plan(4096, 512), Plan(13, 16, threads=3)):
        result, again = run(plan)
        assert np.abs(result - whole).max() < 1e-14 * scale * 20
        assert np.allclose(
            [*again.hermite, again.loss], [*moments.hermite, moments.loss], rtol=1e-11, atol=1e-14
        )
    # order of summation does not depend on which thread was first
    assert np.array_equal(run(Plan(13, 16, threads=3))[0], run(Plan(13, 16, threads=1))[0])


def test_float32_is_the_same_training_rounded():
    wide, narrow = (
        Experiment.of(Model(d=60, n=150, m=80, eta=50, activation="tanh"), t) for t in ("f8", "f4")
    )
    one, other = wide.train(TRIAL), narrow.train(TRIAL)
    assert other.step.dtype == other.initial.weights.dtype == np.float32
    assert np.array_equal(other.initial.weights, one.initial.weights.astype(np.float32))
    # 150 terms of relative rounding 6e-8 in each sum
    assert np.abs(other.step - one.step).max() < 150 * 6e-8 * np.abs(one.step).max()


def test_memory_is_bounded_by_the_setting():
    experiment = Experiment.of(Model(d=100, n=6000, m=300, eta=10))
    experiment.train(TRIAL, memory=1 << 30, threads=1)  # compile and cache everything first
    memory = 4_000_000
    tracemalloc.start()
    try:
        small = experiment.train(TRIAL, memory=memory, threads=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= memory < 6000 * 300 * 8 / 3
    large = experiment.train(TRIAL)
    assert np.allclose(small.step, large.step, rtol=0, atol=1e-13 * np.abs(large.step).max())


def test_too_little_memory_is_refused_with_the_least_that_would_do():
    with pytest.raises(InputError, match="--memory") as error:
        make_plan(m=1000, d=500, n=100, memory=1000, threads=1)
    least = int(str(error.value).split()[-2])
    assert make_plan(m=1000, d=500, n=100, memory=least, threads=1).rows == 1
    with pytest.raises(InputError):
        make_plan(m=1000, d=500, n=100, memory=least - 1, threads=1)


def test_a_model_too_large_for_memory_is_refused_before_anything_is_allocated():
    experiment = Experiment.of(Model(d=10**7, n=10, m=10**7, eta=1))
    with pytest.raises(InputError, match="--memory"):
        experiment.train(TRIAL)


@pytest.mark.parametrize("init", ["gaussian", "sphere"])
def test_initial_weights_have_second_moment_identity_over_d(init):
    d, m = 6, 20000
    weights = Experiment.of(Model(d=d, n=1, m=m, eta=1, init=init)).initial(TRIAL).weights
    if init == "sphere":
        assert np.allclose(np.linalg.norm(weights, axis=1), 1, rtol=1e-14)
    moments = d * weights.T @ weights / m
    # entries of w w^T d have variance at most 2 (diagonal, Gaussian)
    assert np.abs(moments - np.eye(d)).max() < 5 * np.sqrt(2 / m)


@pytest.mark.parametrize(("readout", "kurtosis"), [("gaussian", 3), ("rademacher", 1)])
def test_readout_has_the_model_s_scale_and_kurtosis(readout, kurtosis):
    m = 20000
    model = Model(d=2, n=1, m=m, eta=1, readout=readout, readout_scale="3/2")
    a = Experiment.of(model).initial(TRIAL).readout * m**0.5 / 1.5
    assert model.kappa4 == kurtosis
    assert abs(a.mean()) < 5 / m**0.5
    assert abs((a**2).mean() - 1) <= 5 * (max(kurtosis - 1, 0) / m) ** 0.5 + 1e-12
    # E a^8 - (E a^4)^2 = 96 for a Gaussian
    assert abs((a**4).mean() - kurtosis) <= 5 * ((96 if kurtosis == 3 else 0) / m) ** 0.5 + 1e-12


def test_inner_products_of_features_are_an_average_over_neurons():
    _, network, batch = draw(m=40)
    inputs, _ = batch.arrays()
    features = network.features(inputs)
    sigma = np.maximum(inputs @ network.weights.T, 0)
    assert np.allclose(features @ features.T, sigma @ sigma.T / 40)
    assert np.allclose(network(inputs), features @ network.readout)


def test_an_overflowing_step_is_an_error_and_not_nan():
    def explosive(z):
        return np.where(z > 0, np.inf, 0.0)

    experiment = Experiment.of(Model(d=5, n=20, m=4, eta=1, activation=explosive))
    with np.errstate(all="ignore"), pytest.raises(PostconditionError, match="not finite"):
        experiment.train(TRIAL)


def test_a_free_parameter_is_refused():
    with pytest.raises(InputError):
        Experiment.of(Model(link="tanh(a*s)", d=5, n=20, m=4, eta=1))
    assert Experiment.of(Model(link="tanh(a*s)", d=5, n=20, m=4, eta=1, parameters={"a": 2})).link(
        1.0
    ) == np.tanh(2)


def test_blas_limits_are_restored():
    before = blas_threads()
    with single_blas_thread():
        assert blas_threads() == 1
        experiment, network, batch = draw()
        gradient(network.weights, network.readout, batch, experiment.activation)
        assert blas_threads() == 1
    assert blas_threads() == before


def test_a_second_step_goes_through_the_same_engine():
    experiment, _, batch = draw("tanh")
    first = experiment.train(TRIAL)
    again = experiment.batch(TRIAL, first.teacher, step=1)
    weights, readout = first.trained.weights, first.trained.readout
    result, _ = gradient(weights, readout, again, experiment.activation)
    inputs, labels = again.arrays()
    assert not np.intersect1d(inputs, batch.arrays()[0]).size
    h = inputs @ weights.T
    r = labels - np.tanh(h) @ readout / len(weights) ** 0.5
    expected = -(r[:, None] * (1 - np.tanh(h) ** 2)).T @ inputs * readout[:, None]
    assert np.allclose(result, expected / (len(labels) * len(weights) ** 0.5), rtol=1e-12, atol=1e-15)
