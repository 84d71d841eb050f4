"""``spikesym report``: the whole path for one model, written to a folder."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import InputError
from ..model import Model
from ..progress import Stages, stages

if TYPE_CHECKING:
    from ..numeric.covariance import CovarianceResult
    from ..reporting.blocks import Picture

#: sizes of the default model; the step size is chosen so that B is near this
DEFAULT_D, ALPHA, BETA, TARGET_B = 100, 2, 1.5, 5.0

#: fresh samples of the learning curves, and independent trials behind each error bar
LEARNING_SIZES, LEARNING_TRIALS = (50, 100, 200, 400, 800), 12

LEARNING_METHODS = ("network", "random_features", "k1", "k0")

#: link of the learning curves where the model's own has no non-linear part
NONLINEAR_LINK = "s + he2(s)/sqrt(2)"

FILES = ("index.html", "formulas.tex", "report.json")


@dataclass(frozen=True)
class Report:
    """What ``report`` wrote.

    Attributes
    ----------
    folder : Path
    document : mapping
        The content of ``report.json``.
    files : tuple of str
        Written files, relative to ``folder``.
    ok : bool
        Whether every check passed and every reliable |z| is below 5.
    """

    folder: Path
    document: Mapping[str, Any]
    files: tuple[str, ...]
    ok: bool

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """The content of ``report.json``."""
        return dict(self.document)

    def text(self, digits: int = 15) -> str:
        """A summary: the constants, the z-scores, the checks and where to look."""
        from ..reporting.page import lead

        simulate, verify = self.document["simulate"], self.document["verify"]
        lines = [lead(self.document)]
        for key, name in (("A", "A"), ("A_plus_B", "A + B")):
            e = simulate[key]
            z = "no exact value" if e["z"] is None else f"z = {e['z']:.2f}"
            lines.append(f"Monte Carlo: {name} = {e['mean']:.6g} ± {e['se']:.2g}, {z}")
        lines.append(f"Checks: {verify['passed']} statements passed, {verify['failed']} failed")
        lines.append(f"Wrote {', '.join(FILES)} and {len(self.files) - len(FILES)} figures to {self.folder}/")
        if not self.ok:
            lines.append("SOME CHECKS FAILED: see the page")
        return "\n".join(lines)

    def latex(self) -> str:
        """The content of ``formulas.tex``."""
        return (self.folder / "formulas.tex").read_text(encoding="utf-8")


def report(
    out: str | Path, model: Model | None = None, reps: int = 100, digits: int = 15, seed: int = 0
) -> Report:
    """Derive, evaluate, simulate and check one model, and write a page, formulas, figures and JSON.

    Parameters
    ----------
    out : path
        Folder to write; made when missing. Files of an earlier report in it are replaced; nothing else is touched.
    model : Model, optional
        Sizes and a step size left out are filled in: d = 100, n = 2d, m = 1.5d, and an eta that gives B near 5.
    reps : int
        Independent networks of the Monte Carlo check, at least 2.
    digits : int
        Decimal digits of the numbers in ``report.json``.
    seed : int
        Root seed of everything random.

    Raises
    ------
    InputError
        For a wrong model, or a folder that cannot be written. Nothing is then left half-written.

    Examples
    --------
    >>> result = report("out", Model(link="tanh(2*s)"))  # doctest: +SKIP
    >>> result.ok, sorted(p.name for p in result.folder.iterdir())  # doctest: +SKIP
    (True, ['figures', 'formulas.tex', 'index.html', 'report.json'])
    """
    from .report_figures import pictures

    folder = Path(out)
    _require_writable(folder)
    started = time.perf_counter()
    with stages(8) as bar:
        model = completed(Model() if model is None else model)
        document = _document(model, reps, digits, seed, bar)
        document["command"] = _command(model, reps, seed)
        document["versions"] = _versions()
        bar.start("figures and page")
        with _staged(folder) as staging:
            made = pictures(document, staging / "figures")
            document["seconds"] = time.perf_counter() - started
            _write(document, made, staging)
        bar.done()
    files = (
        *FILES,
        *sorted(f"figures/{p.name}.{kind}" for p in made.values() for kind in ("png", "svg")),
    )
    return Report(folder, document, files, bool(document["ok"]))


def completed(model: Model) -> Model:
    """The model with missing sizes filled in, and a step size that gives the leading B near 5.

    Examples
    --------
    >>> model = completed(Model())
    >>> model.d, model.n, model.m, int(model.eta)
    (100, 200, 150, 134)
    """
    d = DEFAULT_D if model.d is None else model.d
    n = ALPHA * d if model.n is None else model.n
    m = round(BETA * d) if model.m is None else model.m
    model = model.with_(d=d, n=n, m=m)
    if model.eta is not None or model.eta0 is not None:
        return model
    from ..gaussian import gaussian_data

    c1 = float(gaussian_data(model.link, "link", model.parameters).coefficient(1))
    mu1 = float(gaussian_data(model.activation, "activation", model.parameters).coefficient(1))
    strength = abs(c1 * mu1) * float(model.readout_scale)
    if strength < 1e-6:
        # no leading spike: no step gives B near 5, so take the step that would for ReLU
        strength = 0.25
    eta = m * (TARGET_B / d) ** 0.5 / strength
    return model.with_(eta=f"{eta:.3g}")


def _document(model: Model, reps: int, digits: int, seed: int, bar: Stages) -> dict[str, Any]:
    from ..simulation.learning import learning_curves
    from .derive import derive
    from .kernel import kernel
    from .report_checks import kernel_check
    from .simulate import simulate
    from .verify import verify

    document: dict[str, Any] = {"model": model.to_json(), "seed": seed, "reps": reps}
    bar.start("deriving A and B")
    derived = derive(model, digits=digits)
    document["derive"] = derived.to_json(digits)
    document["displays"] = _displays(derived.covariance)
    document["corrections"] = _corrections(document["derive"])
    A, B, form = _spike(derived.covariance)
    document["spike"] = {"A": A, "B": B, "form": form}
    bar.done()

    bar.start("kernel")
    document["kernel"] = kernel(model, order=1).to_json(digits)
    document["kernel_check"] = kernel_check(model, A, B, seed)
    bar.done()

    bar.start("spectrum")
    document["spectrum"], document["alignment"] = _spectrum(model, A, B, digits)
    bar.done()

    bar.start("training networks")
    simulated = simulate(model, reps=reps, seed=seed)
    document["simulate"] = simulated.to_json(digits)
    bar.done()

    bar.start("learning curves")
    curves = learning_curves(
        _nonlinear(model), LEARNING_SIZES, LEARNING_TRIALS, seed=seed, methods=LEARNING_METHODS
    )
    document["learn"] = curves.to_json(digits)
    bar.done(2)

    bar.start("checking statements")
    document["verify"] = verify("fast", seed=seed).to_json(digits)
    bar.done()
    document["ok"] = (
        document["verify"]["failed"] == 0
        and simulated.ok
        and all(r["passed"] for r in document["kernel_check"]["rows"])
    )
    return document


def _displays(values: CovarianceResult) -> dict[str, dict[str, str]]:
    """A and B by form as display equations, broken over lines where they are long."""
    from ..symbolic.printing import display

    quantities = {"A": values.A, "B": values.B}
    return {
        name: {form: display(name, entry.closed) for form, entry in forms.items() if entry is not None}
        for name, forms in quantities.items()
    }


def _spike(values: CovarianceResult) -> tuple[float, float, str]:
    """A and B as doubles, exact where an exact form is known, and which form that is."""
    for form in ("exact", "leading"):
        a, b = values.A[form], values.B[form]
        if a is not None and b is not None and a.value is not None and b.value is not None:
            return float(a.value), float(b.value), form
    raise InputError("no value of A and B", "model", "give -d, -n, -m and a step size")


def _spectrum(
    model: Model, A: float, B: float, digits: int
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The spectrum's document and the alignment curves; None for an activation that has no exact blocks yet."""
    from ..numeric.spectrum_fast import alignment
    from ..symbolic.functions import make_function
    from ..symbolic.perturbation import top_second_order
    from ..symbolic.symbols import D, b
    from .spectrum import spectrum

    activation = make_function(model.activation, "activation", model.parameters)
    linear = activation.piecewise_linear_coefficients()
    if linear is None or B < 0:
        return None, None
    found = spectrum(model, digits=digits).to_json(digits)
    if linear[1] == 0:
        return found, None
    strengths = [max(2 * B, 1.0) * k / 60 for k in range(61)]
    curves = {key: values.tolist() for key, values in alignment(model.d or 2, A, strengths).items()}
    weight = (b * top_second_order()["mixing"]) ** 2
    curves["leading"] = [float(weight.subs({D: model.d, b: strength / A})) for strength in strengths]
    return found, curves


