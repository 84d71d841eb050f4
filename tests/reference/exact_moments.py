"""Reference values behind the closed forms: products with derivatives, parameters, degrees 150 and 151.

Gauss-Legendre rules on panels between hand-typed break points, in mpmath; functions and derivatives are
written from their definitions and nothing of the package is imported. Two rules must agree. Running this
file writes ``exact_moments.json`` beside it.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import mpmath
from mpmath import mp, mpf

DIGITS = 30
PARAMETERS = [("7/5", "2/3"), ("-4/5", "1/2"), ("3/7", "-6/5")]
HIGH_DEGREES = (150, 151)


def step(x):
    return mpf(1) if x > 0 else mpf(0)


def phi(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def hermite(k, x):
    previous, current = mpf(0), mpf(1)
    for j in range(k):
        previous, current = current, x * current - j * previous
    return current


def products():
    """Text, f, f' where it exists, break points."""
    two_over_root = 2 / mpmath.sqrt(mpmath.pi)
    tenth = mpf(1) / 10
    return [
        ("relu", lambda x: max(x, mpf(0)), step, [0]),
        ("leaky_relu(0.1)", lambda x: x if x > 0 else x * tenth, lambda x: mpf(1) if x > 0 else tenth, [0]),
        (
            "max(0, s-1/2)",
            lambda x: max(x - mpf(1) / 2, mpf(0)),
            lambda x: step(x - mpf(1) / 2),
            [mpf(1) / 2],
        ),
        (
            "hardtanh",
            lambda x: max(mpf(-1), min(mpf(1), x)),
            lambda x: mpf(1) if abs(x) < 1 else mpf(0),
            [-1, 1],
        ),
        ("max(0,s)**2", lambda x: max(x, mpf(0)) ** 2, lambda x: 2 * max(x, mpf(0)), [0]),
        ("abs(s**2-1)", lambda x: abs(x * x - 1), lambda x: 2 * x * mpmath.sign(x * x - 1), [-1, 1]),
        ("gelu", lambda x: x * phi(x), lambda x: phi(x) + x * mpmath.npdf(x), []),
        ("erf(s)", mpmath.erf, lambda x: two_over_root * mpmath.exp(-x * x), []),
        (
            "erf(2*s)*s",
            lambda x: mpmath.erf(2 * x) * x,
            lambda x: mpmath.erf(2 * x) + 2 * x * two_over_root * mpmath.exp(-4 * x * x),
            [],
        ),
        ("sin(s)", mpmath.sin, mpmath.cos, []),
        ("cos(2*s+1)", lambda x: mpmath.cos(2 * x + 1), lambda x: -2 * mpmath.sin(2 * x + 1), []),
        ("exp(s/2)", lambda x: mpmath.exp(x / 2), lambda x: mpmath.exp(x / 2) / 2, []),
        (
            "exp(-3*s**2/10)",
            lambda x: mpmath.exp(-3 * x * x / 10),
            lambda x: -3 * x / 5 * mpmath.exp(-3 * x * x / 10),
            [],
        ),
        ("elu", lambda x: x if x > 0 else mpmath.expm1(x), lambda x: mpf(1) if x > 0 else mpmath.exp(x), [0]),
        ("exp(-abs(s))", lambda x: mpmath.exp(-abs(x)), lambda x: -mpmath.sign(x) * mpmath.exp(-abs(x)), [0]),
        (
            "s*exp(-s**2/2)",
            lambda x: x * mpmath.exp(-x * x / 2),
            lambda x: (1 - x * x) * mpmath.exp(-x * x / 2),
            [],
        ),
        ("he3(s) + s/2", lambda x: x**3 - 5 * x / 2, lambda x: 3 * x * x - mpf(5) / 2, []),
        (
            "sinh(s/3)*s",
            lambda x: x * mpmath.sinh(x / 3),
            lambda x: mpmath.sinh(x / 3) + x * mpmath.cosh(x / 3) / 3,
            [],
        ),
        ("1/(1+s**2)", lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2, []),
        (
            "relu(s)**3 - relu(s-1)",
            lambda x: max(x, mpf(0)) ** 3 - max(x - 1, mpf(0)),
            lambda x: 3 * max(x, mpf(0)) ** 2 - step(x - 1),
            [0, 1],
        ),
    ]


#: E[f^2], E[f^2 x^2], E[f'^2], E[x f f'], E[f^2 He_3], E[f' x^2]
PRODUCTS = [
    lambda x, f, g: f * f,
    lambda x, f, g: f * f * x * x,
    lambda x, f, g: g * g,
    lambda x, f, g: x * f * g,
    lambda x, f, g: f * f * hermite(3, x),
    lambda x, f, g: g * x * x,
]


