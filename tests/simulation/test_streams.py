"""Streams: independent for roles, trials and steps; the same numbers however they are drawn."""

import itertools

import numpy as np
import pytest
from scipy import stats

from spikesym.model import Model
from spikesym.simulation.batch import Batch, Teacher
from spikesym.simulation.network import Experiment
from spikesym.simulation.streams import Role, Trial, fill_normal

DRAWS = 4000


def test_streams_of_all_roles_trials_seeds_and_steps_are_uncorrelated_and_have_no_number_in_common():
    keys = [
        (seed, index, role, step)
        for seed in (0, 1)
        for index in (0, 1, 2)
        for role in Role
        for step in (0, 1)
    ]
    draws = np.array([Trial(s, i).stream(r, step).standard_normal(DRAWS) for s, i, r, step in keys])
    correlation = np.corrcoef(draws) - np.eye(len(keys))
    # the largest of 4560 correlations of sd 1/sqrt(4000): beyond 6 sd by chance once in 10^5 runs
    assert np.abs(correlation).max() < 6 / np.sqrt(DRAWS)
    assert len(np.unique(draws)) == draws.size
    # shifted copies of one another would pass the test above at lag 0 only
    lagged = draws[:, 1:] @ draws[:, :-1].T / DRAWS
    assert np.abs(lagged).max() < 6 / np.sqrt(DRAWS)


def test_roles_are_numbered_once_and_for_all():
    # renumbering would change the results of every seed
    assert [role.name for role in sorted(Role)] == [
        "TARGET", "WEIGHTS", "READOUT", "INPUTS", "NOISE", "FRESH_INPUTS", "FRESH_NOISE", "TEST_INPUTS",
    ]  # fmt: skip
    # NumPy keeps the bits of PCG64 the same in all versions
    bits = Trial(seed=0, index=0).stream(Role.INPUTS).bit_generator.random_raw(2)
    assert bits.tolist() == [1425310321849181393, 10297580270546184529]


def test_the_teacher_shares_nothing_with_data_and_weights():
    # a teacher seeded like the data equals its first row up to scale
    experiment = Experiment.of(Model(d=50, n=40, m=30, eta=1))
    for index in range(5):
        trial = Trial(7, index)
        teacher = experiment.teacher(trial)
        inputs, _ = experiment.batch(trial, teacher).arrays()
        fresh, _ = Batch(teacher, 40, trial, inputs=Role.FRESH_INPUTS, noise=Role.FRESH_NOISE).arrays()
        rows = np.vstack([inputs, fresh, experiment.initial(trial).weights])
        cosines = rows @ teacher.direction / np.linalg.norm(rows, axis=1)
        # 110 cosines of sd 1/sqrt(50)
        assert np.abs(cosines).max() < 5.5 / np.sqrt(50)
        # as a whole: projections on w* are standard normal, like any other direction's
        assert (
            stats.kstest(
                np.concatenate([inputs @ teacher.direction, fresh @ teacher.direction]), "norm"
            ).pvalue
            > 1e-5
        )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_filling_in_pieces_gives_the_same_numbers(dtype):
    whole = fill_normal(Trial(3).stream(Role.WEIGHTS), np.empty((700, 130), dtype), 0.3)
    stream = Trial(3).stream(Role.WEIGHTS)
    pieces = [fill_normal(stream, np.empty((rows, 130), dtype), 0.3) for rows in (1, 299, 400)]
    assert np.array_equal(whole, np.concatenate(pieces))
    wide = fill_normal(Trial(3).stream(Role.WEIGHTS), np.empty((700, 130)), 0.3)
    assert np.array_equal(whole, wide.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_batch_is_the_same_read_in_any_blocks_and_twice(dtype):
    direction = np.ones(8) / np.sqrt(8)
    batch = Batch(Teacher(direction, np.tanh, 0.5), 23, Trial(1), dtype=dtype)
    inputs, labels = batch.arrays()
    assert (inputs.dtype, labels.dtype) == (dtype, np.float64)
    for rows in (1, 5, 23, 100):
        starts, pieces, noisy = [], [], []
        for block in batch.blocks(rows):
            starts.append(block.start)
            pieces.append(block.inputs.copy())
            noisy.append(block.labels.copy())
        assert np.array_equal(np.concatenate(pieces), inputs)
        assert np.allclose(np.concatenate(noisy), labels, rtol=0, atol=1e-14)
        assert starts == list(range(0, 23, rows))


def test_another_step_reads_another_batch():
    batches = [Batch(Teacher(np.eye(4)[0], np.tanh), 6, Trial(1), step=k).arrays()[0] for k in (0, 1, 2)]
    for one, other in itertools.combinations(batches, 2):
        assert not np.intersect1d(one, other).size


def test_label_noise_has_the_model_s_variance():
    experiment = Experiment.of(Model(link="tanh", d=3, n=20000, m=2, eta=1, noise_var="9/4"))
    teacher = experiment.teacher(Trial(2))
    inputs, labels = experiment.batch(Trial(2), teacher).arrays()
    labels = labels - teacher.clean(inputs)
    # sample variance of 20000 normals: relative sd sqrt(2/20000) = 0.01
    assert abs(labels.var() / 2.25 - 1) < 5 * np.sqrt(2 / 20000)
