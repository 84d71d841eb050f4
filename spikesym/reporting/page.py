"""The sections of a report, from its finished document (the content of ``report.json``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .blocks import Block, Formula, Picture, Section, Table, Text

Document = Mapping[str, Any]

FORMS = {
    "rank_one": "rank-one (the paper's surrogate)",
    "leading": "leading order",
    "exact": "exact at this n, m, d",
}

_COVARIANCE = (
    "A and B are derived from the definition of one gradient step (Stein's lemma, Hermite coefficients, the second "
    "moments of the residual), not taken from a table. The surrogate keeps the rank-one part of the gradient alone; the "
    "leading order is the limit n, m, d → ∞ in proportion; the exact form holds at this very n, m, d."
)
_KERNEL = (
    "k0 is the kernel before the step, k1 after it, k1(x, x') = k0(Γ^½ x, Γ^½ x'). The first-order term is what the step "
    "adds to k0 at small B/d: an extra kernel that knows the target."
)
_SPECTRUM = (
    "On x ~ N(0, I) the operator of k1 splits into sectors under the rotations that fix w*; a row is one eigenvalue, with the "
    "degree of the harmonic it grows from. The linear functions are exact to all orders: (A + B)/(4d) along w*, A/(4d) across."
)
_NO_SPECTRUM = "No exact blocks: they are known for activations p z + q |z| (ReLU, leaky ReLU, abs) and B ≥ 0. Nothing is shown in their place."
_MONTE_CARLO = (
    "Independent networks are trained by one step from the definition; each is one sample of A and of A + B. z is the distance "
    "from the exact value in standard errors."
)


def sections(document: Document, pictures: Mapping[str, Picture]) -> list[Section]:
    """All sections of the page, in the order of the theory.

    Parameters
    ----------
    document : mapping
        The content of ``report.json``.
    pictures : mapping
        Finished pictures by name: ``monte_carlo``, ``alignment``, ``spectrum``, ``learning``.
    """
    return [
        _model(document),
        _covariance(document),
        _kernel(document),
        _spectrum(document, pictures),
        _monte_carlo(document, pictures),
        _learning(document, pictures),
        _checks(document),
        _how(document),
    ]


def _number(value: Any, digits: int = 10) -> str:
    """A number for a table: strings of high precision are cut, nothing is recomputed."""
    if value is None:
        return "–"
    return f"{float(value):.{digits}g}"


def _model(document: Document) -> Section:
    model = document["model"]
    rows = [
        ("link g(s)", model["link"]),
        ("activation σ(z)", model["activation"]),
        ("input dimension d, samples n, neurons m", f"{model['d']}, {model['n']}, {model['m']}"),
        ("step size η", f"{_number(model['eta_value'])}"),
        ("noise variance τ²", str(model["noise_var"])),
        ("readout", f"{model['readout']}, scale ς = {model['readout_scale']}, kurtosis {model['kappa4']}"),
        ("initialisation, residual", f"{model['init']}, {model['residual']}"),
    ]
    text = (
        "A two-layer network f(x) = m^(-1/2) Σ a_j σ(⟨w_j, x⟩) takes one gradient step of size η on n samples of "
        "y = g(⟨w*, x⟩) + ε. After the step its features have second moment Γ = A I + B w* w*ᵀ."
    )
    return Section("Model", [Text(text), Table(["quantity", "value"], rows)])


def _covariance(document: Document) -> Section:
    derive = document["derive"]
    blocks: list[Block] = [Text(_COVARIANCE)]
    rows = []
    for form, label in FORMS.items():
        a, b = derive["A"][form], derive["B"][form]
        rows.append([label, *(_number(v["value"]) for v in (a, b)), *document["corrections"][form]])
    blocks.append(
        Table(
            ["form", "A", "B", "exact A minus this", "exact B minus this"],
            rows,
            caption="The three forms side by side; the last two columns are the size of what each leaves out.",
        )
    )
    for name in "AB":
        for form, label in FORMS.items():
            if form in document["displays"][name]:
                blocks.append(Formula(document["displays"][name][form], f"{name}, {label}"))
    hermite = derive["hermite"]
    rows = [[f"c_{k}", c["sympy"] or "–", c["value"] or "–", c["radius"] or "–"] for k, c in
            enumerate(hermite["link"]["c"])]  # fmt: skip
    blocks.append(
        Table(
            ["coefficient", "closed form", "value", "radius"],
            rows,
            caption="Hermite coefficients of the link, c_k = E[g(s) He_k(s)].",
        )
    )
    rows = [[a["name"], "holds" if a["holds"] else "fails", a["detail"]] for a in derive["assumptions"]]
    blocks.append(
        Table(
            ["assumption of the paper", "here", "detail"], rows, caption="The paper's assumptions, checked."
        )
    )
    blocks.extend(Text(f"Note: {w}") for w in derive["warnings"])
    return Section("A and B", blocks)


def _kernel(document: Document) -> Section:
    kernel = document["kernel"]
    blocks: list[Block] = [Text(_KERNEL)]
    blocks.extend(Formula(f["latex"], f["caption"]) for f in kernel["formulas"])
    check = document["kernel_check"]
    rows = [[r["name"], str(r["points"]), f"{r['largest']:.2e}", r["against"]] for r in check["rows"]]
    marks = ["ok" if r["passed"] else "fail" for r in check["rows"]]
    blocks.append(
        Table(
            ["object", "random points", "largest relative deviation", "against"],
            rows,
            caption="Each closed form against an independent evaluation at random points, with this A and B.",
            marks=marks,
        )
    )
    return Section("Kernel", blocks)


def _spectrum(document: Document, pictures: Mapping[str, Picture]) -> Section:
    spectrum = document["spectrum"]
    if spectrum is None:
        return Section("Spectrum", [Text(_NO_SPECTRUM)])
    rows = []
    for r in spectrum["eigenvalues"]:
        weights = sorted(r["composition"].items(), key=lambda kv: -float(kv[1]))[:3]
        mix = ", ".join(f"Y_{k}: {_number(v, 6)}" for k, v in weights if float(v) > 0)
        rows.append(
            [
                str(r["sector"]), str(r["degree"]), r["multiplicity"], _number(r["base"]), _number(r["value"]),
                _number(r["ratio"]), _number(r["first_order"]), mix,
            ]
        )  # fmt: skip
    header = ["sector", "degree", "multiplicity", "at B = 0", "eigenvalue", "ratio", "first order", "weights"]
    blocks: list[Block] = [
        Text(_SPECTRUM),
        Table(
            header,
            rows,
            caption="Eigenvalues of k1 on x ~ N(0, I), per eigenfunction; enclosures in report.json.",
        ),
        *(pictures[name] for name in ("alignment", "spectrum") if name in pictures),
    ]
    return Section("Spectrum", blocks)


def _monte_carlo(document: Document, pictures: Mapping[str, Picture]) -> Section:
    simulate = document["simulate"]
    rows, marks = [], []
    for key, name in (("A", "A"), ("A_plus_B", "A + B")):
        entry = simulate[key]
        z = entry["z"]
        rows.append(
            [name, _number(entry["mean"]), _number(entry["se"], 3), _number(entry["exact"]), _number(z, 3)]
        )
        marks.append("" if z is None else "ok" if abs(z) < 5 else "fail")
    blocks: list[Block] = [
        Text(_MONTE_CARLO),
        Table(["quantity", "Monte Carlo", "standard error", "exact", "z"], rows, marks=marks),
        pictures["monte_carlo"],
    ]
    return Section("Monte Carlo", blocks)


def _learning(document: Document, pictures: Mapping[str, Picture]) -> Section:
    learning = document["learn"]
    header = ["fresh samples", *(c["label"] for c in learning["curves"])]
    rows = [
        [str(size), *(f"{c['mean'][k]:.4g} ± {c['se'][k]:.2g}" for c in learning["curves"])]
        for k, size in enumerate(learning["sizes"])
    ]
    return Section(
        "Generalisation",
        [Text(_learning_text(learning)), Table(header, rows), pictures["learning"]],
    )


def _learning_text(learning: Document) -> str:
    return (
        f"After the step the readout is refit by ridge regression on fresh samples. Link {learning['model']['link']}; "
        f"k1 with A = {_number(learning['A'], 6)}, B = {_number(learning['B'], 6)} ({learning['form']}). Test error: "
        f"{learning['normalisation']}; predicting zero gives {_number(learning['null_error'], 4)}. Ridge: "
        f"{learning['ridge_rule']}. ± is the standard error over {learning['reps']} independent networks and batches. "
        f"The network has m = {learning['model']['m']} neurons trained on one batch: compare it with random features of the "
        "same width. It approaches the kernel k1 only as m → ∞ first and n/d → ∞ next."
    )


def _checks(document: Document) -> Section:
    rows, marks = [], []
    for r in document["verify"]["results"]:
        for c in r["checks"]:
            rows.append([r["id"], c["kind"], c["name"], "passed" if c["passed"] else "FAILED", c["detail"]])
            marks.append("ok" if c["passed"] else "fail")
    verify = document["verify"]
    text = f"{verify['passed']} statements passed, {verify['failed']} failed. A check that could not run counts as failed."
    return Section(
        "Checks", [Text(text), Table(["statement", "kind", "check", "result", "measured"], rows, marks=marks)]
    )


def _how(document: Document) -> Section:
    rows: Sequence[Sequence[str]] = [[name, version] for name, version in document["versions"].items()]
    text = f"Made by: {document['command']} (seed {document['seed']}, {document['seconds']:.0f} s)."
    return Section("How this was made", [Text(text), Table(["package", "version"], rows)])


def lead(document: Document) -> str:
    """The sentence under the title: what the model is and what came out."""
    model = document["model"]
    a, b = (
        document["derive"][name]["exact"]["value"] or document["derive"][name]["leading"]["value"]
        for name in "AB"
    )
    return (
        f"Link {model['link']}, activation {model['activation']}, d = {model['d']}, n = {model['n']}, "
        f"m = {model['m']}, η = {_number(model['eta_value'])}: A = {_number(a, 8)}, B = {_number(b, 8)}."
    )


def latex_sections(parts: Sequence[Section]) -> list[tuple[str, str]]:
    """The formulas of the sections as (heading, LaTeX) pairs for :func:`.latex.document`."""
    from .latex import equation, escape

    made = []
    for part in parts:
        lines = []
        for block in part.blocks:
            if isinstance(block, Formula):
                if block.caption:
                    lines.append(f"\\noindent {escape(block.caption)}:")
                lines.append(equation(block.latex, fit=True))
        if lines:
            made.append((part.heading, "\n".join(lines)))
    return made
