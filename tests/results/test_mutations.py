"""Verification can fail: every registered formula is corrupted, and every corruption must be caught.

Corruptions of a formula: its sign, a factor 1 + 10^-6, and every way of changing one number in it (an
exponent, a coefficient, a degree) by one, up to a limit. The fast symbolic and numeric checks must catch
each.
"""

import dataclasses

import pytest
import sympy

from spikesym.results.registry import run_checks, statements

#: changed numbers tried for each formula
_LIMIT = 6


def corruptions(expr):
    """Yield (name, corrupted expression) pairs."""
    yield "sign", -expr
    yield "factor", expr * (1 + sympy.Rational(1, 10**6))
    count = 0
    for path, number in _numbers(expr):
        if count == _LIMIT:
            return
        changed = _replace(expr, path, number + 1)
        if changed.has(sympy.zoo, sympy.nan) or sympy.simplify(changed - expr) == 0:
            continue
        count += 1
        yield f"{number} -> {number + 1} at {path}", changed


def _numbers(expr, path=()):
    if expr.is_Integer or (expr.is_Rational and not expr.is_Integer):
        yield path, expr
    for k, argument in enumerate(getattr(expr, "args", ())):
        if isinstance(argument, sympy.Expr):
            yield from _numbers(argument, (*path, k))


def _replace(expr, path, new):
    if not path:
        return new
    arguments = list(expr.args)
    arguments[path[0]] = _replace(arguments[path[0]], path[1:], new)
    return expr.func(*arguments)


def caught(statement, corrupted):
    mutant = dataclasses.replace(
        statement,
        formulas=lambda: corrupted,
        checks=tuple(c for c in statement.checks if c.kind != "montecarlo" and c.level == "fast"),
    )
    return any(not r.passed for r in run_checks(mutant))


@pytest.mark.parametrize("identifier", list(statements()))
def test_every_corruption_is_caught(identifier):
    statement = statements()[identifier]
    forms = dict(statement.formulas())
    tried = 0
    for name, expr in forms.items():
        assert expr != 0, f"{identifier}: {name} is identically zero; nothing could be checked"
        for what, wrong in corruptions(expr):
            assert caught(statement, {**forms, name: wrong}), (
                f"{identifier}: {name} with {what} was not caught"
            )
            tried += 1
    assert tried >= 2 * len(forms)


def test_the_uncorrupted_formulas_pass():
    for identifier, statement in statements().items():
        for result in run_checks(statement):
            assert result.passed, f"{identifier}: {result.name}: {result.detail}"
