"""The names of the link and activation language: what each one means, and its float estimate.

Constants are estimated in floats before SymPy sees them, so that no constant can overflow or hang it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Integer, Rational, erf, erfc, exp, log, sqrt

from . import symbols

#: largest degree of a Hermite polynomial that has a name
MAX_HERMITE = 999


class HermiteProb(sympy.Function):
    """He_k(u), the probabilists' Hermite polynomial, kept as one node so that it can be evaluated stably.

    ``doit()`` gives the polynomial in u.

    Examples
    --------
    >>> from spikesym.symbolic.symbols import X
    >>> HermiteProb(3, X), HermiteProb(3, X).doit(), HermiteProb(3, X).diff(X)
    (he3(x), x**3 - 3*x, 3*he2(x))
    """

    nargs = 2

    @classmethod
    def eval(cls, k: sympy.Expr, u: sympy.Expr) -> sympy.Expr | None:
        """Degrees 0 and 1 are written out, and values at numbers."""
        if k == 0:
            return Integer(1)
        if k == 1:
            return u
        return hermite_polynomial(int(k), u) if k.is_Integer and u.is_number else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """He_k' = k He_{k-1}."""
        k, u = self.args
        return k * HermiteProb(k - 1, u)

    def doit(self, **hints: Any) -> sympy.Expr:
        """The polynomial."""
        k, u = self.args
        return hermite_polynomial(int(k), u)

    def _sympystr(self, printer: Any) -> str:
        return f"he{self.args[0]}({printer._print(self.args[1])})"

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[1].is_extended_real


def hermite_polynomial(k: int, u: sympy.Expr) -> sympy.Expr:
    """He_k(u) written out: sum over j of (-1)^j k! / (2^j j! (k-2j)!) u^(k-2j).

    Examples
    --------
    >>> hermite_polynomial(4, symbols.X)
    x**4 - 6*x**2 + 3
    """
    terms, coefficient = [], 1
    for j in range(k // 2 + 1):
        terms.append(coefficient * u ** (k - 2 * j))
        coefficient = -coefficient * (k - 2 * j) * (k - 2 * j - 1) // (2 * (j + 1))
    return sympy.Add(*terms)


@dataclass(frozen=True)
class Entry:
    """One function of the language.

    ``least`` and ``most`` bound the number of arguments; ``build`` makes the SymPy expression;
    ``estimate`` gives a float for float arguments (it may raise ValueError or OverflowError).
    """

    build: Callable[..., sympy.Expr]
    estimate: Callable[..., float]
    least: int = 1
    most: int = 1


#: slope of ``leaky_relu`` where none is given
_LEAKY_SLOPE = Rational(1, 100)


def _phi(u: sympy.Expr) -> sympy.Expr:
    return (1 + erf(u / sqrt(2))) / 2


def _sigmoid(u: sympy.Expr) -> sympy.Expr:
    return 1 / (1 + exp(-u))


def _leaky(u: sympy.Expr, slope: sympy.Expr = _LEAKY_SLOPE) -> sympy.Expr:
    return slope * u + (1 - slope) * sympy.Max(0, u)


def _phi_float(u: float) -> float:
    return math.erfc(-u / math.sqrt(2)) / 2


def _sigmoid_float(u: float) -> float:
    return (1 + math.tanh(u / 2)) / 2


def _sign_float(u: float) -> float:
    return float((u > 0) - (u < 0))


_UNARY: dict[tuple[str, ...], tuple[Callable[..., sympy.Expr], Callable[..., float]]] = {
    ("identity", "linear"): (lambda u: u, lambda u: u),
    ("relu",): (lambda u: sympy.Max(0, u), lambda u: max(0.0, u)),
    ("abs", "Abs"): (sympy.Abs, abs),
    ("sign",): (sympy.sign, _sign_float),
    ("heaviside", "Heaviside", "step"): (sympy.Heaviside, lambda u: (1 + _sign_float(u)) / 2),
    ("erf",): (erf, math.erf),
    ("erfc",): (erfc, math.erfc),
    ("Phi",): (_phi, _phi_float),
    ("tanh",): (sympy.tanh, math.tanh),
    ("sigmoid", "logistic"): (_sigmoid, _sigmoid_float),
    ("softplus",): (lambda u: log(1 + exp(u)), lambda u: max(u, 0.0) + math.log1p(math.exp(-abs(u)))),
    ("gelu",): (lambda u: u * _phi(u), lambda u: u * _phi_float(u)),
    ("swish", "silu"): (lambda u: u * _sigmoid(u), lambda u: u * _sigmoid_float(u)),
    ("elu",): (
        lambda u: sympy.Piecewise((u, u > 0), (exp(u) - 1, True)),
        lambda u: u if u > 0 else math.expm1(u),
    ),
    ("hardtanh", "hard_tanh"): (
        lambda u: sympy.Max(-1, sympy.Min(1, u)),
        lambda u: max(-1.0, min(1.0, u)),
    ),
    ("sin",): (sympy.sin, math.sin),
    ("cos",): (sympy.cos, math.cos),
    ("tan",): (sympy.tan, math.tan),
    ("exp",): (exp, math.exp),
    ("log", "ln"): (log, math.log),
    ("sqrt",): (sqrt, math.sqrt),
    ("sinh",): (sympy.sinh, math.sinh),
    ("cosh",): (sympy.cosh, math.cosh),
    ("atan", "arctan"): (sympy.atan, math.atan),
    ("asin", "arcsin"): (sympy.asin, math.asin),
    ("acos", "arccos"): (sympy.acos, math.acos),
    ("asinh", "arcsinh"): (sympy.asinh, math.asinh),
}

FUNCTIONS: dict[str, Entry] = {name: Entry(*pair) for names, pair in _UNARY.items() for name in names}
FUNCTIONS["leaky_relu"] = Entry(_leaky, lambda u, a=0.01: u if u > 0 else a * u, 1, 2)
for _name in ("max", "Max"):
    FUNCTIONS[_name] = Entry(sympy.Max, max, 2, 20)
for _name in ("min", "Min"):
    FUNCTIONS[_name] = Entry(sympy.Min, min, 2, 20)

CONSTANTS: dict[str, tuple[sympy.Expr, float]] = {"pi": (sympy.pi, math.pi)}

#: functions that stand for themselves applied to the variable when they are the whole expression
BARE = frozenset(name for names in _UNARY for name in names) | {"leaky_relu"}

#: names of variables; the one declared counts, and ``x`` is its synonym
VARIABLES = ("s", "z", "x")

GREEK = frozenset(
    (
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu", "xi",
        "omicron", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    )
)  # fmt: skip

#: a free parameter must not be mistaken for a symbol of the theory that meets it in the same formula
TAKEN = frozenset(
    {"d", "n", "m", "k", "eta", "zeta", "t", "q", "rho"}
    | {
        str(v)
        for v in vars(symbols).values()
        if isinstance(v, sympy.Symbol) and v == sympy.Symbol(v.name, real=True)
    }
)


def hermite_degree(name: str) -> int | None:
    """The k of a name ``hek``, or None; k may exceed :data:`MAX_HERMITE`."""
    if name.startswith("he") and name[2:].isascii() and name[2:].isdigit():
        return int(name[2:]) if len(name) <= 12 else 10**9
    return None
