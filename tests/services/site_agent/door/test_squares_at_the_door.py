"""Questions of squares at the door: gradients of a target's rows or of classes, each against the rest; of any kind."""

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


def three(make_site: Any, make_table: Any, three_classes: Any, **changes: Any) -> Any:
    """A plant with rows of three classes."""
    rows = make_table(120, tuple(each.name for each in three_classes.fault_classes))
    return make_site(rows, asset_type=three_classes, policy=rules(**changes))


def asked_of_classes(site: Any, arrays: dict[str, Any], *parts: dict[str, Any], number: int = 1, **spec: Any) -> Any:
    stated = {"loss": {"name": "logistic"}, "radius": {"rule": "fixed", "value": 0.01}} | spec
    tuning = {"folds": 5, "seed": 3, "lifts": [None], "parts": list(parts), "scored": False}
    return site.ask(
        "tune", round=number, method=METHOD, spec=TrainingSpec.model_validate(stated), arrays=arrays, tuning=tuning
    )


def test_the_heads_of_classes_have_one_matrix(make_site: Any, make_table: Any, three_classes: Any) -> None:
    """Gradients of unlike heads at one point differ as they do at zero: by the classes' own sums, and nothing else."""
    site = three(make_site, make_table, three_classes, exposure_limit=1.0, nearness_limit=0.0)
    points = np.zeros((3, 4)), np.repeat(POINT, 3, axis=0)
    told = [
        asked_of_classes(site, {"point_0": each}, part(0, squares=True), number=number).arrays["slope_0"]
        for number, each in enumerate(points, start=1)
    ]
    products = told[1] - told[0]
    np.testing.assert_allclose(products, np.repeat(products[:1], 3, axis=0), atol=1e-9)
    assert np.abs(products[0]).max() > 1e-3 and np.abs(told[0][0] - told[0][1]).max() > 1e-3
    train = site.door._vault.current().train
    kept = deal_rows(train.features, train.classes, 5, 3) != 0
    shares = (1.0 - told[0][:, -1]) / 2.0
    exact = [np.mean(train.classes[kept] == k) for k in range(3)]
    assert shares == pytest.approx(exact, rel=0.3)
    assert not np.allclose(shares, exact, atol=1e-4), "each row as often as drawn"


def test_gradients_of_classes_show_no_row_in_their_differences(
    make_site: Any, make_table: Any, three_classes: Any
) -> None:
    site, slopes = three(make_site, make_table, three_classes, nearness_limit=0.0), []
    random = np.random.default_rng(0)
    for number in range(1, 9):
        points = random.normal(size=(3, 4)) * (number > 1)
        points /= np.maximum(np.abs(points).sum(axis=1, keepdims=True), 1e-12)
        parts = [part(fold, squares=True) for fold in range(5)]
        answer = asked_of_classes(site, {f"point_{j}": points for j in range(5)}, *parts, number=number)
        assert isinstance(answer, SiteUpdate)
        slopes += [head for j in range(5) for head in answer.arrays[f"slope_{j}"]]
    assert not rows_shown(site, slopes)


def test_all_classes_as_one_problem_have_no_squares(make_site: Any, make_table: Any, three_classes: Any) -> None:
    site = three(make_site, make_table, three_classes, exposure_limit=1.0)
    joint = {"loss": {"name": "hinge"}, "multi_class": "crammer_singer"}
    answer = asked_of_classes(site, {"point_0": np.zeros((1, 4))}, part(0, squares=True), **joint)
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
