"""What a cohort tells at the end is held to what its rows can give: one plant of it writes what it likes into a sum."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from flows.versions import model_version
from services.contracts.history.run import Run
from services.coordinator.ending.final_answers import with_sums_held
from services.coordinator.round_loop import summed_rounds
from services.coordinator.run_state.evaluation import ScoresOnSums
from services.coordinator.run_state.terms import cohorts_of
from services.site_agent.answers.local_scores import calibration_counts
from tests.services.coordinator.fake_ports import RIG, FakeWorks

LIAR = "plant-3"
ROWS = 160


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)


def trained_on(works: FakeWorks) -> tuple[Run, Any]:
    """A run on sums in which no plant tells its own scores."""
    run = works.run(min_sites=3, max_rounds=3, reveal="sums", method="cohort-bundle", parameters={"questions": 2})
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    sites = tuple(site.model_copy(update={"own_scores": False}) for site in run.sites)
    return run.model_copy(update={"sites": sites}), trained


def lies(works: FakeWorks, name: str, change: Callable[[Any], Any]) -> None:
    works.plants[LIAR].falsify = lambda task, said: (
        said | {name: np.asarray(change(said[name]))} if task.kind == "evaluate" else said
    )


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("confusion", lambda counts: 100.0 * np.eye(2) * ROWS, "held-out rows and joined with 160 for training"),
        ("confusion", lambda counts: -100.0 * counts, "it counted held-out rows that are no whole number"),
        ("confusion", lambda counts: counts + 0.5, "it counted held-out rows that are no whole number"),
        ("risk", lambda risk: risk + 1e5, "; no rows have one outside 0 to "),
        ("risk", lambda risk: risk - 5.0, "no loss is below 0"),
        ("loss", lambda loss: loss + 1e5, "no rows have one above"),
    ],
)
def test_scores_that_no_rows_give_count_for_nothing_and_the_version_says_so(
    works: FakeWorks, caplog: pytest.LogCaptureFixture, name: str, change: Callable[[Any], Any], why: str
) -> None:
    """F-1 rose from .78 to .998 by counts that nobody has, and counts below 0 ended the run with a traceback."""
    run, trained = trained_on(works)
    honest = asyncio.run(works.coordinator().evaluate(run, trained.weights, 0.75))
    assert honest.all_confusion.sum() == ROWS and honest.note == "" and honest.worst_case_risk < 0.75
    lies(works, name, change)
    found = asyncio.run(works.coordinator().evaluate(run, trained.weights, 0.75))
    assert found.all_confusion is None and found.worst_case_risk == 0.75, "the bound stands for the risk"
    version = model_version(run, RIG, trained, found, works.store.records)
    assert version.f1 is None and version.confusion is None
    assert "what cohort-1 told does not count: " in version.note and why in version.note and why in caplog.text


def test_counts_for_the_calibration_are_held_to_the_rows_too(works: FakeWorks) -> None:
    run, trained = trained_on(works)
    for site, plant in works.plants.items():
        def answer(task: Any, said: Any, plant: Any = plant, factor: float = 1e3 if site == LIAR else 1.0) -> Any:
            if "calibration" not in task.arrays:
                return said
            told = calibration_counts(
                task.arrays["weights"], plant.features, plant.features, plant.classes, "classification"
            )
            return {name: factor * np.asarray(each) for name, each in told.items()}

        plant.falsify = answer
    found = asyncio.run(works.coordinator().calibrate(run, trained.weights))
    assert not found.held and found.missing == 4
    assert found.note.startswith("what cohort-1 told does not count: it counted 40,120 held-out rows and joined with")
    works.plants[LIAR].falsify = works.plants["plant-1"].falsify
    assert asyncio.run(works.coordinator().calibrate(run, trained.weights)).held


@pytest.mark.parametrize("doubted", [0, 1, 3, 4])
def test_a_sum_is_doubted_where_no_plant_of_its_cohort_could_have_told_it(works: FakeWorks, doubted: int) -> None:
    """The risk of a plant with a large ball may be one that those with small ones cannot have."""
    run, _ = trained_on(works)
    (members,) = cohorts_of(run).values()
    told = ScoresOnSums({"cohort-1": {"n_test": np.array(9.0)}}, frozenset({"cohort-1"}))
    held = with_sums_held(told, run, lambda site, _: "its risk" if site in members[:doubted] else "")
    gone = doubted == len(members) == 4
    assert (dict(held.doubts), held.complete) == (
        ({"cohort-1": "its risk"}, frozenset()) if gone else ({}, frozenset({"cohort-1"}))
    )


def test_doubts_are_said_cohort_by_cohort() -> None:
    told = ScoresOnSums({}, frozenset(), doubts={"cohort-2": "so", "cohort-1": "thus"})
    assert told.note == "what cohort-1 told does not count: thus; what cohort-2 told does not count: so"
    assert ScoresOnSums({}, frozenset()).note == ""
