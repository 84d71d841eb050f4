"""The registry: what it refuses, and that a check which cannot run has failed."""

import dataclasses

import pytest
import sympy

from spikesym.errors import InputError
from spikesym.results.registry import Check, Outcome, Statement, register, run_checks, select, statements


def _statement(run, kind="numeric", level="fast", formulas=lambda: {"f": sympy.pi}):
    return Statement(
        id="test-only",
        statement="pi is pi",
        assumptions=(),
        source="none",
        formulas=formulas,
        evaluate=lambda: None,
        latex=lambda forms: {k: sympy.latex(v) for k, v in forms.items()},
        checks=(Check("a check", kind, run, level),),
    )


def test_a_check_that_raises_has_failed():
    def broken(formulas, seed):
        raise ZeroDivisionError("no measurement")

    (result,) = run_checks(_statement(broken))
    assert not result.passed
    assert "could not run" in result.detail
    assert "ZeroDivisionError" in result.detail


def test_a_derivation_that_raises_fails_every_check():
    def no_formulas():
        raise RuntimeError("derivation broke")

    (result,) = run_checks(_statement(lambda f, s: Outcome(True, "fine"), formulas=no_formulas))
    assert not result.passed
    assert "derivation broke" in result.detail


def test_full_checks_run_only_at_level_full():
    statement = _statement(lambda f, s: Outcome(True, "fine"), level="full")
    assert run_checks(statement, "fast") == []
    assert [r.passed for r in run_checks(statement, "full")] == [True]


def test_statement_without_numeric_check_is_refused():
    with pytest.raises(ValueError, match="no numeric or Monte Carlo check"):
        register(_statement(lambda f, s: Outcome(True, "fine"), kind="symbolic"))


def test_identifiers_are_unique():
    first = next(iter(statements().values()))
    with pytest.raises(ValueError, match="registered twice"):
        register(dataclasses.replace(first))


def test_unknown_identifier_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="unknown statement 'nonsense'.*A-exact-relu"):
        select(["nonsense"])


def test_every_statement_is_complete():
    for identifier, s in statements().items():
        assert s.id == identifier
        assert s.statement.endswith("."), identifier
        assert s.source, identifier
        forms = s.formulas()
        assert forms, identifier
        assert set(s.latex(forms)) == set(forms), identifier
        assert any(c.level == "fast" and c.kind != "symbolic" for c in s.checks), identifier
