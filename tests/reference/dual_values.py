"""Makes dual_values.json: E f(U) f(U') to 30 digits and more, by other formulations than the package's.

Homogeneous functions: polar coordinates, one integral over the angle. Entire functions: the trapezoidal rule in the
plane. Functions with kinks elsewhere: the conditional mean of f(U') given U in terms of the normal distribution
function, one integral over U. On the boundary t^2 = q q' one integral over z. Derivatives: numerical differentiation
of these expectations in t and q (Price's theorem).

Run with: python tests/reference/dual_values.py [ACTIVATION ...]
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

from flint import arb, ctx
from mpmath import acos, cos, erf, exp, gamma, mp, mpf, ncdf, npdf, pi, quad, sign, sin, sqrt

mp.dps = 45
ctx.prec = 200

# ---- functions ---------------------------------------------------------------------------------------------------

HOMOGENEOUS = {
    "relu": (lambda x: max(x, mpf(0)), 1),
    "leaky_relu(1/10)": (lambda x: x if x > 0 else x / 10, 1),
    "abs": (abs, 1),
    "sign": (sign, 0),
    "heaviside": (lambda x: mpf(1) if x > 0 else mpf(0) if x < 0 else mpf(1) / 2, 0),
    "max(z, 0)**2": (lambda x: x**2 if x > 0 else mpf(0), 2),
    "max(z, 0)**3": (lambda x: x**3 if x > 0 else mpf(0), 3),
}

#: entire functions twice: in balls and in mpmath
ENTIRE = {
    "erf(3*z/2)": (lambda x: (3 * x / 2).erf(), lambda x: erf(3 * x / 2)),
    "exp(z/2)": (lambda x: (x / 2).exp(), lambda x: exp(x / 2)),
    "sin(z)": (lambda x: x.sin(), sin),
    "cos(2*z + 1)": (lambda x: (2 * x + 1).cos(), lambda x: cos(2 * x + 1)),
    "exp(-z**2)": (lambda x: (-x * x).exp(), lambda x: exp(-x * x)),
    "z**3 - 2*z**2 + z - 1": (
        lambda x: x**3 - 2 * x * x + x - 1,
        lambda x: x**3 - 2 * x * x + x - 1,
    ),
    "he4": (lambda x: x**4 - 6 * x * x + 3, lambda x: x**4 - 6 * x * x + 3),
    "gelu": (lambda x: x * (-x / arb(2).sqrt()).erfc() / 2, lambda x: x * ncdf(x)),
    "z*sin(z) + exp(-z)": (lambda x: x * x.sin() + (-x).exp(), lambda x: x * sin(x) + exp(-x)),
}


def hinge(b):
    """Conditional mean of max(N(m, v) - b, 0)."""
    return lambda m, v: (m - b) * ncdf((m - b) / sqrt(v)) + sqrt(v) * npdf((m - b) / sqrt(v))


def clipped(m, v):
    return -1 + hinge(-1)(m, v) - hinge(1)(m, v)


def lower_exponential(rate, m, v):
    """Mean of exp(rate x) 1{x < 0} under N(m, v)."""
    return exp(rate * m + rate**2 * v / 2) * ncdf(-(m + rate * v) / sqrt(v))


def elu(m, v):
    return hinge(0)(m, v) + lower_exponential(1, m, v) - ncdf(-m / sqrt(v))


def laplace(m, v):
    return lower_exponential(1, m, v) + lower_exponential(1, -m, v)


def valley(m, v):
    """|x^2 - 1|, by the moments of N(m, v) on (-1, 1)."""
    r = sqrt(v)
    low, high = (-1 - m) / r, (1 - m) / r
    inside = ncdf(high) - ncdf(low)
    second = (m * m + v) * inside - r * ((1 + m) * npdf(high) - (-1 + m) * npdf(low))
    return m * m + v - 1 + 2 * (inside - second)


CONDITIONAL = {
    "max(z - 1/2, 0)": (lambda x: max(x - mpf(1) / 2, mpf(0)), hinge(mpf(1) / 2), [mpf(1) / 2]),
    "heaviside(z - 1)": (
        lambda x: mpf(1) if x > 1 else mpf(0),
        lambda m, v: ncdf((m - 1) / sqrt(v)),
        [mpf(1)],
    ),
    "max(-1, min(1, z))": (lambda x: max(mpf(-1), min(mpf(1), x)), clipped, [mpf(-1), mpf(1)]),
    "Piecewise((z, z > 0), (exp(z) - 1, True))": (lambda x: x if x > 0 else exp(x) - 1, elu, [mpf(0)]),
    "exp(-abs(z))": (lambda x: exp(-abs(x)), laplace, [mpf(0)]),
    "abs(z**2 - 1)": (lambda x: abs(x * x - 1), valley, [mpf(-1), mpf(1)]),
}

# ---- expectations ------------------------------------------------------------------------------------------------


def polar(f, degree, q, qp, t):
    theta = acos(t / sqrt(q * qp))
    half = pi / 2
    cuts = {-half, half, 3 * half, theta - half, theta + half, theta - half + 2 * pi, theta + half - 2 * pi}
    cuts = sorted(a for a in cuts if -half <= a <= 3 * half)
    radial = mpf(2) ** degree * gamma(1 + degree)
    value = quad(lambda a: f(sqrt(q) * cos(a)) * f(sqrt(qp) * cos(a - theta)), cuts)
    return radial * value / (2 * pi)


def to_arb(x):
    # a decimal may not suffice near t^2 = q q': the exact dyadic is passed on
    s, man, ex, _ = mpf(x)._mpf_
    return arb(-int(man) if s else int(man)) * arb(2) ** int(ex)


def from_arb(x):
    man, ex = x.mid().man_exp()
    return mpf(int(man)) * mpf(2) ** int(ex)


def trapezoid(f, q, qp, t):
    rest = from_arb(((to_arb(q) * to_arb(qp) - to_arb(t) ** 2) / (to_arb(q) * to_arb(qp))).sqrt())
    a, b, rho, rest = to_arb(sqrt(q)), to_arb(sqrt(qp)), to_arb(t / sqrt(q * qp)), to_arb(rest)
    # the functions here grow like exp((3 x/2)^2) at most along imaginary directions, which sets the step, and like
    # exp(-x) along the real ones, which shifts the mass by up to twice the deviation
    h = arb(float(sqrt(2 * pi**2 / (88 * (1 + 9 * (q + qp) / 2)))))
    count = int((14 + 2.2 * float(sqrt(max(q, qp)))) / float(h)) + 1
    nodes = [h * k for k in range(-count, count + 1)]
    weights = [(-x * x / 2).exp() for x in nodes]
    total = arb(0)
    for x, w in zip(nodes, weights, strict=True):
        inner = arb(0)
        for y, v in zip(nodes, weights, strict=True):
            inner += v * f(b * (rho * x + rest * y))
        total += w * f(a * x) * inner
    return from_arb(total * h * h / (2 * arb.pi()))


def conditional(f, mean, breaks, q, qp, t):
    v = qp - t * t / q
    width = sqrt(v) * q / max(abs(t), mpf(10) ** -30) / sqrt(q)
    cuts = {mpf(-16), mpf(-8), mpf(-3), mpf(0), mpf(3), mpf(8), mpf(16)}
    for b in breaks:
        cuts.add(b / sqrt(q))
        # the conditional mean changes over this width around the images of the break points
        if t != 0:
            centre = b * q / t / sqrt(q)
            cuts |= {centre + width * k for k in ((-15, -4, 0, 4, 15) if width < 0.1 else (0,))}
    cuts = sorted(c for c in cuts if -16 <= c <= 16)
    return quad(lambda x: f(sqrt(q) * x) * mean(t / sqrt(q) * x, v) * npdf(x), cuts)


def line(f, breaks, q, qp, sgn):
    cuts = {mpf(-18), mpf(-6), mpf(-2), mpf(0), mpf(2), mpf(6), mpf(18)}
    for b in breaks:
        cuts |= {b / sqrt(v) for v in (q, qp) if v > 0} | {-b / sqrt(v) for v in (q, qp) if v > 0}
    cuts = sorted(c for c in cuts if -18 <= c <= 18)
    return quad(lambda x: f(sqrt(q) * x) * f(sgn * sqrt(qp) * x) * npdf(x), cuts)


# ---- points ------------------------------------------------------------------------------------------------------


def points():
    """(kind, q, q', t): generic, nearly parallel and opposite, very unequal, equal, opposite, zero, uncorrelated."""
    found = []
    generic = [
        ("1", "1", "0.3"), ("0.25", "2", "-0.5"), ("3", "0.7", "1.1"), ("0.1", "0.1", "0.05"), ("2", "2", "-1.9"),
        ("0.6", "1.4", "0.9"), ("1.7", "0.2", "-0.1"), ("4", "0.5", "1.3"), ("0.9", "0.9", "-0.45"),
        ("1.21", "0.36", "0.6"), ("0.05", "3", "0.2"), ("2.5", "1.5", "0.01"),
    ]  # fmt: skip
    found += [("generic", *p) for p in generic]
    for kind, q, qp, angle in (
        ("nearly parallel", "1", "1", mpf("1e-4")), ("nearly parallel", "0.5", "2", mpf("1e-9")),
        ("nearly opposite", "1", "1", pi - mpf("1e-4")), ("nearly opposite", "0.5", "2", pi - mpf("1e-9")),
    ):  # fmt: skip
        t = sqrt(mpf(q) * mpf(qp)) * cos(angle)
        found.append((kind, q, qp, mp.nstr(t, 44)))
    found += [
        ("very unequal", "0.0001", "9", "0.02"), ("very unequal", "8", "0.001", "-0.05"),
        ("uncorrelated", "1.3", "0.8", "0"),
        ("equal", "1.44", "1.44", "1.44"), ("equal direction", "0.25", "4", "1"), ("opposite", "0.49", "0.49", "-0.49"),
        ("zero", "0", "1.5", "0"), ("both zero", "0", "0", "0"),
    ]  # fmt: skip
    return found


DERIVATIVES = {(1, 1): (0, 1), (2, 0): (1, 0), (2, 2): (0, 2), (3, 1): (1, 1)}


def main(only):
    """Write the table; with names given, only the rows of these activations are made anew."""
    path = Path(__file__).with_suffix(".json")
    table = [r for r in json.loads(path.read_text()) if r["activation"] not in only] if only else []
    sources = {}
    for name, (f, degree) in HOMOGENEOUS.items():
        sources[name] = (lambda q, qp, t, f=f, k=degree: polar(f, k, q, qp, t), f, [mpf(0)])
    for name, (f, plain) in ENTIRE.items():
        sources[name] = (lambda q, qp, t, f=f: trapezoid(f, q, qp, t), plain, [])
    for name, (f, mean, breaks) in CONDITIONAL.items():
        sources[name] = (
            lambda q, qp, t, f=f, mean=mean, breaks=breaks: conditional(f, mean, breaks, q, qp, t), f, breaks,
        )  # fmt: skip
    for name, (expectation, f, breaks) in sources.items():
        if only and name not in only:
            continue
        for kind, q, qp, t in points():
            # 1 - |rho| is 1e-18 at the angles 1e-9 and pi - 1e-9
            mp.dps = 80 if kind.startswith("nearly") else 45
            a, b, c = mpf(q), mpf(qp), mpf(t)
            boundary = kind in ("equal", "equal direction", "opposite", "zero", "both zero")
            value = line(f, breaks, a, b, -1 if c < 0 else 1) if boundary else expectation(a, b, c)
            if kind == "uncorrelated" and abs(value) < mpf(10) ** -40:
                value = mpf(0)  # odd functions: what is left is rounding
            table.append(
                {
                    "activation": name,
                    "kind": kind,
                    "q": q,
                    "qp": qp,
                    "t": t,
                    "i": 0,
                    "j": 0,
                    "value": mp.nstr(value, 34),
                }
            )
        print(name, flush=True)
        if name in ENTIRE:
            continue
        for q, qp, t in (("1", "0.7", "0.3"), ("0.5", "2", "-0.6")):
            for (i, j), (by_q, by_t) in DERIVATIVES.items():
                mixed = bool(by_q and by_t)
                # many evaluations of a slow expectation
                if (name in CONDITIONAL and mixed) or (q != "1" and (mixed or name in CONDITIONAL)):
                    continue
                mp.dps = 45
                at = (mpf(q), mpf(qp), mpf(t))
                value = 2**by_q * derivative(expectation, at, by_q, by_t)
                table.append(
                    {
                        "activation": name,
                        "kind": "derivative",
                        "q": q,
                        "qp": qp,
                        "t": t,
                        "i": i,
                        "j": j,
                        "value": mp.nstr(value, 34),
                    }
                )
    path.write_text(json.dumps(table, indent=0) + "\n")
    print(len(table), "values")


def derivative(expectation, at, by_q, by_t):
    """Central differences of the expectation with Richardson's extrapolation, which needs few evaluations."""
    q, qp, t = at
    if by_q == 0:
        return differences(lambda u: expectation(q, qp, u), t, by_t)
    if by_t == 0:
        return differences(lambda u: expectation(u, qp, t), q, by_q)
    return differences(lambda u: differences(lambda w: expectation(u, qp, w), t, by_t), q, by_q)


def differences(f, x, order, levels=8):
    """First or second derivative; the error of level k falls like h^(2k) with the steps h = 1/50, 1/100, ..."""
    column = []
    for k in range(levels):
        h = mpf(1) / 50 / 2**k
        value = (f(x + h) - f(x - h)) / (2 * h) if order == 1 else (f(x + h) - 2 * f(x) + f(x - h)) / h**2
        column.append(value)
    for level in range(1, levels):
        column = [(4**level * b - a) / (4**level - 1) for a, b in pairwise(column)]
    return column[0]


if __name__ == "__main__":
    main(sys.argv[1:])
