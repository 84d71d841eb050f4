"""Every step of every derivation passes its own machine check, and every altered step is caught."""

import pytest
import sympy

from spikesym.symbolic.angle import angle_derivation
from spikesym.symbolic.covariance_exact import conditional_derivation, homogeneous_derivation
from spikesym.symbolic.covariance_links import link_derivation
from spikesym.symbolic.covariance_series import series_derivation
from spikesym.symbolic.covariance_steps import FULL, general_derivation
from spikesym.symbolic.derivation import Derivation, Step, equal_exactly, proved, same_at
from spikesym.symbolic.symbols import X

LINKS = {
    "relu": sympy.Max(0, X),
    "x|x| + |x| + 1": X * sympy.Abs(X) + sympy.Abs(X) + 1,
    "exp": sympy.exp(X / 2),
    "cos": sympy.cos(2 * X + 1),
    "gauss": X**2 * sympy.exp(-(X**2) / 3 + X / 2),
}
DERIVATIONS = {
    "general": general_derivation,
    "series": series_derivation,
    "angle": angle_derivation,
    "homogeneous": homogeneous_derivation,
    "conditional": conditional_derivation,
    **{f"link {name}": (lambda link=link: link_derivation(link)) for name, link in LINKS.items()},
}
#: the loss is judged by proof, not by evaluation: altering its gradient needs a change that keeps it evaluable
ALTERATIONS = {
    "factor": lambda e: e * (1 + sympy.Rational(1, 10**9)),
    "sign": lambda e: -e,
}


@pytest.fixture(scope="module")
def built():
    known = {}

    def build(name):
        if name not in known:
            known[name] = DERIVATIONS[name]()
        return known[name]

    return build


@pytest.mark.parametrize("name", list(DERIVATIONS))
def test_every_step_passes_and_every_altered_step_is_caught(built, name):
    derivation = built(name)
    assert len(derivation.steps) >= 2
    for index, result in enumerate(derivation.check(seed=11)):
        assert result.passed, f"{result.rule}: {result.detail}"
        step = derivation.steps[index]
        if step.after == 0:
            assert not step.altered(lambda e: e + sympy.Rational(1, 10**9)).check(11 + index).passed
            continue
        for what, change in ALTERATIONS.items():
            assert not step.altered(change).check(11 + index).passed, f"{result.rule}: {what} not caught"


def test_a_judge_that_raises_has_not_passed():
    def judge(before, after, seed):
        raise RuntimeError("no")

    assert not Step("rule", X, X, judge).check().passed


def test_judges_tell_equal_from_unequal():
    assert Step("binomial", (X + 1) ** 2, X**2 + 2 * X + 1, proved()).check().passed
    assert not Step("binomial", (X + 1) ** 2, X**2 + X + 1, proved()).check().passed
    at = same_at(lambda rng: {X: rng.randint(2, 9)}, lambda e, p: e.subs(p).evalf(50))
    assert Step("log", sympy.log(X**2), 2 * sympy.log(X), at).check().passed
    assert not Step("log", sympy.log(X**2), 2 * sympy.log(X) + sympy.Rational(1, 10**29), at).check().passed
    exact = equal_exactly(lambda rng: {X: rng.randint(2, 9)}, lambda e, p: e.subs(p), lambda e, p: e.subs(p))
    assert Step("square", X**2, X * X, exact).check().passed
    assert not Step("square", X**2, X**2 + sympy.Rational(1, 10**30), exact).check().passed


def test_latex_of_steps():
    for step in (*general_derivation(), *homogeneous_derivation()):
        text = step.latex()
        assert " = " in text or "&=" in text
        assert text.count("{") == text.count("}")


def test_residual_switch_is_idempotent():
    across = general_derivation().results["across"]
    assert sympy.Poly(sympy.expand(across), FULL).degree() == 1


def test_a_derivation_is_iterable_and_titled():
    chain = Derivation("t", (Step("r", X, X, proved()),), {})
    assert [s.rule for s in chain] == ["r"]
    assert chain.title == "t"