def _corrections(derive: Mapping[str, Any]) -> dict[str, list[str]]:
    """Per form: exact A minus the form's, exact B minus the form's, also in percent."""
    made = {}
    for form in ("rank_one", "leading", "exact"):
        row = []
        for name in "AB":
            exact, value = derive[name]["exact"]["value"], derive[name][form]["value"]
            if exact is None or value is None:
                row.append("–")
            else:
                gap = float(exact) - float(value)
                row.append(f"{gap:+.4g} ({100 * gap / float(exact):+.2f} %)" if form != "exact" else "0")
        made[form] = row
    return made


def _nonlinear(model: Model) -> Model:
    """The model, with another link where its own has no non-linear part to learn."""
    from ..gaussian import gaussian_data

    data = gaussian_data(model.link, "link", model.parameters)
    linear = all(data.coefficient(k).is_zero for k in range(2, 8))
    return model.with_(link=NONLINEAR_LINK, parameters={}) if linear else model


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """A folder beside the target; its files are moved over only when everything is written."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        (staging / "figures").mkdir()
        yield staging
        for path in sorted(staging.rglob("*")):
            if path.is_file():
                target = folder / path.relative_to(staging)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _require_writable(folder: Path) -> None:
    remedy = "give a folder that can be written"
    nearest = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not nearest.is_dir():
        raise InputError(f"{nearest} is a file", "--out", remedy)
    if not os.access(nearest, os.W_OK):
        raise InputError(f"{nearest} cannot be written", "--out", remedy)


def _write(document: dict[str, Any], pictures: Mapping[str, Picture], staging: Path) -> None:
    from ..reporting.html import page
    from ..reporting.latex import document as latex_document
    from ..reporting.latex import statements_latex
    from ..reporting.page import latex_sections, lead, sections
    from ..results.registry import statements

    parts = sections(document, pictures)
    title = "One large gradient step: the spiked kernel"
    (staging / "index.html").write_text(page(title, lead(document), document["ok"], parts), encoding="utf-8")
    formulas = [
        *latex_sections(parts),
        ("Registered statements", statements_latex(statements().values(), fit=True)),
    ]
    (staging / "formulas.tex").write_text(latex_document(title, formulas), encoding="utf-8")
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    (staging / "report.json").write_text(text + "\n", encoding="utf-8")


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("sympy", "mpmath", "python-flint", "numpy", "scipy", "matplotlib")
    return {
        "spikesym": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def _command(model: Model, reps: int, seed: int) -> str:
    """A command line that makes the same report."""
    import shlex

    defaults = Model()
    words = ["spikesym", "report", "--out", "DIR"]
    for name in ("link", "activation", "d", "n", "m", "eta", "eta0", "zeta", "noise_var", "readout_scale",
                 "readout", "init", "residual"):  # fmt: skip
        value = getattr(model, name)
        if value is not None and value != getattr(defaults, name):
            words += [f"-{name}" if len(name) == 1 else "--" + name.replace("_", "-"), str(value)]
    for name, value in model.parameters.items():
        words += ["--set", f"{name}={value}"]
    words += ["--reps", str(reps), "--seed", str(seed)]
    return shlex.join(words)
