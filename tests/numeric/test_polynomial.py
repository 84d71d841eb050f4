"""Polynomials: exact at any degree, against SymPy's moments and orthogonality."""

from math import factorial

import pytest
import sympy

from spikesym.gaussian import gaussian_data
from spikesym.numeric.polynomial import polynomial_expectation
from spikesym.symbolic.symbols import X


@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("derivative", [0, 1, 3])
@pytest.mark.parametrize("power", [1, 2])
def test_against_integration(power, derivative, k):
    f = X**4 / 3 - 2 * X**3 + X - sympy.Rational(5, 7)
    F = sympy.expand(f.diff(X, derivative) ** power * sympy.hermite_prob(k, X))
    # E x^n by the moment generating function, not by double factorials
    u = sympy.Symbol("u")
    series = sympy.series(sympy.exp(u**2 / 2), u, 0, 20).removeO()
    expected = sum(c * series.coeff(u, n) * sympy.factorial(n) for (n,), c in sympy.Poly(F, X).terms())
    assert polynomial_expectation(f, power, derivative, k) == expected


def test_degrees_of_many_hundreds_are_exact():
    data = gaussian_data("he999", "link")
    assert data.second_moment.exact == factorial(999)
    assert data.derivative_second_moment.exact == 999**2 * factorial(998)
    assert all(data.coefficient(k).exact == 0 for k in range(12))
    assert data.coefficient(999).exact == factorial(999)
