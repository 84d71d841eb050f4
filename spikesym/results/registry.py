"""The one object that carries everything known about a result, and the registry of them.

A check receives the formulas it is to judge, so that a corrupted formula can be put before the same
checks (``dataclasses.replace``) and must be caught. A check that raises, or does not run, has failed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InputError

if TYPE_CHECKING:
    import sympy

Formulas = Mapping[str, "sympy.Expr"]
Kind = Literal["symbolic", "numeric", "montecarlo"]
Level = Literal["fast", "full"]

#: modules whose import registers statements
MODULES = ("gaussian", "covariance", "kernel", "spectrum")


@dataclass(frozen=True)
class Outcome:
    """What a check found: whether it passed, and the measured numbers in one line."""

    passed: bool
    detail: str


@dataclass(frozen=True)
class Check:
    """One independent check of a statement's formulas.

    ``run`` takes the formulas (by name) and a root seed, and returns an :class:`Outcome`.
    ``level`` says whether it belongs to the fast run or only to the full one.
    """

    name: str
    kind: Kind
    run: Callable[[Formulas, int], Outcome]
    level: Level = "fast"


@dataclass(frozen=True)
class Statement:
    """A result of the theory.

    Parameters
    ----------
    id : str
        Permanent identifier, such as ``"A-exact-relu"``.
    statement : str
        The statement in one or two sentences of plain text.
    assumptions : tuple of str
        What it needs.
    source : str
        Paper and equation, or the derivation in this package.
    formulas : callable
        Returns the symbolic forms by name. Derived, not typed; cached by the caller.
    evaluate : callable
        Numeric evaluator of the same object.
    latex : callable
        Maps the formulas to LaTeX by name.
    checks : tuple of Check
        Independent checks; at least one numeric or Monte Carlo.
    """

    id: str
    statement: str
    assumptions: tuple[str, ...]
    source: str
    formulas: Callable[[], Formulas]
    evaluate: Callable[..., Any]
    latex: Callable[[Formulas], Mapping[str, str]]
    checks: tuple[Check, ...] = field(default=())


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one check of one statement, with its time."""

    name: str
    kind: Kind
    passed: bool
    detail: str
    seconds: float


_REGISTRY: dict[str, Statement] = {}


def register(statement: Statement) -> Statement:
    """Add a statement; identifiers are permanent and unique, and a statement without checks is refused."""
    if statement.id in _REGISTRY:
        raise ValueError(f"statement {statement.id!r} is registered twice")
    if not any(c.kind != "symbolic" for c in statement.checks):
        raise ValueError(f"statement {statement.id!r} has no numeric or Monte Carlo check")
    _REGISTRY[statement.id] = statement
    return statement


def statements() -> dict[str, Statement]:
    """All statements by identifier, in order of registration."""
    from importlib import import_module

    for module in MODULES:
        import_module(f"spikesym.results.{module}")
    return dict(_REGISTRY)


def select(only: Iterable[str] | None = None) -> list[Statement]:
    """The statements named, or all of them."""
    known = statements()
    if only is None:
        return list(known.values())
    wanted = list(only)
    for identifier in wanted:
        if identifier not in known:
            raise InputError(f"unknown statement {identifier!r}", "--only", "choose from " + ", ".join(known))
    return [known[identifier] for identifier in wanted]


def run_checks(statement: Statement, level: Level = "fast", seed: int = 0) -> list[CheckResult]:
    """Run the statement's checks of this level; whatever goes wrong in one is a failure of that one."""
    try:
        formulas = statement.formulas()
    except Exception as error:  # a derivation that breaks fails every check of the statement
        text = f"formulas could not be derived: {type(error).__name__}: {error}"
        return [CheckResult(c.name, c.kind, False, text, 0.0) for c in statement.checks]
    results = []
    for check in statement.checks:
        if check.level == "full" and level == "fast":
            continue
        start = time.perf_counter()
        try:
            outcome = check.run(formulas, seed)
            passed, detail = bool(outcome.passed), outcome.detail
        except Exception as error:  # could not run: failed
            passed, detail = False, f"could not run: {type(error).__name__}: {error}"
        results.append(CheckResult(check.name, check.kind, passed, detail, time.perf_counter() - start))
    return results
