"""``spikesym derive``: the document of the interface, digits, text, LaTeX."""

import json

import pytest

from spikesym.api.derive import derive
from spikesym.model import Model


@pytest.fixture(scope="module")
def relu():
    return derive(Model(link="relu", d=60, n=120, m=90, eta=120))


def test_the_document_has_the_fields_of_the_interface(relu):
    document = json.loads(json.dumps(relu.to_json()))
    assert set(document) >= {"model", "hermite", "A", "B", "assumptions", "expansion", "quenched", "warnings"}
    for quantity in ("A", "B"):
        assert set(document[quantity]) == {"rank_one", "leading", "exact"}
        for form in document[quantity].values():
            assert set(form) >= {"sympy", "latex", "value"}
    assert set(document["hermite"]["activation"]) >= {"mu1", "mu2", "E_dsigma2"}
    assert set(document["hermite"]["link"]) >= {"c0", "c1", "E_g2", "E_g2s2", "information_exponent", "c"}
    assert len(document["hermite"]["link"]["c"]) == 12
    assert set(document["quenched"]) == {"overlap2", "bulk", "spike"}
    assert document["expansion"]["order"] == 2
    assert document["A"]["exact"]["value"] == "1.25591750754041"
    assert document["A_plus_B"]["exact"]["value"] == "8.44326565048166"


@pytest.mark.parametrize("digits", [5, 30])
def test_digits_are_those_asked_for(relu, digits):
    value = relu.to_json(digits)["A"]["exact"]["value"]
    assert value == {5: "1.2559", 30: "1.25591750754041109550057743107"}[digits]


def test_the_formula_evaluates_to_the_value(relu):
    import sympy

    document = relu.to_json(20)
    names = {n: sympy.Symbol(n) for n in ("d", "n", "m", "eta", "varsigma", "kappa_4", "tau2")}
    values = {"d": 60, "n": 120, "m": 90, "eta": 120, "varsigma": 1, "kappa_4": 3, "tau2": 0}
    for quantity in ("A", "B"):
        expr = sympy.sympify(document[quantity]["exact"]["sympy"], locals=names)
        number = expr.subs({names[k]: v for k, v in values.items()})
        assert str(number.evalf(15)) == str(sympy.Float(document[quantity]["exact"]["value"], 15))


def test_assumptions_of_the_paper():
    document = derive(
        Model(link="2*s**2 + 3*s + 4*sin(2*s)", readout="rademacher", eta0=1, zeta="1.2"), order=0
    ).to_json()
    found = {a["name"]: a for a in document["assumptions"]}
    assert found["E g = 0"]["holds"] is False
    assert "c_0 = 2" in found["E g = 0"]["detail"]
    assert found["c_1 != 0"]["holds"] is True
    assert found["g bounded"]["holds"] is False
    assert found["g Lipschitz"]["holds"] is False
    assert found["sigma Lipschitz"]["holds"] is True
    assert found["readout gaussian"]["holds"] is False
    assert found["zeta in [1/2, 1)"]["holds"] is False
    assert any("does not converge" in w for w in document["warnings"])
    assert document["phase"]["name"] == "beyond d"


def test_values_are_null_without_sizes():
    document = derive(Model(link="tanh"), order=0).to_json()
    assert document["A"]["exact"]["value"] is None
    assert document["A"]["exact"]["sympy"]
    assert document["quenched"]["spike"]["value"] is None


def test_vanishing_spike_names_the_next_order():
    result = derive(Model(link="s**2-1", d=30, n=60, m=40, eta=9), order=1)
    assert result.covariance.B["leading"].closed == 0
    assert any("information exponent 2" in w for w in result.warnings)
    assert any("next order of B: d^(2*zeta - 2)" in w for w in result.warnings)


def test_text_fits_a_terminal(relu):
    text = relu.text()
    for part in ("exact", "leading order", "1.25591750754041", "Assumptions of the paper", "Expansion"):
        assert part in text
    # formulas and tables fit; sentences of notes and assumptions may run on
    body = text.split("Given the batch")[0].splitlines()[1:]
    assert max(map(len, body)) <= 100


def test_latex_is_balanced(relu):
    text = relu.latex()
    assert text.count(r"\[") == text.count(r"\]") >= 9
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin{aligned}") == text.count(r"\end{aligned}")
