"""``spikesym derive``: A and B of one model, as formulas, values, expansion and checked assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from ..model import Model
from ..numeric.assumptions import Assumption, assumptions
from ..numeric.covariance import FORMS, Constants, CovarianceResult, Form, covariance
from ..numeric.covariance_expansion import CovarianceExpansion, Term, covariance_expansion
from ..numeric.value import Value
from ..symbolic.covariance_judges import EP2, EQ2
from ..symbolic.covariance_phases import Phase, phase
from ..symbolic.covariance_quenched import quenched_formulas
from ..symbolic.printing import display, latex
from ..symbolic.symbols import D

#: Hermite coefficients of the link that are listed
COEFFICIENTS = 12

_LABELS = {"rank_one": "surrogate", "leading": "leading order", "exact": "exact"}


@dataclass(frozen=True)
class DerivationResult:
    """A and B of a model: what ``spikesym derive`` prints.

    Attributes
    ----------
    model : Model
    covariance : CovarianceResult
        The three forms of A, B and A + B.
    expansion : CovarianceExpansion
        In 1/d at fixed n/d, m/d, eta_0 and zeta.
    quenched : dict of Form
        Squared overlap, bulk and spike given the batch, to leading order.
    assumptions : tuple of Assumption
        The paper's, checked.
    phase : Phase or None
        Where the model gives the exponent zeta.
    warnings : tuple of str
    """

    model: Model
    covariance: CovarianceResult
    expansion: CovarianceExpansion
    quenched: dict[str, Form]
    assumptions: tuple[Assumption, ...]
    phase: Phase | None
    warnings: tuple[str, ...]

    @property
    def A(self) -> dict[str, Form | None]:
        """A by form: ``rank_one``, ``leading``, ``exact`` (None where no exact form is known)."""
        return self.covariance.A

    @property
    def B(self) -> dict[str, Form | None]:
        """B by form."""
        return self.covariance.B

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """The document of ``spikesym derive --json``."""
        result, order = self.covariance, self.expansion.order
        document: dict[str, Any] = {
            "model": self.model.to_json(),
            "hermite": self._hermite(digits),
            "A": {form: _form_json(result.A[form], digits) for form in FORMS},
            "B": {form: _form_json(result.B[form], digits) for form in FORMS},
            "A_plus_B": {form: _form_json(result.A_plus_B[form], digits) for form in FORMS},
            "corrections": {
                q: {f: result.correction(q, f) for f in FORMS[:2]} for q in ("A", "B", "A_plus_B")
            },
            "definitions": self._definitions(digits),
            "assumptions": [{"name": a.name, "holds": a.holds, "detail": a.detail} for a in self.assumptions],
            "expansion": {q: _expansion_json(self.expansion, q, digits) for q in ("A", "B")}
            | {"order": order},
            "quenched": {name: _form_json(form, digits) for name, form in self.quenched.items()},
            "phase": None if self.phase is None else _phase_json(self.phase),
            "warnings": list(self.warnings),
        }
        return document

    def _hermite(self, digits: int) -> dict[str, Any]:
        link, activation = self.covariance.link, self.covariance.activation
        exponent = link.information_exponent
        return {
            "activation": {
                "mu0": activation.coefficient(0).to_json(digits),
                "mu1": activation.coefficient(1).to_json(digits),
                "mu2": activation.coefficient(2).to_json(digits),
                "E_dsigma2": activation.derivative_second_moment.to_json(digits),
            },
            "link": {
                "c0": link.coefficient(0).to_json(digits),
                "c1": link.coefficient(1).to_json(digits),
                "E_g2": link.second_moment.to_json(digits),
                "E_g2s2": link.second_moment_x2.to_json(digits),
                "s_g": link.s_g.to_json(digits),
                "information_exponent": exponent.k,
                "information_exponent_certified": exponent.certified,
                "c": [c.to_json(digits) for c in link.coefficients(COEFFICIENTS)],
            },
        }

    def _definitions(self, digits: int) -> dict[str, Any]:
        """What P_2 and Q_2 stand for, where a formula has them."""
        means = self.covariance.means
        exact = [self.covariance.A["exact"], self.covariance.B["exact"]]
        if means is None or not any(e is not None and e.closed.has(EP2, EQ2) for e in exact):
            return {}
        found = {}
        for symbol, value, letter, text in (
            (EP2, means.EP2, "P", r"P(\rho) = \mathbb{E}[s\,g(s)\,\Phi(\rho s/\sqrt{1-\rho^{2}})]"),
            (EQ2, means.EQ2, "Q", r"Q(\rho) = \mathbb{E}[g(s)\,\phi(\rho s/\sqrt{1-\rho^{2}})]"),
        ):
            form = getattr(means.forms, letter) if means.forms is not None else None
            closed = None if form is None or means.forms is None else means.forms.in_rho(form)
            entry = value.to_json(digits)
            found[symbol.name] = {
                "latex": text if closed is None else display(rf"{letter}(\rho)", closed),
                "sympy": None if closed is None else str(closed),
                "value": entry["value"],
                "method": means.method,
            }
        return found

    def text(self, digits: int = 15) -> str:
        """The three forms, the Hermite data, the expansion and the assumptions, for a terminal."""
        lines = [_title(self.model), ""]
        lines += self._forms_text(digits)
        lines += ["", "Constants"]
        lines += [f"  {name:<14}{text}" for name, text in self._constants(digits)]
        lines += [
            "",
            f"Expansion, n = alpha d, m = beta d, eta = eta_0 d^zeta (order {self.expansion.order})",
        ]
        for quantity in ("A", "B"):
            head = "1 + " if quantity == "A" else ""
            terms = getattr(self.expansion, quantity)
            lines.append(f"  {quantity} = {head}sum of" if terms else f"  {quantity} = {head}0")
            lines += [
                f"    {_power(t):<16} * {_number(t.value, 10) or _shortened(t.closed, 70)}" for t in terms
            ]
        if self.phase is not None:
            lines += ["", f"Phase: {self.phase.name}; {self.phase.text}" + _spikes(self.phase)]
        lines += ["", "Given the batch (labels only, leading order)"]
        for name, form in self.quenched.items():
            lines.append(f"  {name:<14}{_number(form.value, digits) or _shortened(form.closed)}")
        lines += ["", "Assumptions of the paper"]
        lines += [f"  {'holds' if a.holds else 'FAILS':<7}{a.name:<18}{a.detail}" for a in self.assumptions]
        if self.warnings:
            lines += ["", *[f"Note: {w}" for w in self.warnings]]
        return "\n".join(lines)

    def _forms_text(self, digits: int) -> list[str]:
        result = self.covariance
        width = max(digits + 9, 18)
        lines = [f"{'':<15}{'A':<{width}}{'B':<{width}}{'A + B':<{width}}".rstrip()]
        for form in FORMS:
            entries = [getattr(result, q)[form] for q in ("A", "B", "A_plus_B")]
            cells = [
                "no exact form" if e is None else _number(e.value, digits) or "needs sizes" for e in entries
            ]
            lines.append(f"{_LABELS[form]:<15}" + "".join(f"{c:<{width}}" for c in cells).rstrip())
        corrections = [result.correction(q) for q in ("A", "B", "A_plus_B")]
        if any(c is not None for c in corrections):
            cells = ["" if c is None else f"{100 * c:+.3g} %" for c in corrections]
            lines.append(f"{'correction':<15}" + "".join(f"{c:<{width}}" for c in cells).rstrip())
            lines.append(f"{'':<15}(exact minus leading, relative; for A relative to A - 1)")
        lines.append("")
        for quantity in ("A", "B"):
            for form in FORMS:
                entry = getattr(result, quantity)[form]
                if entry is not None:
                    lines.append(f"{quantity}, {_LABELS[form]}:")
                    lines += _wrapped(str(entry.closed))
        return lines

    def _constants(self, digits: int) -> list[tuple[str, str]]:
        hermite = self._hermite(digits)
        rows = []
        for role in ("activation", "link"):
            for name, entry in hermite[role].items():
                if isinstance(entry, dict):
                    closed = (
                        f"   = {entry['sympy']}"
                        if entry["sympy"] and entry["sympy"] != entry["value"]
                        else ""
                    )
                    rows.append((name, (entry["value"] or "") + closed))
        rows.append(("inf. exponent", str(hermite["link"]["information_exponent"])))
        for name, entry in self._definitions(digits).items():
            rows.append((f"E {name[0]}(rho)^2", f"{entry['value'] or 'needs d'}   ({entry['method']})"))
        return rows

    def latex(self) -> str:
        """The formulas as display equations (amsmath, amssymb, mathtools)."""
        lines = []
        for quantity in ("A", "B"):
            for form in FORMS:
                entry = getattr(self.covariance, quantity)[form]
                if entry is not None:
                    left = f"{quantity}_{{\\text{{{_LABELS[form]}}}}}"
                    lines.append(f"\\[\n{display(left, entry.closed)}\n\\]")
        for entry in self._definitions(15).values():
            lines.append(f"\\[\n{entry['latex']}\n\\]")
        for quantity in ("A", "B"):
            lines.append(f"\\[\n{_expansion_latex(self.expansion, quantity)}\n\\]")
        names = {
            "overlap2": r"\langle \hat u, w_{*}\rangle^{2}",
            "bulk": r"\text{bulk}",
            "spike": r"\text{spike}",
        }
        for name, given in self.quenched.items():
            lines.append(f"\\[\n{display(names[name], given.closed)}\n\\]")
        return "\n".join(lines)


def derive(model: Model, digits: int = 15, order: int = 2) -> DerivationResult:
    """Derive A and B of a model.

    Parameters
    ----------
    model : Model
        With sizes and a step there are numbers; without them formulas.
    digits : int
        Digits that will be asked for (numbers are refined to any number of digits when printed).
    order : int
        Orders of 1/d of the expansion beyond the leading one.

    Raises
    ------
    InputError, NotIntegrableError
        For a link or activation outside the theory.

    Examples
    --------
    >>> result = derive(Model(link="relu", d=60, n=120, m=90, eta=120), order=1)
    >>> document = result.to_json()
    >>> document["A"]["exact"]["value"], document["B"]["leading"]["sympy"]
    ('1.25591750754041', 'd*eta**2*varsigma**2/(16*m**2)')
    """
    result = covariance(model)
    constants = Constants(model, result.link, result.activation)
    quenched = {
        name: Form(formula, constants.close(formula), constants.value(formula))
        for name, formula in quenched_formulas().items()
    }
    found = covariance_expansion(model, order)
    warnings = list(result.warnings)
    if model.zeta is not None and model.zeta >= 1:
        warnings.append("zeta >= 1: B is not o(d), the expansion of k1 in B/d does not converge")
    b_lead = result.B["leading"]
    if b_lead is not None and b_lead.closed == 0 and found.B:
        warnings.append(f"next order of B: d^({found.B[0].exponent}) times {_shortened(found.B[0].closed)}")
    return DerivationResult(
        model, result, found, quenched, assumptions(model, result.link, result.activation),
        None if model.zeta is None else phase(model.zeta), tuple(dict.fromkeys(warnings)),
    )  # fmt: skip


def _form_json(form: Form | None, digits: int) -> dict[str, Any]:
    if form is None:
        return {
            "sympy": None,
            "latex": None,
            "value": None,
            "radius": None,
            "certified": None,
            "general": None,
        }
    number = form.value is not None and form.value.has_number
    return {
        "sympy": str(form.closed),
        "latex": latex(form.closed),
        "value": form.value.text(digits) if number and form.value is not None else None,
        "radius": form.value.radius(digits) if number and form.value is not None else None,
        "certified": form.value.certified if form.value is not None else None,
        "general": str(form.formula),
    }


def _expansion_json(expansion: CovarianceExpansion, quantity: str, digits: int) -> dict[str, Any]:
    terms = getattr(expansion, quantity)
    return {
        "latex": _expansion_latex(expansion, quantity),
        "sympy": str(expansion.formula(quantity)),
        "terms": [
            {
                "exponent": str(t.exponent),
                "sympy": str(t.closed),
                "latex": latex(t.closed),
                "value": None if t.value is None else t.value.text(digits),
            }
            for t in terms
        ],
    }


def _expansion_latex(expansion: CovarianceExpansion, quantity: str) -> str:
    terms = getattr(expansion, quantity)
    lines = [rf"{_wrapped_latex(t.closed)}\, d^{{{latex(t.exponent)}}}" for t in terms]
    head = ["1"] if quantity == "A" else []
    body = " \\\\\n&\\quad + ".join([*head, *lines]) or "0"
    return f"\\begin{{aligned}}\n{quantity} &= {body} + \\dotsb\n\\end{{aligned}}"


def _wrapped_latex(expr: sympy.Expr) -> str:
    return rf"\left({latex(expr)}\right)" if expr.is_Add else latex(expr)


def _phase_json(found: Phase) -> dict[str, Any]:
    return {
        "zeta": str(found.zeta), "name": found.name, "text": found.text, "B_exponent": str(found.b_exponent),
        "A_exponent": str(found.a_exponent), "spikes": found.spikes,
    }  # fmt: skip


def _title(model: Model) -> str:
    sizes = ", ".join(f"{k} = {getattr(model, k)}" for k in ("d", "n", "m") if getattr(model, k) is not None)
    step = ""
    if model.eta is not None:
        step = f", eta = {model.eta}"
    elif model.eta0 is not None:
        step = f", eta = {model.eta0} d^{model.zeta}"
    modes = f"{model.init} init, {model.readout} readout, residual {model.residual}"
    return f"Gamma = A I + B w* w*^T: link {model.link}, activation {model.activation}; {sizes}{step}; {modes}".replace(
        "; ;", ";"
    )


def _number(value: Value | None, digits: int) -> str:
    return value.text(digits) if value is not None and value.has_number else ""


def _power(term: Term) -> str:
    return str(D**term.exponent).replace("**", "^")


def _spikes(found: Phase) -> str:
    return "" if found.spikes is None else f"; spikes of the feature matrix: {found.spikes}"


def _shortened(expr: sympy.Expr, limit: int = 78) -> str:
    text = str(expr)
    return text if len(text) <= limit else text[: limit - 4] + " ..."


def _wrapped(text: str, width: int = 94) -> list[str]:
    """Break a formula at its signs."""
    lines, rest = [], text
    while len(rest) > width:
        at = max(rest.rfind(" + ", 0, width), rest.rfind(" - ", 0, width))
        at = at if at > 20 else width
        lines.append("    " + rest[:at])
        rest = rest[at:].strip()
    return [*lines, "    " + rest]
