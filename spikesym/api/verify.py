"""``spikesym verify``: every statement of the registry put before its checks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..progress import progress
from ..results.registry import CheckResult, Level, Statement, run_checks, select, statements


@dataclass(frozen=True)
class StatementResult:
    """A statement with the outcomes of its checks."""

    statement: Statement
    checks: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        """All checks passed, and at least one of them ran."""
        return bool(self.checks) and all(c.passed for c in self.checks)


@dataclass(frozen=True)
class Verification:
    """The outcome of ``verify``: one entry for each statement.

    ``passed`` and ``failed`` count statements; a statement passes when every one of its checks does.
    """

    level: Level
    results: tuple[StatementResult, ...]

    @property
    def passed(self) -> int:
        """Number of statements all of whose checks passed."""
        return sum(r.passed for r in self.results)

    @property
    def failed(self) -> int:
        """Number of statements with a check that failed or could not run."""
        return len(self.results) - self.passed

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """The document of ``spikesym verify --json``."""
        return {
            "level": self.level,
            "results": [
                {
                    "id": r.statement.id,
                    "statement": r.statement.statement,
                    "assumptions": list(r.statement.assumptions),
                    "source": r.statement.source,
                    "passed": r.passed,
                    "checks": [
                        {
                            "name": c.name,
                            "kind": c.kind,
                            "passed": c.passed,
                            "detail": c.detail,
                            "seconds": round(c.seconds, 3),
                        }
                        for c in r.checks
                    ],
                }
                for r in self.results
            ],
            "passed": self.passed,
            "failed": self.failed,
        }

    def text(self, digits: int = 15) -> str:
        """A table: one line for each check, and the count at the end."""
        lines = []
        for r in self.results:
            lines.append(f"{'ok  ' if r.passed else 'FAIL'} {r.statement.id}: {r.statement.statement}")
            for c in r.checks:
                mark = "ok  " if c.passed else "FAIL"
                lines.append(f"       {mark} {c.kind:<10} {c.name}: {c.detail} ({c.seconds:.2f} s)")
        lines.append(f"{self.passed} passed, {self.failed} failed")
        return "\n".join(lines)

    def latex(self) -> str:
        """The formulas of the statements as a sequence of display equations, each with its identifier."""
        from ..reporting.latex import statements_latex

        return statements_latex([r.statement for r in self.results])


def verify(level: Level = "fast", only: Iterable[str] | None = None, seed: int = 0) -> Verification:
    """Run the checks of the registered statements.

    Parameters
    ----------
    level : {"fast", "full"}
        ``fast`` takes seconds; ``full`` adds the long Monte Carlo checks.
    only : iterable of str, optional
        Identifiers of the statements to check; all by default.
    seed : int
        Root seed of the Monte Carlo checks.

    Raises
    ------
    InputError
        For an unknown identifier or level.

    Examples
    --------
    >>> result = verify(only=["k0-relu"])
    >>> result.passed, result.failed
    (1, 0)
    """
    if level not in ("fast", "full"):
        raise InputError(f"unknown level {level!r}", "--level", "choose fast or full")
    chosen = select(only)
    results = [
        StatementResult(s, tuple(run_checks(s, level, seed))) for s in progress(chosen, "checking statements")
    ]
    return Verification(level, tuple(results))


def catalogue() -> str:
    """One line for each registered statement: identifier and text."""
    return "\n".join(f"{s.id}: {s.statement}" for s in statements().values())
