"""From the definition of one gradient step to the scalar means that A and B are made of.

Gradient, square of the trained weight, average over the readout, rotation invariance, Stein's lemma: for any link and
activation, any n, m, d, both initialisations and both residuals. Every step is judged by exact arithmetic on the
network itself (:mod:`.brute_force`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache

import sympy
from sympy import KroneckerDelta, Sum

from .brute_force import BruteForce
from .derivation import Derivation, Step, equal_exactly
from .means import (
    COMPANION,
    NU,
    ZETA1,
    Activation,
    DirectionMean,
    GaussianMean,
    Link,
    NormMean,
    TestModel,
    exact_mean,
    random_test_model,
    stein,
)
from .symbols import ETA, KAPPA4, LATEX_NAMES, RHO, TAU2, VARSIGMA, D, M, N, S

#: 1 for the full residual y - f(x), 0 for the labels alone
FULL = sympy.Symbol("F", integer=True, nonnegative=True)
#: norm of another neuron's weight
NU2 = sympy.Symbol("nu2", positive=True)
#: d E[(v.w(1))^2] for a unit vector v
GAMMA_V = sympy.Symbol("Gamma_v", positive=True)
LATEX_NAMES.update({FULL: r"\mathbf{1}_{\text{full}}", NU2: r"\nu'", GAMMA_V: r"v^{\top}\Gamma v"})

_U = r"\langle w, x\rangle"
_TWO = rf"\sigma'({_U})\sigma'(\langle w,x'\rangle)\langle v,x\rangle\langle v,x'\rangle"
#: the means left after the average over the readout, by name: symbols with their LaTeX
MOMENTS = {
    name: sympy.Symbol(f"M_{name}", real=True)
    for name in (
        "initial",
        "cross",
        "labels_one",
        "labels_two",
        "own_one",
        "own_two",
        "others_one",
        "others_two",
    )
}
_MOMENT_LATEX = {
    "initial": r"\langle v,w\rangle^{2}",
    "cross": rf"\sigma({_U})\,\sigma'({_U})\,\langle v,w\rangle\langle v,x\rangle",
    "labels_one": rf"y^{{2}}\sigma'({_U})^{{2}}\langle v,x\rangle^{{2}}",
    "labels_two": rf"y\,y'\sigma'({_U})\,\sigma'(\langle w,x'\rangle)\langle v,x\rangle\langle v,x'\rangle",
    "own_one": rf"(\sigma\sigma')({_U})^{{2}}\langle v,x\rangle^{{2}}",
    "own_two": rf"(\sigma\sigma')({_U})\,(\sigma\sigma')(\langle w,x'\rangle)\langle v,x\rangle\langle v,x'\rangle",
    "others_one": rf"\sigma(\langle w',x\rangle)^{{2}}\sigma'({_U})^{{2}}\langle v,x\rangle^{{2}}",
    "others_two": rf"\sigma(\langle w',x\rangle)\sigma(\langle w',x'\rangle)\,{_TWO}",
}
LATEX_NAMES.update({MOMENTS[k]: rf"\mathbb{{E}}\left[{v}\right]" for k, v in _MOMENT_LATEX.items()})

_w, _x, _a, _y = (sympy.IndexedBase(name, real=True) for name in "wxay")
_i, _l, _c, _j, _e = sympy.symbols("i l c j e", integer=True, positive=True)


def _preactivation(neuron: sympy.Expr, sample: sympy.Expr) -> sympy.Expr:
    return Sum(_w[neuron, _c] * _x[sample, _c], (_c, 1, D))


def loss() -> sympy.Expr:
    """L = (1/2n) sum_i (f(x_i) - y_i)^2 with f(x) = m^(-1/2) sum_l a_l sigma(<w_l, x>), in indexed variables."""
    output = Sum(_a[_l] * Activation(0, _preactivation(_l, _i)), (_l, 1, M)) / sympy.sqrt(M)
    return Sum((output - _y[_i]) ** 2, (_i, 1, N)) / (2 * N)


def collapse_deltas(expr: sympy.Expr) -> sympy.Expr:
    """Carry out sums over a Kronecker delta whose other index lies in the range of the sum."""
    if not expr.args or not expr.has(KroneckerDelta):
        return expr
    expr = expr.func(*[collapse_deltas(a) if isinstance(a, sympy.Expr) else a for a in expr.args])
    if isinstance(expr, Sum):
        body, (index, _, _) = expr.args[0], expr.args[1]
        for factor in sympy.Mul.make_args(body):
            if isinstance(factor, KroneckerDelta) and index in factor.args:
                other = next(a for a in factor.args if a != index)
                return (body / factor).subs(index, other)
        # a delta that the sum does not touch stands before it
        outside = [f for f in sympy.Mul.make_args(body) if not f.has(index)]
        if outside:
            return sympy.Mul(*outside) * Sum(body / sympy.Mul(*outside), *expr.args[1:])
    return expr


def _gradient_judge(before: sympy.Expr, after: sympy.Expr, seed: int) -> tuple[bool, str]:
    """Differentiate the written-out loss at small sizes, with the activation left undefined, and compare."""
    rng = random.Random(seed)
    sizes = {D: rng.choice([2, 3]), N: rng.choice([1, 2]), M: rng.choice([2, 3])}
    written, formula = (e.subs(sizes).doit(deep=True) for e in (before.args[0], after.subs({_j: 2, _e: 1})))
    names = {
        entry: sympy.Symbol("_".join(map(str, entry.args)), real=True)
        for entry in (written + formula).atoms(sympy.Indexed)
    }
    difference = sympy.diff(written.xreplace(names), names[_w[2, 1]]) - formula.xreplace(names)
    passed = sympy.expand(difference) == 0
    return (
        passed,
        f"the written-out loss at sizes {list(sizes.values())} has this derivative"
        if passed
        else "differs from the derivative of the written-out loss",
    )


def gradient_step() -> Step:
    """The gradient of the loss in one weight, from SymPy's derivative of the indexed sums."""
    before = sympy.Derivative(loss(), _w[_j, _e])
    after = sympy.powsimp(collapse_deltas(before.doit()))
    return Step(
        "gradient of the loss in one entry of the first layer (chain rule)", before, after, _gradient_judge
    )


