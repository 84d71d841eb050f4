"""Ball operations behind :mod:`spikesym.numeric.arb_eval`: one entry for each SymPy function.

An operation takes the flag ``analytic`` and then balls. In the complex domain it returns a non-finite
ball when ``analytic`` is set and the argument touches a branch cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from flint import acb, arb, ctx

from ..errors import CertificationError

Ball = Any
Op = Callable[..., Ball]

#: extra bits for gamma-like functions, whose relative accuracy falls with the size of the argument
_GAMMA_GUARD = 40


class NeedsComplex(Exception):
    """The expression passes through complex numbers; evaluate it in the complex domain."""


def real_part(ball: Ball) -> arb:
    """The ball as a real one (its real part in the complex domain, where it is known to be real)."""
    return ball if isinstance(ball, arb) else ball.real


def float_ball(node: sympy.Float) -> arb:
    """The exact dyadic value of a SymPy float."""
    sign, man, exp, _ = node._mpf_
    return arb(-int(man) if sign else int(man)) * arb(2) ** int(exp)


def not_a_number() -> acb:
    """The answer where a function is not analytic."""
    return acb(arb.nan(), arb.nan())


# Branch cuts: each test says whether a ball may touch the cut. ----------------------------------------------


def _cut_below(edge: int) -> Callable[[acb], bool]:
    return lambda z: z.imag.contains(0) and not z.real > edge


def cut_above(edge: int) -> Callable[[acb], bool]:
    """Test for a branch cut from ``edge`` to the right."""
    return lambda z: z.imag.contains(0) and not z.real < edge


def _cut_outside_real(z: acb) -> bool:
    return z.imag.contains(0) and not (z.real < 1 and z.real > -1)


def _cut_outside_imaginary(z: acb) -> bool:
    return z.real.contains(0) and not (z.imag < 1 and z.imag > -1)


def _guarded(op: Callable[[acb], acb], touches: Callable[[acb], bool]) -> Op:
    def wrapped(analytic: bool, z: acb) -> acb:
        return not_a_number() if analytic and touches(z) else op(z)

    return wrapped


def _raised(op: Callable[..., Ball]) -> Op:
    """The operation at a precision that makes up for the size of its arguments."""

    def wrapped(analytic: bool, *balls: Ball) -> Ball:
        sizes = [b.abs_upper() for b in balls]
        if not all(s.is_finite() for s in sizes):
            return op(*balls)
        largest = max((int(s.ceil().unique_fmpz() or 2) if s < arb(2) ** 4000 else 2) for s in sizes)
        old = ctx.prec
        ctx.prec = old + 2 * largest.bit_length() + _GAMMA_GUARD
        try:
            return op(*balls)
        finally:
            ctx.prec = old

    return wrapped


# Functions that are analytic wherever they are finite, by SymPy name and number of arguments. ---------------

_ENTIRE_OR_MEROMORPHIC = {
    **{n: n for n in ("exp", "sin", "cos", "tan", "cot", "sec", "csc", "sinh", "cosh", "tanh", "coth")},
    **{n: n for n in ("sech", "csch", "erf", "erfc", "erfi", "digamma")},
    "sinc": "sinc",
    "Si": "si",
    "Shi": "shi",
    "fresnels": "fresnel_s",
    "fresnelc": "fresnel_c",
    "airyai": "airy_ai",
    "airybi": "airy_bi",
}

#: name -> (method, test for the branch cut)
_BRANCHED: dict[str, tuple[str, Callable[[acb], bool]]] = {
    "asin": ("asin", _cut_outside_real),
    "acos": ("acos", _cut_outside_real),
    "atanh": ("atanh", _cut_outside_real),
    "atan": ("atan", _cut_outside_imaginary),
    "asinh": ("asinh", _cut_outside_imaginary),
    "acosh": ("acosh", _cut_below(1)),
    "loggamma": ("lgamma", _cut_below(0)),
    "Ei": ("ei", _cut_below(0)),
    "li": ("li", _cut_below(1)),
    "Ci": ("ci", _cut_below(0)),
    "Chi": ("chi", _cut_below(0)),
    "elliptic_k": ("elliptic_k", cut_above(1)),
    "elliptic_e": ("elliptic_e", cut_above(1)),
}


def _polygamma(n: Ball, z: Ball) -> Ball:
    value = acb(z).polygamma(acb(n))
    return value.real if isinstance(z, arb) else value


def _binomial(n: Ball, k: Ball) -> Ball:
    small = _small_integer(k)
    if small is not None:
        return (n - small + 1).rising(small) / type(n)(small + 1).gamma()
    return (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma()


def _rising(x: Ball, n: Ball) -> Ball:
    small = _small_integer(n)
    if small is not None:
        return x.rising(small)
    return (x + n).gamma() * x.rgamma()


def _small_integer(ball: Ball) -> int | None:
    value = real_part(ball)
    if isinstance(ball, acb) and ball.imag != 0:
        return None
    if not value.is_exact() or not value >= 0 or not value < 400:
        return None
    integer = value.unique_fmpz()
    return None if integer is None else int(integer)


_SHARED: dict[tuple[str, int], Op] = {
    ("gamma", 1): _raised(lambda z: z.gamma()),
    ("factorial", 1): _raised(lambda z: (z + 1).gamma()),
    ("polygamma", 2): _raised(_polygamma),
    ("binomial", 2): _raised(_binomial),
    ("RisingFactorial", 2): _raised(_rising),
    ("FallingFactorial", 2): _raised(lambda x, n: _rising(x - n + 1, n)),
    ("beta", 2): _raised(lambda a, b: a.gamma() * b.gamma() * (a + b).rgamma()),
    ("factorial2", 1): _raised(
        lambda n: (
            type(n)(2) ** (n / 2)
            * (type(n).pi() / 2) ** (((type(n).pi() * n).cos() - 1) / 4)
            * (n / 2 + 1).gamma()
        )
    ),
    ("hermite_prob", 2): lambda analytic, k, x: _hermite_of_ball(analytic, k, x),
    ("erf2", 2): lambda analytic, a, b: b.erf() - a.erf(),
}

REAL: dict[tuple[str, int], Op] = {
    **_SHARED,
    **{(name, 1): (lambda analytic, x, m=m: getattr(x, m)()) for name, m in _ENTIRE_OR_MEROMORPHIC.items()},
    **{(name, 1): (lambda analytic, x, m=m: getattr(x, m)()) for name, (m, _) in _BRANCHED.items()},
    ("loggamma", 1): _raised(lambda x: x.lgamma()),
    ("log", 1): lambda analytic, x: x.log(),
    ("elliptic_k", 1): lambda analytic, m: acb(m).elliptic_k().real,
    ("elliptic_e", 1): lambda analytic, m: acb(m).elliptic_e().real,
    ("atan2", 2): lambda analytic, y, x: arb.atan2(y, x),
    ("uppergamma", 2): _raised(lambda s, z: z.gamma_upper(s)),
    ("lowergamma", 2): _raised(lambda s, z: z.gamma_lower(s)),
    ("expint", 2): lambda analytic, s, z: z.expint(s),
    ("erfinv", 1): lambda analytic, x: x.erfinv(),
    ("erfcinv", 1): lambda analytic, x: x.erfcinv(),
    ("zeta", 1): lambda analytic, s: s.zeta(),
    ("LambertW", 1): lambda analytic, x: x.lambertw(),
    ("besselj", 2): lambda analytic, n, x: x.bessel_j(n),
    ("bessely", 2): lambda analytic, n, x: x.bessel_y(n),
    ("besseli", 2): lambda analytic, n, x: x.bessel_i(n),
    ("besselk", 2): lambda analytic, n, x: x.bessel_k(n),
    ("re", 1): lambda analytic, x: x,
    ("im", 1): lambda analytic, x: arb(0),
    ("conjugate", 1): lambda analytic, x: x,
}

COMPLEX: dict[tuple[str, int], Op] = {
    **_SHARED,
    **{(name, 1): (lambda analytic, z, m=m: getattr(z, m)()) for name, m in _ENTIRE_OR_MEROMORPHIC.items()},
    **{
        (name, 1): _guarded(lambda z, m=m: getattr(z, m)(), touches)  # type: ignore[misc]
        for name, (m, touches) in _BRANCHED.items()
    },
    ("log", 1): lambda analytic, z: z.log(analytic=analytic),
    ("asin", 1): _guarded(lambda z: _arcsine(z), _cut_outside_real),
    ("acos", 1): _guarded(lambda z: acb.pi() / 2 - _arcsine(z), _cut_outside_real),
}

#: functions of real arguments that are not analytic: enclosed on the reals, refused of a complex variable
REAL_ONLY: dict[str, Callable[..., arb]] = {
    "Abs": abs,
    "sign": lambda x: x.sgn(),
    "Heaviside": lambda x, at_zero=None: _heaviside(x, at_zero),
    "Max": lambda *xs: _fold(xs, lambda a, b: a.max(b)),
    "Min": lambda *xs: _fold(xs, lambda a, b: a.min(b)),
    "floor": lambda x: x.floor(),
    "ceiling": lambda x: x.ceil(),
}

CONSTANTS: dict[str, Callable[[], arb]] = {
    "Pi": arb.pi,
    "Exp1": arb.const_e,
    "EulerGamma": arb.const_euler,
    "Catalan": arb.const_catalan,
    "GoldenRatio": lambda: (1 + arb(5).sqrt()) / 2,
}


def _heaviside(x: arb, at_zero: arb | None) -> arb:
    if x > 0 or x < 0:
        return arb(1 if x > 0 else 0)
    if x == 0 and at_zero is not None:
        return at_zero
    return arb(0.5, 0.5) if x.is_finite() else arb.nan()


def _fold(balls: Sequence[arb], op: Callable[[arb, arb], arb]) -> arb:
    result = balls[0]
    for ball in balls[1:]:
        result = op(result, ball)
    return result


def hermite(degree: int) -> Op:
    """He_k by recurrence; Arb's physicists' polynomial would need a scaling by sqrt(2)."""

    def op(analytic: bool, x: Ball) -> Ball:
        previous, current = x * 0, x * 0 + 1
        for k in range(degree):
            previous, current = current, x * current - k * previous
        return current

    return op


def _hermite_of_ball(analytic: bool, degree: Ball, x: Ball) -> Ball:
    """He_k(x) for a degree that stands in a register."""
    k = _small_integer(degree)
    if k is None:
        raise CertificationError("hermite_prob of a degree that is no small integer")
    return hermite(k)(analytic, x)


def _arcsine(z: acb) -> acb:
    """asin, with the logarithmic form where Arb's own has no finite answer on a wide ball."""
    value = z.asin()
    if value.is_finite():
        return value
    if z.imag > 0:  # there i z and the root nearly cancel
        return -_arcsine(-z)
    return -acb(0, 1) * (acb(0, 1) * z + (1 - z * z).sqrt()).log()


