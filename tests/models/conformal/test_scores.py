"""Nonconformity, sets and the scale of probabilities, against what their definitions say row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from models.conformal.grid import counts_at_or_below, score_grid
from models.conformal.scores import class_margins, class_scores, class_sets, own_margins, reaches, score_sizes
from models.conformal.temperature import SCALES, confidence_counts, matched_scale, scaled_probabilities


@settings(max_examples=40, derandomize=True)
@given(st.integers(0, 2**31), st.integers(2, 5), st.floats(-2.0, 2.0))
def test_sets_are_the_classes_whose_rivals_lead_by_no_more(seed: int, classes: int, threshold: float) -> None:
    scores = np.random.default_rng(seed).standard_normal((12, classes))
    margins, sets = class_margins(scores), class_sets(scores, threshold)
    for row, held, lead in zip(scores, sets, margins, strict=True):
        for k in range(classes):
            rival = max(row[j] for j in range(classes) if j != k)
            assert lead[k] == pytest.approx(rival - row[k])
            assert held[k] == (rival - row[k] <= threshold or k == row.argmax())
    chosen = np.arange(12) % classes
    np.testing.assert_array_equal(own_margins(scores, chosen), margins[np.arange(12), chosen])


def test_a_class_at_the_threshold_is_in_the_set() -> None:
    """A threshold is the strangeness of some row, which counts as covered."""
    np.testing.assert_array_equal(class_sets(np.array([[3.0, 1.0, 0.5]]), 2.0), [[True, True, False]])


def test_two_classes_share_one_plane() -> None:
    np.testing.assert_array_equal(class_scores(np.array([[2.0], [-1.0]])), [[-2.0, 2.0], [1.0, -1.0]])
    np.testing.assert_array_equal(class_margins(class_scores(np.array([[2.0]]))), [[4.0, -4.0]])
    np.testing.assert_array_equal(score_sizes(np.array([[1.0, -3.0]])), [3.0])
    assert reaches(np.array([[0.5, 1.0]])) == pytest.approx([0.5])


def test_the_grid_is_fixed_coarse_and_symmetric() -> None:
    grid = score_grid()
    assert len(grid) == 163 and (np.diff(grid) > 0).all()
    np.testing.assert_allclose(grid[[0, 80, 81, 82, -1]], [-100.0, -1e-3, 0.0, 1e-3, 100.0])
    np.testing.assert_array_equal(grid, -grid[::-1])
    above = grid[grid > 0]
    assert (above[1:] / above[:-1] >= 1.15).all(), "two neighbours 15 % apart: a count tells no score more finely"
    assert counts_at_or_below(np.array([0.0]), grid)[81] == 1.0


@pytest.mark.parametrize("true", [0.5, 2.0, 7.0])
def test_the_scale_is_the_one_by_which_the_classes_were_drawn(true: float) -> None:
    draw = np.random.default_rng(int(10 * true))
    scores = draw.standard_normal((20_000, 3))
    likely = softmax(true * scores, axis=1)
    classes = (likely.cumsum(axis=1) < draw.random((len(scores), 1))).sum(axis=1)
    counts = confidence_counts(scores)
    assert (counts == np.round(counts)).all() and (np.diff(counts) >= 0).all() and counts[-1] <= len(scores)
    found = matched_scale(counts, float((scores.argmax(axis=1) == classes).sum()), len(scores))
    assert found == pytest.approx(true, rel=0.06)
    np.testing.assert_allclose(scaled_probabilities(scores, true), likely)


def test_separated_and_useless_scores_have_a_scale_too() -> None:
    scores = np.array([[3.0, 0.0]] * 40)
    found = matched_scale(confidence_counts(scores), 40.0, 40)
    assert found is not None and 0.9 < softmax(found * scores[0])[0] < 1.0
    assert matched_scale(confidence_counts(scores), 10.0, 40) == SCALES[0]
    assert matched_scale(np.zeros(len(SCALES)), 0.0, 0) is None


@pytest.mark.parametrize(("right", "n"), [(8, 8), (0, 8), (5, 8), (60, 80)])
def test_the_confidence_that_is_matched_counts_one_row_more_of_each_kind(right: int, n: int) -> None:
    """So that what was always right is not said to be sure, and what was always wrong has a scale."""
    mean = np.linspace(0.01, 0.99, len(SCALES))
    expected = np.exp(np.interp((right + 1) / (n + 2), mean, np.log(SCALES)))
    assert matched_scale(n * mean, right, n) == pytest.approx(expected)


def test_confidences_that_fall_are_taken_for_the_largest_so_far() -> None:
    """Whole rows of several plants: no true ones fall, and one that lies must not have a search go astray."""
    mean = np.linspace(0.01, 0.99, len(SCALES))
    lied = mean.copy()
    lied[12:30] = 0.02
    told = np.append(mean[:12], np.append(np.full(18, mean[11]), mean[30:]))
    for right in (5, 30, 60, 95):
        assert matched_scale(100 * lied, right, 100) == pytest.approx(matched_scale(100 * told, right, 100))
