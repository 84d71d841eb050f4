"""Certified spectrum of k1 for ReLU-like activations: one chain (parity of a sector) at a time, truncation included.

Every number is in units of A and for the ReLU; p z + q |z| multiplies the even eigenvalues by (2q)^2 and the linear
ones by (2p)^2. The order of the eigenvalues within a chain labels them: at B = 0 they are A d a_ell^2, simple and
decreasing in ell, and an eigenvalue that is simple along the way keeps its place (for even d the Gram matrix is
totally positive, so all stay simple at every B; for odd d simplicity is certified at the given B only).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb, arb_mat, ctx

from ..errors import CertificationError, PostconditionError
from .enclosure import Enclosures, enclose
from .gram import NotConverged, first_degree, gram
from .sphere import relu_coefficients
from .tail import coupling, shares, tail_norm

#: largest block; its Gram matrix takes seconds
MAX_SIZE = 800
#: blocks up to this size are enlarged further, so that eigenvectors are certified as well as eigenvalues
_VECTOR_SIZE = 96
_START_SIZE = 12
_MOST_EXTRA_BITS = 20000
#: fewest digits worth returning
_LEAST_DIGITS = 4

Encloser = Callable[[int], arb]


@dataclass(frozen=True)
class Chain:
    """Eigenvalues lambda/A of one sector's even chain, largest first, with eigenvectors.

    Attributes
    ----------
    degrees : list of int
        Harmonic that each eigenfunction grows from as B -> 0.
    values : list of arb
        Rigorous enclosures, truncation included.
    weights : list of dict
        For each eigenfunction, degree -> ball of the squared component on the normalised harmonic.
    signs : list of dict
        Signs of the components, the first one positive.
    base : list of arb
        Eigenvalues at B = 0.
    truncation : int
        Largest degree kept.
    tail : arb
        Bound of the norm of what is left out.
    """

    d: int
    sector: int
    degrees: list[int]
    values: list[arb]
    base: list[arb]
    weights: list[dict[int, arb]]
    signs: list[dict[int, int]]
    truncation: int
    tail: arb

    @property
    def ratios(self) -> list[arb]:
        """value / base for each eigenvalue."""
        return [v / b for v, b in zip(self.values, self.base, strict=True)]


def block(d: int, sector: int, ratio: Encloser, size: int, bits: int) -> arb_mat:
    """The leading block M/A of the sector's even chain, exact entries as balls of ``bits`` bits.

    Rows and columns are the degrees l, l+2, ... (l even) or l+1, l+3, ... (l odd). The recurrence loses bits where
    the degree passes d; they are added until none is missing.

    Examples
    --------
    >>> m = block(3, 0, lambda bits: arb(0), 2, 80)
    >>> print(m[0, 0].str(10, radius=False), m[0, 1])
    0.1875000000 0
    """
    start = first_degree(sector) // 2
    extra = 30 + size // 4
    while True:
        with ctx.workprec(bits + extra):
            g = gram(d, sector, ratio(bits + extra), size)
            missing = bits - min(g[i][0].rel_accuracy_bits() for i in range(size))
            if missing <= 0:
                break
        extra = max(2 * extra, extra + missing + 20)
        if extra > _MOST_EXTRA_BITS:
            raise CertificationError(
                f"B/A = {ratio(bits).str(6)} is not known to the {bits} bits that the block needs"
            )
    a = relu_coefficients(d, start + size, bits + 10)[start:]
    with ctx.workprec(bits):
        matrix = arb_mat(size, size)
        for i in range(size):
            scale = a[i] * d
            for j, entry in enumerate(g[i], start=i):
                matrix[i, j] = matrix[j, i] = scale * a[j] * entry
        return matrix


def solve_chain(d: int, sector: int, ratio: Encloser, degrees: int, digits: int = 15) -> Chain:
    """The sector's non-linear eigenvalues up to the degree given, enclosed to ``digits`` digits where possible.

    Parameters
    ----------
    d : int
        At least 2.
    sector : int
        l >= 0; at most 1 for d = 2.
    ratio : callable
        b = B/A > -1 as a function from bits to a ball.
    degrees : int
        Largest degree wanted; nothing is returned when the sector begins above it.
    digits : int
        Relative accuracy wanted. Where the largest block cannot reach it, the enclosures are as wide as
        they are, with at least 4 digits.

    Raises
    ------
    CertificationError
        When even 4 digits are out of reach: B/(A d) is too large for the harmonics that can be kept.

    Examples
    --------
    >>> chain = solve_chain(1000, 0, lambda bits: arb(5), degrees=2)
    >>> [r.str(14, radius=False) for r in chain.ratios], chain.truncation < 100
    (['1.0050124260091', '34.790623187388'], True)
    """
    start = first_degree(sector)
    wanted = (degrees - start) // 2 + 1
    if wanted < 1:
        return Chain(d, sector, [], [], [], [], [], 0, arb(0))
    size = max(_START_SIZE, wanted + 8)
    bits = _bits(d, start, wanted, digits)
    solver = _Solver(d, sector, ratio, wanted, digits)
    solver.refuse_hopeless(bits)
    while True:
        try:
            chain, enough = solver.attempt(size, bits)
        except NotConverged:
            raise CertificationError(solver.refusal(0)) from None
        except PostconditionError:
            if bits > 8 * _bits(d, start, wanted, digits):
                raise
            bits *= 2
            continue
        if enough <= size or size == MAX_SIZE:
            break
        size = min(MAX_SIZE, enough)
        # the range at this B, which can be far smaller than at B = 0
        bits = min(bits, _bits_for(solver.span, digits))
    reached = min(digits_of(v) for v in chain.values)
    if reached < min(digits, _LEAST_DIGITS):
        raise CertificationError(solver.refusal(max(reached, 0)))
    return chain


def digits_of(ball: arb) -> int:
    """Significant decimal digits that a ball certifies."""
    accuracy: int = ball.rel_accuracy_bits()
    return min(10**6, math.floor(accuracy * math.log10(2)))


class _Solver:
    def __init__(self, d: int, sector: int, ratio: Encloser, wanted: int, digits: int) -> None:
        self.d, self.sector, self.ratio, self.wanted, self.digits = d, sector, ratio, wanted, digits
        self.start = first_degree(sector)
        self.basis: arb_mat | None = None
        self.span = arb(2) ** 10**6
        self.rough: list[arb] = []
        self.shares: list[arb] = []

    def attempt(self, size: int, bits: int) -> tuple[Chain, int]:
        """Solve a block of this size; also the size that the accuracy asked for needs (at most MAX_SIZE)."""
        with ctx.workprec(bits):
            b = self.ratio(bits)
            matrix = block(self.d, self.sector, self.ratio, size, bits)
            a = relu_coefficients(self.d, self.start // 2 + size + 1, bits)[self.start // 2 :]
            tail = self._tail(size, b)
            found = enclose(
                matrix,
                self.wanted,
                tail,
                lambda vector: coupling(self.d, b, a, vector),
                arb(10) ** (-self.digits - 4),
                self.basis,
            )
            self.basis = found.basis
            if found.lower[-1] > 0:
                self.span = found.lower[0] / found.lower[-1] * 1000
            base = [a[i] ** 2 * self.d for i in range(self.wanted)]
            chain = Chain(
                d=self.d,
                sector=self.sector,
                degrees=[self.start + 2 * i for i in range(self.wanted)],
                values=found.values,
                base=base,
                weights=[self._weights(v, s) for v, s in zip(found.vectors, found.sines, strict=True)],
                signs=[self._signs(v, i) for i, v in enumerate(found.vectors)],
                truncation=self.start + 2 * (size - 1),
                tail=tail,
            )
            return chain, self._enough(chain, found, b, size)

    def refuse_hopeless(self, bits: int) -> None:
        """Refuse before the work when the largest block would leave most of the trace out."""
        with ctx.workprec(64):
            b = self.ratio(bits)
            tail = self._tail(MAX_SIZE, b)
            # entries away from the diagonal fall by this factor in each step, at best; for small d that helps
            decay = arb(2) / abs(b).sqrt() if b != 0 else arb(10)
            # the trace of all even blocks; eigenvalues after the first are well below it
            trace = (self.d + b) / (4 * self.d)
            lost = tail * arb(10) ** (_LEAST_DIGITS if self.wanted == 1 else _LEAST_DIGITS + 2)
            if b > 0 and lost > trace and decay * MAX_SIZE < 8:
                raise CertificationError(self.refusal(0))

    def refusal(self, reached: int) -> str:
        """Why, and what to do."""
        b = self.ratio(64)
        return (
            f"B/A = {b.str(6, radius=False)} at d = {self.d}: the eigenfunctions of sector {self.sector} spread over more "
            f"harmonics than the {MAX_SIZE} that are kept (reached {reached} digits); "
            "take B/(A d) below about 1, fewer --digits or fewer --degrees"
        )

    def _enough(self, chain: Chain, found: Enclosures, b: arb, size: int) -> int:
        """The size to try next; ``size`` itself when nothing is left to gain."""
        accurate = min(digits_of(v) for v in chain.values) >= self.digits + 2
        sharp = all(s < arb(10) ** (-self.digits - 1) for s in found.sines)
        if accurate and (sharp or size >= _VECTOR_SIZE):
            return size
        smallest = found.lower[-1]
        # beyond this size the eigenvalues are right; the residual of an eigenvector is sqrt(lambda |tail|) at most
        power = 2 if accurate else 1
        target = arb((arb(10) ** (-power * (self.digits + 2) - 1)).lower())
        limit = _VECTOR_SIZE if accurate else MAX_SIZE

        def error(n: int) -> arb:
            """Relative error of the smallest eigenvalue at size n, with the present vectors; an estimate."""
            a = self._coefficients(n + 1)
            tail = self._tail(n, b) / smallest
            joint = (
                sum((coupling(self.d, b, a, _padded(v, n)) ** 2 for v in found.vectors), arb(0)) / smallest**2
            )
            return tail if not joint < tail else joint

        with ctx.workprec(64):
            if not error(limit) < target:
                reached = -math.log10(max(float(error(limit).upper()), 1e-300))
                if not accurate and size >= 4 * _START_SIZE and reached < min(self.digits, _LEAST_DIGITS):
                    raise CertificationError(self.refusal(max(0, int(reached))))
                return max(size, min(limit, 2 * size))
            low, high = size, limit
            while high - low > max(1, low // 32):
                middle = (low + high) // 2
                low, high = (low, middle) if error(middle) < target else (middle, high)
        return max(size, min(high, 2 * size))

    def _tail(self, size: int, b: arb) -> arb:
        """Bound of the norm of what a block of this size leaves out."""
        degree = self.start + 2 * size
        if not self.shares:
            self.shares = shares(self.d, self.start // 2 + MAX_SIZE + 1, 160)
        with ctx.workprec(160):
            a = self._coefficients(size + 1)[size]
            return tail_norm(self.d, self.sector, b, a, degree, self.shares[degree // 2])

    def _coefficients(self, count: int) -> list[arb]:
        """The first ``count`` Funk-Hecke coefficients of the chain, to 64 bits."""
        first = self.start // 2
        if len(self.rough) < first + count:
            self.rough = relu_coefficients(self.d, 2 * (first + count), 64)
        return self.rough[first : first + count]

    def _weights(self, vector: list[arb], sine: arb) -> dict[int, arb]:
        """Squared components with the uncertainty of the eigenvector: |u - v| <= sqrt(2) sine."""
        distance = arb(2).sqrt() * sine
        weights = {}
        for k, v in enumerate(vector):
            error = arb(0, ((2 * abs(v) + distance) * distance).upper())
            weights[self.start + 2 * k] = v * v + error
        return weights

    def _signs(self, vector: list[arb], own: int) -> dict[int, int]:
        turn = 1 if vector[own] >= 0 else -1
        return {self.start + 2 * k: turn * (1 if v > 0 else -1 if v < 0 else 0) for k, v in enumerate(vector)}


def _padded(vector: list[arb], size: int) -> list[arb]:
    return vector[:size] + [arb(0)] * (size - len(vector))


def _bits(d: int, start: int, wanted: int, digits: int) -> int:
    """Working precision from the range of the eigenvalues at B = 0."""
    a = relu_coefficients(d, start // 2 + wanted + 1, 64)[start // 2 :]
    with ctx.workprec(64):
        return _bits_for(abs(a[0] / a[wanted]) ** 2, digits)


def _bits_for(span: arb, digits: int) -> int:
    """Twice the range of the eigenvalues (squares are subtracted), twice the digits, and a guard."""
    return math.ceil(2 * float(span.log()) / math.log(2) + 2 * digits * math.log2(10) + 160)
