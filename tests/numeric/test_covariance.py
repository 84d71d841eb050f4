"""Values of A and B: reference numbers, sizes to 1e9, slopes, warnings, free parameters."""

import json
from pathlib import Path

import numpy as np
import pytest

from spikesym.model import Model
from spikesym.numeric.covariance import FORMS, covariance
from spikesym.numeric.covariance_expansion import covariance_expansion

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "covariance_values.json").read_text())


@pytest.mark.parametrize("case", REFERENCE, ids=lambda c: f"{c['link']}-{c['d']}")
def test_against_quadrature_of_the_definitions(case):
    model = Model(**{k: case[k] for k in ("link", "d", "n", "m", "eta")})
    result = covariance(model)
    assert result.A["exact"].value.text(16) == _rounded(case["A"], 16)
    assert result.A_plus_B["exact"].value.text(16) == _rounded(case["A_plus_B"], 16)


def _rounded(text, digits):
    from decimal import Context, Decimal

    return str(Decimal(text).normalize(Context(prec=digits)))


def test_check_value():
    result = covariance(Model(d=60, n=120, m=90, eta=120))
    assert result.A["exact"].value.text(20) == "1.2559175075404110955"
    assert result.A_plus_B["exact"].value.text(19) == "8.443265650481656802"


@pytest.mark.parametrize("link", ["relu", "abs(s-1)", "exp(s/2)", "exp(-abs(s))"])
def test_leading_order_error_has_slope_minus_one(link):
    """(exact - leading)/leading of A - 1 and (of links with c_1 != 0) B falls as 1/d, to the constant of the expansion."""
    sizes = [200, 800, 3200]
    errors = {"A": [], "B": []}
    for d in sizes:
        result = covariance(Model(link=link, d=d, n=2 * d, m=d, eta0=1, zeta="9/10", residual="labels"))
        for quantity in errors:
            exact, lead = (getattr(result, quantity)[f].value.ball(200) for f in ("exact", "leading"))
            shift = int(quantity == "A")
            if not (lead - shift).contains(0):
                errors[quantity].append(float(abs((exact - lead) / (lead - shift)).mid()))
    for quantity, found in errors.items():
        if len(found) == len(sizes):
            slope = np.polyfit(np.log(sizes), np.log(found), 1)[0]
            assert slope == pytest.approx(-1, abs=0.05), (quantity, found)
    assert errors["A"]


def test_size_one_billion():
    d = 10**9
    result = covariance(Model(link="tanh(2*s)", d=d, n=2 * d, m=d, eta0=2, zeta="1/2"))
    exact, lead = (float(result.B[f].value) for f in ("exact", "leading"))
    assert exact == pytest.approx(lead, rel=1e-8)
    assert result.A["exact"].value.certified
    assert len(result.A["exact"].value.text(30).replace(".", "")) >= 29


def test_smallest_sizes():
    result = covariance(Model(link="abs(s-1)", d=2, n=1, m=1, eta=1))
    assert float(result.A["exact"].value) > 0
    assert result.A["exact"].value.certified


def test_vanishing_leading_spike_is_said():
    result = covariance(Model(link="s**2-1", d=50, n=100, m=80, eta=30))
    assert result.B["leading"].value.text(5) == "0"
    assert float(result.B["exact"].value) > 0
    assert any("c_1 = 0" in w and "information exponent 2" in w for w in result.warnings)


def test_correction_is_the_difference_of_the_forms():
    result = covariance(Model(d=60, n=120, m=90, eta=120))
    exact, lead = (float(result.B[f].value) for f in ("exact", "leading"))
    assert result.correction("B") == pytest.approx((exact - lead) / exact)
    assert abs(result.correction("A")) > 0.01


def test_formulas_without_sizes():
    result = covariance(Model(link="tanh"))
    assert all(result.A[f].value is None for f in FORMS)
    assert result.B["leading"].formula.free_symbols


def test_free_parameters_give_formulas_only():
    result = covariance(Model(link="a*s + b*relu(s)", d=10, n=10, m=10, eta=1))
    assert result.B["leading"].value is None
    assert "a" in {s.name for s in result.B["leading"].closed.free_symbols}


@pytest.mark.parametrize("activation", ["relu", "leaky_relu(0.1)", "abs", "identity"])
def test_homogeneous_activations_do_not_see_the_norm_of_the_weights(activation):
    base = Model(activation=activation, link="relu", d=7, n=5, m=4, eta=3)
    for quantity in ("A", "B"):
        gauss, sphere = (
            getattr(covariance(base.with_(init=i)), quantity)["exact"].value.text(20)
            for i in ("gaussian", "sphere")
        )
        assert gauss == sphere


@pytest.mark.parametrize("quantity", ["A", "B"])
def test_expansion_approaches_the_exact_value(quantity):
    """Order by order: the remainder falls by another 1/d."""
    zeta = "1/2"
    remainders = {}
    for order in (0, 1, 2):
        found = covariance_expansion(Model(link="relu", residual="labels"), order)
        rest = []
        for d in (400, 1600):
            model = Model(link="relu", d=d, n=2 * d, m=d, eta0=3, zeta=zeta, residual="labels")
            exact = getattr(covariance(model), quantity)["exact"].value.ball(200)
            from spikesym.symbolic.symbols import ALPHA, BETA, ETA0, TAU2, VARSIGMA, D

            series = found.at(quantity, zeta).subs({ALPHA: 2, BETA: 1, ETA0: 3, TAU2: 0, VARSIGMA: 1, D: d})
            rest.append(abs(float(exact.mid()) - float(series)))
        remainders[order] = np.log(rest[0] / rest[1]) / np.log(4)
    head = 1 if quantity == "A" else 0
    for order, slope in remainders.items():
        if order < 2 or quantity == "B":
            assert slope == pytest.approx(head + order + 1, abs=0.1), order
