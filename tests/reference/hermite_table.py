"""Reference values E[g(s) He_k(s)], k = 0, ..., 11, to 40 digits, by split tanh-sinh quadrature in mpmath.

Written against the definitions of the functions, with their break points typed by hand: nothing of the
package is imported. Two step sizes must agree. Running this file writes ``hermite_table.json`` beside it.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import mpmath
from mpmath import mp, mpf

DEGREES = 12
DIGITS = 40
_RADIUS = 22
_PANEL = 2


def _step(x):
    return mpf(1) if x > 0 else mpf(0)


def _phi(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _cuts_of_cosine():
    cuts, k = [], 0
    while (k + 0.5) * mpmath.pi < _RADIUS:
        cuts += [(k + mpf(1) / 2) * mpmath.pi, -(k + mpf(1) / 2) * mpmath.pi]
        k += 1
    return cuts


def links():
    """Text in the package's language, the function in mpmath, its break points."""
    one, two, three = mpf(1), mpf(2), mpf(3)
    tenth = one / 10
    return [
        ("relu", lambda x: max(x, 0), [0]),
        ("leaky_relu(s, 1/10)", lambda x: max(x, x * tenth), [0]),
        ("abs(s)", abs, [0]),
        ("abs(s-1)", lambda x: abs(x - 1), [1]),
        ("sign(s)", mpmath.sign, [0]),
        ("sign(s-1)", lambda x: mpmath.sign(x - 1), [1]),
        ("sign(s**2-1)", lambda x: mpmath.sign(x * x - 1), [-1, 1]),
        ("heaviside(s)", _step, [0]),
        ("heaviside(s-3/10)", lambda x: _step(x - 3 * tenth), [3 * tenth]),
        ("heaviside(s)*heaviside(1-s)", lambda x: _step(x) * _step(1 - x), [0, 1]),
        ("heaviside(s+1)*heaviside(1-s)", lambda x: _step(x + 1) * _step(1 - x), [-1, 1]),
        ("max(0, s-1)", lambda x: max(x - 1, 0), [1]),
        ("max(0, s-1/2)", lambda x: max(x - one / 2, 0), [one / 2]),
        ("max(-1, min(1, s))", lambda x: max(-1, min(one, x)), [-1, 1]),
        ("relu(s)**2", lambda x: max(x, 0) ** 2, [0]),
        ("relu(s)**3 - relu(s-1)", lambda x: max(x, 0) ** 3 - max(x - 1, 0), [0, 1]),
        ("abs(s**2-1)", lambda x: abs(x * x - 1), [-1, 1]),
        ("abs(s**3-3*s)", lambda x: abs(x**3 - 3 * x), [-mpmath.sqrt(3), 0, mpmath.sqrt(3)]),
        ("max(s, s**2-2)", lambda x: max(x, x * x - 2), [-1, 2]),
        ("sqrt(abs(s))", lambda x: mpmath.sqrt(abs(x)), [0]),
        ("abs(s)**(3/2)", lambda x: abs(x) ** (three / 2), [0]),
        ("abs(s)**(-1/3)", lambda x: abs(x) ** (-one / 3), [0]),
        ("log(abs(s))", lambda x: mpmath.log(abs(x)), [0]),
        ("log(1+s**2)", lambda x: mpmath.log1p(x * x), []),
        ("erf(s)", mpmath.erf, []),
        ("erf(s+1)", lambda x: mpmath.erf(x + 1), []),
        ("erf(abs(s))", lambda x: mpmath.erf(abs(x)), [0]),
        ("Phi(2*s-1)", lambda x: _phi(2 * x - 1), []),
        ("gelu", lambda x: x * _phi(x), []),
        ("tanh(s)", mpmath.tanh, []),
        ("tanh(3*s)-s/2", lambda x: mpmath.tanh(3 * x) - x / 2, []),
        ("tanh(2*s+1)", lambda x: mpmath.tanh(2 * x + 1), []),
        ("sigmoid(s)", lambda x: 1 / (1 + mpmath.exp(-x)), []),
        ("sigmoid(4*s-1)", lambda x: 1 / (1 + mpmath.exp(1 - 4 * x)), []),
        ("softplus(s)", lambda x: mpmath.log1p(mpmath.exp(x)), []),
        ("softplus(3*s)/3", lambda x: mpmath.log1p(mpmath.exp(3 * x)) / 3, []),
        ("swish(s)", lambda x: x / (1 + mpmath.exp(-x)), []),
        ("sin(s)", mpmath.sin, []),
        ("cos(2*s+1)", lambda x: mpmath.cos(2 * x + 1), []),
        ("abs(cos(s))", lambda x: abs(mpmath.cos(x)), _cuts_of_cosine()),
        ("sin(s)*heaviside(s)", lambda x: mpmath.sin(x) * _step(x), [0]),
        ("exp(s/2)", lambda x: mpmath.exp(x / 2), []),
        ("exp(-abs(s))", lambda x: mpmath.exp(-abs(x)), [0]),
        ("exp(-3*s**2/10)", lambda x: mpmath.exp(-3 * tenth * x * x), []),
        ("exp(s**2/8)", lambda x: mpmath.exp(x * x / 8), []),
        ("s*exp(-s**2/2)", lambda x: x * mpmath.exp(-x * x / 2), []),
        ("1/(1+s**2)", lambda x: 1 / (1 + x * x), []),
        ("atan(2*s)", lambda x: mpmath.atan(2 * x), []),
        ("sqrt(1+s**2)", lambda x: mpmath.sqrt(1 + x * x), []),
        ("exp(sin(2*s))", lambda x: mpmath.exp(mpmath.sin(2 * x)), []),
        ("elu(s)", lambda x: x if x > 0 else mpmath.expm1(x), [0]),
        ("he3(s)**2", lambda x: (x**3 - 3 * x) ** 2, []),
        ("2*s**2+3*s+4*sin(2*s)", lambda x: 2 * x * x + 3 * x + 4 * mpmath.sin(two * x), []),
    ]


