"""``simulate``: the document of the interface, the text, the LaTeX, and what it says when there is nothing exact."""

import io
import json
import sys

import numpy as np
import pytest

from spikesym.api import simulate as module
from spikesym.api.simulate import Simulation, simulate
from spikesym.errors import InputError, NotIntegrableError
from spikesym.model import Model
from spikesym.simulation.estimators import false_alarm_rate
from spikesym.simulation.reference import Reference, leading_overlap

MODEL = Model(d=20, n=40, m=30, eta=20)


@pytest.fixture(scope="module")
def result():
    return simulate(MODEL, reps=120, seed=1)


def test_document_has_the_fields_of_the_interface(result):
    document = result.to_json()
    json.dumps(document, allow_nan=False)
    for name in ("A", "A_plus_B"):
        entry = document[name]
        assert {"mean", "se", "exact", "z"} <= set(entry)
        assert entry["z"] == pytest.approx((entry["mean"] - entry["exact"]) / entry["se"], rel=1e-12)
        # Student's t with 119 degrees of freedom: 2e-6
        assert abs(entry["z"]) < 5
    assert document["seconds"] > 0
    assert document["reps"] == 120
    assert document["false_alarm_rate"] == false_alarm_rate(120) < 1e-5


def test_the_overlap_is_compared_with_a_limit_and_not_tested(result):
    entry = result.to_json()["overlap2"]
    assert entry["exact"] is None
    assert entry["z"] is None
    # alpha = 2, c_1 = 1/2, E y^2 = 1/2
    assert entry["leading"] == pytest.approx(0.5, rel=1e-14)
    assert entry["distance_from_leading_in_se"] == pytest.approx((entry["mean"] - 0.5) / entry["se"])
    assert "no test" in entry["reason"]


def test_the_overlap_tends_to_its_leading_value():
    # the distance falls like 1/d at fixed n/d and m/d: to an eighth from d = 16 to 128
    distance, errors = [], []
    for d, reps in ((16, 600), (128, 80)):
        run = simulate(Model(d=d, n=2 * d, m=3 * d // 2, eta=2 * d**0.5 * 3 / 2), reps=reps, seed=3)
        entry = run.to_json()["overlap2"]
        distance.append(entry["leading"] - entry["mean"])
        errors.append(entry["se"])
    assert distance[0] > 5 * errors[0]
    assert abs(distance[1] - distance[0] / 8) < 4 * np.hypot(errors[1], errors[0] / 8) + distance[0] / 8


def test_text_shows_scores_and_what_they_are_worth(result):
    text = result.text()
    assert all(len(line) <= 100 for line in text.splitlines())
    assert f"{result.estimates.A.z(result.A.value):.2f}" in text
    assert "120 independent networks" in text
    assert "(leading)" in text
    assert "by chance" in text


def test_latex_is_an_aligned_block(result):
    latex = result.latex()
    assert latex.startswith("\\begin{aligned}") and latex.endswith("\\end{aligned}")  # noqa: PT018
    assert latex.count("{") == latex.count("}")
    assert latex.count("\\\\") == 2


def test_without_exact_values_there_is_no_score(monkeypatch):
    missing = Reference(None, "no exact value is known")
    monkeypatch.setattr(module, "exact_covariance", lambda model: (missing, missing))
    result = simulate(MODEL, reps=5)
    entry = result.to_json()["A"]
    assert entry["exact"] is entry["z"] is entry["p_value"] is None
    assert entry["reason"] == "no exact value is known"
    assert result.ok
    assert "no exact value is known" in result.text()
    assert "exact" not in result.latex()


def test_a_wrong_theory_is_caught(result):
    entry = result.estimates.A_plus_B
    for sign in (-1, 1):
        off = Reference(entry.mean + sign * 5.5 * entry.se)
        wrong = Simulation(MODEL, result.estimates, result.A, off, result.overlap2, 1, 0.0)
        assert not wrong.ok
    assert result.ok


def test_scores_of_heavy_tails_are_marked_and_not_judged():
    # two samples and two neurons: products of many Gaussians, whose standard errors mean nothing
    tiny = simulate(Model(d=3, n=2, m=2, eta=2), reps=40)
    assert not any(tiny.to_json()[name]["reliable"] for name in ("A", "A_plus_B"))
    assert tiny.ok
    assert "no test here" in tiny.text()
    few = simulate(MODEL, reps=29)
    assert not few.to_json()["A"]["reliable"]


def test_ordinary_scores_are_reliable(result):
    assert all(result.to_json()[name]["reliable"] for name in ("A", "A_plus_B"))
    assert "no test here" not in result.text()


def test_the_same_seed_gives_the_same_document(result):
    again = simulate(MODEL, reps=120, seed=1).to_json()
    assert {**again, "seconds": 0} == {**result.to_json(), "seconds": 0}
    other = simulate(MODEL, reps=120, seed=2).to_json()
    assert other["A"]["mean"] != again["A"]["mean"]


def test_no_progress_bar_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    simulate(MODEL, reps=3)
    assert stream.getvalue() == ""


def test_a_progress_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    simulate(MODEL, reps=3)
    assert "training networks" in stream.getvalue()


def test_wrong_input_is_refused():
    for arguments, where in (
        ((Model(d=10), 10), "-n"),
        ((MODEL, 1), "--reps"),
        ((MODEL, 2.5), "--reps"),
    ):
        with pytest.raises(InputError) as error:
            simulate(*arguments)
        assert error.value.where == where
    with pytest.raises(InputError, match="dtype"):
        simulate(MODEL, 3, dtype="float16")
    with pytest.raises(InputError, match="--memory"):
        simulate(MODEL, 3, memory=100)
    with pytest.raises(NotIntegrableError):
        simulate(MODEL.with_(link="exp(s**2)"), 3)


def test_leading_overlap_of_links():
    assert leading_overlap(MODEL.with_(link="he2(s)")).value == 0
    # tanh(2 s): c_1 and E g^2 by a trapezoidal sum, exponentially accurate for analytic functions
    s = np.linspace(-12, 12, 20001)
    weight = np.exp(-(s**2) / 2) / np.sqrt(2 * np.pi) * (s[1] - s[0])
    c1, power = np.sum(weight * s * np.tanh(2 * s)), np.sum(weight * np.tanh(2 * s) ** 2)
    expected = 2 * c1**2 / (2 * c1**2 + power + 0.25)
    model = MODEL.with_(link="tanh(2*s)", noise_var="1/4")
    assert leading_overlap(model).value == pytest.approx(expected, rel=1e-12)