def with_parameters():
    """Text, f(a, b) as a function of x, break points from (a, b)."""
    return [
        ("abs(s - b)", lambda a, b: lambda x: abs(x - b), lambda a, b: [b]),
        ("max(0, a*s + b)", lambda a, b: lambda x: max(mpf(0), a * x + b), lambda a, b: [-b / a]),
        ("sign(a*s + b)", lambda a, b: lambda x: mpmath.sign(a * x + b), lambda a, b: [-b / a]),
        ("erf(a*s + b)", lambda a, b: lambda x: mpmath.erf(a * x + b), lambda a, b: []),
        ("gelu(a*s)", lambda a, b: lambda x: a * x * phi(a * x), lambda a, b: []),
        ("exp(a*s)*s", lambda a, b: lambda x: mpmath.exp(a * x) * x, lambda a, b: []),
        ("sin(a*s + b)", lambda a, b: lambda x: mpmath.sin(a * x + b), lambda a, b: []),
        ("exp(-a**2*s**2 + b*s)", lambda a, b: lambda x: mpmath.exp(-a * a * x * x + b * x), lambda a, b: []),
        ("a*s**3 - b*s", lambda a, b: lambda x: a * x**3 - b * x, lambda a, b: []),
        (
            "heaviside(s - a)*heaviside(a + 1 - s)",
            lambda a, b: lambda x: step(x - a) * step(a + 1 - x),
            lambda a, b: [a, a + 1],
        ),
        (
            "exp(a*s)*heaviside(s - b)",
            lambda a, b: lambda x: mpmath.exp(a * x) * step(x - b),
            lambda a, b: [b],
        ),
        ("Phi(a*s)**2", lambda a, b: lambda x: phi(a * x) ** 2, lambda a, b: []),
        ("leaky_relu(a)", lambda a, b: lambda x: x if x > 0 else a * x, lambda a, b: [0]),
        ("relu(s)*erf(a*s)", lambda a, b: lambda x: max(x, mpf(0)) * mpmath.erf(a * x), lambda a, b: [0]),
        ("cos(a*s)*exp(b*s)", lambda a, b: lambda x: mpmath.cos(a * x) * mpmath.exp(b * x), lambda a, b: []),
        ("1/(s**2 + 1 + a**2)", lambda a, b: lambda x: 1 / (x * x + 1 + a * a), lambda a, b: []),
    ]


def high_degrees():
    """Text, function, break points."""
    root = mpmath.sqrt(2)
    return [
        ("relu", lambda x: max(x, mpf(0)), [0]),
        ("max(0, s-1/3)", lambda x: max(x - mpf(1) / 3, mpf(0)), [mpf(1) / 3]),
        ("hardtanh", lambda x: max(mpf(-1), min(mpf(1), x)), [-1, 1]),
        ("sign(s**2-2)", lambda x: mpmath.sign(x * x - 2), [-root, root]),
        ("gelu", lambda x: x * phi(x), []),
        ("exp(s/2)", lambda x: mpmath.exp(x / 2), []),
        ("cos(2*s+1)", lambda x: mpmath.cos(2 * x + 1), []),
    ]


def gauss_legendre(n):
    """Nodes and weights on (-1, 1) by Newton's method."""
    nodes = []
    for i in range(n):
        x = mpmath.cos(mpmath.pi * (4 * i + 3) / (4 * n + 2))
        while True:
            p, q = mpf(1), x
            for j in range(1, n):
                p, q = q, ((2 * j + 1) * x * q - j * p) / (j + 1)
            slope = n * (x * q - p) / (x * x - 1)
            x -= q / slope
            if abs(q / slope) < mpf(10) ** (5 - mp.dps):
                break
        nodes.append((x, 2 / ((1 - x * x) * slope**2)))
    return nodes


def integrals(functions, cuts, rule, radius, panel):
    """Integrals of several functions of x against the normal density."""
    edges = {mpf(c) for c in cuts} | {-radius + panel * j for j in range(int(2 * radius / panel) + 1)}
    sums = [mpf(0)] * len(functions)
    for low, high in pairwise(sorted(edges)):
        half, middle = (high - low) / 2, (high + low) / 2
        for t, weight in rule:
            x = middle + half * t
            density = half * weight * mpmath.npdf(x)
            sums = [s + density * f(x) for s, f in zip(sums, functions, strict=True)]
    return sums


def agreed(functions, cuts, name, radius=16, sizes=(44, 54), scale=1):
    """The integrals by two rules; they must agree to the digits that are written."""
    coarse, fine = (integrals(functions, cuts, _rule(n), mpf(radius), mpf(1)) for n in sizes)
    if max(abs(a - b) / (scale * (1 + abs(b) / scale)) for a, b in zip(coarse, fine, strict=True)) > mpf(
        10
    ) ** (-DIGITS):
        sys.exit(f"{name}: {[mpmath.nstr(a - b, 5) for a, b in zip(coarse, fine, strict=True)]}")
    return [mpmath.nstr(v, DIGITS) if abs(v) > scale * mpf(10) ** (-DIGITS) else "0" for v in fine]


_RULES = {}


def _rule(n):
    if (n, mp.dps) not in _RULES:
        _RULES[n, mp.dps] = gauss_legendre(n)
    return _RULES[n, mp.dps]


def make():
    """All tables."""
    tables = {"products": {}, "parameters": {}, "high": {}}
    with mp.workdps(45):
        for text, f, g, cuts in products():
            terms = [lambda x, h=h, f=f, g=g: h(x, f(x), g(x)) for h in PRODUCTS]
            tables["products"][text] = agreed(terms, cuts, text)
        for text, family, breaks in with_parameters():
            rows = []
            for pair in PARAMETERS:
                a, b = (mpf(int(v.split("/")[0])) / int(v.split("/")[1]) for v in pair)
                f = family(a, b)
                terms = [lambda x, k=k, f=f: f(x) * hermite(k, x) for k in range(5)]
                rows.append(agreed(terms, breaks(a, b), f"{text} {pair}"))
            tables["parameters"][text] = rows
    with mp.workdps(110):
        scale = mpmath.sqrt(mpmath.factorial(HIGH_DEGREES[0]))
        for text, f, cuts in high_degrees():
            terms = [lambda x, k=k, f=f: f(x) * hermite(k, x) / scale for k in HIGH_DEGREES]
            tables["high"][text] = agreed(terms, cuts, text, 36, (48, 56))
    return tables


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(json.dumps(make(), indent=1) + "\n")
