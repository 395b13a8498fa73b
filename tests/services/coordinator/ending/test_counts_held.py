"""Answers of the end are held to the rows of the join, and to the same question's answers of before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.plans.plan import Plan
from services.contracts.wire.messages import SiteUpdate
from services.coordinator.asking.poll import Poll
from services.coordinator.ending.final_answers import MOST_HELD_OUT, with_answers_held, with_counts_held
from tests.versions import START, an_answer

HONEST, OTHER, RUN = "plant-1", "plant-2", "ab" * 16


def told(**arrays: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, dtype=np.float64) for name, value in arrays.items()}


def outcome(**by_site: dict[str, np.ndarray]) -> Poll:
    names = {name.replace("_", "-"): arrays for name, arrays in by_site.items()}
    updates = {
        site: SiteUpdate(kind="evaluate", site_id=site, run_id=RUN, round=9, task_sha256="0" * 64, arrays=arrays)
        for site, arrays in names.items()
    }
    return Poll(updates, tuple(an_answer(site) for site in names), 0.1, {})


def rejected(found: Poll) -> dict[str, str]:
    assert found.updates.keys() == {each.site_id for each in found.answers if each.status == "accepted"}
    assert all(each.code == "implausible" for each in found.answers if each.status == "rejected")
    return {each.site_id: each.reason for each in found.answers if each.status == "rejected"}


@pytest.mark.parametrize("name", ["n_test", "confusion"])
def test_up_to_nineteen_held_out_rows_are_believed_to_one_for_training(name: str) -> None:
    def counted(rows: float) -> dict[str, np.ndarray]:
        return told(**{name: rows if name == "n_test" else [[rows - 3, 1], [2, 0]]})

    sites = tuple(SiteTermsRecord(site_id=site, weight=0.5, radius=0.1, n_samples=40) for site in (HONEST, OTHER))
    plan = Plan(name="weekly", asset_type="pump")
    joined = Run(run_id=RUN, plan=plan, status="running", created_at=START, updated_at=START, sites=sites)
    most = MOST_HELD_OUT * 40.0
    assert rejected(with_counts_held(outcome(plant_1=counted(most), plant_2=counted(most)), joined)) == {}
    found = rejected(with_counts_held(outcome(plant_1=counted(most), plant_2=counted(most + 1)), joined))
    assert found.keys() == {OTHER} and "it counted 761 held-out rows and joined with 40" in found[OTHER]
    assert rejected(with_counts_held(outcome(plant_3=counted(most + 1)), joined)) == {}, "it did not say how many"


@pytest.mark.parametrize("name", ["risk", "loss", "n_test", "target_sum", "target_squares"])
def test_who_is_asked_twice_at_the_same_weights_tells_the_same(name: str) -> None:
    first = told(risk=[0.5], loss=0.25, n_test=12, target_sum=6.0, target_squares=4.0, covered=11)
    before = {HONEST: first, OTHER: first}
    again = first | told(covered=10) | told(**{name: first[name] * (1 + 1e-12)})
    assert rejected(with_answers_held(outcome(plant_1=first, plant_2=again), before)) == {}
    other = outcome(plant_1=first, plant_2=first | told(**{name: first[name] * 1.001}))
    found = rejected(with_answers_held(other, before))
    assert found == {OTHER: f"asked twice at the same weights, it told another {name} the second time"}
    assert rejected(with_answers_held(other, {HONEST: first})) == {}, "it was asked once"
