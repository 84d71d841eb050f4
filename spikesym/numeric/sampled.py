"""Gaussian expectations of a Python callable: two rules, their difference as the radius, no certificate.

Nothing is known about a callable but its values. Panels are bisected where two Gauss–Legendre orders
disagree, which finds kinks and jumps down to the spacing of doubles; a third order, in mpmath where the
callable accepts such numbers, gives the value, and what it differs by is the radius.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb, ctx

from ..errors import InputError, NotIntegrableError

Vectorised = Callable[[np.ndarray], np.ndarray]

METHOD = "two-rule quadrature (not certified)"
_LOW, _HIGH, _CHECK = 14, 21, 30
_TARGET = 1e-17
_NARROWEST = 2.0**-46
_MOST_PANELS = 6000
_FARTHEST = 37.0
_EPS = 2.0**-52


def sampled_moments(
    function: Vectorised, count: int, precise: Callable[[Any], Any] | None = None, where: str = "callable"
) -> list[arb]:
    """Estimates of E[F He_k], k < count, as balls whose radius is an estimate too.

    Parameters
    ----------
    function : callable
        F on arrays of doubles.
    count : int
        Number of moments.
    precise : callable, optional
        F on single mpmath numbers, for the second rule.
    where : str
        What to call the function in errors.

    Raises
    ------
    InputError
        When the function returns something that is not finite.
    NotIntegrableError
        When the integrand does not decay.

    Examples
    --------
    >>> mean = sampled_moments(lambda x: np.maximum(x, 0), 1)[0]
    >>> bool(abs(mean - 1 / (2 * arb.pi()).sqrt()) < 1e-14)
    True
    """
    panels, scale = _panels(function, count, where)
    first, size = _sums(function, panels, _HIGH, count, where)
    second, _ = _sums(function, panels, _CHECK, count, where)
    values: list[Any] = list(second)
    if precise is not None and (better := _precise_sums(precise, panels, min(count, 3))) is not None:
        values[: len(better)] = better
    unresolved = sum(b - a for a, b in panels if b - a <= 2 * _NARROWEST) * scale
    balls = []
    for k, (value, one, two, absolute) in enumerate(zip(values, first, second, size, strict=True)):
        radius = abs(one - float(value)) + abs(two - one) + 8 * _EPS * absolute + unresolved
        with ctx.workprec(128):
            norm = arb(math.factorial(k)).sqrt()
            balls.append(arb(_as_arb(value), radius) * norm)
    return balls


def _as_arb(value: Any) -> arb:
    if isinstance(value, float):
        return arb(value)
    import mpmath

    with ctx.workprec(128):
        return arb(mpmath.nstr(value, 36)).mid()


@lru_cache(maxsize=8)
def _rule(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(n)


def _orthonormal(x: np.ndarray, count: int) -> np.ndarray:
    """Rows He_k(x) / sqrt(k!) by the normalised recurrence."""
    rows = np.empty((count, x.size))
    rows[0] = 1.0
    if count > 1:
        rows[1] = x
    for k in range(1, count - 1):
        rows[k + 1] = (x * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1)
    return rows


def _values(function: Vectorised, x: np.ndarray, where: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        y = np.asarray(function(x), dtype=float)
    if y.shape != x.shape:
        y = np.broadcast_to(y, x.shape)
    bad = ~np.isfinite(y)
    if bad.any():
        at = float(x[bad][0])
        raise InputError(
            f"the value at {at:.6g} is {y[bad][0]}", where, "give a function that is finite everywhere"
        )
    return y


def _panel_sums(
    function: Vectorised, panels: np.ndarray, n: int, count: int, where: str
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal moments and sums of absolute values, one row for each panel."""
    t, w = _rule(n)
    half = (panels[:, 1] - panels[:, 0])[:, None] / 2
    x = (panels[:, 0] + panels[:, 1])[:, None] / 2 + half * t
    weights = half * w * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    terms = _orthonormal(x.ravel(), count).reshape(count, *x.shape) * (
        weights * _values(function, x.ravel(), where).reshape(x.shape)
    )
    return terms.sum(axis=2).T, np.abs(terms).sum(axis=2).T


