"""The report as one self-contained HTML page: formulas as MathML, figures inline, no script, no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from latex2mathml.converter import convert
from markupsafe import Markup

from .blocks import Section


def mathml(latex: str) -> Markup:
    """A display equation as MathML, which browsers show without a script.

    Examples
    --------
    >>> str(mathml("A")).startswith("<math")
    True
    """
    # latex2mathml knows ``split`` (the same layout) but not ``aligned``, and
    # writes \! as a space that no browser knows
    # and stretches norm bars beyond their argument
    source = latex.replace(r"\!", "").replace("{aligned}", "{split}")
    for bar in (r"\lVert", r"\rVert"):
        source = source.replace(bar, r"\text{‖}")
    return Markup(convert(source, display="block"))


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def page(title: str, lead: str, ok: bool, sections: Sequence[Section]) -> str:
    """The whole page.

    Parameters
    ----------
    title, lead : str
        Heading and the sentence under it; plain text, escaped here.
    ok : bool
        Whether all checks passed: shown at the top.
    sections : sequence of Section
    """
    environment = Environment(
        loader=PackageLoader("spikesym.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["mathml"] = mathml
    environment.filters["data_uri"] = _data_uri
    template = environment.get_template("index.html.j2")
    return template.render(title=title, lead=lead, ok=ok, sections=sections)
