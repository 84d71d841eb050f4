"""Statement about means over the direction of a weight."""

from __future__ import annotations

from functools import cache

import mpmath
import sympy

from ..symbolic.angle import PHI
from ..symbolic.angle import angle_mean as closed_mean
from ..symbolic.covariance_exact import homogeneous_derivation
from ..symbolic.covariance_judges import P_COEF, Q_COEF
from ..symbolic.covariance_links import link_forms
from ..symbolic.means import direction_moment
from ..symbolic.symbols import D, K, X
from . import covariance_checks as checks
from .covariance_common import HALF, latex_of, seeded
from .registry import Check, Formulas, Outcome, Statement, register


def _direction_formulas() -> dict[str, sympy.Expr]:
    relu, absolute = link_forms(sympy.Max(0, X)), link_forms(sympy.Abs(X))
    assert relu is not None
    assert absolute is not None
    joint = homogeneous_derivation().results["others_two"] * D
    return {
        "along": relu.EP2,
        "across": relu.EQ2,
        "norm": sympy.expand(joint.subs({P_COEF: HALF, Q_COEF: HALF})),
        "abs_along": absolute.EP2,
        "phi2": closed_mean(PHI**2),
        "moment": direction_moment(K, D),
    }


def _check_direction(formulas: Formulas, seed: int) -> Outcome:
    with mpmath.workdps(50):
        comparison = checks.Comparison()
        for rng in seeded(seed, 2):
            d = rng.choice([2, 3, 4, 7, 20])
            for name, formula in formulas.items():
                if name == "moment":
                    for k in (1, 2, 3):
                        comparison.add(
                            checks.ball(formula, {D: d, K: k}), checks.angle_mean(f"rho{2 * k}", d)
                        )
                else:
                    comparison.add(checks.ball(formula, {D: d}), checks.angle_mean(name, d))
        return comparison.outcome("quadrature of the density of the angle")


def _evaluate_direction(name: str, d: int, k: int = 0) -> float:
    """One of the means at a dimension (and, for "moment", a half-degree k)."""
    return float(checks.ball(_direction_formulas()[name], {D: d, K: k}))


register(
    Statement(
        id="rho-moments",
        statement="Means over the direction of a weight: E P^2 and E Q^2 of the ReLU link, J_d (the squared gradient "
        "towards another neuron), E P^2 of |s|, E phi^2 of the angle, and the moments of a coordinate of the sphere.",
        assumptions=("direction uniform on the sphere of R^d, d >= 2",),
        source="derived in spikesym.symbolic.angle; gradient of the arc-cosine kernel (Cho and Saul 2009)",
        formulas=cache(_direction_formulas),
        evaluate=_evaluate_direction,
        latex=latex_of,
        checks=(Check("quadrature", "numeric", _check_direction),),
    )
)
