"""Enclosures of the largest eigenvalues of a graded positive semidefinite operator from one truncated block.

The operator is split by an orthonormal set V of approximate eigenvectors: H = V^T M V, the rest E, the coupling C.
For theta_i > |E| the number of eigenvalues above mu > |E| is that of H + C^T (mu - E)^-1 C, so

    theta_i <= lambda_i <= theta_i + |C|^2 / (theta_i - |E|),

and, M being positive semidefinite, what is left out of the block adds at most its norm. Everything is in balls;
the approximate eigenvectors may come from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from flint import acb_mat, arb, arb_mat, ctx

from ..errors import CertificationError, PostconditionError

#: eigenvectors kept beyond the wanted ones, so that the rest is small beside the smallest wanted eigenvalue
_GUARD = 6
_DIRECT_SIZE = 16
_MAX_ITERATIONS = 200


@dataclass(frozen=True)
class Enclosures:
    """Enclosed eigenvalues, largest first, with unit eigenvectors and bounds of the angles to the true ones.

    ``sines[i]`` bounds the sine of the angle between ``vectors[i]`` (components on the kept harmonics) and the
    eigenvector of the infinite operator. ``lower`` are the lower bounds, which hold even where an eigenvalue is not
    separated from what is left out (its ball is then infinite). ``basis`` holds all approximate eigenvectors as
    columns, to start from.
    """

    values: list[arb]
    lower: list[arb]
    vectors: list[list[arb]]
    sines: list[arb]
    basis: arb_mat


def leading_eigenvectors(
    matrix: arb_mat, count: int, tolerance: arb, start: arb_mat | None = None
) -> arb_mat:
    """Approximate leading eigenvectors (columns) of a symmetric positive semidefinite graded matrix; not enclosed.

    Subspace iteration with Rayleigh-Ritz, from ``start`` (columns, padded with zeros) or from the leading corner.
    ``tolerance`` is the relative size of the residual, against each eigenvalue, at which the iteration stops.
    """
    size = matrix.nrows()
    if start is None or start.ncols() != count:
        small = min(size, max(_DIRECT_SIZE, count + 4))
        start = _eigenvectors(
            arb_mat(small, small, [matrix[i, j] for i in range(small) for j in range(small)]), count
        )
        if small == size:
            return start
    basis = arb_mat([list(row) for row in start.tolist()] + [[arb(0)] * count] * (size - start.nrows()))
    for _ in range(_MAX_ITERATIONS):
        basis = _orthonormal((matrix * (matrix * basis).mid()).mid()).mid()
        image = (matrix * basis).mid()
        small_matrix = (basis.transpose() * image).mid()
        rotation = _eigenvectors(small_matrix, count)
        basis, image = (basis * rotation).mid(), (image * rotation).mid()
        rayleigh = [_dot(basis, image, i) for i in range(count)]
        wanted = max(1, count - _GUARD)
        # small beside its own eigenvalue for the eigenvector; its square small beside the last for the eigenvalues
        floor = tolerance.sqrt() * rayleigh[wanted - 1] / 10
        residuals = [
            arb(
                sum(((image[r, i] - rayleigh[i] * basis[r, i]) ** 2 for r in range(size)), arb(0)).upper()
            ).sqrt()
            for i in range(wanted)
        ]
        if all(r < tolerance * t and r < floor for r, t in zip(residuals, rayleigh, strict=False)):
            return basis
    raise CertificationError(f"the leading {count} eigenvectors of a block of size {size} did not converge")


def enclose(
    matrix: arb_mat,
    wanted: int,
    tail: arb,
    coupling: Callable[[Sequence[arb]], arb],
    tolerance: arb,
    start: arb_mat | None = None,
) -> Enclosures:
    """Enclosures of the ``wanted`` largest eigenvalues of the operator of which ``matrix`` is the leading block.

    Parameters
    ----------
    matrix : arb_mat
        Leading block, positive semidefinite, as balls.
    wanted : int
        Number of eigenvalues; at most the size.
    tail : arb
        Upper bound of the norm of the block left out.
    coupling : callable
        Maps a vector on the kept degrees to a bound of the norm of the left-out rows times it.
    tolerance : arb
        Relative residual at which the search for eigenvectors stops.
    start : arb_mat, optional
        Approximate eigenvectors of a smaller block, as columns.
    """
    size = matrix.nrows()
    count = min(size, wanted + _GUARD)
    approximate = leading_eigenvectors(matrix, count, tolerance, start)
    basis = _orthonormal(approximate)
    image = matrix * basis
    projected = basis.transpose() * image
    theta = [projected[i, i] for i in range(count)]
    kept = range(wanted)
    mixed = [sum((abs(projected[i, j]) for j in kept if j != i), arb(0)) for i in kept]
    lower = [arb((theta[i] - mixed[i]).lower()) for i in kept]
    ritz = [arb((theta[i] + mixed[i]).upper()) for i in kept]
    if not all(lower[i] > ritz[i + 1] for i in range(wanted - 1)):
        raise PostconditionError("Gershgorin discs of the projected block overlap: more bits are needed")
    inner = [_excess(_dot(image, image, i), (projected[j, i] for j in kept)) for i in kept]
    inside = sum(inner, arb(0))
    rest = _rest_norm(matrix, image, projected, wanted)
    vectors = [[basis[r, i] for r in range(size)] for i in kept]
    outer = [coupling(v) ** 2 for v in vectors]
    across = sum(outer, arb(0))
    values, upper = [], []
    for i in kept:
        bounds = []
        if lower[i] > rest:
            bounds.append(inside / (lower[i] - rest) + tail)
        if lower[i] > rest + tail and across.is_finite():
            bounds.append((inside + across) / (lower[i] - rest - tail))
        # not separated from what is left out: only the lower bound stands
        upper.append(arb((ritz[i] + _least(bounds)).upper()) if bounds else arb.pos_inf())
        values.append(lower[i].union(upper[i]) if bounds else arb(0, float("inf")))
    sines = []
    for i in kept:
        residual = (inner[i] + _least([theta[i] * tail, outer[i]]) + mixed[i] ** 2).upper().sqrt()
        gaps = [lower[i] - (upper[i + 1] if i + 1 < wanted else rest + tail)]
        if i:
            gaps.append(lower[i - 1] - upper[i])
        sines.append(_sine(residual, arb(_least([gap.lower() for gap in gaps]))))
    return Enclosures(values, lower, vectors, sines, basis.mid())


def _sine(residual: arb, gap: arb) -> arb:
    """Davis and Kahan: the sine of the angle is at most residual over gap; 1 where that says nothing."""
    if not (gap > 0 and gap.is_finite()):
        return arb(1)
    sine = arb((residual / gap).upper())
    return sine if sine < 1 else arb(1)


def _least(balls: Sequence[arb]) -> arb:
    """The smallest upper end among the balls, compared as balls: doubles would underflow."""
    best = arb(balls[0].upper())
    for ball in balls[1:]:
        if ball.is_finite() and (not best.is_finite() or arb(ball.upper()) < best):
            best = arb(ball.upper())
    return best


def _excess(square: arb, parts: Iterable[arb]) -> arb:
    """Upper bound of ``square`` less the squares of the parts, which is not negative in exact arithmetic."""
    bound = (square - sum((p * p for p in parts), arb(0))).upper()
    return arb(bound) if bound > 0 else arb(0)


def _rest_norm(matrix: arb_mat, image: arb_mat, projected: arb_mat, wanted: int) -> arb:
    """Bound of the norm of the block without the wanted vectors.

    That is the guard vectors (Gershgorin), the rest of the block (Frobenius: |M|^2 - 2 |M P|^2 + |P M P|^2 with P the
    projector on all vectors), and the coupling of the two.
    """
    size, count = image.nrows(), image.ncols()
    guard = arb(0)
    for i in range(wanted, count):
        guard = _larger(guard, sum((abs(projected[i, j]) for j in range(wanted, count)), arb(0)))
    if count == size:
        return guard
    total = _square_sum(matrix) - 2 * _square_sum(image) + _square_sum(projected)
    bound = arb(total.upper())
    beyond = bound.sqrt() if bound > 0 else arb(0)
    joint = sum(
        (
            _excess(_dot(image, image, i), (projected[j, i] for j in range(count)))
            for i in range(wanted, count)
        ),
        arb(0),
    )
    return arb((_larger(guard, beyond) + joint.sqrt()).upper())


def _square_sum(matrix: arb_mat) -> arb:
    entries = matrix.entries()
    return (arb_mat(1, len(entries), entries) * arb_mat(len(entries), 1, entries))[0, 0]


def _larger(left: arb, right: arb) -> arb:
    """The larger of the upper ends."""
    a, b = arb(left.upper()), arb(right.upper())
    return a if a > b else b


def _eigenvectors(matrix: arb_mat, count: int) -> arb_mat:
    """Approximate eigenvectors of the ``count`` largest eigenvalues of a small symmetric matrix, as columns."""
    values, right = acb_mat(matrix.mid()).eig(right=True, algorithm="approx", tol=arb(2) ** (-ctx.prec + 8))
    order = sorted(range(len(values)), key=lambda i: _sort_key(values[i].real.mid()), reverse=True)[:count]
    size = matrix.nrows()
    columns = arb_mat(size, count, [right[r, i].real.mid() for r in range(size) for i in order])
    return _normalised(columns)


def _sort_key(value: arb) -> tuple[int, float]:
    """Order by size without leaving the range of doubles."""
    if not value > 0:
        return (0, float(value))
    man, exp = value.man_exp()
    return (1, float(arb(man).log()) + float(exp) * 0.6931471805599453)


def _normalised(columns: arb_mat) -> arb_mat:
    size, count = columns.nrows(), columns.ncols()
    norms = [_dot(columns, columns, i).sqrt().mid() for i in range(count)]
    return arb_mat(size, count, [(columns[r, i] / norms[i]).mid() for r in range(size) for i in range(count)])


def _orthonormal(columns: arb_mat) -> arb_mat:
    """Exactly orthonormal columns spanning the same space, as balls: Gram-Schmidt through Cholesky."""
    columns = _normalised(columns.mid())
    lower = _cholesky((columns.transpose() * columns).tolist())
    count = len(lower)
    inverse = [[arb(0)] * count for _ in range(count)]
    for j in range(count):
        inverse[j][j] = 1 / lower[j][j]
        for i in range(j + 1, count):
            inverse[i][j] = -sum((lower[i][k] * inverse[k][j] for k in range(j, i)), arb(0)) / lower[i][i]
    return columns * arb_mat(inverse).transpose()


def _cholesky(rows: list[list[arb]]) -> list[list[arb]]:
    size = len(rows)
    lower = [[arb(0)] * size for _ in range(size)]
    for j in range(size):
        pivot = rows[j][j] - sum((lower[j][k] ** 2 for k in range(j)), arb(0))
        if not pivot > 0:
            raise PostconditionError("approximate eigenvectors are linearly dependent: more bits are needed")
        lower[j][j] = pivot.sqrt()
        for i in range(j + 1, size):
            lower[i][j] = (rows[i][j] - sum((lower[i][k] * lower[j][k] for k in range(j)), arb(0))) / lower[
                j
            ][j]
    return lower


def _dot(left: arb_mat, right: arb_mat, column: int) -> arb:
    rows = range(left.nrows())
    row = arb_mat(1, len(rows), [left[r, column] for r in rows])
    return (row * arb_mat(len(rows), 1, [right[r, column] for r in rows]))[0, 0]