#: scalars at one or two samples: label, own output, preactivation derivative times <v,x>, sum of the other outputs
_A = sympy.Symbol("a_j", real=True)
_R = sympy.symbols("r_1 r_2", real=True)
_Y = sympy.symbols("y_1 y_2", real=True)
_OWN = sympy.symbols("s_1 s_2", real=True)
_SUM = sympy.symbols("O_1 O_2", real=True)
_OTHER = sympy.symbols("t_1 t_2", real=True)
#: means with the readout still inside
_READOUT = {k: sympy.Symbol(f"E_{k}", real=True) for k in ("cross", "one", "two")}
LATEX_NAMES.update(
    {
        _READOUT[
            "cross"
        ]: rf"\mathbb{{E}}\left[a_j r\,\sigma'({_U})\langle v,w\rangle\langle v,x\rangle\right]",
        _READOUT[
            "one"
        ]: rf"\mathbb{{E}}\left[a_j^{{2}} r^{{2}}\sigma'({_U})^{{2}}\langle v,x\rangle^{{2}}\right]",
        _READOUT["two"]: rf"\mathbb{{E}}\left[a_j^{{2}} r\,r'{_TWO}\right]",
    }
)


def square() -> sympy.Expr:
    """d E[(v.w(1))^2] with w(1) = w + eta/(n sqrt m) a_j sum_i r_i sigma'_i x_i, the samples being exchangeable."""
    old, new, step = sympy.symbols("old new step")
    expanded = sympy.Poly((old + step * new) ** 2, old, new)
    # means of old^2, old * sum_i q_i and (sum_i q_i)(sum_k q_k): n equal terms, n equal and n(n-1) unequal pairs
    means = {
        (2, 0): MOMENTS["initial"],
        (1, 1): N * _READOUT["cross"],
        (0, 2): N * _READOUT["one"] + N * (N - 1) * _READOUT["two"],
    }
    total = sum(c * means[k] for k, c in expanded.terms())
    return sympy.expand(D * total.subs(step, ETA / (N * sympy.sqrt(M))))


def average_readout(expr: sympy.Expr) -> sympy.Expr:
    """Mean over the readout of a polynomial in a_j and the sums O_i = sum_{l != j} a_l sigma(<w_l, x_i>).

    The a_l are independent and symmetric with E a^2 = varsigma^2/m and E a^4 = kappa_4 varsigma^4/m^2, so that
    E[O_i O_k] = (m - 1) E[a^2] t_i t_k, with t_i the output of one other neuron.
    """
    variance = VARSIGMA**2 / M
    own = {0: sympy.Integer(1), 2: variance, 4: KAPPA4 * variance**2}
    total = sympy.Integer(0)
    for (k, p, q), coefficient in sympy.Poly(sympy.expand(expr), _A, *_SUM).terms():
        if k % 2 or (p + q) % 2:
            continue
        if p + q > 2:
            raise ValueError("only second moments of the other neurons enter")
        others = (M - 1) * variance * _OTHER[0] ** p * _OTHER[1] ** q if p + q else 1
        total += coefficient * own[k] * others
    # the residual mode is a switch: F^2 = F
    return sympy.expand(total).replace(lambda e: e.is_Pow and e.base == FULL, lambda e: FULL)


