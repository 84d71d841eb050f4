"""``spikesym spectrum``: every eigenvalue and eigenfunction of k1 up to a degree, with enclosures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from flint import arb, ctx, fmpq

from ..errors import InputError
from ..model import Model, Number, exact_integer
from ..numeric.arb_eval import evaluate
from ..numeric.digits import certain_text, distance_text, is_short
from ..numeric.spectrum import Chain, Encloser, solve_chain
from ..numeric.sphere import multiplicity, multiplicity_text
from ..symbolic.perturbation import first_order
from ..symbolic.printing import display
from ..symbolic.spectrum import linear_eigenvalues, top_block
from ..symbolic.symbols import A as at_A
from ..symbolic.symbols import B as at_B
from ..symbolic.symbols import D
from .spectrum_inputs import activation, dimension, strength

#: largest degree listed
MOST_DEGREES = 300
_GUARD = 3


@dataclass(frozen=True)
class Eigenvalue:
    """One eigenvalue of T f(x) = E_x'[k1(x, x') f(x')], x' ~ N(0, I_d), with its eigenfunctions.

    Attributes
    ----------
    sector, degree : int
        Degree under the rotations that fix w*, and the harmonic it grows from as B -> 0.
    multiplicity : int
        N(d - 1, sector).
    value, base, ratio, first_order : arb
        Enclosures of the eigenvalue, of its value at B = 0 and this A, of their ratio, and of the ratio to first
        order in B/A.
    composition : dict
        Degree -> enclosure of the squared weight on the normalised harmonic |x| Y_{degree,sector} / sqrt(d).
    rest : arb
        Total weight of the degrees not listed.
    truncation : int
        Largest degree kept; 0 where nothing is truncated.
    """

    sector: int
    degree: int
    multiplicity: int
    value: arb
    base: arb
    ratio: arb
    first_order: arb
    composition: dict[int, arb]
    rest: arb
    truncation: int

    def to_json(self, digits: int) -> dict[str, Any]:
        """One entry of ``eigenvalues``; ``radius`` bounds the distance of the printed value from the eigenvalue."""
        value = certain_text(self.value, digits)
        return {
            "sector": self.sector,
            "degree": self.degree,
            "value": value,
            "radius": distance_text(self.value, value),
            "multiplicity": multiplicity_text(self.multiplicity),
            "base": certain_text(self.base, digits),
            "ratio": certain_text(self.ratio, digits),
            "first_order": certain_text(self.first_order, digits),
            "composition": {str(k): certain_text(w, digits) for k, w in self.composition.items()},
            "composition_rest": f"{max(float(self.rest.upper()), 0.0):.1e}",
            "truncation": self.truncation,
        }


@dataclass(frozen=True)
class Spectrum:
    """What ``spikesym spectrum`` prints: the eigenvalues by sector and degree.

    Attributes
    ----------
    d : int
    A, B : arb
    eigenvalues : tuple of Eigenvalue
        Sector by sector, degree by degree; degrees with eigenvalue zero are left out.
    null_degrees : tuple of int
        Degrees up to the largest asked for whose harmonics the kernel maps to zero.
    digits : int
        Accuracy they were computed for.
    warnings : tuple of str
    """

    d: int
    A: arb
    B: arb
    eigenvalues: tuple[Eigenvalue, ...]
    null_degrees: tuple[int, ...]
    digits: int
    warnings: tuple[str, ...] = ()

    def to_json(self, digits: int | None = None) -> dict[str, Any]:
        """The document of ``spikesym spectrum --json``; at most the digits it was computed for."""
        digits = self._digits(digits)
        return {
            "d": self.d,
            "A": certain_text(self.A, digits),
            "B": certain_text(self.B, digits),
            "eigenvalues": [e.to_json(digits) for e in self.eigenvalues],
            "null_degrees": list(self.null_degrees),
            "warnings": list(self.warnings),
        }

    def text(self, digits: int | None = None) -> str:
        """A table for a terminal of 100 columns (at 15 digits)."""
        digits = self._digits(digits)
        width = digits + 7
        head = (
            f"{'l':>3} {'degree':>6} {'multiplicity':>12}  {'eigenvalue':<{width}}{'ratio to B = 0':<{width}}"
        )
        lines = [
            f"spectrum of k1 at d = {self.d}, A = {certain_text(self.A, digits)}, B = {certain_text(self.B, digits)}",
            "",
            head + f"{'first order':<13}largest weights",
        ]
        for e in self.eigenvalues:
            count = multiplicity_text(e.multiplicity)
            count = count if len(count) <= 12 else f"{count[0]}.{count[1:4]}e{len(count) - 1}"
            row = f"{e.sector:>3} {e.degree:>6} {count:>12}  {certain_text(e.value, digits):<{width}}"
            row += f"{certain_text(e.ratio, digits):<{width}}{certain_text(e.first_order, 7):<13}"
            lines.append(row + ", ".join(f"Y_{k} {w}" for k, w in _largest(e, 2)))
        lines.append("")
        if self.null_degrees:
            lines.append(
                f"degrees {', '.join(map(str, self.null_degrees))}: eigenvalue 0 (null space of the kernel)"
            )
        kept = {e.sector: e.truncation for e in self.eigenvalues if e.truncation}
        if kept:
            lines.append("largest degree kept: " + ", ".join(f"{t} in sector {s}" for s, t in kept.items()))
        return "\n".join(lines + [f"note: {w}" for w in self.warnings]).rstrip()

    def latex(self) -> str:
        """The exact linear eigenvalues and entries of the top block, and a table of the eigenvalues."""
        linear, block = linear_eigenvalues(), top_block()
        rows = [
            f"{e.sector} & {e.degree} & {_latex_number(certain_text(e.value, min(self.digits, 15)))} & "
            f"{_latex_number(certain_text(e.ratio, min(self.digits, 15)))} \\\\"
            for e in self.eigenvalues
        ]
        formulas = [
            display(r"\lambda(\psi_{\star})", linear["psi_star"]),
            display(r"\lambda(\psi_{\perp})", linear["psi_perp"]),
            *(display(f"G_{{{name[2:]}}}", entry) for name, entry in block.items()),
        ]
        body = [f"\\begin{{equation*}}\n{formula}\n\\end{{equation*}}" for formula in formulas]
        table = [
            r"\begin{equation*}",
            r"\begin{array}{rrll}",
            r"l & \ell & \lambda & \lambda/\lambda(B=0) \\",
            r"\hline",
        ]
        return "\n".join([*body, *table, *rows, r"\end{array}", r"\end{equation*}"])

    def table(self) -> Any:
        """One row for each eigenvalue: a pandas DataFrame where pandas is installed, else a list of dicts."""
        rows = [
            {
                "sector": e.sector,
                "degree": e.degree,
                "multiplicity": e.multiplicity,
                "value": float(e.value),
                "base": float(e.base),
                "ratio": float(e.ratio),
                "first_order": float(e.first_order),
                "composition": {k: float(w) for k, w in e.composition.items()},
            }
            for e in self.eigenvalues
        ]
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.DataFrame(rows)

    def _digits(self, digits: int | None) -> int:
        return self.digits if digits is None else min(digits, self.digits)


def spectrum(
    model: Model | None = None,
    *,
    d: int | None = None,
    A: Number | None = None,
    B: Number | None = None,
    degrees: int = 8,
    sectors: int = 2,
    digits: int = 15,
) -> Spectrum:
    """Eigenvalues of k1 on x ~ N(0, I_d), with k1's features w ~ N(0, Gamma/d), Gamma = A I + B w* w*^T.

    Parameters
    ----------
    model : Model, optional
        Its d and activation; and, with sizes and without ``A`` and ``B``, its A and B (exact where known).
    d : int, optional
        Input dimension, at least 2; in place of the model's.
    A, B : number, optional
        Both or neither; A > 0 and -A < B <= 10^6 A d.
    degrees : int
        Largest harmonic degree listed.
    sectors : int
        Number of sectors l = 0, 1, ... (degree under the rotations that fix w*); the circle d = 2 has two.
    digits : int
        Relative accuracy of the eigenvalues. Where the harmonics kept cannot give it, fewer digits are printed,
        and a warning says so.

    Raises
    ------
    InputError
        For sizes out of range, A without B, and an activation that is not p z + q |z|.
    CertificationError
        When not even 4 digits can be had: the eigenfunctions spread over too many harmonics (B/(A d) above
        about 1).

    Examples
    --------
    >>> found = spectrum(d=1000, A=1, B=5, degrees=2)
    >>> for e in found.to_json()["eigenvalues"]:
    ...     print(e["sector"], e["degree"], e["value"], e["ratio"])
    0 0 0.16003269179995 1.00501242600914
    0 1 0.0015 6
    0 2 5.52880575482285e-6 34.790623187388
    1 1 0.00025 1
    1 2 9.39628487288196e-7 5.91271643227164
    """
    d = dimension(model, d)
    degrees = exact_integer(degrees, "--degrees", 0)
    sectors = exact_integer(sectors, "--sectors", 1)
    digits = exact_integer(digits, "--digits", 1)
    if degrees > MOST_DEGREES:
        raise InputError(
            f"must be at most {MOST_DEGREES}, got {degrees}", "--degrees", "ask for fewer degrees"
        )
    odd, even = activation(model)
    warnings: list[str] = []
    a, b = strength(model, A, B, d, warnings)
    rows: list[Eigenvalue] = []
    with ctx.workprec(_bits(digits)):
        for sector in range(min(sectors, degrees + 1, 2 if d == 2 else sectors)):
            rows.extend(_sector(d, sector, a, b, odd, even, degrees, digits))
        shown_a, shown_b = a(ctx.prec), b(ctx.prec)
    short = [f"({e.sector}, {e.degree})" for e in rows if is_short(e.value, digits)]
    if short:
        warnings.append(
            f"fewer than {digits} digits are certain for (sector, degree) {', '.join(short)}: B/(A d) is large; "
            "numbers are printed as far as they are certain"
        )
    null = [
        ell
        for ell in range(degrees + 1)
        if (ell % 2 and (ell > 1 or odd == 0)) or (ell % 2 == 0 and even == 0)
    ]
    return Spectrum(d, shown_a, shown_b, tuple(rows), tuple(null), digits, tuple(warnings))


# ---- one sector ------------------------------------------------------------------------------------------------


def _sector(
    d: int,
    sector: int,
    a: Encloser,
    b: Encloser,
    odd: sympy.Expr,
    even: sympy.Expr,
    degrees: int,
    digits: int,
) -> Iterator[Eigenvalue]:
    """The non-zero eigenvalues of one sector in order of degree."""
    copies = multiplicity(sector, d - 1)
    found: list[Eigenvalue] = []
    if sector <= 1 <= degrees and odd != 0:
        found.append(_linear(d, sector, copies, a, b, odd))
    if even != 0:
        chain = solve_chain(d, sector, lambda bits: b(bits) / a(bits), degrees, digits + _GUARD)
        # even part q |z|: the ReLU has q = 1/2
        factor = a(ctx.prec) * evaluate(4 * even**2, ctx.prec)
        found.extend(
            _from_chain(chain, i, copies, factor, b(ctx.prec) / a(ctx.prec), digits)
            for i in range(len(chain.degrees))
        )
    yield from sorted(found, key=lambda e: e.degree)


def _linear(d: int, sector: int, copies: int, a: Encloser, b: Encloser, odd: sympy.Expr) -> Eigenvalue:
    formula = linear_eigenvalues()["psi_star" if sector == 0 else "psi_perp"] * (2 * odd) ** 2
    value, base = (evaluate(f, ctx.prec, {D: d, at_A: a, at_B: b}) for f in (formula, formula.subs(at_B, 0)))
    ratio = 1 + b(ctx.prec) / a(ctx.prec) if sector == 0 else arb(1)
    return Eigenvalue(sector, 1, copies, value, base, ratio, ratio, {1: arb(1)}, arb(0), 0)


def _from_chain(chain: Chain, i: int, copies: int, factor: arb, ratio: arb, digits: int) -> Eigenvalue:
    degree = chain.degrees[i]
    slope = first_order(degree, chain.sector, sympy.Integer(chain.d))
    composition, rest = _listed(chain.weights[i], digits)
    return Eigenvalue(
        sector=chain.sector,
        degree=degree,
        multiplicity=copies,
        value=chain.values[i] * factor,
        base=chain.base[i] * factor,
        ratio=chain.values[i] / chain.base[i],
        first_order=1 + ratio * fmpq(int(slope.p), int(slope.q)),
        composition=composition,
        rest=rest,
        truncation=chain.truncation,
    )


def _listed(weights: dict[int, arb], digits: int) -> tuple[dict[int, arb], arb]:
    """The weights of which a digit is certain and that are not below the last digit of 1, and what is left."""
    smallest = arb(10) ** (-digits - 1)
    listed = {k: w for k, w in weights.items() if w > smallest and w.rel_accuracy_bits() > 4}
    rest = arb(1)
    for w in listed.values():
        rest -= w
    return listed, rest


def _largest(e: Eigenvalue, count: int) -> list[tuple[int, str]]:
    chosen = sorted(e.composition.items(), key=lambda item: -float(item[1]))[:count]
    return [(k, certain_text(w, 6)) for k, w in chosen if w > 0]


def _bits(digits: int) -> int:
    return 4 * (digits + _GUARD) + 64


def _latex_number(text: str) -> str:
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa} \times 10^{{{int(exponent)}}}" if e else mantissa
