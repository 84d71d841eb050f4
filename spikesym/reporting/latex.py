"""LaTeX documents from finished formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pylatexenc.latexencode import UnicodeToLatexEncoder

from ..symbolic.printing import LINE_WIDTH, display, printed_width

if TYPE_CHECKING:
    import sympy

    from ..results.registry import Statement

_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage[utf8]{inputenc}
\usepackage[margin=2cm]{geometry}
\usepackage{amsmath,amssymb,mathtools,graphicx}
\allowdisplaybreaks
% a line that cannot be broken is shrunk to the page
\newcommand{\fitline}[1]{\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{$\displaystyle #1$}}
"""

_ENCODER = UnicodeToLatexEncoder(unknown_char_policy="replace", unknown_char_warning=False)


def escape(text: str) -> str:
    r"""Plain text as LaTeX text: special characters escaped, mathematical ones in math mode.

    Examples
    --------
    >>> print(escape("50% of a_j & σ"))
    50\% of a\_j \& \ensuremath{\sigma}
    """
    # the encoder leaves the bar alone, which pdflatex's default fonts print as a dash
    return str(_ENCODER.unicode_to_latex(text)).replace("|", r"\ensuremath{|}")


def equation(body: str, fit: bool = False) -> str:
    """A display without number around the inside of an equation.

    With ``fit``, for :func:`document` only, a line that is still too long is shrunk to the page.
    """
    if fit and max(printed_width(line) for line in body.splitlines()) > LINE_WIDTH:
        body = f"\\fitline{{{body}}}"
    return f"\\begin{{equation*}}\n{body}\n\\end{{equation*}}"


def document(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A document that compiles with pdflatex: a title and (heading, LaTeX body) sections."""
    body = "\n\n".join(f"\\section*{{{escape(heading)}}}\n{text}" for heading, text in sections)
    head = f"\\title{{{escape(title)}}}\n\\author{{}}\n\\date{{}}"
    return f"{_PREAMBLE}\n{head}\n\\begin{{document}}\n\\maketitle\n\n{body}\n\n\\end{{document}}\n"


def statements_latex(statements: Iterable[Statement], fit: bool = False) -> str:
    """Every formula of these statements as a display with its name, under the statement's identifier."""
    parts = []
    for s in statements:
        parts.append(f"\\paragraph{{{escape(s.id)}}} {escape(s.statement)}")
        forms = s.formulas()
        for name, body in s.latex(forms).items():
            parts.append(equation(_named(name, body, forms[name]), fit))
    return "\n".join(parts)


def _named(name: str, body: str, expr: sympy.Expr) -> str:
    """The formula broken where it is too long for the line, with its registered name where it has no left side."""
    left, equals, _ = body.partition(" = ")
    if not equals:
        left = rf"\text{{{escape(name)}}}"
        body = f"{left} = {body}"
    if r"\begin" in body or printed_width(body) <= LINE_WIDTH:
        return body
    return display(left, expr)
