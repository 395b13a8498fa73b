"""Questions of squares at the door: gradients of a target's rows, whose kind is any, and which classes do not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from pydantic import ValidationError

from models.tuning.folds import deal_rows
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import SiteRefusal, SiteUpdate, Task
from services.site_agent.answers.local_tuning import row_counts
from services.site_agent.limits.kinds import kind_of_task
from services.site_agent.vault.isolation.factors import ANY_KIND
from tests.services.site_agent.door.test_tuning_at_the_door import METHOD, part, rows_shown, rules

SPEC = TrainingSpec.model_validate({"loss": {"name": "pinball"}, "radius": {"rule": "fixed", "value": 0.01}})
POINT = np.array([[0.4, -0.2, 0.1, 0.05]])


@pytest.fixture
def measured(make_site: Any, asset_type: Any) -> Any:
    """A plant whose rows have a target, a plane of the readings and a little more."""
    random = np.random.default_rng(4)
    names = [feature.name for feature in asset_type.features]
    spans = np.array([(feature.low, feature.high) for feature in asset_type.features])
    shares = random.uniform(size=(120, len(names)))
    gap = 8.0 * np.clip(shares @ [0.5, 0.3, 0.1] + 0.05 * random.normal(size=120), 0.0, 1.0)
    readings = spans[:, 0] + shares * (spans[:, 1] - spans[:, 0])
    table = [[*names, "gap"], *(list(map(float, [*row, value])) for row, value in zip(readings, gap, strict=True))]
    kind = asset_type.model_copy(update={"target": Target(name="gap", unit="mm", low=0.0, high=8.0),
                                         "fault_classes": ()})

    def make(**changes: Any) -> Any:
        return make_site(table, asset_type=kind, policy=rules(**changes), target_column="gap")

    return make


def asked(site: Any, arrays: dict[str, Any], *parts: dict[str, Any], number: int = 1, **changes: Any) -> Any:
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": list(parts), "scored": False} | changes
    return site.ask("tune", round=number, method=METHOD, spec=SPEC, arrays=arrays, tuning=tuning)


def test_it_is_the_gradient_of_the_square_on_the_rows_without_the_fold_by_counts_of_the_vault(
    measured: Any, accounts_of: Any
) -> None:
    site = measured(exposure_limit=1.0)
    accounts = accounts_of(site)
    update = asked(site, {"point_0": POINT}, part(2, squares=True, radius=10.0))
    assert isinstance(update, SiteUpdate)
    train = site.door._vault.current().train
    folds = deal_rows(train.features, np.zeros(len(train), np.intp), 5, 3)
    rows = np.column_stack([train.features, np.ones(len(train))])[folds != 2]
    residual = rows @ POINT[0] - train.targets[folds != 2]
    coefficients = accounts[0].rows[0]
    assert not coefficients[folds == 2].any()
    told = len(train) / len(rows) * coefficients[folds != 2]  # sums over all rows, of means over those that are learnt
    np.testing.assert_allclose(update.arrays["slope_0"][0], told @ rows, atol=1e-9)
    assert 0.5 < np.corrcoef(told, residual)[0, 1] < 0.999, "each row by its residual, and not alike"
    assert update.arrays["risk_0"][0] == pytest.approx(0.5 * np.mean(residual**2), rel=0.3)
    assert update.arrays["norm_weight_0"].tolist() == [0.0]


def test_rows_count_alike_while_they_stay_and_anew_when_one_is_added(measured: Any) -> None:
    """Who has asked for every direction knows all gradients; the next version of the rows must not be a known sum."""
    site = measured(exposure_limit=1.0, nearness_limit=0.0)
    train = site.door._vault.current().train
    gate = site.door._gate
    draws = [gate.guard(rows, np.ones(len(rows), bool)).shares for rows in (train, train, train.chosen(slice(1, None)))]
    same, again, fewer = (row_counts(draw, len(train)) for draw in draws)
    np.testing.assert_array_equal(same, again)
    assert not np.isclose(same, fewer).any() and not np.isclose(same[1:], fewer[:-1]).any()
    assert same.min() >= 0.5 and same.max() <= 1.5
    # All gradients over the rows but the first are known; what does one over all rows tell of the first?
    rows = np.column_stack([train.features, np.ones(len(train))])
    parts = (rows @ POINT[0] - train.targets)[:, None] * rows
    told = {"alike": parts.sum(axis=0) - parts[1:].sum(axis=0), "weighed": same @ parts - fewer[:-1] @ parts[1:]}
    cosine = {name: abs(left @ rows[0]) / np.linalg.norm(left) / np.linalg.norm(rows[0]) for name, left in told.items()}
    assert cosine["alike"] > 1.0 - 1e-9 > 0.9999 > cosine["weighed"]


def test_gradients_of_all_folds_show_no_row_in_their_differences(measured: Any) -> None:
    site, slopes = measured(nearness_limit=0.0), []
    random = np.random.default_rng(0)
    for number in range(1, 13):
        point = random.normal(size=(1, 4))
        point /= np.abs(point).sum()
        parts = [part(fold, squares=True) for fold in range(5)]
        answer = asked(site, {f"point_{j}": point for j in range(5)}, *parts, number=number)
        assert isinstance(answer, SiteUpdate)
        slopes += [answer.arrays[f"slope_{j}"][0] for j in range(5)]
    assert not rows_shown(site, slopes)


def test_classes_have_no_squares(make_site: Any) -> None:
    site = make_site(policy=rules(exposure_limit=1.0))
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0, squares=True)], "scored": False}
    fixed = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.01}})
    answer = site.ask("tune", round=1, method=METHOD, spec=fixed, arrays={"point_0": POINT}, tuning=tuning)
    assert isinstance(answer, SiteRefusal) and answer.code == "bad_task"


@pytest.mark.parametrize(("squares", "expected"), [(True, True), (False, False)])
def test_answers_of_squares_are_held_against_those_of_every_loss(squares: bool, expected: bool) -> None:
    given = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0), part(1, squares=squares)], "scored": False}
    task = cast(Task, SimpleNamespace(spec=SPEC, arrays={}, tuning=TuningTask.model_validate(given)))
    assert (kind_of_task(task) == ANY_KIND) is expected


def test_squares_are_neither_scored_nor_stepped_on_and_tasks_without_them_are_as_before() -> None:
    given = {"folds": 5, "seed": 3, "lifts": [None], "parts": [part(0, squares=True)], "scored": False}
    assert TuningTask.model_validate(given).asks_squares
    for wrong in ({"scored": True}, {"parts": [part(0, squares=True, penalty=0.1)]}):
        with pytest.raises(ValidationError, match="neither scored nor stepped on"):
            TuningTask.model_validate(given | wrong)
    without = TuningTask.model_validate(given | {"parts": [part(0)]})
    assert "squares" not in without.model_dump_json(), "agents of before know no such name"
    assert not without.asks_squares