def _panels(function: Vectorised, count: int, where: str) -> tuple[list[tuple[float, float]], float]:
    """Panels on which two orders agree, and the size of the integrand."""
    radius = 8.0
    while True:
        edge = np.array([[-radius, -radius + 1], [radius - 1, radius]])
        middle = np.array([[-2.0, 0.0], [0.0, 2.0]])
        outer = _panel_sums(function, edge, _LOW, count, where)[1].max()
        inner = _panel_sums(function, middle, _LOW, count, where)[1].max()
        if outer <= 1e-20 * max(inner, outer * 1e-30):
            break
        radius += 1.0
        if radius > _FARTHEST:
            if inner == 0 and outer == 0:
                break
            remedy = "give a function that grows slower than exp(x^2/4)"
            raise NotIntegrableError("the integrand does not decay", where, remedy)
    cuts = np.linspace(-radius, radius, 2 * math.ceil(radius) + 1)
    waiting = np.stack([cuts[:-1], cuts[1:]], axis=1)
    done: list[tuple[float, float]] = []
    scale = 1e-300
    while waiting.size:
        low, absolute = _panel_sums(function, waiting, _LOW, count, where)
        high, _ = _panel_sums(function, waiting, _HIGH, count, where)
        scale = max(scale, float(absolute.max()))
        narrow = waiting[:, 1] - waiting[:, 0] <= _NARROWEST
        good = np.abs(high - low).max(axis=1) <= np.maximum(_TARGET * scale, 4 * _EPS * absolute.max(axis=1))
        keep = good | narrow
        done += [(float(a), float(b)) for a, b in waiting[keep]]
        split = waiting[~keep]
        if len(done) + len(split) > _MOST_PANELS:
            raise InputError("too rough for quadrature", where, "give an expression, with its break points")
        middle = split.mean(axis=1)
        waiting = np.concatenate([np.stack([split[:, 0], middle], 1), np.stack([middle, split[:, 1]], 1)])
    return sorted(done), scale


def _sums(
    function: Vectorised, panels: list[tuple[float, float]], n: int, count: int, where: str
) -> tuple[list[float], list[float]]:
    rows, absolute = _panel_sums(function, np.array(panels), n, count, where)
    return [math.fsum(column) for column in rows.T], [math.fsum(column) for column in absolute.T]


def _precise_sums(
    precise: Callable[[Any], Any], panels: list[tuple[float, float]], count: int
) -> list[Any] | None:
    """The low moments in mpmath at 30 digits; None when the callable does not take such numbers."""
    import mpmath

    if len(panels) > 300:
        return None
    with mpmath.workdps(30):
        try:
            probe = precise(mpmath.mpf("0.3125"))
            if not isinstance(probe, mpmath.mpf):
                return None
            nodes = _precise_rule(_CHECK)
            sums = [mpmath.mpf(0)] * count
            for low, high in panels:
                half, middle = (mpmath.mpf(high) - low) / 2, (mpmath.mpf(high) + low) / 2
                for node, weight in nodes:
                    x = middle + half * node
                    term = half * weight * mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) * precise(x)
                    for k, factor in zip(range(count), (1, x, (x * x - 1) / mpmath.sqrt(2)), strict=False):
                        sums[k] += term * factor
            return sums
        except Exception:  # whatever a callable does with numbers that it was not made for
            return None


@lru_cache(maxsize=2)
def _precise_rule(n: int) -> list[tuple[Any, Any]]:
    import mpmath

    from .gauss_legendre import nodes

    def convert(ball: arb) -> Any:
        man, exp = ball.mid().man_exp()
        return mpmath.ldexp(mpmath.mpf(int(man)), int(exp))

    with mpmath.workdps(40):
        return [(convert(node), convert(weight)) for node, weight in nodes(n, 140)]