def integer_power(z: Ball, n: int) -> Ball:
    """z**n; Arb's own power has no answer for a ball centred at zero.

    Examples
    --------
    >>> (arb(0, 1) ** 2).is_finite(), bool(integer_power(arb(0, 1), 2).contains(1))
    (False, True)
    """
    if n < 0:
        return 1 / integer_power(z, -n)
    if isinstance(z, acb) or z.mid() != 0:
        return z**n
    if n == 0:
        return arb(1)
    radius = arb(z.rad()) ** n
    return arb(0, radius) if n % 2 else arb(0).union(radius)


def power(node: sympy.Pow, real: bool) -> tuple[Op, tuple[sympy.Basic, ...]]:
    """Operation and operands of a power; integer and half-integer exponents get their own forms."""
    base, exponent = node.args
    if exponent.is_Integer:
        n = int(exponent)
        return (lambda analytic, z: integer_power(z, n)), (base,)
    if exponent.is_Rational and exponent.q == 2:
        n = int(exponent.p)
        if real:
            return (lambda analytic, x: _real_root_power(x, n)), (base,)
        if n == -1:
            return (lambda analytic, z: z.rsqrt(analytic=analytic)), (base,)
        return (lambda analytic, z: z.sqrt(analytic=analytic) ** n), (base,)
    if real:
        return (lambda analytic, x, y: x**y), (base, exponent)
    if not base.free_symbols and base.is_positive:
        return (lambda analytic, z, w: (z.log() * w).exp()), (base, exponent)
    return (lambda analytic, z, w: z.pow(w, analytic=analytic)), (base, exponent)


def _real_root_power(x: arb, n: int) -> arb:
    return x.rsqrt() if n == -1 else x.sqrt() ** n
