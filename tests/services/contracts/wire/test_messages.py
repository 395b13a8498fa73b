"""Tasks and answers that do not fit themselves are no messages: what is asked, how it is masked, which numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.masking import Delivery, MaskingCohort, MaskKeys, OpenRounds
from services.contracts.wire.messages import SiteUpdate, Task

RUN, OTHER = "ab" * 16, "cd" * 16
COHORT = MaskingCohort(run_id=RUN, name="one", keys={site: site.upper() for site in "abc"}, threshold=3)
DELIVERY = Delivery(run_id=RUN, round=1, sealed={})
KEYS = MaskKeys(run_id=RUN, round=1, keys={})
TUNING = {
    "folds": 2, "seed": 1, "lifts": [None], "scored": False,
    "parts": [{"radius": 1.0, "label_flip_cost": 1.0, "lift": 0, "fold": 0}],
}


def task(kind: str, **more: Any) -> Task:
    return Task.model_validate({
        "kind": kind, "site_id": "a", "run_id": RUN, "round": 1, "method": "level-bundle", "asset_type": "rig",
        "contract": "0", "spec": TrainingSpec(), **more,
    })


def update(**more: Any) -> SiteUpdate:
    return SiteUpdate.model_validate({
        "kind": "join", "site_id": "a", "run_id": RUN, "round": 0, "task_sha256": "0", **more,
    })


@pytest.mark.parametrize(
    ("kind", "masking"),
    [("agree", COHORT), ("prepare", KEYS), ("round", DELIVERY), ("evaluate", DELIVERY), ("join", None),
     ("evaluate", None)],
)
def test_on_sums_each_kind_is_asked_with_what_masks_its_answer(kind: str, masking: Any) -> None:
    assert task(kind, reveal="sums", masking=masking).masking == masking
    if masking is not None:
        with pytest.raises(ValidationError, match="only a run on sums masks answers"):
            task(kind, masking=masking)
        other = masking.model_copy(update={"run_id": OTHER})
        with pytest.raises(ValidationError, match=f"the masks are of run {OTHER}"):
            task(kind, reveal="sums", masking=other)


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("round", {}, "must say how its answer is to be masked"), ("unmask", {}, "must say how its answer"),
        ("open", {}, "must say how its answer"), ("tune", {"tuning": TUNING}, "must say how its answer"),
        ("round", {"masking": KEYS}, "a task round cannot bring a MaskKeys"),
        ("join", {"masking": DELIVERY}, "a task join cannot bring a Delivery"),
        ("unmask", {"masking": OpenRounds(run_id=RUN, request=b"")}, "a task unmask cannot bring a OpenRounds"),
    ],
)
def test_on_sums_no_answer_is_asked_without_its_masks(kind: str, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        task(kind, reveal="sums", **more)


def test_a_task_tune_says_what_it_asks_and_no_other_does() -> None:
    assert task("tune", tuning=TUNING).tuning is not None
    for kind, tuning in (("tune", None), ("round", TUNING)):
        with pytest.raises(ValidationError, match="a task tune says what it asks, and no other does"):
            task(kind, tuning=tuning)


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_arrays_are_of_double_precision_in_tasks_and_in_answers(kind: type) -> None:
    for make in (lambda arrays: task("round", arrays=arrays), lambda arrays: update(arrays=arrays)):
        assert make({"risk": np.zeros(2)}).arrays["risk"].dtype == np.float64
        with pytest.raises(ValidationError, match="array risk must be float64"):
            make({"risk": np.zeros(2, dtype=kind)})


@pytest.mark.parametrize(
    "more",
    [
        {"drift": 1.1}, {"drift": -0.1}, {"drift": float("nan")}, {"exposed": 1.1}, {"exposed": -0.1},
        {"exposed": float("nan")}, {"data_digest": "0" * 63}, {"data_digest": "G" * 64}, {"data_digest": "a" * 65},
        {"round": -1}, {"site_id": "A b"}, {"run_id": "ab"},
    ],
    ids=str,
)
def test_figures_of_an_answer_are_in_their_ranges(more: dict[str, Any]) -> None:
    assert update(drift=1.0, exposed=0.0, data_digest="a" * 64).drift == 1.0
    with pytest.raises(ValidationError):
        update(**more)
