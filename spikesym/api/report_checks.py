"""The report's own check of the kernels at this A and B: closed forms against the defining expectation.

The expectation E sigma(U) sigma(U') is integrated here from the definition, by Gauss-Legendre panels that are
split at the activation's break points; nothing of the kernel code is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model import Model

Array = NDArray[np.float64]

#: the normal density is cut here; what is left out is below 1e-30 of a Lipschitz activation's moments
_CUT = 12.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def defining_expectation(
    activation: Callable[[Array], Array], breaks: Array, q: float, qp: float, t: float
) -> float:
    """E sigma(U) sigma(U') for centred Gaussians of variances q, q' and covariance t, by split quadrature.

    Parameters
    ----------
    activation : callable
        sigma on arrays.
    breaks : array of shape (k,)
        Points where sigma is not smooth.
    q, qp, t : float
        With q, q' > 0 and t^2 < q q'.

    Examples
    --------
    >>> value = defining_expectation(np.abs, np.array([0.0]), 1.0, 4.0, 0.0)
    >>> bool(abs(value - 4 / np.pi) < 1e-13)
    True
    """
    correlation = t / np.sqrt(q * qp)
    rest = np.sqrt((q * qp - t * t) / (q * qp))
    outer, outer_weight = _panels(breaks[None, :] / np.sqrt(q))
    outer, outer_weight = outer[0], outer_weight[0]
    inner, inner_weight = _panels((breaks[None, :] / np.sqrt(qp) - correlation * outer[:, None]) / rest)
    second = activation(np.sqrt(qp) * (correlation * outer[:, None] + rest * inner))
    mean = np.sum(second * inner_weight, axis=1)
    return float(np.sum(activation(np.sqrt(q) * outer) * mean * outer_weight))


def _panels(breaks: Array) -> tuple[Array, Array]:
    """Nodes and weights (normal density included) of panels split at the breaks of each row."""
    grid = np.linspace(-_CUT, _CUT, 25)
    edges = np.concatenate(
        [np.broadcast_to(grid, (len(breaks), len(grid))), np.clip(breaks, -_CUT, _CUT)], axis=1
    )
    edges.sort(axis=1)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    nodes = ((edges[:, 1:] + edges[:, :-1]) / 2)[:, :, None] + half * _NODES
    weights = half * _WEIGHTS * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)
    return nodes.reshape(len(breaks), -1), weights.reshape(len(breaks), -1)


def kernel_check(model: Model, A: float, B: float, seed: int, points: int = 6) -> dict[str, Any]:
    """Compare k0, k1 and the first-order term with quadrature of their definitions at random points.

    The first-order term is compared with the derivative in B of the integrated expectation, by central
    differences extrapolated twice; what the last extrapolation changed is its error estimate.
    """
    from ..numeric.kernel import Kernel
    from ..symbolic.functions import make_function

    assert model.d is not None
    d = model.d
    function = make_function(model.activation, "activation", model.parameters)
    sigma = function.numpy()
    breaks = np.array([float(b) for b in function.breakpoints(radius=1000)])
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,)))
    w = np.zeros(d)
    w[0] = 1.0
    X, Y = (rng.standard_normal((points, d)) * rng.uniform(0.3, 2.0, (points, 1)) for _ in range(2))

    def definition(a: float, b: float, k: int) -> float:
        q, qp = ((a * (z[k] @ z[k]) + b * z[k, 0] ** 2) / d for z in (X, Y))
        t = (a * (X[k] @ Y[k]) + b * X[k, 0] * Y[k, 0]) / d
        return defining_expectation(sigma, breaks, q, qp, t)

    rows: list[dict[str, Any]] = []
    for name, a, b in (("k0", 1.0, 0.0), ("k1", A, B)):
        closed = np.diag(Kernel(function, A=a, B=b, w=w).matrix(X, Y))
        integrated = np.array([definition(a, b, k) for k in range(points)])
        worst = float(np.max(np.abs(closed - integrated) / np.abs(integrated)))
        against = "quadrature of E σ(⟨w,x⟩) σ(⟨w,x'⟩)"
        rows.append({"name": name, "points": points, "largest": worst, "bound": 1e-9, "against": against})

    worst, bound = 0.0, 0.0
    for k in range(points):
        value = _first_order(function, A, X[k], Y[k])
        derivative, error = _derivative(lambda b, k=k: definition(A, b, k), 0.05 * A)  # type: ignore[misc]
        worst = max(worst, abs(value - derivative) / abs(derivative))
        bound = max(bound, 10 * error / abs(derivative), 1e-9)
    against = "derivative in B of the integrated expectation"
    rows.append(
        {"name": "first order", "points": points, "largest": worst, "bound": bound, "against": against}
    )
    for row in rows:
        row["passed"] = bool(row["largest"] < row["bound"])
    return {"rows": rows}


def _first_order(function: Any, A: float, x: Array, y: Array) -> float:
    """The first-order term per unit of B, from the kernel's expansion, with w* the first axis."""
    from ..numeric.kernel import Kernel
    from ..numeric.kernel_expansion import Expansion

    w = np.zeros(len(x))
    w[0] = 1.0
    expansion = Expansion(Kernel(function, A=A, B=1.0, w=w))
    return float(expansion.order(1, x[None], y[None])[0, 0])


def _derivative(f: Callable[[float], float], h: float) -> tuple[float, float]:
    """Derivative at 0 by central differences with three steps, extrapolated; and the last change."""
    steps = [h, h / 2, h / 4]
    first = [(f(s) - f(-s)) / (2 * s) for s in steps]
    second = [(4 * first[i + 1] - first[i]) / 3 for i in range(2)]
    third = (16 * second[1] - second[0]) / 15
    return third, abs(third - second[1])
