"""Assignments: least of all, whatever ties there are."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from models.solvers.assignment import assign


def costs(kind: str, n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if kind == "drawn":
        return random.normal(size=(n, n))
    if kind == "whole":  # many ties
        return random.integers(0, 4, size=(n, n)).astype(float)
    if kind == "product":  # every row wants the same columns: all but the bids is left to the paths
        return np.outer(np.arange(n), np.arange(n)) / n
    points = random.uniform(size=(2, n, 3))
    return np.abs(points[0][:, None] - points[1][None]).max(axis=-1) + (random.uniform(size=(n, n)) < 0.5)


@pytest.mark.parametrize("kind", ["drawn", "whole", "product", "distances"])
@pytest.mark.parametrize("n", [1, 2, 3, 17, 90])
@pytest.mark.parametrize("seed", range(3))
def test_the_sum_is_the_least_and_each_column_is_held_once(kind: str, n: int, seed: int) -> None:
    cost = costs(kind, n, seed)
    held = assign(cost)
    assert sorted(held) == list(range(n))
    least = cost[linear_sum_assignment(cost)].sum()
    assert cost[np.arange(n), held].sum() == pytest.approx(least, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_five_is_less(seed: int) -> None:
    cost = costs("drawn", 5, seed)
    least = min(cost[np.arange(5), list(order)].sum() for order in permutations(range(5)))
    assert cost[np.arange(5), assign(cost)].sum() == pytest.approx(least, rel=1e-13)


def test_costs_all_alike_and_of_any_size_are_matched() -> None:
    assert sorted(assign(np.ones((7, 7)))) == list(range(7))
    cost = costs("distances", 40, 0)
    np.testing.assert_array_equal(assign(1e9 * cost), assign(cost))
