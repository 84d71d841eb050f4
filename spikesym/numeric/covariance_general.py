"""The means behind A and B for any activation, exactly at finite size: Hermite series in rho at given norms of the weights.

Sphere initialisation has one norm, and everything is certified: the rest of each series is bounded by Cauchy-Schwarz
with what Parseval's sums leave. Gaussian initialisation averages the same series over the norm, by two Gauss rules of
the law of nu^2 whose difference is the error estimate (not a proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import sympy
from flint import arb, ctx

from ..errors import CertificationError
from ..gaussian import GaussianData
from ..symbolic.symbols import X
from .direction_means import direction_moments, series_suffices
from .hermite_sampling import sampled_moments
from .quadrature import function_integrand, hermite_moments

_COUNTS = (24, 48, 96, 192, 384)
_RULES = (8, 14, 22, 32)

#: the functions of the preactivation whose Hermite coefficients enter, from the expression of sigma in x
_OF_SIGMA: dict[str, Callable[[sympy.Expr], sympy.Expr]] = {
    "sigma": lambda e: e,
    "slope": lambda e: sympy.diff(e, X),
    "slope2": lambda e: sympy.diff(e, X) ** 2,
    "square": lambda e: e**2,
    "own": lambda e: (e * sympy.diff(e, X)) ** 2,
}


@dataclass(frozen=True)
class Node:
    """A norm nu of the weights with its share of the law."""

    norm: Any
    weight: Any


@lru_cache(maxsize=64)
def norm_rule(d: int, count: int, digits: int) -> tuple[Node, ...]:
    """Gauss rule of the law of nu^2 = chi^2_d/d, in the variable that is standardised for large d.

    Examples
    --------
    >>> nodes = norm_rule(10, 6, 30)
    >>> print(mpmath.nstr(sum(n.weight * n.norm**4 for n in nodes), 12))
    1.2
    """
    with mpmath.workdps(digits + 15):
        a = mpmath.mpf(d) / 2
        matrix = mpmath.zeros(count)
        for k in range(count):
            matrix[k, k] = 2 * k / mpmath.sqrt(a)
            if k:
                matrix[k, k - 1] = matrix[k - 1, k] = mpmath.sqrt(k * (k + a - 1) / a)
        values, vectors = mpmath.eigsy(matrix)
        return tuple(
            Node(mpmath.sqrt(1 + values[i] / mpmath.sqrt(a)), vectors[0, i] ** 2) for i in range(count)
        )


class GeneralMeans:
    """The means of :data:`~spikesym.symbolic.covariance_steps.MOMENTS` for one link, activation, dimension and noise.

    ``certified`` holds for the sphere. Each method returns a ball at a number of bits.
    """

    def __init__(
        self, link: GaussianData, activation: GaussianData, d: int, tau2: sympy.Rational, init: str
    ) -> None:
        self.link, self.activation, self.d, self.init = link, activation, d, init
        self.tau2 = tau2
        self.certified = init == "sphere" and all(
            v.certified for v in (link.second_moment, activation.second_moment)
        )
        self._known: dict[int, dict[str, arb]] = {}
        self._exhausted: float | None = None

    def ball(self, name: str, bits: int) -> arb:
        """One mean: a name of MOMENTS, with ``_across`` for v orthogonal to w* where that differs."""
        return self._all(bits)[name]

    def _all(self, bits: int) -> dict[str, arb]:
        # one computation serves every smaller precision
        key = next((k for k in sorted(self._known) if k >= bits), None)
        if key is None:
            if self._exhausted is not None:
                raise CertificationError(
                    f"the Hermite series of this link and activation at d = {self.d} certify a relative error of "
                    f"{self._exhausted:.0e} with {_COUNTS[-1]} terms, not less"
                )
            grid = 128 if self.init == "sphere" else 32
            key = grid * math.ceil(bits / grid)
            old = ctx.prec
            ctx.prec = key + 60
            try:
                self._known[key] = self._sphere(key) if self.init == "sphere" else self._gaussian(key)
            finally:
                ctx.prec = old
        return self._known[key]

    def _sphere(self, bits: int) -> dict[str, arb]:
        found: dict[str, arb] = {}
        for count in _COUNTS[_first_count(self.d, bits) :]:
            found = _Series(self, count, bits, [(arb(1), arb(1), sympy.Integer(1))], bounded=True).means()
            worst = max(float(b.rad()) / max(float(abs(b).mid()), 1e-300) for b in found.values())
            # callers ask for 32 bits more than the digits they need, and precisions are rounded up to 128 bits
            if worst < 2.0 ** (-0.6 * bits):
                return found
        # more precision will not help: only more terms would, and these fall off too slowly
        self._exhausted = worst
        return found

    def _gaussian(self, bits: int) -> dict[str, arb]:
        previous: dict[str, arb] = {}
        digits, count = math.ceil(bits * 0.302) + 5, _COUNTS[max(1, _first_count(self.d, bits))]
        for step, nodes in enumerate(_RULES):
            rule = norm_rule(self.d, nodes, digits)
            balls = [(_to_ball(n.norm), _to_ball(n.weight), _to_rational(n.norm)) for n in rule]
            found = _Series(
                self, min(count << (step // 2), 192), bits, balls, bounded=False, order=22
            ).means()
            if previous:
                gaps = {k: abs(found[k].mid() - previous[k].mid()) for k in found}
                found = {k: found[k].mid() + arb(0, gaps[k].upper()) for k in found}
                if all(
                    float(gaps[k]) <= 2.0 ** (-0.55 * bits) * max(float(abs(found[k]).mid()), 1e-300)
                    for k in found
                ):
                    return found
            previous = {k: v.mid() for k, v in found.items()}
        self._exhausted = max(float(gaps[k]) / max(float(abs(found[k]).mid()), 1e-300) for k in found)
        return found


def _first_count(d: int, bits: int) -> int:
    """Where to begin among the numbers of terms: the first whose moment of rho can be small enough."""
    for index, count in enumerate(_COUNTS):
        if series_suffices(count, count, d, int(0.6 * bits)):
            return index
    return 2


def _to_ball(number: Any) -> arb:
    return arb(mpmath.nstr(number, mpmath.mp.dps + 60, min_fixed=-10, max_fixed=100))


def _to_rational(number: Any) -> sympy.Rational:
    sign, man, exp, _ = number._mpf_
    return (-1) ** sign * sympy.Rational(int(man)) * sympy.Integer(2) ** int(exp)


class _Series:
    """All means from coefficients cut at ``count``, for a list of (norm, weight, exact norm)."""

    def __init__(
        self,
        means: GeneralMeans,
        count: int,
        bits: int,
        nodes: list[tuple[arb, arb, Any]],
        bounded: bool,
        order: int = 0,
    ) -> None:
        self.order = order
        self.m, self.count, self.bits, self.nodes, self.bounded = means, count, bits, nodes, bounded
        self.extra = count + 3
        self.factorial = [arb(math.factorial(k)) for k in range(self.extra)]
        self.rho = direction_moments(2 * count + 4, means.d)

    @cached_property
    def coefficients(self) -> dict[str, list[tuple[arb, ...]]]:
        """E[F(nu z) He_k(z)] by function and node."""
        function = self.m.activation.function
        if self.order:
            norms = [(norm, exact) for norm, _, exact in self.nodes]
            return sampled_moments(function, _OF_SIGMA, norms, self.extra, self.bits, self.order)
        return {
            name: [_moments(function, name, norm, self.extra, self.bits + 30) for _, _, norm in self.nodes]
            for name in _OF_SIGMA
        }

    @cached_property
    def c(self) -> tuple[arb, ...]:
        """Coefficients of the link."""
        return tuple(
            hermite_moments(function_integrand(self.m.link.function, lambda e: e), self.extra, self.bits + 30)
        )

    @cached_property
    def label2(self) -> tuple[arb, ...]:
        """Coefficients of g^2 + tau^2."""
        found = list(
            hermite_moments(
                function_integrand(self.m.link.function, lambda e: e**2), self.extra, self.bits + 30
            )
        )
        found[0] = found[0] + arb(int(self.m.tau2.p)) / int(self.m.tau2.q)
        return tuple(found)

    def times_s(self, base: Any) -> list[arb]:
        """Coefficients of s F(s)."""
        return [base[k + 1] + (k * base[k - 1] if k else 0) for k in range(len(base) - 1)]

    def mean(self, name: str, k: int) -> arb:
        """E over the norm of E[F(nu z) He_k]."""
        return sum(
            (w * c[k] for (_, w, _), c in zip(self.nodes, self.coefficients[name], strict=True)), arb(0)
        )

    def _gram(self, name: str, shift: int, times: bool = False) -> Callable[[int, int], arb]:
        rows = [self.times_s(c) if times else c for c in self.coefficients[name]]
        weights = [w for _, w, _ in self.nodes]

        def entry(j: int, k: int) -> arb:
            return sum((w * r[j + shift] * r[k + shift] for w, r in zip(weights, rows, strict=True)), arb(0))

        return entry

    def _companion(self, i: int) -> arb:
        """E (1 - rho^2) rho^(2i)."""
        return self.rho[i] * (self.m.d - 1) / (self.m.d + 2 * i)

    def _quadratic(
        self, left: Callable[[int, int], arb], right: Callable[[int, int], arb], companion: bool
    ) -> arb:
        """Sum over j + k even of left right E[rho^(j+k) (1 or 1 - rho^2)]/(j! k!)."""
        weight = [self._companion(i) if companion else self.rho[i] for i in range(self.count)]
        total = arb(0)
        for j in range(self.count):
            for k in range(j % 2, j + 1, 2):
                term = (
                    left(j, k) * right(j, k) * weight[(j + k) // 2] / (self.factorial[j] * self.factorial[k])
                )
                total += term if j == k else 2 * term
        return total

    def _linear(self, left: Any, right: Callable[[int], arb], companion: bool = False) -> arb:
        """Sum over even k of left right E[rho^k (1 or 1 - rho^2)]/k!."""
        total = arb(0)
        for k in range(0, self.count, 2):
            total += (
                left[k]
                * right(k)
                * (self._companion(k // 2) if companion else self.rho[k // 2])
                / self.factorial[k]
            )
        return total

    # ---- rests (sphere) ------------------------------------------------------------------------------------------

    def _left_over(self, norm2: arb, coefficients: Any, count: int) -> arb:
        """Upper bound of E F^2 minus the Parseval sum up to ``count``."""
        rest = norm2 - sum((coefficients[k] ** 2 / self.factorial[k] for k in range(count)), arb(0))
        return rest.upper().max(arb(0)).upper()

    def _square_error(self, total: arb, terms: list[arb], rest: arb, start: int) -> arb:
        """E (F + rest)^2 where |rest| <= rest |rho|^start and F has these coefficients of rho^k."""
        crossed = sum((abs(t) * self.rho[(k + start) // 2] for k, t in enumerate(terms)), arb(0))
        return total + arb(0, (2 * rest * crossed + rest**2 * self.rho[start]).upper())

    # ---- the means -----------------------------------------------------------------------------------------------

    def means(self) -> dict[str, arb]:
        """Every mean; the radius holds the rests when ``bounded``."""
        d, count = arb(self.m.d), self.count
        sg = self.times_s(self.c)
        slope = self._gram("slope", 0)
        beside = self._gram("slope", 1)
        label2_s2 = self.times_s(self.times_s(self.label2))

        def slope2(k: int) -> arb:
            return self.mean("slope2", k)

        def slope2_two(k: int) -> arb:
            return self.mean("slope2", k + 2)

        found = {
            "labels_two": self._quadratic(lambda j, k: sg[j] * sg[k], slope, False),
            "labels_two_across": self._quadratic(lambda j, k: self.c[j] * self.c[k], beside, True) / (d - 1),
            "labels_one": self._linear(label2_s2, slope2),
            "labels_one_across": self._linear(self.label2, slope2)
            + self._linear(self.label2, slope2_two, True) / (d - 1),
        }
        square = [self.mean("square", k) for k in range(self.extra)]
        square_s2 = self.times_s(self.times_s(square))
        found["initial"] = 1 / d
        found["cross"] = square[2] / 2 / d
        found["own_one"] = self.mean("own", 0) + self.mean("own", 2) / d
        found["own_two"] = (
            sum(
                (
                    w * (c[2] / (2 * n)) ** 2
                    for (n, w, _), c in zip(self.nodes, self.coefficients["square"], strict=True)
                ),
                arb(0),
            )
            / d
        )
        found["others_one"] = (
            self._linear(square_s2, slope2)
            + (d - 1) * self._linear(square, slope2)
            + self._linear(square, slope2_two, True)
        ) / d
        found["others_two"] = (
            self._quadratic(self._gram("sigma", 0, times=True), slope, False)
            + self._quadratic(self._gram("sigma", 0), beside, True)
        ) / d
        if self.bounded:
            self._bound(found, sg, count)
        return found

    def _bound(self, found: dict[str, arb], sg: list[arb], count: int) -> None:
        """Put the rests of all series into the radii: Cauchy-Schwarz with what Parseval's sums leave."""
        d, bits, link, act = arb(self.m.d), self.bits, self.m.link, self.m.activation
        sigma, slope, slope2, square = (
            self.coefficients[k][0] for k in ("sigma", "slope", "slope2", "square")
        )
        over = self._left_over
        g_rest = over(link.second_moment.ball(bits), self.c, count)
        sg_rest = over(link.second_moment_x2.ball(bits), sg, count)
        slope_rest = over(act.derivative_second_moment.ball(bits), slope, count)
        slope_rest1 = over(act.derivative_second_moment.ball(bits), slope, count + 1)
        sigma_rest = over(act.second_moment.ball(bits), sigma, count)
        zsigma_rest = over(act.second_moment_x2.ball(bits), self.times_s(sigma), count)

        def squared(name: str, left: Any, shift: int, rests: tuple[arb, arb], scale: arb) -> None:
            terms = [left[k] * slope[k + shift] / self.factorial[k] for k in range(count)]
            rest = (rests[0] * rests[1]).sqrt() * (arb(2).sqrt() if shift else 1)
            # sqrt(1 - rho^2) sqrt(k + 1) |rho|^k <= sqrt(2) |rho|^(count/2) for k >= count
            changed = self._square_error(arb(0), terms, rest.upper(), count // 2 if shift else count)
            found[name] += changed * scale

        squared("labels_two", sg, 0, (sg_rest, slope_rest), arb(1))
        squared("labels_two_across", self.c, 1, (g_rest, slope_rest1), 1 / (d - 1))
        squared("others_two", self.times_s(sigma), 0, (zsigma_rest, slope_rest), 1 / d)
        squared("others_two", sigma, 1, (sigma_rest, slope_rest1), 1 / d)
        tau2 = arb(int(self.m.tau2.p)) / int(self.m.tau2.q)
        fourth = {p: link.expectation(4, polynomial=X**p).ball(bits) for p in (0, 4)}
        label_norm = fourth[0] + 2 * tau2 * link.second_moment.ball(bits) + tau2**2
        second4 = link.expectation(2, polynomial=X**4).ball(bits)
        label_s2_norm = fourth[4] + 2 * tau2 * second4 + 3 * tau2**2
        slope4 = act.expectation(4, 1).ball(bits)
        sigma4 = {p: act.expectation(4, polynomial=X**p).ball(bits) for p in (0, 4)}
        half, quarter = self.rho[count // 2], self.rho[count // 4]

        def linear(name: str, norm2: arb, left: Any, scale: arb, two: bool = False) -> None:
            rest = (over(norm2, left, count) * over(slope4, slope2, count + 2 * int(two))).sqrt()
            # (1 - rho^2) sqrt((k + 1)(k + 2)) |rho|^k <= 4 |rho|^(count/2) for k >= count
            found[name] += arb(0, (rest * (4 * quarter if two else half) * scale).upper())

        label_s2 = self.times_s(self.times_s(self.label2))
        linear("labels_one", label_s2_norm, label_s2, arb(1))
        linear("labels_one_across", label_norm, self.label2, arb(1))
        linear("labels_one_across", label_norm, self.label2, 1 / (d - 1), two=True)
        linear("others_one", sigma4[4], self.times_s(self.times_s(square)), 1 / d)
        linear("others_one", sigma4[0], square, (d - 1) / d)
        linear("others_one", sigma4[0], square, 1 / d, two=True)


@lru_cache(maxsize=256)
def _moments(function: Any, name: str, norm: sympy.Rational, count: int, bits: int) -> tuple[arb, ...]:
    """E[F(z) He_k(z)] for k < count, certified, F one of the functions of sigma (the norm is 1)."""
    if norm != 1:
        raise ValueError("certified coefficients are for the sphere")
    return tuple(hermite_moments(function_integrand(function, _OF_SIGMA[name]), count, bits))
