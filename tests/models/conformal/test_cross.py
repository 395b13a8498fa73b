"""Sets and intervals from rows out of fold, against loops over rows and groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import ProblemError
from models.conformal.cross import Ends, OutOfFold, cross_interval, cross_sets
from models.conformal.scores import class_margins


def held_out(seed: int, rows: int, heads: int, folds: int = 3) -> OutOfFold:
    draw = np.random.default_rng(seed)
    group = np.arange(rows) % 2
    return OutOfFold(
        draw.standard_normal(rows), draw.integers(folds, size=rows), group, draw.integers(1, 3, rows).astype(float),
        draw.standard_normal((folds, heads, 3)), ("a", "b"),
        [Ends(np.array([0.0]), draw.uniform(0.1, 2.0, (2, 2))) for _ in range(folds)],
    )


def test_each_model_scores_a_row_for_each_class_by_the_plane_of_that_class() -> None:
    """Slopes first and the intercept last, as a fit gives them."""
    held, rows = held_out(4, 12, 4), np.random.default_rng(5).standard_normal((6, 2))
    found = held.head_scores(rows)
    assert found.shape == (3, 6, 4)
    for model, planes in enumerate(held.planes):
        for k, (first, second, intercept) in enumerate(planes):
            np.testing.assert_allclose(found[model, :, k], first * rows[:, 0] + second * rows[:, 1] + intercept)


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**31), st.integers(20, 40), st.floats(0.3, 0.85))
def test_a_class_is_in_the_set_where_enough_rows_of_a_group_are_as_strange(
    seed: int, rows: int, coverage: float
) -> None:
    held = held_out(seed, rows, 3)
    scores = held.head_scores(np.random.default_rng(seed + 1).standard_normal((5, 2)))
    found = cross_sets(held, scores, coverage)
    for row in range(5):
        for k in range(3):
            wanted = False
            for group in (0, 1):
                own = [i for i in range(rows) if held.group[i] == group]
                strange = sum(
                    held.counts[i] for i in own if held.scores[i] >= class_margins(scores[held.fold[i]])[row, k]
                )
                total = sum(held.counts[i] for i in own)
                wanted |= bool((1 + strange) / (1 + total) > 1 - coverage)
            assert found[row, k] == wanted


def test_one_in_ten_is_not_more_than_a_tenth_whatever_rounding_makes_of_it() -> None:
    held = OutOfFold(
        np.zeros(9), np.zeros(9, dtype=np.intp), np.zeros(9, dtype=np.intp), np.ones(9), np.zeros((1, 3, 3)), ("a",),
        [],
    )
    assert (1.0 - 0.9) * 10.0 < 1.0, "so without care a class that all nine rows speak against would be in the set"
    margins = class_margins(np.array([[3.0, -1.0, -2.0]]))
    assert (margins[0] > 0).tolist() == [False, True, True]
    assert cross_sets(held, np.array([[[3.0, -1.0, -2.0]]]), 0.9).tolist() == [[True, False, False]]


def test_a_row_as_strange_as_the_class_counts_among_those_that_are() -> None:
    """Scores are often alike: rows that a machine repeats, or that lie beyond a lift's range."""
    margin = float(class_margins(np.array([[3.0, -1.0, -2.0]]))[0, 1])
    held = OutOfFold(
        np.full(9, margin), np.zeros(9, dtype=np.intp), np.zeros(9, dtype=np.intp), np.ones(9), np.zeros((1, 3, 3)),
        ("a",), [],
    )
    assert cross_sets(held, np.array([[[3.0, -1.0, -2.0]]]), 0.9).tolist() == [[True, True, False]]


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**31), st.integers(20, 40), st.floats(0.3, 0.85))
def test_an_interval_ends_at_the_rank_of_what_the_rows_say(seed: int, rows: int, coverage: float) -> None:
    held = held_out(seed, rows, 1)
    values = held.head_scores(np.random.default_rng(seed + 1).standard_normal((4, 2)))[:, :, 0]
    found = cross_interval(held, values, coverage)
    for row in range(4):
        lows, highs = [], []
        for group in (0, 1):
            up, down = list[float](), list[float]()
            for i in range(rows):
                if held.group[i] == group:
                    centre, ends = values[held.fold[i], row], held.ends[held.fold[i]]
                    below, above = ends.sizes[:, int(centre > 0.0)]
                    up += [centre + held.scores[i] * above] * int(held.counts[i])
                    down += [centre - held.scores[i] * below] * int(held.counts[i])
            rank = int(np.ceil((len(up) + 1) * coverage - 1e-9))
            highs.append(sorted(up)[rank - 1])
            lows.append(sorted(down, reverse=True)[rank - 1])
        assert found[row] == pytest.approx(sorted([min(lows), max(highs)]))


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**31), st.integers(1, 60), st.floats(0.3, 0.95))
def test_rows_that_count_in_part_reach_the_coverage_together(seed: int, rows: int, coverage: float) -> None:
    """Weights of half a row: ends at the least score up to which rows count ``coverage (n + 1)`` times, of n in all."""
    draw, none = np.random.default_rng(seed), np.zeros(rows, dtype=np.intp)
    scores, counts = draw.uniform(0.0, 5.0, rows), draw.uniform(0.1, 2.0, rows)
    counts *= max(1.0, (coverage / (1.0 - coverage) + 1.0 + draw.uniform(0.0, 0.2)) / counts.sum())
    held = OutOfFold(scores, none, none, counts, np.zeros((1, 1, 3)), ("a",), [Ends(np.zeros(0), np.ones((2, 1)))])
    low, high = cross_interval(held, np.zeros((1, 1)), coverage)[0]
    reached = [float(counts[scores <= each].sum()) >= coverage * (counts.sum() + 1.0) for each in sorted(scores)]
    assert high == -low == sorted(scores)[reached.index(True)]


