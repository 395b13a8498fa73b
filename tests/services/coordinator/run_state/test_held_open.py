"""Cuts that are true and far too low convict nobody: a run that ends with its gap open says whose they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows.publish import why_stopped
from models.methods.catalogue import METHODS
from services.coordinator.round_loop import summed_rounds

LIAR = "plant-4"
UNKNOWN = {"scaffold", "scaff-pd", "scaff-pd-ia"}  # for other losses than the hinge


def low(by: float) -> Callable[..., Any]:
    names = ("cut_height", "minorant_offset")
    return lambda task, arrays: dict(arrays) | (
        {name: arrays[name] - by for name in names if name in arrays} if task.kind == "round" else {}
    )


@pytest.mark.parametrize(
    ("by", "method"), [(0.05, "level-bundle"), (0.5, "level-bundle"), (0.5, "level-bundle-plain")]
)
def test_a_plant_whose_cuts_are_too_low_is_named_where_the_gap_stays_open(works: Any, by: float, method: str) -> None:
    works.plants[LIAR].falsify = low(by)
    run = works.run(method=method, max_rounds=20)
    trained = works.train(run)
    assert trained.certificate.gap > 1e-3 and works.store.get_run(run.run_id).excluded == ()
    ((site, left),) = trained.held_open.items()
    assert site == LIAR and 0.9 * by / 4 <= left <= 1.001 * by / 4, "its weight of what it took off"
    said = why_stopped(works.store.get_run(run.run_id), trained)
    assert f"{LIAR} keeps the gap open: of " in said and f"its own cuts leave {left:.3g}," in said
    assert "\n" not in said and not any(f"plant-{k}" in said for k in (1, 2, 3))


def test_on_sums_its_cohort_is(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)
    works.plants[LIAR].falsify = low(0.5)
    run = works.run(method="cohort-bundle", reveal="sums", max_rounds=20)
    trained = works.train(run)
    assert trained.certificate.gap > 1e-3
    said = why_stopped(works.store.get_run(run.run_id), trained)
    assert "cohort-1 (plant-1, plant-2, plant-3, plant-4) keeps the gap open: of " in said


@pytest.mark.parametrize("method", [name for name in METHODS if name not in UNKNOWN])
def test_honest_plants_keep_no_gap_open_however_few_the_rounds(works: Any, method: str) -> None:
    run = works.run(method=method, max_rounds=3)
    trained = works.train(run)
    assert trained.certificate.gap > 1e-3 and trained.held_open == {}
    assert "keeps the gap open" not in why_stopped(works.store.get_run(run.run_id), trained)


def test_a_gap_that_is_closed_is_held_open_by_nobody(works: Any) -> None:
    """Its prox cuts are exact, and close what those at the points leave."""
    works.plants[LIAR].falsify = lambda task, arrays: dict(arrays) | (
        {"cut_height": arrays["cut_height"] - 0.5} if task.kind == "round" else {}
    )
    trained = works.train(works.run(method="level-bundle"))
    assert trained.certificate.gap <= 1e-3 and trained.held_open == {}
