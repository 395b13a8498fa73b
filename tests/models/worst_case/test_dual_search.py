"""The search for the price of transport on rows whose answers are known functions of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize

from models.worst_case import dual_search
from models.worst_case.dual_search import Answer, Asked, Total, search_multiplier

COUNT, END = 9, 50.0


def _rows(random: np.random.Generator, smooth: bool) -> Any:
    """Rows ``max_k (a_k - s_k lam)``, or ``c / (1 + lam)``, which no two lines make."""
    heights, slopes = random.uniform(0, 3, (COUNT, 4)), random.uniform(0, 2, (COUNT, 4))
    slopes[:, 0] = 0.0
    sizes = random.uniform(0.5, 3.0, COUNT)

    def ask(multiplier: float) -> Answer:
        if smooth:
            value, spent = sizes / (1 + multiplier), sizes / (1 + multiplier) ** 2
            return Answer(value, spent, np.zeros(COUNT, np.int8), np.zeros(COUNT))
        lines = heights - slopes * multiplier
        best = lines.argmax(axis=1)
        rows = np.arange(COUNT)
        return Answer(lines[rows, best], slopes[rows, best], best.astype(np.int8), np.zeros(COUNT))

    return ask


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("apart", [Total(), Total(4.0, 2.5)])
@pytest.mark.parametrize("seed", range(6))
def test_the_value_is_the_least_and_the_bound_is_below_it(smooth: bool, apart: Total, seed: int) -> None:
    ask = _rows(np.random.default_rng(seed), smooth)

    def total(multiplier: float) -> float:
        return budget * multiplier + apart.value - apart.spent * multiplier + float(ask(multiplier).value.sum())

    left, right = Asked(0.0, ask(0.0)), Asked(END, ask(END))
    budget = apart.spent + 0.3 * float(left.answer.spent.sum()) + 0.7 * float(right.answer.spent.sum())
    least = optimize.minimize_scalar(total, bounds=(0.0, END), method="bounded", options={"xatol": 1e-10})
    grid = min(total(each) for each in np.linspace(0.0, END, 501))
    found = search_multiplier(ask, left, right, budget, apart, 1e-9)
    assert found.value == pytest.approx(min(least.fun, grid), abs=1e-6)
    assert found.crossing.bound <= found.value + 1e-9
    assert found.value - found.crossing.bound <= 1e-8
    assert total(found.multiplier) == pytest.approx(found.value, abs=1e-8)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_search_that_is_cut_short_says_a_value_that_holds(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, budget = _rows(np.random.default_rng(1), True), 2.0
    monkeypatch.setattr(dual_search, "MAX_STEPS", steps)
    found = search_multiplier(ask, Asked(0.0, ask(0.0)), Asked(END, ask(END)), budget, Total(), 0.0)
    there = budget * found.multiplier + float(ask(found.multiplier).value.sum())
    assert found.value == pytest.approx(there, rel=1e-12)
    assert found.crossing.bound <= found.value