@pytest.mark.parametrize("parts", [1, 3, 10, 15, 90, 900, 9000])
def test_parts_of_rows_that_sum_to_enough_are_enough(parts: int) -> None:
    """Ninety rows of weight 0.1 are nine rows, and sum to a little less."""
    weight, none = 9.0 / parts, np.zeros(parts, dtype=np.intp)
    held = OutOfFold(
        np.arange(1.0, parts + 1.0), none, none, np.full(parts, weight), np.zeros((1, 1, 3)), ("a",),
        [Ends(np.zeros(0), np.ones((2, 1)))],
    )
    assert cross_interval(held, np.zeros((1, 1)), 0.9).tolist() == [[-parts, parts]]
    with pytest.raises(ProblemError, match="needs 9 rows of each group"):
        replace(held, counts=0.999 * held.counts).check_level(0.9)


def test_an_interval_is_no_wider_for_the_rounding_of_its_rank() -> None:
    """A hundred times 0.55 is 55 and some last digits, which are no row."""
    assert 100.0 * 0.55 > 55.0
    none = np.zeros(99, dtype=np.intp)
    held = OutOfFold(
        np.arange(1.0, 100.0), none, none, np.ones(99), np.zeros((1, 1, 3)), ("a",),
        [Ends(np.zeros(0), np.ones((2, 1)))],
    )
    assert cross_interval(held, np.zeros((1, 1)), 0.55).tolist() == [[-55.0, 55.0]]


def test_too_few_rows_are_refused_with_how_many_are_needed() -> None:
    held = held_out(1, 8, 1)
    with pytest.raises(ProblemError, match=r"coverage 0.99 needs 99 rows of each group .* group a has \d+"):
        cross_interval(held, np.zeros((3, 1)), 0.99)
    nine = OutOfFold(
        np.zeros(17), np.zeros(17, dtype=np.intp), np.arange(17) % 2, np.ones(17), np.zeros((1, 1, 3)), ("a", "b"), []
    )
    assert nine.check_level(0.8) == 0.8
    with pytest.raises(ProblemError, match="coverage 0.9 needs 9 rows of each group .* group b has 8"):
        nine.check_level(0.9)
    with pytest.raises(ProblemError, match="between 0 and 1"):
        cross_sets(held, np.zeros((3, 1, 2)), 1.0)


@pytest.mark.parametrize("estimates", [np.full(200, 0.4), np.repeat([0.1, 0.4], [30, 170]), np.linspace(0, 1, 200)])
def test_every_bin_of_the_estimate_has_rows(estimates: np.ndarray) -> None:
    """Also where a model says the same of many rows, or of all."""
    targets = estimates + np.random.default_rng(0).normal(0.0, 0.1, 200)
    counts = np.append(np.ones(199), 0.0)  # the last row, of the largest estimate, does not count
    ends = Ends.of(estimates, targets, counts)
    assert set(np.searchsorted(ends.edges, estimates[counts > 0])) == set(range(len(ends.edges) + 1))
    assert ends.sizes.shape == (2, len(ends.edges) + 1) and (ends.sizes > 0).all()
    assert np.isfinite(ends.scores(estimates, targets)).all()


@pytest.mark.parametrize("seed", range(4))
def test_ends_of_a_row_that_counts_twice_are_those_of_two_rows(seed: int) -> None:
    draw = np.random.default_rng(seed)
    estimates, counts = draw.uniform(size=150), draw.choice([1, 1, 1, 2, 6], 150)
    targets = estimates + draw.normal(0.0, 0.1, 150) * np.where(counts > 1, 3.0, 1.0)  # those that count are farther
    weighed = Ends.of(estimates, targets, counts.astype(float))
    copied = Ends.of(np.repeat(estimates, counts), np.repeat(targets, counts), np.ones(counts.sum()))
    np.testing.assert_array_equal(weighed.edges, copied.edges)
    np.testing.assert_array_equal(weighed.sizes, copied.sizes)


@pytest.mark.parametrize("rows", [80, 100, 300, 1000])
def test_ends_are_as_far_below_and_above_as_nineteen_of_twenty_targets_lie(rows: int) -> None:
    """Lopsided targets: up to 10 below an estimate of 0 and up to 1 above. At its own ends a score is 1."""
    targets = np.append(np.linspace(-10.0, 0.0, rows // 2, endpoint=False), np.linspace(0.0, 1.0, rows // 2))
    found = Ends.of(np.zeros(rows), targets, np.ones(rows))
    assert found.sizes.shape == (2, 1), "estimates that are alike make one bin"
    below, above = found.sizes[:, 0]
    assert below == -targets[rows // 20] and above == targets[19 * rows // 20]
    estimates = np.array([-3.0, 0.5, 8.0])
    np.testing.assert_allclose(found.scores(estimates, estimates - below), 1.0)
    np.testing.assert_allclose(found.scores(estimates, estimates + above), 1.0)
    np.testing.assert_allclose(found.scores(estimates, estimates + 3.0 * above), 3.0)
    np.testing.assert_allclose(found.scores(estimates, estimates - 0.2 * below), 0.2)
