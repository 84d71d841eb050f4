"""Reference values of A and A + B for ReLU networks: defining expectations by quadrature, to 18 digits.

Run it to write covariance_values.json. P(rho) = E[s g(s) Phi(kappa s)] and Q(rho) = E[g(s) phi(kappa s)] are integrated
over s for each rho, with panels on the scale of s and on that of 1/kappa; their squares over the density of rho; the
gradient towards another neuron over the arc of the circle. No closed form of the package is used.
"""

import json
from itertools import pairwise
from pathlib import Path

from mpmath import acos, calculus, cos, fsum, linspace, mp, mpf, ncdf, npdf, nstr, pi, sin

mp.dps = 28
NODES = calculus.quadrature.GaussLegendre(mp).calc_nodes(4, mp.prec)
CASES = [
    {"link": "relu", "d": 60, "n": 120, "m": 90, "eta": 120},
    {"link": "relu", "d": 5, "n": 3, "m": 4, "eta": 7},
    {"link": "abs(s-1)", "d": 8, "n": 9, "m": 5, "eta": 4},
]
LINKS = {"relu": (lambda s: max(s, mpf(0)), [0]), "abs(s-1)": (lambda s: abs(s - 1), [1])}
SCALE = [mpf(k) for k in (-13, -9, -6, -4, -2, -1, 0, 1, 2, 4, 6, 9, 13)]


def integral(function, breaks):
    total = mpf(0)
    for a, b in pairwise(sorted(set(breaks))):
        total += (b - a) / 2 * fsum(w * function((a + b) / 2 + (b - a) / 2 * x) for x, w in NODES)
    return total


def direction(function, d):
    breaks = linspace(-pi / 2, pi / 2, 9)
    weight = integral(lambda t: cos(t) ** (d - 2), breaks)
    return integral(lambda t: function(t) * cos(t) ** (d - 2), breaks) / weight


def towards(t):
    """|E[relu(z') 1(z > 0) x]|^2 over the arc where both are positive."""
    low, high = acos(sin(t)) - pi / 2, pi / 2
    along = integral(lambda u: cos(u) ** 2, [low, (low + high) / 2, high]) / pi
    beside = integral(lambda u: cos(u) * sin(u), [low, (low + high) / 2, high]) / pi
    return along**2 + beside**2


def value(case):
    g, kinks = LINKS[case["link"]]
    d, n, m, eta = (mpf(case[k]) for k in ("d", "n", "m", "eta"))

    def squared(function):
        def at(t):
            breaks = [*SCALE, *(s * cos(t) for s in SCALE), *map(mpf, kinks)]
            return integral(lambda s: function(s, sin(t) / cos(t)), breaks) ** 2

        return direction(at, d)

    EP2 = squared(lambda s, k: s * g(s) * ncdf(k * s) * npdf(s))
    EQ2 = squared(lambda s, k: g(s) * npdf(k * s) * npdf(s))
    fixed = [*SCALE, *map(mpf, kinks)]
    G, G22 = (integral(lambda s, p=p: s**p * g(s) ** 2 * npdf(s), fixed) for p in (0, 2))
    J, one = direction(towards, d), 1 - 1 / n
    R = -eta / m**2 + eta**2 / m**4 * (
        3 * ((d + 2) / (2 * n) + one / 4) + (m - 1) * ((d + 2) / (4 * n) + one * J)
    )
    scale = d * eta**2 / m**2
    A = 1 + scale * (G / (2 * n) + one * EQ2 / (d - 1)) + R
    total = 1 + scale * (G22 / (2 * n) + one * EP2) + R
    return {"A": nstr(A, 18), "A_plus_B": nstr(total, 18)}


if __name__ == "__main__":
    document = [{**case, **value(case)} for case in CASES]
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))
