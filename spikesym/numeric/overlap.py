"""Numbers of the top eigenvector's overlap with w* to order 1/d."""

from __future__ import annotations

from typing import Any

import sympy

from ..gaussian import gaussian_data
from ..model import Model
from ..symbolic import overlap as symbolic
from ..symbolic.covariance_judges import P_COEF, Q_COEF
from ..symbolic.quenched import LABEL4
from ..symbolic.symbols import ALPHA, C0, C1
from .batch_mean import BatchLaw, link_power


def overlap_coefficient(model: Model) -> float | None:
    """d (E <u, w*>^2 - limit) as n, d grow in proportion (registry: ``overlap``); None unless the activation is p z + q|z| with p
    not zero.

    Parameters
    ----------
    model : Model
        With sizes; of them n/d enters.

    Examples
    --------
    >>> round(overlap_coefficient(Model(link="relu", d=100, n=200, m=50, eta=1)), 4)
    -0.5691
    """
    model.require_sizes()
    link = gaussian_data(model.link, "link", model.parameters)
    activation = gaussian_data(model.activation, "activation", model.parameters)
    slopes = activation.function.piecewise_linear_coefficients()
    if slopes is None or slopes[0] == 0:
        return None
    noise = float(model.noise_var)
    law, third = BatchLaw.of(link, noise), link_power(link, 3)
    c0, c1, c2 = (float(link.coefficient(k)) for k in range(3))
    # n times covariances of U = mean(y s) and V = mean(y^2), turned back into moments
    along, mixed, square = law.covariance[0, 0], law.covariance[0, 1], law.covariance[1, 1]
    values: dict[Any, Any] = {
        ALPHA: sympy.Rational(int(model.n or 0), int(model.d or 1)), C0: c0, C1: c1, P_COEF: slopes[0], Q_COEF: slopes[1],
        symbolic.LABEL2: law.power, symbolic.LABEL1_S2: c0 + c2, symbolic.LABEL2_S2: along + c1**2,
        symbolic.LABEL2_S: float(link_power(link, 2).coefficient(1)), symbolic.LABEL3_S: mixed + c1 * law.power,
        symbolic.LABEL3: float(third.coefficient(0)) + 3 * noise * c0, LABEL4: square + law.power**2,
    }  # fmt: skip
    return float(sympy.N(symbolic.overlap_correction().subs(values)))
