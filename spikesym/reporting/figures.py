"""The report's figures. Each function takes finished numbers and returns a Matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

# Okabe and Ito's palette: told apart by colour-blind readers
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#6E6E6E"
_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
_MARKERS = ("o", "s", "^", "D", "v", "P")

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "mathtext.fontset": "cm",
    "svg.hashsalt": "spikesym",
    "figure.constrained_layout.use": True,
}


@contextmanager
def _style() -> Iterator[None]:
    with mpl.rc_context(_STYLE):
        yield


def _new(width: float = 6.2, height: float = 3.9, columns: int = 1) -> tuple[Figure, list[Axes]]:
    # a Figure of its own, not pyplot's: no global state, no display needed
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def save(figure: Figure, folder: Path, name: str) -> dict[str, str]:
    """Write ``name.png`` and ``name.svg`` to ``folder``; returns their names by format."""
    with _style():
        figure.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return {"png": f"{name}.png", "svg": f"{name}.svg"}


def alignment_figure(
    B: np.ndarray, k1: np.ndarray, k0: np.ndarray, leading: np.ndarray, d: int, marked: float | None = None
) -> Figure:
    """Squared weight of Y_2 in the top eigenfunction against B.

    Parameters
    ----------
    B, k1, k0, leading : ndarray, shape (p,)
        Spike strengths; exact weight for k1; weight for k0; leading order of perturbation theory.
    d : int
        Input dimension, for the title.
    marked : float, optional
        The model's own B, shown as a vertical line.
    """
    with _style():
        figure, (axis,) = _new()
        axis.plot(B, leading, color=GREY, ls="--", lw=1.2, label=r"$k_1$, leading order in $B$")
        axis.plot(B, k1, color=BLUE, lw=2, label=r"$k_1$, exact")
        axis.plot(B, k0, color=ORANGE, lw=2, label=r"$k_0$ (no spike)")
        top = max(float(np.max(k1)), 1e-12)
        axis.set_ylim(-0.04 * top, 1.25 * top)
        if marked is not None and B[0] <= marked <= B[-1]:
            axis.axvline(marked, color=RED, lw=1, ls=":")
            axis.annotate(f"this model: B = {marked:.3g}", (marked, 1.2 * top), xytext=(4, 0),
                          textcoords="offset points", color=RED, fontsize=9, va="top")  # fmt: skip
        axis.set_xlabel(r"spike strength $B$")
        axis.set_ylabel(r"squared weight of $Y_2$ in the top eigenfunction")
        axis.set_title(f"The top eigenfunction turns towards the target (d = {d})", fontsize=11)
        axis.legend(loc="upper left" if marked is None or marked > 0.4 * B[-1] else "lower right")
        return figure


def spectrum_figure(rows: Sequence[Mapping[str, Any]], d: int, A: float, B: float) -> Figure:
    """Eigenvalues by degree and sector, before (B = 0) and after the step, and their ratio.

    ``rows`` are the entries of ``eigenvalues`` in the JSON of ``spikesym spectrum``.
    """
    rows = [r for r in rows if float(r["base"]) > 0]
    with _style():
        figure, (left, right) = _new(8.6, 3.9, columns=2)
        sectors = sorted({int(r["sector"]) for r in rows})
        for sector in sectors:
            chosen = [r for r in rows if int(r["sector"]) == sector]
            degree = np.array([int(r["degree"]) for r in chosen])
            # sectors side by side around the degree, so that equal levels stay visible
            shift = 0.16 * (sector - (len(sectors) - 1) / 2)
            colour = _COLOURS[sector % len(_COLOURS)]
            mark = _MARKERS[sector % len(_MARKERS)]
            base = [float(r["base"]) for r in chosen]
            after = [float(r["value"]) for r in chosen]
            left.plot(degree + shift, base, mark, mfc="none", color=colour, ms=7)
            left.plot(degree + shift, after, mark, color=colour, ms=5, label=f"sector {sector}")
            right.plot(degree + shift, [float(r["ratio"]) for r in chosen], mark, color=colour, ms=6)
            right.plot(degree + shift, [float(r["first_order"]) for r in chosen], "_", color="black", ms=12)
        left.set_yscale("log")
        left.set_xlabel(r"degree $\ell$")
        left.set_ylabel("eigenvalue (open: B = 0, filled: after)")
        left.legend()
        right.set_yscale("log")
        right.set_xlabel(r"degree $\ell$")
        right.set_ylabel(r"eigenvalue / its value at $B = 0$")
        right.plot([], [], "_", color="black", ms=12, label="first order in B/A")
        right.legend()
        figure.suptitle(f"Spectrum of $k_1$: d = {d}, A = {A:.4g}, B = {B:.4g}", fontsize=11)
        return figure


def monte_carlo_figure(panels: Sequence[Mapping[str, Any]], reps: int) -> Figure:
    """Estimates with error bars beside the three forms of A and of A + B.

    Each panel has ``name``, ``mean``, ``se`` and ``forms``, a mapping from the form's name to its value.
    """
    colours = {"rank_one": ORANGE, "leading": GREEN, "exact": BLUE}
    with _style():
        figure, axes = _new(7.6, 3.4, columns=len(panels))
        for axis, panel in zip(axes, panels, strict=True):
            for name, value in panel["forms"].items():
                axis.axhline(value, color=colours.get(name, GREY), lw=2, label=name.replace("_", "-"))
            axis.errorbar([0], [panel["mean"]], yerr=[3 * panel["se"]], fmt="ko", capsize=5,
                          label="Monte Carlo ± 3 standard errors")  # fmt: skip
            axis.set_xlim(-1, 1)
            axis.set_xticks([])
            axis.set_title(panel["name"], fontsize=11)
            axis.grid(visible=False, axis="x")
        axes[0].set_ylabel("value")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=9)
        figure.suptitle(f"{reps} networks trained by one step", fontsize=11)
        return figure


def learning_figure(
    curves: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]], ylabel: str, title: str
) -> Figure:
    """Test error against the number of fresh samples.

    ``curves`` maps a label to (sizes, mean, standard error), each of shape (p,).
    """
    with _style():
        figure, (axis,) = _new()
        for k, (label, (sizes, mean, se)) in enumerate(curves.items()):
            look: dict[str, Any] = {
                "color": _COLOURS[k % len(_COLOURS)],
                "marker": _MARKERS[k % len(_MARKERS)],
            }
            axis.errorbar(sizes, mean, yerr=se, ms=5, lw=1.6, capsize=3, label=label, **look)
        axis.set_xscale("log")
        axis.set_yscale("log")
        ticks = sorted({int(s) for sizes, _, _ in curves.values() for s in sizes})
        axis.set_xticks(ticks, [str(t) for t in ticks])
        axis.minorticks_off()
        axis.yaxis.set_major_locator(mpl.ticker.LogLocator(base=10, subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter("%g"))
        axis.set_xlabel(r"fresh samples $n_2$")
        axis.set_ylabel(ylabel)
        axis.set_title(title, fontsize=11)
        axis.legend(fontsize=9)
        return figure
