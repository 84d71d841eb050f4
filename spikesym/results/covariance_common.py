"""Shared by the statements about A and B: assumptions, sources, small helpers."""

from __future__ import annotations

import random

import sympy

from ..model import Model
from ..numeric.covariance import covariance
from ..symbolic.printing import latex
from .registry import Formulas

SOURCE = "derived in spikesym.symbolic.covariance_steps and covariance_exact; model of Lobo et al. 2026 (2605.17718)"
ASSUMPTIONS = (
    "x ~ N(0, I_d), y = g(<w*, x>) + eps, E eps^2 = tau^2",
    "a_j i.i.d. symmetric, E a^2 = varsigma^2/m",
    "w_j(0) ~ N(0, I_d/d) or uniform on the unit sphere",
)
#: a dimension at which leading formulas hold to 40 digits
HUGE = sympy.Integer(10) ** 45
HALF = sympy.Rational(1, 2)


def latex_of(formulas: Formulas) -> dict[str, str]:
    """LaTeX of every formula by name."""
    return {name: latex(expr) for name, expr in formulas.items()}


def evaluate_form(name: str, form: str, model: Model) -> float:
    """The value of A or B (``name``) of a model in this form."""
    entry = getattr(covariance(model), name)[form]
    return float(entry.value)


def seeded(seed: int, count: int) -> list[random.Random]:
    """Independent generators for the points of a check."""
    return [random.Random(f"{seed}:{k}") for k in range(count)]
