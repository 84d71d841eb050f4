"""Three moments E g, E g x, E g (x^2 - 1) of links on which SymPy's ``integrate`` fails, hangs or is right.

The values were found elsewhere, by two rules, to 20 digits. This file checks each again by mpmath's split
tanh-sinh quadrature and writes them to ``golden_links.json``; nothing of the package is imported.
"""

import json
import sys
from pathlib import Path

import mpmath

#: SymPy text, mpmath function, break points, the three moments
LINKS = [
    ("Max(0,x)", lambda x: max(x, 0), [0], "0.39894228040143267794", "0.5", "0.39894228040143267794"),
    (
        "Piecewise((x,x>0),(0,True))",
        lambda x: max(x, 0),
        [0],
        "0.39894228040143267794",
        "0.5",
        "0.39894228040143267794",
    ),
    ("x*Heaviside(x)", lambda x: max(x, 0), [0], "0.39894228040143267794", "0.5", "0.39894228040143267794"),
    ("Abs(x)", abs, [0], "0.79788456080286535588", "0", "0.79788456080286535588"),
    (
        "Abs(x-1)",
        lambda x: abs(x - 1),
        [1],
        "1.1666309411753725968",
        "-0.68268949213708589717",
        "0.4839414490382866996",
    ),
    ("sign(x)", mpmath.sign, [0], "0", "0.79788456080286535588", "0"),
    (
        "sign(x-1)",
        lambda x: mpmath.sign(x - 1),
        [1],
        "-0.68268949213708589717",
        "0.4839414490382866996",
        "0.4839414490382866996",
    ),
    (
        "Max(0,x-1)",
        lambda x: max(x - 1, 0),
        [1],
        "0.083315470587686298383",
        "0.15865525393145705141",
        "0.2419707245191433498",
    ),
    (
        "Max(0,x-Rational(1,2))",
        lambda x: max(x - mpmath.mpf(1) / 2, 0),
        [0.5],
        "0.19779655740130602959",
        "0.30853753872598689636",
        "0.35206532676429947777",
    ),
    ("Max(-1,Min(1,x))", lambda x: max(-1, min(1, x)), [-1, 1], "0", "0.68268949213708589717", "0"),
    (
        "Piecewise((-1,x<-1),(x,x<1),(1,True))",
        lambda x: max(-1, min(1, x)),
        [-1, 1],
        "0",
        "0.68268949213708589717",
        "0",
    ),
    (
        "Heaviside(x)*Heaviside(1-x)",
        lambda x: 1 if 0 < x < 1 else 0,
        [0, 1],
        "0.34134474606854294859",
        "0.15697155588228932814",
        "-0.2419707245191433498",
    ),
    (
        "Heaviside(x+1)*Heaviside(1-x)",
        lambda x: 1 if -1 < x < 1 else 0,
        [-1, 1],
        "0.68268949213708589717",
        "0",
        "-0.4839414490382866996",
    ),
    (
        "Abs(x**2-1)",
        lambda x: abs(x * x - 1),
        [-1, 1],
        "0.96788289807657339919",
        "0",
        "1.2050078276048032097",
    ),
    (
        "sign(x**2-1)",
        lambda x: mpmath.sign(x * x - 1),
        [-1, 1],
        "-0.36537898427417179434",
        "0",
        "0.96788289807657339919",
    ),
    ("erf(x)", mpmath.erf, [], "0", "0.65147001587055989545", "0"),
    (
        "erf(x+1)",
        lambda x: mpmath.erf(x + 1),
        [],
        "0.58578382175747488335",
        "0.4667986642712595644",
        "-0.31119910951417304293",
    ),
    (
        "x*(1+erf(x/sqrt(2)))/2",
        lambda x: x * mpmath.ncdf(x),
        [],
        "0.28209479177387814347",
        "0.5",
        "0.42314218766081721521",
    ),
    ("tanh(x)", mpmath.tanh, [], "0", "0.60570550960215882558", "0"),
    ("1/(1+exp(-x))", lambda x: 1 / (1 + mpmath.exp(-x)), [], "0.5", "0.20662096414190703726", "0"),
    (
        "log(1+exp(x))",
        lambda x: mpmath.log1p(mpmath.exp(x)),
        [],
        "0.80605918334743978453",
        "0.5",
        "0.20662096414190703726",
    ),
    ("sin(x)", mpmath.sin, [], "0", "0.6065306597126334236", "0"),
    (
        "exp(x/2)",
        lambda x: mpmath.exp(x / 2),
        [],
        "1.1331484530668263168",
        "0.56657422653341315841",
        "0.28328711326670657921",
    ),
    (
        "Abs(cos(x))",
        lambda x: abs(mpmath.cos(x)),
        [(k + mpmath.mpf(1) / 2) * mpmath.pi for k in range(-7, 7)],
        "0.694029376107642706",
        "0",
        "-0.22929673326262049772",
    ),
    ("1/(1+x**2)", lambda x: 1 / (1 + x * x), [], "0.65567954241879847154", "0", "-0.31135908483759694309"),
    (
        "exp(-Abs(x))",
        lambda x: mpmath.exp(-abs(x)),
        [0],
        "0.52315658373024674336",
        "0",
        "-0.27472797707261861252",
    ),
    (
        "erf(Abs(x))",
        lambda x: mpmath.erf(abs(x)),
        [0],
        "0.60817344796939272983",
        "0",
        "0.30010543871903535652",
    ),
    (
        "Max(x,x/10)",
        lambda x: max(x, x / 10),
        [0],
        "0.35904805236128941015",
        "0.55",
        "0.35904805236128941015",
    ),
    (
        "Max(x,0.1*x)",
        lambda x: max(x, x / 10),
        [0],
        "0.35904805236128941015",
        "0.55",
        "0.35904805236128941015",
    ),
    (
        "sqrt(Abs(x))",
        lambda x: mpmath.sqrt(abs(x)),
        [0],
        "0.82217895866245855234",
        "0",
        "0.41108947933122927617",
    ),
    (
        "exp(-0.3*x**2)",
        lambda x: mpmath.exp(-3 * x * x / 10),
        [],
        "0.790569415042094833",
        "0",
        "-0.29646353064078556237",
    ),
    ("hermite_prob(3,x)*hermite_prob(3,x)", lambda x: (x**3 - 3 * x) ** 2, [], "6", "0", "36"),
]


def make():
    """The table, each value checked to all its digits."""
    table = {}
    with mpmath.workdps(35):
        for text, function, cuts, *values in LINKS:
            ends = sorted({mpmath.mpf(c) for c in cuts} | {mpmath.mpf(c) for c in range(-20, 21, 2)})
            for k, (value, weight) in enumerate(
                zip(values, (lambda x: 1, lambda x: x, lambda x: x * x - 1), strict=True)
            ):
                found = mpmath.quad(lambda x: function(x) * weight(x) * mpmath.npdf(x), ends)  # noqa: B023
                if abs(found - mpmath.mpf(value)) > max(1, abs(found)) * mpmath.mpf("0.6e-18"):
                    sys.exit(f"{text}, moment {k}: {mpmath.nstr(found, 22)} instead of {value}")
            table[text] = values
    return table


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(json.dumps(make(), indent=1) + "\n")