def _residual(index: int) -> sympy.Expr:
    return _Y[index] - FULL * (_A * _OWN[index] + _SUM[index]) / sympy.sqrt(M)


def readout_averages() -> dict[str, sympy.Expr]:
    """The means of ``square`` after the average over the readout, in terms of :data:`MOMENTS`."""
    cross = average_readout(_A * _residual(0)).subs(_OWN[0], MOMENTS["cross"])
    result = {"cross": cross}
    for kind, second in (("one", 0), ("two", 1)):
        averaged = average_readout(_A**2 * _residual(0) * _residual(second))
        pairs = {"labels": _Y, "own": _OWN, "others": _OTHER}
        result[kind] = sympy.expand(averaged).subs(
            {v[0] * v[second]: MOMENTS[f"{k}_{kind}"] for k, v in pairs.items()}
        )
    return result


def second_moment() -> sympy.Expr:
    """v^T Gamma v in terms of :data:`MOMENTS`, for any unit vector v."""
    averaged = readout_averages()
    return sympy.expand(square().subs({_READOUT[k]: v for k, v in averaged.items()}))


def rotated(name: str, along: bool) -> sympy.Expr:
    """A mean of :data:`MOMENTS` by rotation invariance, for v = w* (``along``) or v orthogonal to w*.

    Given the weight w = nu omega with <omega, w*> = rho, the plane of w* and omega carries the Gaussian pair
    (s, zeta), <omega, x> = rho s + sqrt(1 - rho^2) zeta; what is left of the data is independent of both.
    """
    z = RHO * S + COMPANION * ZETA1
    label2 = Link(0, S) ** 2 + TAU2
    dsigma, dsigma2 = Activation(1, NU * z), Activation(1, NU * z) ** 2

    def weights(inner: sympy.Expr) -> sympy.Expr:
        return NormMean(DirectionMean(inner, RHO), NU)

    def mean(inner: sympy.Expr) -> sympy.Expr:
        return GaussianMean(inner, S, ZETA1)

    if name == "labels_one" and along:
        return weights(mean(label2 * S**2 * dsigma2))
    if name == "labels_one":
        return weights(mean(label2 * dsigma2 * (ZETA1**2 + D - 2))) / (D - 1)
    if name == "labels_two" and along:
        return weights(mean(S * Link(0, S) * dsigma) ** 2)
    if name == "labels_two":
        return weights(mean(ZETA1 * Link(0, S) * dsigma) ** 2) / (D - 1)
    # no target enters: the direction of w itself is uniform, every v is alike
    one, own = NU * S, Activation(0, NU * S) * Activation(1, NU * S)
    if name == "initial":
        return 1 / D
    if name == "cross":
        return NormMean(GaussianMean(one * own, S), NU) / D
    if name == "own_one":
        return NormMean(GaussianMean(own**2 * (S**2 + D - 1), S), NU) / D
    if name == "own_two":
        return NormMean(GaussianMean(S * own, S) ** 2, NU) / D
    # here s belongs to the other neuron, and rho is the cosine of the two weights
    other = Activation(0, NU2 * S)

    def pair(inner: sympy.Expr) -> sympy.Expr:
        return NormMean(DirectionMean(inner, RHO), NU, NU2) / D

    if name == "others_one":
        return pair(mean(other**2 * dsigma2 * (S**2 + ZETA1**2 + D - 2)))
    return pair(mean(S * other * dsigma) ** 2 + mean(ZETA1 * other * dsigma) ** 2)


def by_stein(expr: sympy.Expr) -> sympy.Expr:
    """Remove every factor zeta, once, by Stein's lemma; zeta^2 twice."""

    def reduce(node: sympy.Expr) -> sympy.Expr:
        total = sympy.Integer(0)
        for power, coefficient in powers_of_zeta(node.integrand):
            plain = GaussianMean(coefficient, *node.variables)
            if power == 0:
                total += _pull(plain)
            elif power == 1:
                total += _pull(stein(GaussianMean(ZETA1 * coefficient, *node.variables), ZETA1))
            else:
                # E[zeta (zeta F)] = E[F] + E[zeta F'] = E[F] + E[F'']
                total += _pull(plain) + _pull(
                    GaussianMean(sympy.diff(coefficient, ZETA1, 2), *node.variables)
                )
        return total

    return expr.replace(GaussianMean, lambda *a: reduce(GaussianMean(*a)))


