"""Hermite coefficients: certified ones against mpmath's quadrature, exact ones against SymPy's integrate.

Both sides are timed in turns in one run; the ratio of the medians is printed. mpmath's side computes fewer
coefficients and is scaled per coefficient, since all of them would take minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import mpmath
import sympy

from spikesym.gaussian import GaussianData
from spikesym.symbolic.functions import make_function

ROUNDS = 2


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def certified(count: int, digits: int) -> None:
    data = GaussianData(make_function("tanh", "link"))
    for value in data.coefficients(count):
        value.enclosure(digits)


def hermite(k: int, x: mpmath.mpf) -> mpmath.mpf:
    # the recurrence: mpmath.hermite goes through 1F1 and would make the peer look slower than it need be
    before, now = mpmath.mpf(0), mpmath.mpf(1)
    for j in range(k):
        before, now = now, x * now - j * before
    return now


def by_mpmath(degrees: list[int], digits: int) -> None:
    with mpmath.workdps(digits + 10):
        for k in degrees:
            mpmath.quad(
                lambda x, k=k: mpmath.tanh(x) * hermite(k, x) * mpmath.npdf(x),
                mpmath.linspace(-18, 18, 13),
            )


def exact() -> None:
    data = GaussianData(make_function("max(0, s - 1/2)", "link"))
    assert all(data.coefficient(k).exact is not None for k in range(3))


def by_sympy() -> None:
    x = sympy.Symbol("x", real=True)
    density = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)
    for polynomial in (sympy.Integer(1), x, x**2 - 1):
        sympy.integrate(
            sympy.Max(0, x - sympy.Rational(1, 2)) * polynomial * density, (x, -sympy.oo, sympy.oo)
        )


def main() -> None:
    count, digits, degrees = 100, 30, [1, 21]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(timed(lambda: certified(count, digits)) / count)
        theirs.append(timed(lambda: by_mpmath(degrees, digits)) / len(degrees))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{count} certified coefficients of tanh to {digits} digits: {a * count:.2f} s in all")
    print(f"mpmath.quad / spikesym, per coefficient: {b / a:.1f}")
    ours = [timed(exact) for _ in range(ROUNDS)]
    theirs = [timed(by_sympy)]
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"c_0, c_1, c_2 of max(0, s - 1/2), exact: sympy.integrate / spikesym: {b / a:.1f}")


if __name__ == "__main__":
    main()
