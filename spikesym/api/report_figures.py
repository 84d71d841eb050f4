"""The pictures of a report, from its finished document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..reporting import figures
from ..reporting.blocks import Picture


def pictures(document: Mapping[str, Any], folder: Path) -> dict[str, Picture]:
    """Draw all figures into ``folder`` as PNG and SVG; returns them by name."""
    d = document["model"]["d"]
    A, B = document["spike"]["A"], document["spike"]["B"]

    def picture(name: str, figure: Any, caption: str, alt: str) -> Picture:
        files = figures.save(figure, folder, name)
        return Picture(name, (folder / files["svg"]).read_text(encoding="utf-8"), caption, alt)

    simulate, derive = document["simulate"], document["derive"]
    panels = []
    for key, name in (("A", "A"), ("A_plus_B", "A + B")):
        forms = {}
        for form in ("rank_one", "leading", "exact"):
            a, b = (derive[letter][form]["value"] for letter in "AB")
            if a is not None and b is not None:
                forms[form] = float(a) + (float(b) if name == "A + B" else 0.0)
        panels.append(
            {"name": name, "mean": simulate[key]["mean"], "se": simulate[key]["se"], "forms": forms}
        )
    learn = document["learn"]
    curves = {
        c["label"]: (np.array(learn["sizes"]), np.array(c["mean"]), np.array(c["se"]))
        for c in learn["curves"]
    }
    link = learn["model"]["link"]
    made = {}
    if document["alignment"] is not None:
        strengths, k1, k0, leading = (
            np.array(document["alignment"][key]) for key in ("B", "k1", "k0", "leading")
        )
        made["alignment"] = picture(
            "alignment",
            figures.alignment_figure(strengths, k1, k0, leading, d, B),
            "Weight of Y_2 in the top eigenfunction against B at this d and A: it rises for k1 and is zero for k0.",
            "Line plot: the squared weight of Y_2 rises with B for k1 and stays at zero for k0.",
        )
    if document["spectrum"] is not None:
        made["spectrum"] = picture(
            "spectrum",
            figures.spectrum_figure(document["spectrum"]["eigenvalues"], d, A, B),
            "Eigenvalues by degree and sector before and after the step, and their ratio beside the first order.",
            "Two scatter plots over the degree: eigenvalues, and their ratio to the value at B = 0.",
        )
    return made | {
        "monte_carlo": picture(
            "monte_carlo",
            figures.monte_carlo_figure(panels, document["reps"]),
            "Networks trained by one step against the three forms.",
            "Two panels, A and A + B: estimate with error bar, and horizontal lines for the three forms.",
        ),
        "learning": picture(
            "learning",
            figures.learning_figure(curves, "test error", f"Generalisation: link {link}, d = {d}"),
            f"Test error against fresh samples, {learn['reps']} independent networks and batches; {learn['normalisation']}.",
            "Line plot with error bars: test error of the network, of k1 and of k0 against fresh samples.",
        ),
    }
