"""Scores of a target and the interval of a risk, by hand."""

from __future__ import annotations

import pytest

from models.losses.regression import Pinball
from services.contracts.evaluation.scores import REGRESSION_SUMS, ErrorInterval, RegressionScores, added
from services.contracts.machines.target import Target

TARGET = Target(name="wear", unit="mm", low=1.0, high=5.0)
SUMS = {
    "n_test": 4.0, "absolute_error": 0.8, "squared_error": 0.36, "target_sum": 2.0, "target_squares": 1.5,
    "pinball_loss": 0.4, "covered": 3.0,
}


def test_scores_are_in_the_unit_of_the_target() -> None:
    """Four rows on a range of 4 mm: mean error 0.2, mean square 0.09, variance of the targets' sum 1.5 - 4 / 4."""
    found = RegressionScores.from_sums(SUMS, TARGET)
    assert found.n_test == 4
    assert (found.mae, found.rmse, found.pinball) == pytest.approx((0.8, 1.2, 0.4))
    assert (found.r2, found.coverage) == pytest.approx((1.0 - 0.36 / 0.5, 0.75))


def test_where_all_targets_are_alike_but_for_rounding_no_share_is_explained() -> None:
    alike = SUMS | {"target_sum": 4 * 0.1, "target_squares": 4 * 0.1**2 + 1e-17}
    assert alike["target_squares"] > alike["target_sum"] ** 2 / 4
    found = RegressionScores.from_sums(alike, TARGET)
    assert found.r2 is None and found.mae == pytest.approx(0.8)


def test_squares_that_were_lost_in_steps_make_no_perfect_fit() -> None:
    # 50 rows, 0.02 off on the average: their squares, 0.02 at least, are below a step of a plant's and told as 0.
    sums = dict.fromkeys(REGRESSION_SUMS, 0.0) | {
        "n_test": 50.0, "absolute_error": 1.0, "target_sum": 25.0, "target_squares": 13.5,
    }
    found = RegressionScores.from_sums(sums, TARGET)
    assert found.mae is not None and found.rmse == pytest.approx(found.mae) and found.mae > 0
    assert found.r2 == pytest.approx(1.0 - 0.02 / 1.0)


def test_without_a_row_nothing_is_known() -> None:
    assert RegressionScores.from_sums(dict.fromkeys(REGRESSION_SUMS, 0.0), TARGET) == RegressionScores()


def test_sums_of_sites_are_added_name_by_name() -> None:
    assert added([SUMS, SUMS, dict.fromkeys(REGRESSION_SUMS, 0.0)]) == {name: 2 * value for name, value in SUMS.items()}
    assert added([SUMS] * 5) == pytest.approx({name: 5 * value for name, value in SUMS.items()})
    assert added([]) == dict.fromkeys(REGRESSION_SUMS, 0.0)


def test_an_interval_has_its_wide_side_where_errors_cost_less() -> None:
    """Pinball at 1/4: estimates above the target cost 3/4 of the error, below 1/4, so targets may lie far above."""
    found = ErrorInterval.implied(Pinball(0.25), TARGET, 0.06, 0.8)
    assert (found.below, found.above) == pytest.approx((4.0 * 0.3 / 0.75, 4.0 * 0.3 / 0.25))
    assert (found.confidence, found.risk) == (0.8, 0.06)