def powers_of_zeta(integrand: sympy.Expr) -> list[tuple[int, sympy.Expr]]:
    """Split an integrand by its explicit powers of zeta (those outside the activation and the link)."""
    mark = sympy.Dummy()
    hidden = integrand.replace(
        lambda e: isinstance(e, Activation), lambda e: e.func(e.args[0], e.args[1].subs(ZETA1, mark))
    )
    return [(k[0], c.subs(mark, ZETA1)) for k, c in sympy.Poly(sympy.expand(hidden), ZETA1).terms()]


def _pull(node: sympy.Expr) -> sympy.Expr:
    """Take factors without bound variables out of a mean, and split sums."""
    total = sympy.Integer(0)
    for term in sympy.Add.make_args(sympy.expand(node.integrand)):
        outside, inside = term.as_independent(*node.variables, as_Add=False)
        total += outside * GaussianMean(inside, *node.variables)
    return total


def _model_sampler(
    residual: str | None = None, sizes: tuple[int, int, int] | None = None
) -> Callable[[random.Random], tuple[TestModel, int]]:
    def draw(rng: random.Random) -> tuple[TestModel, int]:
        model = random_test_model(rng, sizes=sizes)
        mode = residual or rng.choice(["full", "labels"])
        return TestModel(**{**model.__dict__, "residual": mode}), rng.choice([0, 1])

    return draw


def model_values(model: TestModel) -> dict[sympy.Symbol, sympy.Expr]:
    """Sizes, step and moments of a test model, by symbol."""
    full = int(model.residual == "full")
    return {
        D: sympy.Integer(model.d), N: sympy.Integer(model.n), M: sympy.Integer(model.m), ETA: model.eta,
        TAU2: model.tau2, VARSIGMA: model.varsigma, KAPPA4: model.kappa4, FULL: sympy.Integer(full),
    }  # fmt: skip


def _defined(expr: sympy.Expr, drawn: tuple[TestModel, int]) -> sympy.Expr:
    """Value of Gamma_v, or of means over the whole network, straight from the definition."""
    model, direction = drawn
    network = BruteForce(model)
    values = model_values(model)
    for symbol in expr.free_symbols:
        if symbol == GAMMA_V:
            values[symbol] = network.gamma(direction)
        for name, moment in MOMENTS.items():
            if symbol == moment:
                values[symbol] = network.moment(name, direction)
    return expr.subs(values)


def _scalar(expr: sympy.Expr, drawn: tuple[TestModel, int]) -> sympy.Expr:
    model, _ = drawn
    return exact_mean(expr, model).subs(model_values(model))


@lru_cache(maxsize=1)
def general_derivation() -> Derivation:
    """The steps from the loss to v^T Gamma v in scalar means; results ``along`` (A + B) and ``across`` (A)."""
    steps = [gradient_step()]
    steps.append(
        Step(
            "square of the trained weight; average over a symmetric readout of variance varsigma^2/m and kurtosis kappa_4",
            GAMMA_V,
            second_moment(),
            equal_exactly(_model_sampler(), _defined, _defined),
        )
    )
    results = {}
    for along in (True, False):
        values = {}
        for name, symbol in MOMENTS.items():
            if not along and "labels" not in name:
                continue
            rotated_mean = rotated(name, along)
            side = 0 if along else 1

            def sample(rng: random.Random, side: int = side) -> tuple[TestModel, int]:
                return random_test_model(rng, sizes=(rng.choice([2, 3]), 2, 2)), side

            where = "v = w*" if along and "labels" in name else "v orthogonal to w*" if not along else "any v"
            steps.append(
                Step(
                    f"rotation invariance, {where}",
                    symbol,
                    rotated_mean,
                    equal_exactly(sample, _defined, _scalar, points=1),
                )
            )
            reduced = by_stein(rotated_mean)
            if reduced != rotated_mean and rotated_mean.has(ZETA1):
                steps.append(
                    Step(
                        "Stein's lemma in the coordinate zeta",
                        rotated_mean,
                        reduced,
                        equal_exactly(sample, _scalar, _scalar, points=1),
                    )
                )
            values[name] = reduced
        if along:
            common = dict(values)
        merged = {**common, **values}
        results["along" if along else "across"] = second_moment().subs(
            {MOMENTS[k]: v for k, v in merged.items()}
        )
    return Derivation("second moment of the features after one gradient step", tuple(steps), results)
