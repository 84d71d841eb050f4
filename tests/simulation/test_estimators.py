"""Estimates of A and A + B: the arithmetic, and z-scores that are what they claim to be."""

from dataclasses import astuple, fields

import numpy as np
import pytest
from scipy import stats

from spikesym.model import Model
from spikesym.numeric.covariance import covariance
from spikesym.simulation.estimators import (
    CONTROLS_FROM,
    estimate,
    estimate_covariance,
    false_alarm_rate,
    from_rows,
    regressed,
)
from spikesym.simulation.network import Experiment
from spikesym.simulation.statistics import NetworkStatistics, network_statistics, top_overlap2
from spikesym.simulation.streams import Trial

TINY = Model(d=8, n=24, m=12, eta=8)
RUNS, REPS = 200, 32


def exact(model):
    result = covariance(model)
    return tuple(float(form["exact"].value) for form in (result.A, result.A_plus_B))


@pytest.fixture(scope="module")
def rows():
    """Statistics of 6400 independent tiny networks: 200 runs of 32."""
    experiment = Experiment.of(TINY)
    return [network_statistics(experiment, Trial(1, index)) for index in range(RUNS * REPS)]


def z_scores(rows, values):
    runs = [from_rows(rows[k * REPS : (k + 1) * REPS], 8) for k in range(RUNS)]
    return np.array([[run.A.z(values[0]), run.A_plus_B.z(values[1])] for run in runs])


def assert_standard(z, reps=REPS):
    """The scores of 200 runs follow Student's t: shape and spread.

    Right scores fail the first line once in 1000 times, the second once in 1000, each for two quantities; the
    skewness of the values leaves a distance of about 0.02 between the laws.
    """
    assert stats.kstest(z, stats.t(reps - 1).cdf).pvalue > 1e-3
    spread = np.sum(z**2) * (reps - 3) / (reps - 1)
    assert stats.chi2.ppf(5e-4, len(z)) < spread < stats.chi2.ppf(1 - 5e-4, len(z))


def test_z_scores_against_the_exact_values_are_standard(rows):
    z = z_scores(rows, exact(TINY))
    for column in z.T:
        assert_standard(column)


def test_the_same_test_rejects_wrong_values_and_dishonest_errors(rows):
    values = exact(TINY)
    # half a standard error off: a shift of 0.5 in each of 200 scores
    one = from_rows(rows[:REPS], 8)
    shifted = (values[0] + 0.5 * one.A.se, values[1] + 0.5 * one.A_plus_B.se)
    for column in z_scores(rows, shifted).T:
        with pytest.raises(AssertionError):
            assert_standard(column)
    # standard errors over the neurons of one network, as if they were independent
    experiment = Experiment.of(TINY)
    naive = []
    for index in range(RUNS):
        trained = experiment.train(Trial(1, index))
        along = 8 * (trained.trained.weights @ trained.teacher.direction) ** 2
        naive.append((along.mean() - values[1]) / (along.std(ddof=1) / np.sqrt(len(along))))
    with pytest.raises(AssertionError):
        assert_standard(np.array(naive), reps=12)


def test_controls_have_mean_zero_and_save_networks(rows):
    table = np.array([astuple(r) for r in rows])
    names = [f.name for f in fields(NetworkStatistics)]
    for name in ("hermite1", "hermite2", "hermite3", "readout2", "label_output"):
        values = table[:, names.index(name)]
        assert abs(values.mean()) < 5 * values.std() / np.sqrt(len(values))
    run = from_rows(rows, 8)
    assert (
        run.A.controls
        == run.A_plus_B.controls
        == ("hermite1", "hermite2", "hermite3", "readout2", "label_output")
    )
    # about 9 and 3 were measured
    assert run.A.variance_reduction > 4
    assert run.A_plus_B.variance_reduction > 2
    # the plain means estimate the same
    for entry, value in zip((run.A, run.A_plus_B), exact(TINY), strict=True):
        assert abs(entry.plain_mean - value) < 5 * entry.plain_se
        assert abs(entry.z(value)) < 5


MODELS = [
    {},
    {"readout": "rademacher"},
    {"init": "sphere"},
    {"residual": "labels"},
    {"noise_var": "1/4", "readout_scale": "3/2"},
    {"link": "s + he2(s)/sqrt(2)"},
    {"link": "he2(s)"},
    {"activation": "leaky_relu(0.1)", "link": "tanh(2*s)"},
    {"activation": "abs", "readout": "rademacher"},
    {"activation": "identity", "link": "sign(s)"},
]


@pytest.mark.parametrize("change", MODELS, ids=str)
def test_z_scores_of_many_models(change):
    model = Model(d=20, n=30, m=25, eta=30).with_(**change)
    run = estimate_covariance(model, reps=200, seed=7)
    for entry, value in zip((run.A, run.A_plus_B), exact(model), strict=True):
        # false alarms once in 10^6 for normal values, a few times more for skewed ones; 20 scores
        assert abs(entry.z(value)) < 5
        assert entry.p_value(value) > 1e-6


@pytest.mark.montecarlo
@pytest.mark.parametrize("change", MODELS, ids=str)
def test_z_scores_with_many_networks(change):
    model = Model(d=60, n=120, m=90, eta=120).with_(**change)
    run = estimate_covariance(model, reps=4000, seed=8)
    for entry, value in zip((run.A, run.A_plus_B), exact(model), strict=True):
        assert abs(entry.z(value)) < 5
        # the error bar is small enough to see the terms of relative size 1/d
        assert entry.se < 0.02 * value


