"""Intervals by the estimate: what is counted, that steps are nested and hold their share, and what a shape is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray, ProblemError
from models.conformal.coverage import Counted, least_threshold
from models.conformal.cross import Ends
from models.conformal.grid import counts_at_or_below, score_grid
from models.conformal.spread import LEAST_ROWS, STEPS, Shape, residual_counts, residual_grid, shape_of, tenth_of


def lopsided(seed: int, n: int) -> tuple[FloatArray, FloatArray]:
    """Estimates and targets whose errors grow with the estimate, more above it than below."""
    draw = np.random.default_rng(seed)
    estimates = draw.uniform(-0.05, 1.05, n)
    width = 0.01 + 0.1 * np.clip(estimates, 0.0, 1.0)
    return estimates, np.clip(estimates + width * (draw.exponential(1.0, n) - 0.5), 0.0, 1.0)


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**31), st.integers(0, 200))
def test_the_counts_of_a_step_are_the_rows_in_its_intervals(seed: int, n: int) -> None:
    estimates, targets = lopsided(seed, n)
    draw = np.random.default_rng(seed)
    shape = Shape(draw.integers(0, 193, 10), draw.integers(0, 193, 10))
    held = shape.held(residual_counts(estimates, targets))
    assert held.shape == (STEPS,) and held[-1] == n and (np.diff(held) >= 0).all()
    residuals, tenths = np.clip(estimates, 0.0, 1.0) - targets, tenth_of(estimates)
    for step in draw.integers(0, STEPS, 12):
        low, high = shape.ends(int(step))
        above_low = (low[tenths] < residuals) | (low[tenths] == -1.0)
        assert held[step] == (above_low & (residuals <= high[tenths])).sum()
    assert shape.held(residual_counts(np.array([-0.2]), np.array([1.0])))[-1] == 1, "the whole range away"


def test_ends_are_thresholds_of_the_grid_and_never_shrink() -> None:
    shape = Shape(np.arange(10) * 19, np.arange(10)[::-1] * 19)
    before = (np.zeros(10), np.zeros(10))
    for step in range(STEPS):
        low, high = shape.ends(step)
        assert np.isin(low, residual_grid()).all() and np.isin(high, residual_grid()).all()
        assert (low <= before[0]).all() and (high >= before[1]).all()
        before = low, high
    assert (before[0] == -1.0).all() and (before[1] == 1.0).all(), "the last step holds every target of the range"


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, STEPS - 1), st.integers(0, 192), st.integers(0, 192))
def test_an_end_is_what_the_formula_says_of_its_steps(step: int, below: int, above: int) -> None:
    """Plants count and versions answer by the same formula, so it is held to what is written of it."""
    def threshold(own: int) -> float:
        return 0.0 if own < 0 else float(min(10.0 ** (-3 + own // 8 / 16), 1.0))

    low, high = Shape(np.full(10, below), np.full(10, above)).ends(step)
    np.testing.assert_allclose(low, -threshold(step - below))
    np.testing.assert_allclose(high, threshold(step - above))


@pytest.mark.parametrize("n", [19, 60])
def test_a_plants_coverage_is_what_is_asked_whatever_the_shape(n: int) -> None:
    """Over many draws of held-out rows and new ones; a shape of other data entirely is wide and not invalid."""
    good = shape_of(residual_counts(*lopsided(1, 3000), coarse=True))
    bad = shape_of(residual_counts(1.0 - lopsided(1, 3000)[0], 1.0 - lopsided(1, 3000)[1], coarse=True))
    widths, shares = {}, {}
    for name, shape in (("good", good), ("bad", bad)):
        share, width = [], []
        for seed in range(150):
            counts = residual_counts(*lopsided(1000 + seed, n))
            step = least_threshold(Counted(shape.held(counts), n).held, 0.9)
            assert step is not None
            new = lopsided(9000 + seed, 200)
            share.append(shape.held(residual_counts(*new))[step] / 200)
            low, high = shape.ends(step)
            width.append((high - low)[tenth_of(new[0])].mean())
        shares[name], widths[name] = np.mean(share), np.mean(width)
    # The standard error of a mean of 150 draws is below 0.006.
    assert min(shares.values()) > 0.89 and shares["good"] < 0.96
    assert widths["good"] < 0.8 * widths["bad"]


def test_a_shape_is_wide_where_the_training_errors_are_and_takes_rare_tenths_together() -> None:
    shape = shape_of(residual_counts(*lopsided(2, 5000), coarse=True))
    low, high = shape.ends(STEPS - 150)
    assert high[0] < 0.5 * high[9] and low[0] > 0.5 * low[9] and (-low > 1.5 * high).all(), "targets lie above"
    estimates, targets = lopsided(3, 4000)
    middle = (estimates > 0.4) & (estimates < 0.6)
    few = shape_of(residual_counts(estimates[middle], targets[middle], coarse=True))
    assert len(set(few.below[:5])) == len(set(few.below[5:])) == 1 and few.below[0] > few.below[9]
    none = shape_of(np.zeros((10, len(residual_grid(coarse=True)))))
    assert not none.below.any() and not none.above.any()


def test_errors_of_the_whole_range_count_as_rows_of_their_tenth() -> None:
    draw = np.random.default_rng(5)
    estimates = np.append(draw.uniform(0.0, 0.9, 4500), np.ones(500))
    targets = np.append(estimates[:4500] + draw.normal(0.0, 0.01, 4500), np.zeros(500))
    assert (estimates - targets)[-500:].tolist() == [1.0] * 500
    shape = shape_of(residual_counts(estimates, targets, coarse=True))
    lags = np.column_stack([shape.below, shape.above])
    assert lags[9].min() == 0 and (lags[:9].max(axis=1) > 0).all(), "the last tenth alone is as wide as the range"


def test_training_rows_are_counted_at_thresholds_78_percent_apart() -> None:
    """The fine grid is for held-out rows alone: a coarse count tells less of a training row."""
    fine, coarse = residual_grid(), residual_grid(coarse=True)
    assert np.isin(coarse, fine).all()
    for grid, apart in ((fine, 10 ** (1 / 16)), (coarse, 10 ** (1 / 4))):
        above = grid[grid > 0]
        np.testing.assert_allclose([above[0], above[-1]], [1e-3, 1.0])
        np.testing.assert_allclose(above[1:] / above[:-1], apart)
        np.testing.assert_array_equal(grid, -grid[::-1])


def test_a_shape_is_told_from_thirty_rows_on() -> None:
    assert LEAST_ROWS == 30
    estimates = np.repeat([0.05, 0.95], 15)
    targets = estimates + np.repeat([0.3, 0.01], 15) * np.tile([-1.0, 1.0, 0.5], 10)
    enough = shape_of(residual_counts(estimates, targets, coarse=True))
    assert len(set(enough.below)) == len(set(enough.above)) == 1, "fifteen in a tenth are too few for its own"
    assert not shape_of(residual_counts(estimates[:-1], targets[:-1], coarse=True)).below.any()
    doubled = shape_of(residual_counts(np.repeat(estimates, 2), np.repeat(targets, 2), coarse=True))
    assert doubled.below[0] == 0 < doubled.below[9] and doubled.above[0] == 0 < doubled.above[9]


def test_lags_that_are_none_are_refused() -> None:
    for wrong in (np.full(9, 0), np.full(10, -1), np.full(10, 500)):
        with pytest.raises(ProblemError, match="10 lags from 0 to 192"):
            Shape(wrong, np.zeros(10, dtype=np.intp))


def test_an_estimators_ends_are_quantiles_of_its_own_rows_by_bins_of_the_estimate() -> None:
    estimates, targets = lopsided(4, 4000)
    ends = Ends.of(estimates, targets, np.ones(4000))
    assert ends.sizes.shape == (2, 10)
    inside = ends.scores(estimates, targets) <= 1.0
    for bin_ in range(10):
        assert inside[np.searchsorted(ends.edges, estimates) == bin_].mean() == pytest.approx(0.9, abs=0.01)
    twice = Ends.of(np.repeat(estimates[:300], 2), np.repeat(targets[:300], 2), np.ones(600))
    counted = Ends.of(estimates[:300], targets[:300], np.full(300, 2.0))
    np.testing.assert_array_equal(twice.sizes, counted.sizes, err_msg="a count of two is two rows")
    few = Ends.of(estimates[:79], targets[:79], np.ones(79))
    np.testing.assert_array_equal(few.scores(estimates, targets), np.abs(estimates - targets))
    exact = Ends.of(estimates, estimates, np.ones(4000))
    assert np.isfinite(exact.scores(estimates, targets)).all()


@pytest.mark.parametrize("score", [np.inf, -np.inf, np.nan])
def test_a_score_that_is_not_finite_is_counted_nowhere(score: float) -> None:
    with pytest.raises(ProblemError, match="must be finite"):
        counts_at_or_below(np.array([0.5, score]), score_grid())
