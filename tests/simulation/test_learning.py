"""Learning curves: each method recomputed by direct solves, the design's invariances, and who wins."""

import numpy as np
import pytest
import scipy.linalg

from spikesym.errors import InputError
from spikesym.model import Model
from spikesym.numeric.kernel import Kernel
from spikesym.simulation.batch import Batch
from spikesym.simulation.comparison import METHODS
from spikesym.simulation.gradient import single_blas_thread
from spikesym.simulation.learning import learning_curves
from spikesym.simulation.network import Experiment
from spikesym.simulation.streams import Role, Trial

SMALL = Model(link="s + he2(s)/sqrt(2)", d=12, n=30, m=25, eta=20, noise_var="1/10", residual="labels")
SPIKE = (1.2, 3.0)


def curves(model=SMALL, sizes=(10, 40), reps=3, test_points=50, ridges=(0.1,), **more):
    return learning_curves(model, sizes, reps, test_points, ridges, spike=SPIKE, **more)


def test_every_method_by_direct_solves():
    result = curves(methods=tuple(METHODS), seed=5)
    experiment = Experiment.of(SMALL)
    for index in range(3):
        trial = Trial(5, index)
        trained = experiment.train(trial)
        teacher = trained.teacher
        inputs, labels = Batch(teacher, 40, trial, Role.FRESH_INPUTS, Role.FRESH_NOISE).arrays()
        tests = trial.stream(Role.TEST_INPUTS).standard_normal((50, 12))
        s = tests @ teacher.direction
        clean = s + (s**2 - 1) / np.sqrt(2)
        before = experiment.initial(trial).weights
        batch_inputs, batch_labels = experiment.batch(trial, teacher).arrays()
        # Gamma_batch for ReLU, its slopes' kernel by arccos
        norms = np.linalg.norm(batch_inputs, axis=1)
        angles = np.arccos(np.clip(batch_inputs @ batch_inputs.T / np.outer(norms, norms), -1, 1))
        np.fill_diagonal(angles, 0)
        weighted = batch_inputs * batch_labels[:, None]
        gamma = (
            np.eye(12)
            + 12 * (20 / 25) ** 2 / 30**2 * weighted.T @ ((np.pi - angles) / (2 * np.pi)) @ weighted
        )
        kernels = {
            "k0": Kernel("relu"),
            "k1": Kernel("relu", A=1.2, B=3.0, w=teacher.direction),
            "k1_quenched": Kernel("relu", Gamma=gamma),
        }
        for k, n in enumerate((10, 40)):
            x, y = inputs[:n], labels[:n]
            for method, weights in (("network", before + trained.step), ("random_features", before)):
                f, t = (np.maximum(v @ weights.T, 0) / 5 for v in (x, tests))
                beta = scipy.linalg.solve(f.T @ f + 0.1 * np.eye(25), f.T @ y, assume_a="pos")
                expected = np.mean((t @ beta - clean) ** 2)
                assert result.curves[method].errors[index, k] == pytest.approx(expected, rel=1e-8)
            for method, kernel in kernels.items():
                c = scipy.linalg.solve(kernel.matrix(x) + 0.1 * np.eye(n), y, assume_a="pos")
                expected = np.mean((kernel.matrix(tests, x) @ c - clean) ** 2)
                assert result.curves[method].errors[index, k] == pytest.approx(expected, rel=1e-8)


def test_mean_error_bars_and_paired_gap():
    result = curves()
    curve, other = result.curves["k1"], result.curves["k0"]
    assert curve.errors.shape == (3, 2)
    assert np.allclose(curve.mean, curve.errors.mean(axis=0))
    assert np.allclose(curve.se, np.sqrt(((curve.errors - curve.mean) ** 2).sum(axis=0) / (3 * 2)))
    mean, se = result.gap("k1", "k0")
    difference = other.errors - curve.errors
    assert np.allclose(mean, difference.mean(axis=0))
    assert np.allclose(se, difference.std(axis=0, ddof=1) / np.sqrt(3))


def test_results_do_not_depend_on_threads_or_on_other_sizes_trials_and_methods():
    whole = curves(sizes=(10, 20, 40), reps=4, methods=("network", "k0"), ridges=(0.01, 0.1, 1.0))
    with single_blas_thread():
        serial = curves(sizes=(10, 20, 40), reps=4, methods=("network", "k0"), ridges=(0.01, 0.1, 1.0))
    part = curves(sizes=(10, 20), reps=2, methods=("k0",), ridges=(0.01, 0.1, 1.0))
    for name in ("network", "k0"):
        assert np.array_equal(whole.curves[name].errors, serial.curves[name].errors)
    assert np.allclose(part.curves["k0"].errors, whole.curves["k0"].errors[:2, :2], rtol=1e-10)
    assert np.array_equal(part.curves["k0"].ridges, whole.curves["k0"].ridges[:2, :2])
    other = curves(sizes=(10, 20), reps=2, methods=("k0",), ridges=(0.01, 0.1, 1.0), seed=1)
    assert not np.intersect1d(other.curves["k0"].errors, part.curves["k0"].errors).size