def test_statistics_of_one_network_from_its_weights():
    model = Model(d=9, n=14, m=11, eta=20)
    experiment = Experiment.of(model)
    trial = Trial(3, 1)
    row, trained = network_statistics(experiment, trial), experiment.train(trial)
    before, after, w = trained.initial.weights, trained.trained.weights, trained.teacher.direction
    assert row.norm2 == pytest.approx((after**2).sum(axis=1).mean(), rel=1e-13)
    assert row.along2 == pytest.approx(((after @ w) ** 2).mean(), rel=1e-13)
    assert row.norm2_change == pytest.approx(((after**2) - before**2).sum(axis=1).mean(), rel=1e-11)
    assert row.along2_change == pytest.approx(((after @ w) ** 2 - (before @ w) ** 2).mean(), rel=1e-11)
    top = np.linalg.svd(trained.step)[2][0]
    assert row.overlap2 == pytest.approx((top @ w) ** 2, rel=1e-10)
    assert row.readout2 == pytest.approx(11 * (trained.initial.readout**2).mean() - 1, rel=1e-12)
    labels = network_statistics(Experiment.of(model.with_(residual="labels")), trial)
    step = Experiment.of(model.with_(residual="labels")).train(trial).step
    assert labels.norm2_change == pytest.approx((step**2).sum(axis=1).mean(), rel=1e-13)
    assert labels.label_output == 0


def test_rows_combine_to_A_and_A_plus_B():
    # two networks whose neurons are known: d = 4, E||w||^2 = 3 and 5, E<w, w*>^2 = 1 and 2
    rest = dict.fromkeys((f.name for f in fields(NetworkStatistics)), 0.0)
    rows = [
        NetworkStatistics(
            **{**rest, "norm2": n, "along2": a, "norm2_change": n - 1, "along2_change": a - 0.25}
        )
        for n, a in ((3.0, 1.0), (5.0, 2.0))
    ]
    run = from_rows(rows, 4)
    assert run.A.mean == run.A.plain_mean == pytest.approx(4 / 3 * (2 + 3) / 2)
    assert run.A_plus_B.mean == run.A_plus_B.plain_mean == pytest.approx(4 * 1.5)
    assert run.A_plus_B.se == pytest.approx(np.std([4.0, 8.0], ddof=1) / np.sqrt(2))


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (330, 310), (310, 330)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_top_overlap_by_singular_vectors(shape, dtype):
    rng = np.random.default_rng(2)
    w = rng.standard_normal(shape[1])
    w /= np.linalg.norm(w)
    step = 1e-3 * (rng.standard_normal(shape) + 3 * np.outer(rng.standard_normal(shape[0]), w)).astype(dtype)
    expected = (np.linalg.svd(step.astype(float), full_matrices=False)[2][0] @ w) ** 2
    assert top_overlap2(step, w) == pytest.approx(expected, rel=1e-8 if dtype == np.float64 else 1e-3)
    assert top_overlap2(np.zeros(shape, dtype), w) == 0


def test_jackknife_of_the_regression_by_leaving_networks_out():
    rng = np.random.default_rng(4)
    controls = rng.standard_normal((35, 3))
    values = 2 + controls @ [1.0, -2.0, 0.5] + rng.exponential(size=35)

    def intercept(keep):
        return np.linalg.lstsq(
            np.column_stack([np.ones(keep.sum()), controls[keep]]), values[keep], rcond=None
        )[0][0]

    whole = intercept(np.ones(35, bool))
    pseudo = [35 * whole - 34 * intercept(np.arange(35) != i) for i in range(35)]
    assert np.allclose(regressed(values, controls), pseudo, rtol=1e-10)


def test_controls_are_left_out_where_they_cost_more_than_they_save():
    rng = np.random.default_rng(5)
    for reps in (CONTROLS_FROM - 1, CONTROLS_FROM):
        c = {"one": rng.standard_normal(reps), "constant": np.zeros(reps)}
        entry = estimate(1 + c["one"], controls=c)
        assert entry.controls == (("one",) if reps == CONTROLS_FROM else ())
        assert entry.plain_mean == pytest.approx((1 + c["one"]).mean())
    plain = estimate(np.array([1.0, 2.0, 4.0]))
    assert (plain.mean, plain.se) == pytest.approx((7 / 3, np.std([1, 2, 4], ddof=1) / 3**0.5))
    assert plain.skewness == pytest.approx(stats.skew([1.0, 2.0, 4.0]))
    constant = estimate(np.ones(40), controls={"one": rng.standard_normal(40)})
    assert (constant.mean, constant.se, constant.z(1.0), constant.p_value(1.0)) == (1.0, 0.0, None, None)


def test_false_alarm_rate_is_that_of_student():
    rng = np.random.default_rng(6)
    samples = rng.standard_normal((400_000, 6))
    t = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / np.sqrt(6))
    rate = false_alarm_rate(6)
    assert abs((np.abs(t) > 5).mean() - rate) < 5 * np.sqrt(rate / 400_000)


def test_a_longer_run_extends_a_shorter_one_and_seeds_differ():
    short, long = estimate_covariance(TINY, 5, seed=2), estimate_covariance(TINY, 8, seed=2)
    assert long.rows[:5] == short.rows
    other = estimate_covariance(TINY, 5, seed=3)
    assert not {r.norm2 for r in other.rows} & {r.norm2 for r in short.rows}


def test_progress_wraps_the_networks():
    seen = []

    def watch(items, description):
        for item in items:
            seen.append((item, description))
            yield item

    estimate_covariance(TINY, 3, progress=watch)
    assert [k for k, _ in seen] == [0, 1, 2]


def test_float32_estimates_agree_with_float64():
    wide, narrow = (estimate_covariance(TINY, 40, dtype=t) for t in (np.float64, np.float32))
    assert narrow.A.mean == pytest.approx(wide.A.mean, rel=1e-5)
    assert narrow.A_plus_B.mean == pytest.approx(wide.A_plus_B.mean, rel=1e-5)
