"""LaTeX of formulas, as a paper writes them.

SymPy's printer is right about structure but not about the field's names: the rising factorial and the
step function (its θ clashes with the angle) need their own forms, symbols need their LaTeX names, and long
sums must be broken over lines.
"""

from __future__ import annotations

import re
from typing import Any

import sympy
from sympy.printing.latex import LatexPrinter

from .symbols import LATEX_NAMES

#: printed characters (see :func:`printed_width`) that fit on one line of a page, roughly
LINE_WIDTH = 64

_INVISIBLE = re.compile(r"\\(frac|left|right|mathbb|operatorname|Bigl|Bigr|sqrt)|[{}^_ ]")
_COMMAND = re.compile(r"\\[A-Za-z]+")


class _PaperPrinter(LatexPrinter):
    """SymPy's LaTeX printer with the conventions of the field."""

    def _print_RisingFactorial(self, expr: Any, exp: str | None = None) -> str:
        base, order = expr.args
        text = rf"\left({self._print(base)}\right)_{{{self._print(order)}}}"
        return text if exp is None else rf"{{{text}}}^{{{exp}}}"

    def _print_Heaviside(self, expr: Any, exp: str | None = None) -> str:
        text = rf"\mathbf{{1}}\left\{{{self._print(expr.args[0])} > 0\right\}}"
        return text if exp is None else rf"{{{text}}}^{{{exp}}}"

    def _print_hermite_prob(self, expr: Any, exp: str | None = None) -> str:
        degree, argument = expr.args
        text = rf"\mathrm{{He}}_{{{self._print(degree)}}}\left({self._print(argument)}\right)"
        return text if exp is None else rf"{{{text}}}^{{{exp}}}"

    def _print_polygamma(self, expr: Any, exp: str | None = None) -> str:
        order, argument = expr.args
        name = r"\psi" if order == 0 else rf"\psi_{{{self._print(order)}}}"
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"{name}{power}\left({self._print(argument)}\right)"


_SETTINGS: dict[str, Any] = {
    "symbol_names": LATEX_NAMES,
    "inv_trig_style": "full",
    "fold_short_frac": False,
    "mul_symbol": None,
}


def latex(expr: sympy.Expr) -> str:
    r"""LaTeX of an expression, on one line.

    Examples
    --------
    >>> from sympy import Rational
    >>> from spikesym.symbolic.symbols import TAU2, D
    >>> latex(TAU2 / D)
    '\\frac{\\tau^{2}}{d}'
    >>> latex(sympy.rf(D, 2 * D))
    '\\left(d\\right)_{2 d}'
    """
    return str(_PaperPrinter(_SETTINGS).doprint(sympy.sympify(expr)))


def display(left: str, expr: sympy.Expr, width: int = LINE_WIDTH) -> str:
    r"""``left = expr`` as the inside of a display equation; long sums are broken with ``aligned``.

    Parameters
    ----------
    left : str
        LaTeX of the left-hand side.
    expr : sympy.Expr
        The right-hand side.
    width : int
        Printed length, in characters, above which a sum is broken.

    Examples
    --------
    >>> from spikesym.symbolic.symbols import A, B
    >>> display("k", A + B)
    'k = A + B'
    """
    expr = sympy.sympify(expr)
    whole = latex(expr)
    if printed_width(whole) <= width:
        return f"{left} = {whole}"
    lines = _lines(expr, width)
    if len(lines) == 1:
        return f"{left} = {whole}"
    body = " \\\\\n&\\quad ".join(lines)
    return f"\\begin{{aligned}}\n{left} &= {body}\n\\end{{aligned}}"


def printed_width(source: str) -> int:
    r"""Printed width of LaTeX source in characters, roughly: a fraction counts both its parts.

    Examples
    --------
    >>> printed_width(r"\frac{\tau^{2}}{d}")
    3
    """
    return len(_COMMAND.sub("x", _INVISIBLE.sub("", source)))


def _lines(expr: sympy.Expr, width: int) -> list[str]:
    """Break a sum, or a product with one long sum in it, into lines of about ``width`` characters."""
    if expr.is_Add:
        lines: list[str] = []
        for term in expr.as_ordered_terms():
            for piece in _signed(term, width):
                fits = lines and printed_width(lines[-1]) + printed_width(piece) <= width
                if fits:
                    lines[-1] += " " + piece
                else:
                    lines.append(piece)
        first = lines[0]
        lines[0] = first[2:] if first.startswith("+ ") else first
        return lines
    if expr.is_Mul:
        numerator, denominator = sympy.fraction(expr)
        factors = sympy.Mul.make_args(numerator)
        sums = [f for f in factors if f.is_Add]
        if sums:
            longest = max(sums, key=lambda f: len(latex(f)))
            rest = sympy.Mul(*[f for f in factors if f is not longest]) / denominator
            inside = _lines(longest, width)
            if len(inside) > 1:
                head = "" if rest == 1 else rf"\left({latex(rest)}\right)" if rest.is_Add else latex(rest)
                inside[0] = rf"{head} \Bigl[ {inside[0]}"
                inside[-1] = rf"{inside[-1]} \Bigr]"
                return inside
    return [latex(expr)]


def _signed(term: sympy.Expr, width: int) -> list[str]:
    negative = term.could_extract_minus_sign()
    lines = (
        _lines(-term if negative else term, width)
        if printed_width(latex(term)) > width
        else [latex(-term if negative else term)]
    )
    lines[0] = ("- " if negative else "+ ") + lines[0]
    return lines
