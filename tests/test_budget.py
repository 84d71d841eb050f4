"""Time budgets: what overruns is stopped, what finishes is untouched, nothing arrives late."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from spikesym.budget import OverBudget, within


def _busy(seconds):
    end = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < end:
        count += 1
    return count


def test_results_and_exceptions_pass_through():
    assert within(5.0, lambda: "done", None) == ("done", True)
    with pytest.raises(KeyError):
        within(5.0, lambda: {}["missing"], None)


def test_what_overruns_is_stopped_in_time():
    start = time.perf_counter()
    assert within(0.1, lambda: _busy(30), "otherwise") == ("otherwise", False)
    assert time.perf_counter() - start < 5


def test_no_time_means_no_attempt():
    calls = []
    assert within(0.0, lambda: calls.append(1), None) == (None, False)
    assert not calls


def test_a_computation_that_swallows_exceptions_is_stopped_all_the_same():
    def stubborn():
        end = time.perf_counter() + 30
        while time.perf_counter() < end:
            try:
                _busy(0.01)
            except Exception:  # what broad handlers in libraries do
                continue
        return "survived"

    assert within(0.1, stubborn, None) == (None, False)


def test_budgets_nest():
    def outer():
        inner, finished = within(0.05, lambda: _busy(30), "inner stopped")
        return inner, finished, _busy(0.02) > 0

    assert within(10.0, outer, None) == (("inner stopped", False, True), True)
    assert within(0.1, lambda: within(20.0, lambda: _busy(30), "inner"), "outer") == ("outer", False)


def test_nothing_arrives_after_the_block():
    """Computations that end just as the stop is sent: it never reaches the caller's code."""
    for _ in range(30):
        within(0.004, lambda: _busy(0.004), None)
        _busy(0.001)
    _busy(0.1)


def test_nested_budgets_that_end_together_neither_hang_nor_leak():
    """Inner and outer stops race with each other and with the end of the computation."""
    stopped = 0
    for k in range(150):
        inner = 0.003 * (0.5 + 0.8 * (k % 7) / 7)
        _, finished = within(0.003, lambda s=inner: within(s, lambda: _busy(0.0035), None), None)
        stopped += not finished
        _busy(0.0005)
    _busy(0.3)
    assert stopped > 0


def test_budgets_work_in_any_thread():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda k: within(0.05, lambda: _busy(20), k), range(4)))
    assert results == [(k, False) for k in range(4)]


def test_the_stop_is_no_ordinary_exception():
    assert not issubclass(OverBudget, Exception)
