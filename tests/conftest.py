"""Shared fixtures: precision is reset for every test, so that no test depends on another's."""

import mpmath
import numpy as np
import pytest
from flint import ctx


@pytest.fixture(autouse=True)
def _fresh_precision():
    mpmath.mp.dps = 15
    ctx.prec = 53
    yield
    mpmath.mp.dps = 15
    ctx.prec = 53


@pytest.fixture
def rng():
    return np.random.default_rng(np.random.SeedSequence(20260517))
