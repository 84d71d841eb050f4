"""``spikesym kernel``: k0, k1 and the expansion of k1 in B, as formulas and, at given points, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy
from numpy.typing import NDArray

from ..errors import InputError
from ..model import Model, Number, exact_integer, exact_number
from ..numeric.kernel import Kernel
from ..numeric.kernel_expansion import Expansion
from ..symbolic.functions import make_function
from ..symbolic.kernel import MOST_ORDERS, KernelFormulas
from ..symbolic.printing import display, latex
from ..symbolic.symbols import NORM, NORMP, PP, SP, THETA, P, S
from ..symbolic.symbols import A as at_A
from ..symbolic.symbols import B as at_B

Array = NDArray[Any]

#: entries of one matrix of values beyond which the Python class is the right tool
_MOST_ENTRIES = 4_000_000
_FORMAT = "give a NumPy .npz file with real arrays X of shape (n, d), Y of shape (m, d) and optionally w of shape (d,)"

_ANGLE_NOTE = "theta is the angle of x and x', s = <w*, x>, s' = <w*, x'>"
_COVARIANCE_NOTE = "q = A |x|^2/d, q' = A |x'|^2/d, t = A <x, x'>/d, s = <w*, x>, s' = <w*, x'>"
_PRODUCTS = r"p = A\lVert x\rVert^{2} + B s^{2},\quad p' = A\lVert x'\rVert^{2} + B s'^{2},\quad " + (
    r"t = A\langle x, x'\rangle + B s s'"
)


@dataclass(frozen=True)
class Formula:
    """A formula with its name, its LaTeX display and what its letters mean."""

    name: str
    expr: sympy.Basic
    display: str
    caption: str

    def to_json(self) -> dict[str, str]:
        """``{"name", "sympy", "latex", "caption"}``."""
        return {"name": self.name, "sympy": str(self.expr), "latex": self.display, "caption": self.caption}


@dataclass(frozen=True)
class KernelValues:
    """Matrices of shape (n, m) at given points: k0, k1, the orders of k1 in B, and what is left after them."""

    A: float
    B: float
    w: Array
    k0: Array
    k1: Array
    orders: tuple[Array, ...]
    remainder: Array

    def to_json(self) -> dict[str, Any]:
        """Nested lists of doubles."""
        return {
            "A": self.A,
            "B": self.B,
            "w": self.w.tolist(),
            "k0": self.k0.tolist(),
            "k1": self.k1.tolist(),
            "orders": [v.tolist() for v in self.orders],
            "remainder": self.remainder.tolist(),
        }


@dataclass(frozen=True)
class KernelResult:
    """What ``spikesym kernel`` prints.

    Attributes
    ----------
    model : Model
    formulas : KernelFormulas
        The symbolic forms, by order.
    k0, k1 : Formula
    orders : tuple of Formula
        Order 0, 1, ... of k1 in B.
    values : KernelValues or None
        At the points of the file.
    warnings : tuple of str
    """

    model: Model
    formulas: KernelFormulas
    k0: Formula
    k1: Formula
    orders: tuple[Formula, ...]
    values: KernelValues | None
    warnings: tuple[str, ...]

    def to_json(self, digits: int = 15) -> dict[str, Any]:
        """The document of ``spikesym kernel --json``."""
        return {
            "model": self.model.to_json(),
            "closed_form": self.formulas.closed,
            "k0": self.k0.to_json(),
            "k1": self.k1.to_json(),
            "orders": [f.to_json() | {"order": r} for r, f in enumerate(self.orders)],
            "formulas": [f.to_json() for f in self._listed()],
            "at": None if self.values is None else self.values.to_json(),
            "warnings": list(self.warnings),
        }

    def _listed(self) -> list[Formula]:
        inner = NORM * NORMP * sympy.cos(THETA)
        products = sympy.Tuple(
            at_A * NORM**2 + at_B * S**2, at_A * NORMP**2 + at_B * SP**2, at_A * inner + at_B * S * SP
        )
        note = "p, p', t of k1: x^T Gamma x, x'^T Gamma x', x^T Gamma x' with Gamma = A I + B w* w*^T"
        general = Formula("definitions", products, _PRODUCTS, note)
        return [self.k0, self.k1, general, *self.orders[1:]]

    def text(self, digits: int = 15) -> str:
        """Formulas line by line, then the values."""
        lines = [f"kernel of sigma(z) = {_name(self.model.activation)}", ""]
        for formula in (self.k0, self.k1, *self.orders):
            lines += [f"{formula.name} = {formula.expr}", f"    {formula.caption}"]
        if self.values is not None:
            lines += ["", *_values_text(self.values, min(digits, 17))]
        lines += [f"note: {w}" for w in self.warnings]
        return "\n".join(lines)

    def latex(self) -> str:
        """Display equations."""
        bodies = [f.display for f in self._listed()]
        return "\n".join(f"\\begin{{equation*}}\n{body}\n\\end{{equation*}}" for body in bodies)


def kernel(
    model: Model,
    order: int = 1,
    A: Number | None = None,
    B: Number | None = None,
    at: str | Path | None = None,
) -> KernelResult:
    """k0, k1 with Gamma = A I + B w* w*^T, and the expansion of k1 in B.

    Parameters
    ----------
    model : Model
        Its activation; and, with sizes and without ``A`` and ``B``, its A and B.
    order : int
        Largest order in B, from 0 to 12.
    A, B : number, optional
        Both or neither. Needed for values, unless the model has sizes.
    at : path, optional
        A ``.npz`` file with arrays ``X`` (n, d), ``Y`` (m, d) and optionally the unit vector ``w`` (d,).

    Raises
    ------
    InputError
        For an order out of range, A without B, and a file that does not hold what it should.

    Examples
    --------
    >>> result = kernel(Model())
    >>> print(result.k0.expr)
    nx*nxp*((pi - theta)*cos(theta) + sin(theta))/(2*pi*d)
    >>> print(result.orders[1].expr)
    B*(2*s*sp*(pi - theta) + (nx**2*sp**2 + nxp**2*s**2)*sin(theta)/(nx*nxp))/(4*pi*d)
    """
    order = exact_integer(order, "--order", 0)
    if order > MOST_ORDERS:
        raise InputError(f"must be at most {MOST_ORDERS}, got {order}", "--order", "ask for a lower order")
    if (A is None) != (B is None):
        missing = "--A" if A is None else "--B"
        raise InputError("missing", missing, "give both --A X and --B Y, or neither")
    points = None if at is None else _load(Path(at), model)
    function = make_function(model.activation, "activation", model.parameters)
    formulas = KernelFormulas.of(function)
    warnings: list[str] = []
    if not formulas.closed:
        warnings.append(
            "no closed form of the dual activation: formulas hold E[sigma^(i)(U) sigma^(j)(U')], U, U' of covariance "
            "q, q', t; values come from Hermite series"
        )
    values = None
    if points is not None:
        a, b = _strength(model, A, B, warnings)
        values = _values(Kernel(function, A=a, B=b, w=points[2]), points, order)
    orders = tuple(_order(formulas, r) for r in range(order + 1))
    return KernelResult(model, formulas, _k0(formulas), _k1(formulas), orders, values, tuple(warnings))


# ---- formulas --------------------------------------------------------------------------------------------------


def _k0(formulas: KernelFormulas) -> Formula:
    if formulas.closed and not formulas.angular:
        expr, note = formulas.kernel(), "p = |x|^2, p' = |x'|^2, t = <x, x'>"
    else:
        expr = formulas.k0()
        note = (
            "theta is the angle of x and x'"
            if formulas.closed
            else "q = |x|^2/d, q' = |x'|^2/d, t = <x, x'>/d"
        )
    return Formula("k0", expr, display("k_0", expr), note)


def _k1(formulas: KernelFormulas) -> Formula:
    expr = formulas.kernel()
    note = "p = A |x|^2 + B s^2, p' = A |x'|^2 + B s'^2, t = A <x, x'> + B s s'"
    shown = display("k_1", expr)
    if formulas.angular:
        in_products = formulas.k0().subs({NORM: sympy.sqrt(P), NORMP: sympy.sqrt(PP)})
        shown = display("k_1", in_products) + r",\qquad \cos\theta = \frac{t}{\sqrt{p p'}}"
    return Formula("k1", expr, shown, note)


def _order(formulas: KernelFormulas, order: int) -> Formula:
    name, left = f"k1[{order}]", f"k_1^{{({order})}}"
    what = "k1 at B = 0" if order == 0 else f"order {order} of k1 in B"
    if formulas.angular:
        expr = formulas.order_in_angle(order)
        return Formula(name, expr, display(left, expr), f"{what}; {_ANGLE_NOTE}")
    expr = formulas.order(order)
    power = r"\frac{B}{d}\," if order == 1 else rf"\left(\frac{{B}}{{d}}\right)^{{{order}}}"
    shown = display(left, expr) if order == 0 else _times(left, power, expr)
    return Formula(name, expr * formulas.power(order), shown, f"{what}; {_COVARIANCE_NOTE}")


def _times(left: str, factor: str, expr: sympy.Expr) -> str:
    """``left = factor [ expr ]``, broken into lines where it is long."""
    body = display(left, expr)
    whole = latex(expr)
    if body == f"{left} = {whole}":
        return rf"{left} = {factor}\left[ {whole} \right]"
    # a broken display: the bracket spans lines, so its size is fixed
    head, rest = body.split("&= ", 1)
    rest = rest.removesuffix("\n\\end{aligned}")
    return head + rf"&= {factor}\Bigl[ " + rest + " \\Bigr]\n\\end{aligned}"


# ---- values ----------------------------------------------------------------------------------------------------


def _strength(model: Model, A: Number | None, B: Number | None, warnings: list[str]) -> tuple[float, float]:
    """A and B: as given, or those of the model, the exact ones where they are known."""
    if A is not None and B is not None:
        return float(exact_number(A, "--A")), float(exact_number(B, "--B"))
    if not model.has_sizes:
        raise InputError(
            "missing",
            "--A and --B",
            "give them, or a model with -d, -n, -m and --eta, to evaluate the kernel",
        )
    from ..numeric.covariance import covariance

    result = covariance(model)
    for form in ("exact", "leading"):
        a, b = result.A[form], result.B[form]
        if a is not None and b is not None and a.value is not None and b.value is not None:
            warnings.append(f"A and B are the {form} ones of the model")
            return float(a.value), float(b.value)
    raise InputError("no values of A and B for this model", "--A and --B", "give them")


def _values(model_kernel: Kernel, points: tuple[Array, Array, Array], order: int) -> KernelValues:
    X, Y, w = points
    expansion = Expansion(model_kernel)
    covariance = model_kernel.covariance
    return KernelValues(
        covariance.A,
        covariance.B,
        w,
        Kernel(model_kernel.function).matrix(X, Y),
        model_kernel.matrix(X, Y),
        tuple(expansion.order(r, X, Y) for r in range(order + 1)),
        expansion.remainder(order, X, Y),
    )


def _load(path: Path, model: Model) -> tuple[Array, Array, Array]:
    """X, Y and w of the file, checked; w is the first axis where the file has none."""
    where = f"--at {path}"
    if not path.is_file():
        raise InputError("no such file", where, _FORMAT)
    try:
        # pickled objects could run code
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise InputError("not an .npz archive", where, _FORMAT)
        with archive:
            arrays = {name: np.asarray(archive[name]) for name in ("X", "Y", "w") if name in archive.files}
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"cannot be read: {error}", where, _FORMAT) from None
    for name in ("X", "Y"):
        if name not in arrays:
            raise InputError(f"no array {name}", where, _FORMAT)
        array = arrays[name]
        if array.dtype.kind not in "fiu" or array.ndim != 2 or 0 in array.shape:
            raise InputError(f"array {name} has shape {array.shape} and type {array.dtype}", where, _FORMAT)
        if not np.isfinite(array).all():
            raise InputError(f"array {name} is not finite", where, "remove NaN and infinity")
    X, Y = (arrays[name].astype(np.float64) for name in ("X", "Y"))
    d = X.shape[1]
    if Y.shape[1] != d:
        raise InputError(f"X has dimension {d}, Y has {Y.shape[1]}", where, "give points of one dimension")
    if model.d is not None and model.d != d:
        raise InputError(
            f"the points have dimension {d}, the model has {model.d}", where, "make -d agree with the file"
        )
    if len(X) * len(Y) > _MOST_ENTRIES:
        raise InputError(
            f"{len(X)} x {len(Y)} values",
            where,
            "call spikesym.numeric.kernel.Kernel(...).matrix from Python for large matrices",
        )
    return X, Y, _direction(arrays.get("w"), d, where)


def _direction(w: Array | None, d: int, where: str) -> Array:
    from ..numeric.kernel_inputs import as_direction

    return np.eye(1, d)[0] if w is None else as_direction(w, d, f"{where}, array w")


# ---- text ------------------------------------------------------------------------------------------------------


def _values_text(values: KernelValues, digits: int) -> list[str]:
    lines = [f"values at A = {values.A:.{digits}g}, B = {values.B:.{digits}g}"]
    named = [("k0", values.k0), ("k1", values.k1)]
    named += [(f"k1[{r}]", v) for r, v in enumerate(values.orders)]
    named.append(("remainder", values.remainder))
    n, m = values.k0.shape
    rows, columns = min(n, 6), min(m, max(1, 88 // (digits + 8)))
    for name, matrix in named:
        lines.append(
            f"{name}, {n} x {m}" + (f", first {rows} x {columns}:" if (rows, columns) != (n, m) else ":")
        )
        for row in matrix[:rows, :columns]:
            lines.append("  " + "  ".join(f"{v:>{digits + 6}.{digits}g}" for v in row))
    return lines


def _name(activation: Any) -> str:
    return activation if isinstance(activation, str) else getattr(activation, "__name__", str(activation))
