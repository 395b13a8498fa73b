"""What a task of a tuning may ask of a plant, whatever the door makes of it afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.problems.tuning_task import TuningTask


def part(fold: int, **changes: Any) -> dict[str, Any]:
    return {"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": fold, **changes}


def a_task(parts: list[dict[str, Any]], **changes: Any) -> TuningTask:
    given = {"folds": 3, "seed": 3, "lifts": [None], "scored": True, "parts": parts}
    return TuningTask.model_validate(given | changes)


@pytest.mark.parametrize("folds", [2, 3])
def test_pooled_counts_of_few_folds_are_over_all_of_them_too(folds: int) -> None:
    """Counts of all folds but one, beside those of all, would tell the rows of that one."""
    assert a_task([*map(part, range(folds))], folds=folds, pooled=True)
    with pytest.raises(ValidationError, match="over all folds, each once"):
        a_task([*map(part, range(folds - 1))], folds=folds, pooled=True)


@pytest.mark.parametrize("term", ["radius", "label_flip_cost", "lift"])
def test_folds_of_several_candidates_are_no_whole_one(term: str) -> None:
    parts = [part(0), part(1), part(2, **{term: 1 if term == "lift" else 2.0})]
    assert a_task(parts, lifts=[None, None])
    with pytest.raises(ValidationError, match="over all folds, each once"):
        a_task(parts, lifts=[None, None], pooled=True)


def test_a_fold_and_a_lift_are_of_those_that_the_task_has() -> None:
    assert a_task([part(2)]).parts[0].fold == 2
    for wrong in (part(3), part(0, lift=1)):
        with pytest.raises(ValidationError, match="a fold or a lift that the task does not have"):
            a_task([wrong])