def moments(function, cuts, step):
    """E[f He_k] for all degrees by the trapezoidal rule in t after x = tanh(pi/2 sinh t), panel by panel."""
    ends = sorted({mpf(c) for c in cuts} | {mpf(c) for c in range(-_RADIUS, _RADIUS + 1, _PANEL)})
    sums = [mpf(0)] * DEGREES
    reach = int(mpf(48) / 10 / step)
    rule = []
    for i in range(-reach, reach + 1):
        t = i * step
        u = mpmath.pi / 2 * mpmath.sinh(t)
        # the distance to the nearer end, without cancellation
        gap = 1 / (mpmath.exp(abs(u)) * mpmath.cosh(u))
        rule.append((i, gap, step * mpmath.pi / 2 * mpmath.cosh(t) / mpmath.cosh(u) ** 2))
    for low, high in pairwise(ends):
        half = (high - low) / 2
        for i, gap, weight in rule:
            x = low + half * gap if i < 0 else high - half * gap
            if not low < x < high:
                continue
            term = half * weight * function(x) * mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi)
            previous, current = mpf(0), term
            for k in range(DEGREES):
                sums[k] += current
                previous, current = current, x * current - k * previous
    return sums


def make():
    """The table, after comparing two step sizes."""
    table = {}
    with mp.workdps(60):
        for text, function, cuts in links():
            coarse, fine = (moments(function, cuts, mpf(1) / n) for n in (64, 88))
            scale = max(abs(v) / mpmath.sqrt(mpmath.factorial(k)) for k, v in enumerate(fine))
            for k, (a, b) in enumerate(zip(coarse, fine, strict=True)):
                if abs(a - b) > scale * mpmath.sqrt(mpmath.factorial(k)) * mpf(10) ** (-DIGITS - 4):
                    sys.exit(f"{text}: degree {k}: {mpmath.nstr(a - b, 5)}")
            values = []
            for k, v in enumerate(fine):
                zero = abs(v) < scale * mpmath.sqrt(mpmath.factorial(k)) * mpf(10) ** (-DIGITS - 4)
                values.append("0" if zero else mpmath.nstr(v, DIGITS))
            table[text] = values
    return table


if __name__ == "__main__":
    path = Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(make(), indent=1) + "\n")
