"""What leaves for the calibration: whole numbers on the fixed grid, in the same shapes whatever the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.conformal.grid import score_grid
from models.conformal.spread import residual_grid, tenth_of
from models.conformal.temperature import SCALES
from models.multiclass import predict_scores
from services.contracts.evaluation.calibration import ROWS, calibration_shapes
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.door.test_targets import GAP, HUBER, measured

WEIGHTS = np.array([[2.0, 1.0, -0.5, -1.2]])
ASKED = {"weights": WEIGHTS, "calibration": np.array(1.0)}


def counts(site: Any, **given: Any) -> dict[str, Any]:
    answer = site.ask("evaluate", **({"arrays": ASKED} | given))
    assert isinstance(answer, SiteUpdate), answer
    return dict(answer.arrays)


def test_counts_and_nothing_else_leave_and_they_are_of_the_held_out_rows(make_site: Any, asset_type: Any) -> None:
    site = make_site(test_fraction=0.4)
    found = counts(site)
    assert {name: array.shape for name, array in found.items()} == calibration_shapes(classes=True)
    assert all((array == np.round(array)).all() for array in found.values()), "whole numbers alone"
    test = Vault(site.source, asset_type).current().test
    score = predict_scores(WEIGHTS, test.features)[:, 0]
    signed, grid = np.where(test.classes == 1, -2.0 * score, 2.0 * score), score_grid()
    of = dict(zip(ROWS, found["counts"], strict=True))
    assert float(found["n_test"]) == len(test) == 40
    np.testing.assert_array_equal(of["error"], [(signed <= t).sum() for t in grid])
    np.testing.assert_array_equal(of["size"], [(np.abs(score) <= t).sum() for t in grid])
    distances = np.linalg.norm(test.features - 0.5, axis=1)
    np.testing.assert_array_equal(of["reach"], [(distances <= t).sum() for t in grid])
    assert float(found["right"]) == (signed < 0).sum()
    likely = [1 / (1 + np.exp(-scale * 2 * np.abs(score))) for scale in SCALES]
    np.testing.assert_array_equal(found["confidences"], [np.rint(each.sum()) for each in likely])


def test_the_answer_is_the_same_where_no_score_crosses_a_threshold(make_site: Any, make_table: Any) -> None:
    """A row's value is not told: only between which thresholds its scores lie."""
    rows = make_table(100)
    for number, row in enumerate(rows):
        row.append("part" if number == 0 else "test" if number <= 50 else "train")
    first = counts(make_site(rows, split_column="part"))
    moved = [list(row) for row in rows]
    moved[2][0] = round(moved[2][0] + 1e-4, 6)
    second = counts(make_site(moved, folder="moved", split_column="part"))
    shuffled = counts(make_site([rows[0], *reversed(rows[1:])], folder="shuffled", split_column="part"))
    for name, array in first.items():
        np.testing.assert_array_equal(second[name], array)
        np.testing.assert_array_equal(shuffled[name], array)


@pytest.mark.parametrize("asked", [np.array(2.0), np.array(0.0), np.array([1.0]), np.linspace(-1, 1, 1000)])
def test_no_other_grid_is_counted_on(make_site: Any, asked: Any) -> None:
    arrays = {"weights": WEIGHTS, "calibration": asked}
    assert make_site().refusal_code("evaluate", arrays=arrays) == "bad_task"


def test_a_run_gets_counts_at_few_models_and_at_the_same_ones_as_often_as_it_asks(make_site: Any) -> None:
    """Counts at many weights are projections of the rows, from which these could be put together again."""
    site = make_site()
    for step in (0.0, 0.1, 0.2, 0.1, 0.0):
        assert isinstance(site.ask("evaluate", arrays=ASKED | {"weights": WEIGHTS + step}), SiteUpdate)
    for step in (0.3, 0.4):
        assert site.refusal_code("evaluate", arrays=ASKED | {"weights": WEIGHTS + step}) == "question_refused"
    assert isinstance(site.ask("evaluate", arrays=ASKED, run_id="b" * 32), SiteUpdate), "another run has its own"


def test_a_policy_can_withhold_the_counts_and_goes_on_telling_scores(make_site: Any, policy: SitePolicy) -> None:
    site = make_site(policy=policy.model_copy(update={"calibration_counts": False}))
    assert site.refusal_code("evaluate", arrays=ASKED) == "message_not_allowed"
    assert isinstance(site.ask("evaluate", arrays={"weights": WEIGHTS}), SiteUpdate)


def test_on_sums_no_plant_shows_counts_of_its_own_unless_its_policy_shows_its_scores(
    make_site: Any, policy: SitePolicy
) -> None:
    assert make_site().refusal_code("evaluate", arrays=ASKED, reveal="sums") == "mode_not_allowed"
    site = make_site(folder="open", policy=policy.model_copy(update={"own_scores": True}))
    assert counts(site, reveal="sums").keys() == calibration_shapes(classes=True).keys()


def test_a_plant_with_too_few_held_out_rows_counts_none(make_site: Any, make_table: Any) -> None:
    site = make_site(make_table(40), test_fraction=0.1)
    assert site.refusal_code("evaluate", arrays=ASKED) == "too_few_samples"


BY_ESTIMATE = {"weights": np.array([[0.6, 0.2, 0.0, 0.05]]), "calibration": np.array(2.0)}


def test_residuals_are_counted_by_the_estimate_of_held_out_rows_and_more_coarsely_of_training_rows(
    make_site: Any, asset_type: Any
) -> None:
    kind = asset_type.model_copy(update={"target": GAP})
    site = make_site(measured(160), asset_type=kind)
    found = counts(site, spec=HUBER, arrays=BY_ESTIMATE)
    assert {name: array.shape for name, array in found.items()} == calibration_shapes(classes=False, by_estimate=True)
    assert all((array == np.round(array)).all() for array in found.values()), "whole numbers alone"
    rows = Vault(site.source, kind).current().rows_for("regression")
    for name, part, grid in (
        ("by_estimate", rows.test, residual_grid()), ("training", rows.train, residual_grid(coarse=True))
    ):
        values = predict_scores(BY_ESTIMATE["weights"], part.features)[:, 0]
        residuals = np.clip(values, 0.0, 1.0) - part.targets
        expected = [[(residuals[tenth_of(values) == tenth] <= t).sum() for t in grid] for tenth in range(10)]
        few = [name == "training" and tenth[-1] < site.policy.min_samples for tenth in expected]
        np.testing.assert_array_equal(found[name], np.where(np.array(few)[:, None], 0, expected))
        assert any(few) == (name == "training"), "training rows of a tenth with few of them are not counted"
    assert 0 < found["training"][:, -1].sum() == float(found["n_train"]) < len(rows.train)
    steps = residual_grid(coarse=True)[residual_grid(coarse=True) > 0]
    assert (steps[1:] / steps[:-1] > 1.7).all(), "of a training row it tells its residual to 78 %, and no more"
    plain = counts(site, spec=HUBER, arrays=BY_ESTIMATE | {"calibration": np.array(1.0)})
    assert plain.keys() == calibration_shapes(classes=False).keys(), "a coordinator of before gets what it knows"
    assert site.refusal_code("evaluate", spec=HUBER, arrays=BY_ESTIMATE | {"calibration": np.array(3.0)}) == "bad_task"
