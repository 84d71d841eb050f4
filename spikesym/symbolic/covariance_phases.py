"""The phases of B in the scaling eta = eta_0 d^zeta: how A and B grow, and how many spikes the feature matrix has."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

#: exponents are kept exact
_HALF, _ONE = Fraction(1, 2), Fraction(1)


@dataclass(frozen=True)
class Phase:
    """What the step size eta_0 d^zeta does as d grows with n and m.

    Parameters
    ----------
    zeta : Fraction
        The exponent of the step.
    name : str
        "vanishing", "order one", "growing", "comparable with d" or "beyond d".
    b_exponent : Fraction
        B grows as d to this power where c_1 mu_1 != 0: 2 zeta - 1.
    a_exponent : Fraction
        A - 1 grows as d to this power: 2 zeta - 2.
    spikes : int or None
        Number of spikes of the feature matrix (Moniri et al. 2024); None at a boundary and from zeta = 1 on.
    text : str
        One sentence.
    """

    zeta: Fraction
    name: str
    b_exponent: Fraction
    a_exponent: Fraction
    spikes: int | None
    text: str


def phase(zeta: Fraction | int | str) -> Phase:
    """The phase of a step-size exponent.

    Examples
    --------
    >>> p = phase("1/2")
    >>> p.name, p.b_exponent, p.spikes
    ('order one', Fraction(0, 1), None)
    >>> phase("0.8").spikes, phase("0.4").name, phase(1).name
    (2, 'vanishing', 'comparable with d')
    """
    z = Fraction(zeta)
    b, a = 2 * z - 1, 2 * z - 2
    if z < _HALF:
        name, text = "vanishing", f"B falls as d^({b}): the spike vanishes, k1 tends to k0"
    elif z == _HALF:
        name, text = "order one", "B is of order one: a finite spike, A tends to 1"
    elif z < _ONE:
        name, text = "growing", f"B grows as d^({b}) but stays o(d): the expansion of k1 in B/d converges"
    elif z == _ONE:
        name, text = (
            "comparable with d",
            "B is comparable with d: the expansion of k1 in B/d does not converge, A - 1 is of order one",
        )
    else:
        name, text = "beyond d", f"B grows as d^({b}), faster than d: the features collapse onto w*"
    return Phase(z, name, b, a, spike_count(z), text)


def spike_count(zeta: Fraction) -> int | None:
    """Number l of spikes of the feature matrix: l for zeta in (1 - 1/(2l), 1 - 1/(2l + 2)), 0 below 1/2.

    In the paper's words the step is eta sqrt(m)-times that of Ba et al. 2022, whose exponent is zeta - 1/2 here.

    Examples
    --------
    >>> [spike_count(Fraction(z, 100)) for z in (40, 60, 70, 80, 85, 90)]
    [0, 1, 1, 2, 3, None]
    """
    if zeta < _HALF:
        return 0
    if zeta >= _ONE:
        return None
    count = 1 / (2 * (1 - zeta))
    return None if count.denominator == 1 else int(count)
