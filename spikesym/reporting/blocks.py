"""What a report consists of: sections of text, formulas, tables and pictures.

One structure, rendered twice: :mod:`.html` makes the page and :mod:`.latex` the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Text:
    """A paragraph of plain text."""

    text: str
    kind: str = "paragraph"


@dataclass(frozen=True)
class Formula:
    """The inside of a display equation, in LaTeX, with an optional caption."""

    latex: str
    caption: str = ""
    kind: str = "formula"


@dataclass(frozen=True)
class Table:
    """A table of plain text cells; ``marks`` gives a row's class (``"ok"``, ``"fail"`` or ``""``)."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    marks: Sequence[str] = ()
    kind: str = "table"


@dataclass(frozen=True)
class Picture:
    """A figure: the SVG text is embedded in the page, the files lie beside it."""

    name: str
    svg: str
    caption: str
    alt: str
    kind: str = "picture"


Block = Text | Formula | Table | Picture


@dataclass(frozen=True)
class Section:
    """A heading with its blocks."""

    heading: str
    blocks: Sequence[Block] = field(default_factory=tuple)

    @property
    def anchor(self) -> str:
        """The heading as an HTML identifier."""
        return "".join(c if c.isalnum() else "-" for c in self.heading.lower()).strip("-")
