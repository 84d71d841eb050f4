"""A derivation as data: steps with a rule, the expression before and after, and a machine check.

A step is not believed because it was written down: its check proves that both sides agree (SymPy), or evaluates both
sides independently at random admissible points. The same objects make the documents and the tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import mpmath
import sympy

#: evaluates an expression at a point given as {symbol: number}
Evaluator = Callable[[sympy.Expr, Any], Any]
#: draws a random admissible point
Sampler = Callable[[random.Random], dict[sympy.Symbol, Any]]
#: decides whether two sides agree: (before, after, seed) -> (agrees, what was measured)
Judge = Callable[[sympy.Expr, sympy.Expr, int], tuple[bool, str]]


@dataclass(frozen=True)
class StepCheck:
    """The outcome of the check of one step."""

    rule: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Step:
    """One step: ``before = after`` by ``rule``.

    Parameters
    ----------
    rule : str
        The rule used, in the field's words ("Stein's lemma in the second sample").
    before, after : sympy.Expr
        The two sides.
    judge : callable
        ``(before, after, seed) -> (agrees, detail)``; decides by proof or by independent evaluation.
    left : str
        LaTeX of the name of the left-hand side; empty where ``before`` shows itself.
    limit : str
        LaTeX of the limit in which the step holds; empty for an identity.
    """

    rule: str
    before: sympy.Expr
    after: sympy.Expr
    judge: Judge
    left: str = ""
    limit: str = ""

    def check(self, seed: int = 0) -> StepCheck:
        """Run the judge; a judge that raises has not passed the step."""
        try:
            passed, detail = self.judge(self.before, self.after, seed)
        except Exception as error:
            passed, detail = False, f"could not run: {type(error).__name__}: {error}"
        return StepCheck(self.rule, bool(passed), detail)

    def altered(self, change: Callable[[sympy.Expr], sympy.Expr]) -> Step:
        """The step with its right-hand side changed, to prove that the check can fail."""
        return replace(self, after=change(self.after))

    def latex(self) -> str:
        """The step as the inside of a display equation."""
        from .printing import display, latex

        sign = f"\\xrightarrow{{{self.limit}}}" if self.limit else "="
        text = display(self.left or latex(self.before), self.after)
        return text if sign == "=" else text.replace(" = ", f" {sign} ", 1).replace(" &= ", f" &{sign} ", 1)


@dataclass(frozen=True)
class Derivation:
    """A chain of checked steps that ends in the formulas of a result.

    Examples
    --------
    >>> from spikesym.symbolic.symbols import X
    >>> step = Step("binomial theorem", (X + 1) ** 2, X**2 + 2 * X + 1, proved())
    >>> chain = Derivation("square", (step,), {"square": step.after})
    >>> [c.passed for c in chain.check()]
    [True]
    >>> Derivation("slip", (step.altered(lambda e: e + X),), {}).check()[0].passed
    False
    """

    title: str
    steps: tuple[Step, ...]
    results: Mapping[str, sympy.Expr]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def check(self, seed: int = 0) -> list[StepCheck]:
        """Run the check of every step."""
        return [step.check(seed + index) for index, step in enumerate(self.steps)]


def proved(simplify: Callable[[sympy.Expr], sympy.Expr] = sympy.simplify) -> Judge:
    """A judge by proof: SymPy brings the difference of the two sides to zero."""

    def judge(before: sympy.Expr, after: sympy.Expr, seed: int) -> tuple[bool, str]:
        difference = simplify(before - after)
        return (
            difference == 0,
            "difference simplifies to 0" if difference == 0 else f"difference {difference}",
        )

    return judge


def same_at(
    sampler: Sampler,
    before_by: Evaluator,
    after_by: Evaluator | None = None,
    digits: int = 30,
    points: int = 2,
) -> Judge:
    """A judge by evaluation: both sides agree to ``digits`` digits at random admissible points.

    ``before_by`` evaluates the left-hand side from its definition; ``after_by`` (default: substitution and mpmath)
    the right-hand side.
    """

    known: dict[tuple[sympy.Expr, int, int], Any] = {}

    def judge(before: sympy.Expr, after: sympy.Expr, seed: int) -> tuple[bool, str]:
        rng = random.Random(seed)
        worst = mpmath.mpf(0)
        with mpmath.workdps(digits + 15):
            for index in range(points):
                point = sampler(rng)
                key = (before, seed, index)
                if key not in known:
                    known[key] = mpmath.mpmathify(before_by(before, point))
                left = known[key]
                right = mpmath.mpmathify((after_by or substitute)(after, point))
                scale = max(abs(left), abs(right), mpmath.mpf(10) ** -10)
                worst = max(worst, abs(left - right) / scale)
            passed = worst < mpmath.mpf(10) ** (-digits)
            return bool(
                passed
            ), f"largest relative difference {mpmath.nstr(worst, 3)} at {points} random points"

    return judge


def equal_exactly(
    sampler: Callable[[random.Random], Any],
    before_by: Callable[[sympy.Expr, Any], Any],
    after_by: Callable[[sympy.Expr, Any], Any],
    points: int = 2,
) -> Judge:
    """A judge by exact arithmetic: both sides are the same rational number in random test models."""

    known: dict[tuple[sympy.Expr, int, int], Any] = {}

    def judge(before: sympy.Expr, after: sympy.Expr, seed: int) -> tuple[bool, str]:
        rng = random.Random(seed)
        for index in range(points):
            model = sampler(rng)
            key = (before, seed, index)
            if key not in known:
                known[key] = sympy.sympify(before_by(before, model))
            left, right = known[key], sympy.sympify(after_by(after, model))
            if not (left.is_Rational and right.is_Rational) or left != right:
                return False, f"{left} against {right} in test model {index}"
        return True, f"equal as rational numbers in {points} random test models"

    return judge


def substitute(expr: sympy.Expr, point: Mapping[sympy.Symbol, Any]) -> Any:
    """Evaluate by substitution and SymPy's ``evalf`` at the working precision of mpmath."""
    values = {
        name: sympy.Float(str(v), mpmath.mp.dps) if isinstance(v, mpmath.mpf) else sympy.sympify(v)
        for name, v in point.items()
    }
    return mpmath.mpmathify(expr.subs(values).evalf(mpmath.mp.dps))


def random_rational(rng: random.Random, low: int = -3, high: int = 3, denominator: int = 7) -> sympy.Rational:
    """A random non-zero rational of small height in (low, high)."""
    while True:
        value = sympy.Rational(rng.randint(low * denominator, high * denominator), denominator)
        if value:
            return value
