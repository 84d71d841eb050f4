"""Formatting: user text is escaped everywhere, formulas survive the way to MathML, figures are deterministic."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import sympy

from spikesym.reporting import figures
from spikesym.reporting.blocks import Formula, Picture, Section, Table, Text
from spikesym.reporting.html import mathml, page
from spikesym.reporting.latex import document, escape
from spikesym.symbolic.printing import display, latex
from spikesym.symbolic.symbols import TAU2, D, M, N

HOSTILE = "<script>alert(1)</script> & \"quoted\" 'x' \\input{/etc/passwd} $x$ 100% a_b"


def _page(ok=True):
    blocks = [
        Text(HOSTILE),
        Table([HOSTILE], [[HOSTILE]], caption=HOSTILE),
        Formula(r"\begin{aligned} a &= b \\ &\quad + \frac{c}{d} \end{aligned}", HOSTILE),
        Picture("name", "<svg xmlns='http://www.w3.org/2000/svg'/>", HOSTILE, HOSTILE),
    ]
    return page(HOSTILE, HOSTILE, ok, [Section("A & B", blocks)])


def test_the_page_escapes_all_text():
    html = _page()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 7


def test_the_page_is_self_contained():
    html = _page()
    for pattern in (r"https?://(?!www\.w3\.org)", r"<link", r"src=\"(?!data:)", r"@import", r"url\("):
        assert not re.search(pattern, html), pattern


def test_the_page_says_when_a_check_failed():
    assert "all checks passed" in _page(True)
    assert "some checks failed" in _page(False)


def test_aligned_formulas_become_rows_of_mathml():
    tree = ET.fromstring(str(mathml(r"\begin{aligned} a &= b \\ &\quad + \frac{c}{d} \end{aligned}")))
    rows = [e for e in tree.iter() if e.tag.endswith("mtr")]
    assert len(rows) == 2
    assert "&" not in "".join(tree.itertext())


def test_tex_specials_are_escaped():
    text = escape(HOSTILE)
    assert "\\input" not in text
    assert not re.search(r"(?<!\\)[%$_&#]", text)


def test_document_is_balanced():
    text = document("t", [("h_1", "\\begin{equation*}\nx\n\\end{equation*}")])
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert r"h\_1" in text


def test_names_of_the_field_in_latex():
    assert latex(TAU2) == r"\tau^{2}"
    assert latex(sympy.rf(D, 3)).count("d") >= 1
    assert (
        latex(sympy.RisingFactorial(sympy.Rational(1, 2), sympy.Symbol("k")))
        == r"\left(\frac{1}{2}\right)_{k}"
    )
    assert r"\theta" not in latex(sympy.Heaviside(sympy.Symbol("z")))
    assert latex(sympy.hermite_prob(sympy.Symbol("k"), TAU2)) == r"\mathrm{He}_{k}\left(\tau^{2}\right)"
    assert latex(sympy.polygamma(1, D / 2)) == r"\psi_{1}\left(\frac{d}{2}\right)"


@pytest.mark.parametrize("factor", [1, M - 1, sympy.pi / N, -1])
def test_broken_lines_keep_every_term_and_bracket(factor):
    terms = [sympy.Symbol(f"t_{k}") / (D + k) for k in range(1, 30)]
    body = display("A", factor * sympy.Add(*terms) + TAU2)
    assert r"\begin{aligned}" in body
    for k in range(1, 30):
        assert f"t_{{{k}}}" in body
    for opening, closing in ((r"\left(", r"\right)"), (r"\Bigl[", r"\Bigr]"), ("{", "}")):
        assert body.count(opening) == body.count(closing)


def test_figures_are_deterministic_and_complete(tmp_path):
    B = np.linspace(0, 10, 11)
    made = {
        "alignment": lambda: figures.alignment_figure(B, B / 100, 0 * B, B / 90, d=10, marked=5.0),
        "monte_carlo": lambda: figures.monte_carlo_figure(
            [
                {"name": n, "mean": 1.0, "se": 0.1, "forms": {"exact": 1.0, "leading": 0.9}}
                for n in ("A", "A + B")
            ],
            10,
        ),
        "learning": lambda: figures.learning_figure(
            {"k0": (B[1:], 1 / B[1:], 0 * B[1:] + 0.01)}, "error", "title"
        ),
    }
    for name, make in made.items():
        first = figures.save(make(), tmp_path, name)
        svg = (tmp_path / first["svg"]).read_bytes()
        png = (tmp_path / first["png"]).read_bytes()
        figures.save(make(), tmp_path, name)
        assert (tmp_path / first["svg"]).read_bytes() == svg
        assert (tmp_path / first["png"]).read_bytes() == png
        ET.fromstring(svg)
