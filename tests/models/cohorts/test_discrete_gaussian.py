"""The noise is the discrete Gaussian of the stated sigma, and comes from the operating system unless told otherwise."""

from __future__ import annotations

import inspect
import random
import secrets
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from models.basics import ProblemError
from models.cohorts import discrete_gaussian as module
from models.cohorts.discrete_gaussian import discrete_gaussian

DRAWS = 20_000


@pytest.mark.parametrize("sigma", [1, 2, 5])
def test_small_ones_have_their_probabilities(sigma: int) -> None:
    draw = random.Random(sigma).randrange
    found = Counter(discrete_gaussian(sigma, draw) for _ in range(DRAWS))
    places = np.arange(-4 * sigma, 4 * sigma + 1)
    wanted = np.exp(-(places**2) / (2 * sigma**2))
    wanted /= np.exp(-(np.arange(-20 * sigma, 20 * sigma + 1) ** 2) / (2 * sigma**2)).sum()
    likely = wanted * DRAWS >= 5
    counts = np.array([found[int(place)] for place in places[likely]])
    rest = DRAWS - counts.sum(), DRAWS * (1 - wanted[likely].sum())
    test = chisquare(np.append(counts, rest[0]), np.append(wanted[likely] * DRAWS, rest[1]))
    assert test.pvalue > 1e-4


def test_large_ones_are_normal() -> None:
    sigma, draw = 3 * 2**40, random.Random(7).randrange
    drawn = np.array([discrete_gaussian(sigma, draw) for _ in range(DRAWS // 4)], np.float64) / sigma
    assert kstest(drawn, "norm").pvalue > 1e-4
    assert drawn.std() == pytest.approx(1.0, abs=0.04)


def test_the_operating_system_draws() -> None:
    assert inspect.signature(discrete_gaussian).parameters["randbelow"].default is secrets.randbelow
    assert not hasattr(module, "random") and not hasattr(module, "np")
    assert len({discrete_gaussian(2**60) for _ in range(50)}) == 50


def test_no_noise_is_refused() -> None:
    with pytest.raises(ProblemError, match="at or above 1"):
        discrete_gaussian(0)
