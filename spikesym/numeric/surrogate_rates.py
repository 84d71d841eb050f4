"""Rates of the surrogate's distance from k1: measured against d, beside (B/d)^2 and the published eta^4 ln(d)^3/d^5."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from ..model import Model, Number, exact_number
from .surrogate import SurrogateDistance, surrogate_distance

#: exponents of the step in the published statement's range, and its end
ZETAS = ("1/2", "3/4", "9/10", "1")
DIMENSIONS = (100, 300, 1000, 3000, 10000)


@dataclass(frozen=True)
class SurrogateRate:
    """Distances at one zeta along d.

    Attributes
    ----------
    zeta : Fraction
    rows : tuple of SurrogateDistance
        By increasing d, at fixed n/d, m/d and eta_0.
    """

    zeta: Fraction
    rows: tuple[SurrogateDistance, ...]

    @property
    def slopes(self) -> tuple[float, ...]:
        """d log(norm)/d log(d) between successive dimensions."""
        return tuple(
            math.log(high.norm / low.norm) / math.log(high.d / low.d) for low, high in pairwise(self.rows)
        )

    @property
    def exponent(self) -> Fraction:
        """The exponent that the derivation gives: 4 zeta - 4, or for p z + q|z| the larger of 6 zeta - 6 and 4 zeta - 5."""
        z = self.zeta
        return 4 * z - 4 if self.rows[0].kind == "smooth" else max(6 * z - 6, 4 * z - 5)

    @property
    def published_exponent(self) -> Fraction:
        """4 zeta - 5, the power of d in eta^4 ln(d)^3/d^5."""
        return 4 * self.zeta - 5

    @property
    def published_growth(self) -> float:
        """Factor by which norm/(eta^4 ln(d)^3/d^5) grew from the smallest to the largest d; at most one if the rate holds."""
        return self.rows[-1].by_paper / self.rows[0].by_paper


@dataclass(frozen=True)
class SurrogateRates:
    """The rates of one model; ``table()`` prints them."""

    rates: tuple[SurrogateRate, ...]

    def table(self) -> str:
        """Distance, both candidate rates and the derived leading order, row by row."""
        lines = [
            f"{'zeta':>5}{'d':>8}{'|k1*-k1|':>12}{'/(B/d)^2':>12}{'/published':>12}{'/derived':>10}{'slope':>8}"
            f"{'derived':>9}{'published':>11}"
        ]
        for rate in self.rates:
            slopes = (math.nan, *rate.slopes)
            for row, slope in zip(rate.rows, slopes, strict=True):
                derived = row.norm / row.predicted if row.predicted else math.nan
                lines.append(
                    f"{float(rate.zeta):>5.3g}{row.d:>8}{row.norm:>12.3e}{row.by_spike:>12.4g}{row.by_paper:>12.3g}"
                    f"{derived:>10.4f}{slope:>8.3f}{float(rate.exponent):>9.3g}{float(rate.published_exponent):>11.3g}"
                )
        return "\n".join(lines)


def surrogate_rates(
    model: Model,
    alpha: Number = 2,
    beta: Number = Fraction(3, 2),
    eta0: Number = 1,
    zetas: Sequence[Any] = ZETAS,
    dimensions: Sequence[int] = DIMENSIONS,
    tolerance: float = 1e-3,
) -> SurrogateRates:
    """Measure the distance of the surrogate's kernel from k1 along d at fixed n/d, m/d and eta_0.

    Parameters
    ----------
    model : Model
        Link, activation, noise and scale; its own sizes and step are not used.
    alpha, beta, eta0 : number
        n/d, m/d and eta_0.
    zetas : sequence of numbers
        Exponents of the step.
    dimensions : sequence of int
        Increasing, at least 4.
    tolerance : float
        Relative accuracy of each norm.

    Examples
    --------
    >>> rates = surrogate_rates(Model(activation="erf"), zetas=["1/2"], dimensions=(1000, 10000))
    >>> round(rates.rates[0].slopes[0], 1), rates.rates[0].published_growth > 3
    (-2.0, True)
    """
    found = []
    a, b = exact_number(alpha, "alpha"), exact_number(beta, "beta")
    for zeta in zetas:
        z = exact_number(zeta, "--zeta")
        rows = []
        for d in dimensions:
            sized = model.with_(d=d, n=round(a * d), m=round(b * d), eta=None, eta0=eta0, zeta=z)
            rows.append(surrogate_distance(sized, tolerance))
        found.append(SurrogateRate(z, tuple(rows)))
    return SurrogateRates(tuple(found))
