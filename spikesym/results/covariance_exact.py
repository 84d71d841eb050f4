"""Statements about A and B of the ReLU network, exactly at finite n, m, d."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any

import mpmath
import numpy as np
import sympy

from ..symbolic.covariance import exact_homogeneous, with_activation, with_link
from ..symbolic.covariance_exact import homogeneous_derivation
from ..symbolic.covariance_judges import EP2, EQ2
from ..symbolic.covariance_links import link_forms
from ..symbolic.covariance_steps import general_derivation
from ..symbolic.derivation import Derivation
from ..symbolic.symbols import C1, EG2, EG2S2, ETA, KAPPA4, TAU2, VARSIGMA, D, M, N, X
from . import covariance_checks as checks
from .covariance_common import ASSUMPTIONS, HALF, SOURCE, evaluate_form, latex_of, seeded
from .registry import Check, Formulas, Outcome, Statement, register

# ---- exact at finite size ----------------------------------------------------------------------------------------


@cache
def exact_relu_link() -> dict[str, sympy.Expr]:
    """A and B of the ReLU network with ReLU link, full residual, all constants put in."""
    forms = link_forms(sympy.Max(0, X))
    assert forms is not None
    pair = with_link(with_activation(exact_homogeneous(True), HALF, HALF), forms)
    moments = {EG2: HALF, EG2S2: 3 * HALF}
    return {"A": pair.A.subs(moments), "B": pair.B.subs(moments)}


def _relu_any_link() -> dict[str, sympy.Expr]:
    pair = with_activation(exact_homogeneous(True), HALF, HALF)
    return {"A": pair.A, "B": pair.B}


@lru_cache(maxsize=32)
def _enumerated(seed: int, k: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random sizes, and A and B of the ReLU network there by enumeration and quadrature."""
    sizes = checks.random_sizes(seeded(seed, k + 1)[k])
    arguments = {name: sizes[name] for name in ("d", "n", "m", "eta", "varsigma", "kappa4")}
    total, across = (
        checks.average_by_enumeration(
            checks.relu_means(sizes["d"], sizes["tau2"], along), full=True, **arguments
        )
        for along in (True, False)
    )
    return sizes, {"A": across, "B": total - across}


def _check_relu(quantity: str, formulas: Formulas, seed: int) -> Outcome:
    with mpmath.workdps(50):
        comparison = checks.Comparison()
        for k in range(2):
            sizes, numbers = _enumerated(seed, k)
            values = {
                D: sizes["d"], N: sizes["n"], M: sizes["m"], ETA: sizes["eta"], VARSIGMA: sizes["varsigma"],
                KAPPA4: sizes["kappa4"], TAU2: sizes["tau2"], EG2: HALF, EG2S2: 3 * HALF, C1: HALF,
                EP2: checks.angle_mean("along", sizes["d"]), EQ2: checks.angle_mean("across", sizes["d"]),
            }  # fmt: skip
            for name in formulas:
                comparison.add(checks.ball(formulas[name], values), numbers[quantity])
        return comparison.outcome("enumerated readouts, quadrature of the arc-cosine gradient")


def _relu(u: Any) -> Any:
    return np.maximum(u, 0.0)


def _step(u: Any) -> Any:
    return (u > 0).astype(float)


def _check_trained(quantity: str, reps: int, formulas: Formulas, seed: int) -> Outcome:
    """One explicit gradient step of small ReLU networks, all neurons of independent networks."""
    sizes: dict[str, Any] = {"d": 6, "n": 5, "m": 4, "eta": 6.0}
    rng = np.random.default_rng(np.random.SeedSequence((seed, 417)))
    along, across = [], []
    for _ in range(max(1, reps // 20000)):
        a, b = checks.train_once(
            rng, min(reps, 20000), **sizes, activation=_relu, slope=_step, link=_relu, noise=0.5
        )
        along.append(a)
        across.append(b)
    total, base = np.concatenate(along), np.concatenate(across)
    values = {
        D: 6, N: 5, M: 4, ETA: 6, VARSIGMA: 1, KAPPA4: 3, TAU2: sympy.Rational(1, 4),
        EG2: HALF, EG2S2: 3 * HALF, C1: HALF,
    }  # fmt: skip
    expected = float(checks.ball(formulas[f"{quantity}_relu_link"], values))
    z = checks.z_score(base if quantity == "A" else total - base, expected)
    return Outcome(abs(z) < 5, f"{total.size} networks, z = {z:.2f}")


def _check_steps(derivation: Callable[[], Derivation], formulas: Formulas, seed: int) -> Outcome:
    results = derivation().check(seed)
    failed = [r for r in results if not r.passed]
    return Outcome(
        not failed,
        f"{len(results)} steps, {len(failed)} failed" + "".join(f"; {r.rule}: {r.detail}" for r in failed),
    )


for _name in ("A", "B"):
    register(
        Statement(
            id=f"{_name}-exact-relu",
            statement=f"{_name} of the ReLU network at every n, m, d >= 2, for any link (by E P^2, E Q^2 and moments) and, "
            "closed, for the ReLU link; the full residual y - f(x).",
            assumptions=(*ASSUMPTIONS, "E a^4 = kappa_4 (E a^2)^2", "E[g^2 s^2] finite"),
            source=SOURCE,
            formulas=cache(
                lambda name=_name: {
                    f"{name}_any_link": _relu_any_link()[name],
                    f"{name}_relu_link": exact_relu_link()[name],
                }
            ),
            evaluate=partial(evaluate_form, name=_name, form="exact"),
            latex=latex_of,
            checks=(
                Check("enumeration and quadrature", "numeric", partial(_check_relu, _name)),
                Check("trained networks", "montecarlo", partial(_check_trained, _name, 20000)),
                Check(
                    "trained networks, many",
                    "montecarlo",
                    partial(_check_trained, _name, 400000),
                    level="full",
                ),
                Check(
                    "steps from the loss", "symbolic", partial(_check_steps, general_derivation), level="full"
                ),
                Check(
                    "steps for p z + q|z|",
                    "symbolic",
                    partial(_check_steps, homogeneous_derivation),
                    level="full",
                ),
            ),
        )
    )