def test_leave_one_out_lies_between_the_oracle_and_the_worst_ridge():
    ridges = tuple(np.logspace(-3, 3, 7))
    design = {"sizes": (60, 120), "reps": 6, "test_points": 200}
    chosen, oracle = curves(ridges=ridges, **design), curves(ridges=ridges, ridge_rule="oracle", **design)
    fixed = [curves(ridges=(r,), **design) for r in ridges]
    for name in ("network", "k1", "k0"):
        errors = np.array([f.curves[name].errors for f in fixed])
        assert np.allclose(oracle.curves[name].errors, errors.min(axis=0), rtol=1e-9)
        picked = [[ridges.index(r) for r in row] for row in chosen.curves[name].ridges]
        expected = np.take_along_axis(errors, np.array(picked)[None], axis=0)[0]
        assert np.allclose(chosen.curves[name].errors, expected, rtol=1e-9)
        # the choice is not by chance: closer to the best than to the average ridge
        gain = errors.mean(axis=0).mean() - errors.min(axis=0).mean()
        assert chosen.curves[name].errors.mean() - errors.min(axis=0).mean() < 0.5 * gain
    assert "lower bound" in oracle.ridge_rule
    assert "leave-one-out" in chosen.ridge_rule


def test_the_spike_helps_where_the_link_has_a_linear_part():
    # n_2 = 2d: k0 cannot learn the quadratic part, k1 can; paired gaps in units of their standard errors
    model = Model(link="s + he2(s)/sqrt(2)", d=40, n=320, m=400, eta="178.9", noise_var="1/100")
    result = learning_curves(model, (40, 80, 160), 6, 300, seed=2, spike=(1.03, 8.0), methods=tuple(METHODS))
    for better, worse in (
        ("k1", "k1_quenched"),
        ("k1_quenched", "k0"),
        ("network", "random_features"),
        ("k1", "k0"),
    ):
        mean, se = result.gap(better, worse)
        assert mean[-1] > 4 * se[-1]
    for curve in result.curves.values():
        assert np.all(np.diff(curve.mean) < 0)
        assert curve.mean[-1] < result.null_error
    # E g^2 = 2 on 1800 test points; g^2 has variance 48
    assert abs(result.null_error - 2) < 5 * np.sqrt(48 / 1800)


def test_json_text_and_series():
    result = curves(ridges=(0.1, 1.0))
    document = result.to_json()
    assert document["sizes"] == [10, 40]
    assert [c["method"] for c in document["curves"]] == ["network", "k1", "k0"]
    assert document["curves"][1]["mean"] == result.curves["k1"].mean.tolist()
    assert (document["A"], document["B"], document["form"]) == (1.2, 3.0, "given")
    assert "noise" in document["normalisation"]
    sizes, mean, se = result.series()[METHODS["k0"]]
    assert (sizes.tolist(), mean.shape, se.shape) == ([10, 40], (2,), (2,))
    assert all(label in result.text() for label in (METHODS["network"], METHODS["k1"], METHODS["k0"]))
    without = curves(methods=("k0",)).to_json()
    assert (without["A"], without["B"]) == (None, None)


def test_wrong_designs_are_refused():
    for wrong in (
        {"methods": ("k7",)},
        {"methods": ()},
        {"sizes": ()},
        {"sizes": (1,)},
        {"sizes": (10.5,)},
        {"reps": 1},
        {"test_points": 0},
        {"ridges": ()},
        {"ridges": (0.0,)},
        {"ridges": (-1.0, 1.0)},
        {"ridge_rule": "magic"},
    ):
        with pytest.raises(InputError):
            curves(**wrong)
    with pytest.raises(InputError, match="-d"):
        learning_curves(Model(), (10,), 2, 10)


@pytest.mark.montecarlo
def test_annealed_quenched_and_network_at_the_published_sizes():
    # d = 200, n = 8d, annealed B = 20, 600 fresh points, ridge chosen on the test set: the annealed kernel 0.08, the
    # quenched one 0.34 to 0.40, k0 1.27, the network 0.69 at m = 600 and 0.53 at m = 2400
    eta = {m: str(round(m * (80 / 200) ** 0.5, 6)) for m in (600, 2400)}
    model = Model(
        link="s + he2(s)/sqrt(2)", d=200, n=1600, m=600, eta=eta[600], noise_var="1/100", residual="labels"
    )
    result = learning_curves(
        model, (600,), 8, 2000, seed=0, spike=(1.0, 20.0), methods=tuple(METHODS), ridge_rule="oracle"
    )
    wide = learning_curves(
        model.with_(m=2400, eta=eta[2400]), (600,), 8, 2000, seed=1, methods=("network",), ridge_rule="oracle"
    )
    measured = {name: (c.mean[0], c.se[0]) for name, c in result.curves.items()}
    for name, low, high in (
        ("k1", 0.075, 0.085),
        ("k1_quenched", 0.34, 0.40),
        ("k0", 1.265, 1.275),
        ("network", 0.685, 0.695),
    ):
        mean, se = measured[name]
        assert low - 5 * se < mean < high + 5 * se, (name, mean, se)
    assert abs(wide.curves["network"].mean[0] - 0.53) < 5 * wide.curves["network"].se[0] + 0.005
