"""Validity, exactly: the chance of each threshold follows from binomial counts, so no draw is left to luck."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from models.basics import FloatArray, ProblemError
from models.conformal.coverage import (
    Counted,
    asked_level,
    held_by_all,
    held_by_mixtures,
    least_threshold,
    rows_needed,
    tail_level,
)
from models.conformal.grid import counts_at_or_below, counts_within, score_grid
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall

Distributions = list[FloatArray]
"""Of each plant: the chance that a score is at or below each threshold."""


@st.composite
def distributions(draw: Any, plants: int) -> Distributions:
    count = draw(st.integers(1, 6))
    found = []
    for _ in range(plants):
        steps = draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count))
        found.append(np.sort(np.array(steps)) / 1000.0)
    return found


def expected_coverage(held: Any, chances: Distributions, rows: list[int], mixture: FloatArray) -> float:
    """E of the new score's chance to be held; ``held(counts)`` says whether a threshold with these counts is enough.

    The threshold is at or below j just where j is enough, for shares never fall; past the last one all is held.
    """
    reached = []
    for at in zip(*chances, strict=True):
        chance = 0.0
        for counts in itertools.product(*(range(n + 1) for n in rows)):
            if held(counts):
                chance += float(np.prod([binom.pmf(k, n, p) for k, n, p in zip(counts, rows, at, strict=True)]))
        reached.append(chance)
    first = np.diff([0.0, *reached, 1.0])  # chance that j is the first that is enough, and that none is
    own = np.array([mixture @ np.array(at) for at in zip(*chances, strict=True)] + [1.0])
    return float(first @ own)


def is_enough(shares: FloatArray, level: float) -> bool:
    return least_threshold(shares, level) is not None


@settings(max_examples=60, derandomize=True)
@given(distributions(1), st.integers(0, 40), st.floats(0.02, 0.98))
def test_one_plants_coverage_is_at_least_what_is_asked_whatever_its_scores(
    chances: Distributions, n: int, level: float
) -> None:
    def held(counts: tuple[int, ...]) -> bool:
        return is_enough(Counted(np.array(counts, dtype=float), n).held, level)

    assert expected_coverage(held, chances, [n], np.ones(1)) >= level - 1e-9


@settings(max_examples=25, derandomize=True)
@given(distributions(2), st.integers(1, 12), st.integers(1, 12), st.floats(0.05, 0.9), st.floats(0.0, 1.0))
def test_every_mixture_is_covered_where_every_plant_is(
    chances: Distributions, n: int, m: int, level: float, share: float
) -> None:
    def held(counts: tuple[int, ...]) -> bool:
        shares = np.array([[counts[0] / (n + 1)], [counts[1] / (m + 1)]])
        return is_enough(held_by_all(shares), level)

    assert expected_coverage(held, chances, [n, m], np.array([share, 1 - share])) >= level - 1e-9


@settings(max_examples=25, derandomize=True)
@given(distributions(2), st.integers(1, 10), st.integers(1, 10), st.floats(0.05, 0.9), st.floats(0.0, 0.5))
def test_the_mixtures_of_the_ball_are_covered_at_its_ends_and_inside(
    chances: Distributions, n: int, m: int, level: float, radius: float
) -> None:
    centre, ball = np.array([0.5, 0.5]), MixtureBall("l1", 2 * radius)

    def held(counts: tuple[int, ...]) -> bool:
        shares = np.stack([
            Counted(np.array([float(k)]), rows).held for k, rows in zip(counts, (n, m), strict=True)
        ])
        return is_enough(held_by_mixtures(shares, centre, ball), level)

    for move in (-radius, 0.0, radius):
        assert expected_coverage(held, chances, [n, m], centre + [move, -move]) >= level - 1e-9


@settings(max_examples=25, derandomize=True)
@given(distributions(2), st.integers(1, 12), st.integers(1, 12), st.floats(0.05, 0.9))
def test_a_cohorts_sum_is_good_for_its_plants_mixed_by_rows(
    chances: Distributions, n: int, m: int, level: float
) -> None:
    def held(counts: tuple[int, ...]) -> bool:
        return is_enough(Counted(np.array([float(sum(counts))]), n + m, plants=2).held, level)

    by_rows = np.array([n + 1, m + 1]) / (n + m + 2)
    assert expected_coverage(held, chances, [n, m], by_rows) >= level - 1e-9


def test_the_correction_is_not_idle() -> None:
    """Of ten rows the ninth is below 0.9 of what is new by more than a little: 9/11 on the average, the tenth 10/11."""
    chances = [np.linspace(0.0, 1.0, 201)]
    found = {
        plus: expected_coverage(lambda counts, plus=plus: counts[0] / (10 + plus) >= 0.9, chances, [10], np.ones(1))
        for plus in (0, 1)
    }
    assert found[0] < 0.86 and found[1] >= 0.9


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 2**31), st.integers(9, 400), st.floats(0.5, 0.95))
def test_rounding_up_to_the_grid_never_lowers_a_threshold(seed: int, n: int, level: float) -> None:
    scores = np.random.default_rng(seed).standard_normal(n) * 10.0 ** np.random.default_rng(seed).uniform(-2, 1)
    grid = score_grid()
    place = least_threshold(Counted(counts_at_or_below(scores, grid), n).held, level)
    rank = int(np.ceil((n + 1) * level - 1e-9))
    if rank > n:
        assert place is None
        return
    exact = np.sort(scores)[rank - 1]
    assert place is not None and grid[place] >= exact and (place == 0 or grid[place - 1] < exact)


def test_sizes_are_counted_from_the_signed_counts() -> None:
    draw, grid = np.random.default_rng(3), score_grid()
    scores = draw.standard_normal(500)
    above = grid[len(grid) // 2 :]
    found = counts_within(counts_at_or_below(scores, grid))
    np.testing.assert_array_equal(found[1:], [(np.abs(scores) <= t).sum() for t in above[1:]])
    # A score that is exactly the threshold's negative is left out, never counted twice.
    assert counts_within(counts_at_or_below(np.array([-above[5], above[5]]), grid))[5] == 1.0


def test_counts_of_plants_add_up_to_the_counts_of_their_rows() -> None:
    draw, grid = np.random.default_rng(8), score_grid()
    parts = [draw.standard_normal(n) for n in (30, 50, 7)]
    np.testing.assert_array_equal(
        sum(counts_at_or_below(part, grid) for part in parts), counts_at_or_below(np.concatenate(parts), grid)
    )


def test_the_share_beyond_a_threshold_is_the_share_within_of_the_scores_with_their_signs_changed() -> None:
    """Of a cohort of three plants as of one: both ends of an interval are held to the same level."""
    scores, grid = np.random.default_rng(2).normal(size=40), score_grid()
    for plants in (1, 3):
        below = Counted(counts_at_or_below(-scores, grid), 40, plants).held
        np.testing.assert_allclose(Counted(counts_at_or_below(scores, grid), 40, plants).beyond, below[::-1])


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 2**31), st.sampled_from(["l1", "linf"]), st.floats(0.0, 1.5))
def test_the_worst_mixture_is_that_of_a_linear_program(seed: int, norm: Any, radius: float) -> None:
    draw = np.random.default_rng(seed)
    shares, centre = draw.uniform(size=(4, 3)), draw.dirichlet(np.ones(4))
    found = held_by_mixtures(shares, centre, MixtureBall(norm, radius))
    eye, zero = np.eye(4), np.zeros((4, 4))
    limits = [(np.hstack([s * eye, -eye]), s * centre) for s in (1, -1)]  # |q - centre| <= d
    within = np.hstack([zero[:1], np.ones((1, 4))]) if norm == "l1" else np.hstack([zero, eye])
    rows = np.vstack([each[0] for each in limits] + [within])
    right = np.concatenate([each[1] for each in limits] + [np.full(len(within), radius)])
    for column, value in zip(shares.T, found, strict=True):
        best = linprog(
            np.concatenate([column, np.zeros(4)]), rows, right, np.array([[1.0] * 4 + [0.0] * 4]), [1.0],
        )
        assert value == pytest.approx(best.fun, abs=1e-9)
    np.testing.assert_allclose(held_by_mixtures(shares, centre, WHOLE_SIMPLEX), held_by_all(shares), atol=1e-12)


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 2**31), st.floats(0.0, 0.3), st.floats(0.5, 0.69))
def test_a_shift_takes_no_more_than_its_size(seed: int, shift: float, coverage: float) -> None:
    """Of all distributions so near in total variation the one that moves its mass out of what is held is the worst."""
    chances = np.random.default_rng(seed).dirichlet(np.ones(8))
    held = np.cumsum(chances)
    place = least_threshold(held, asked_level(coverage, shift))
    assert place is not None
    moved, left = chances.copy(), shift
    for score in range(place + 1):
        part = min(left, moved[score])
        moved[score] -= part
        left -= part
    assert moved[: place + 1].sum() >= coverage - 1e-9


@pytest.mark.parametrize(("level", "rows"), [(0.9, 9), (0.99, 99), (0.5, 1), (0.95, 19), (0.901, 10)])
def test_how_many_rows_a_coverage_needs(level: float, rows: int) -> None:
    assert rows_needed(level) == rows
    enough = [least_threshold(Counted(np.array([float(n)]), n).held, level) is not None for n in (rows - 1, rows)]
    assert enough == [False, True]


@pytest.mark.parametrize(
    ("coverage", "shift", "said"),
    [(0.0, 0.0, "between 0 and 1"), (1.0, 0.0, "between 0 and 1"), (0.9, -0.1, "at or above 0"),
     (0.9, 0.1, "ask for less than 0.9"), (float("nan"), 0.0, "between 0 and 1")],
)
def test_what_is_no_coverage_is_refused(coverage: float, shift: float, said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        asked_level(coverage, shift)


def test_two_tails_share_what_is_missed() -> None:
    assert tail_level(0.9) == pytest.approx(0.95)


@pytest.mark.parametrize("counts", [[3.0, 2.0], [0.5, 1.0], [-1.0, 1.0], [1.0, 5.0]])
def test_counts_that_no_scores_give_are_refused(counts: list[float]) -> None:
    with pytest.raises(ProblemError, match="whole, never fall"):
        Counted(np.array(counts), 4)
