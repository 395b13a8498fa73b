"""Rounds that wait for nobody, where plants lie, copy, lose their keys, or stay away until nobody wants the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from models.problem import Status
from services.coordinator.run_state.run_errors import RunCancelledError, TooFewSitesError
from services.verification.contradiction import verify_evidence
from tests.services.coordinator.patient_works import PatientWorks

LIAR = "plant-4"


def test_the_plans_deadline_holds_for_each_question_and_its_patience_for_a_round(patient: PatientWorks) -> None:
    transport = patient.slow()
    transport.silent = lambda task: task.kind == "round" and task.round >= 2 and task.site_id != "plant-1"
    run = patient.waiting(min_sites=3, absence_patience_seconds=40.0, round_deadline_seconds=5.0)
    with pytest.raises(TooFewSitesError, match="within 40 s"):
        patient.trained(run)
    assert transport.deadlines == {5.0}
    times = [time for time, _, number in transport.asked if number == 2]
    assert 39.0 <= max(times) - min(times) <= 41.0


def test_a_cancelled_run_waits_for_no_plant(patient: PatientWorks) -> None:
    run = patient.waiting(min_sites=3)

    def silent(task: Any) -> bool:
        if task.kind == "round" and task.round == 2:
            patient.store.change(run.run_id, cancel_requested=True)
        return task.kind == "round" and task.round >= 2

    patient.slow().silent = silent
    with pytest.raises(RunCancelledError):
        patient.trained(run)


def test_who_lied_at_the_end_and_who_lies_then_are_both_left_out_with_evidence(patient: PatientWorks) -> None:
    patient.plants[LIAR].falsify = lambda task, said: (
        said | {"risk": 0.5 * said["risk"]} if task.kind == "evaluate" else said
    )
    run = patient.waiting(min_sites=2)
    patient.slow()
    trained, _ = patient.trained(run)
    run = patient.store.get_run(run.run_id)
    judged = asyncio.run(FastEvaluation(patient).of(run, trained))
    assert [each.site_id for each in judged.convicted] == [LIAR]
    patient.plants["plant-2"].falsify = lambda task, said: (
        said | {"risk": -said["risk"]} if task.kind == "round" and task.round == trained.rounds + 1 else said
    )
    after, _ = patient.trained(run, judged=judged)
    out = patient.store.get_run(run.run_id).excluded
    assert [(each.site_id, each.round) for each in out] == [
        (LIAR, trained.rounds + 1), ("plant-2", trained.rounds + 1),
    ]
    assert set(after.site_risks) == {"plant-1", "plant-3"} and after.status is Status.CERTIFIED
    assert "the evaluation" in verify_evidence(patient.store.evidence[LIAR])[0]


class FastEvaluation:
    """Asks the plants of an evaluation without the time that they take."""

    def __init__(self, works: PatientWorks) -> None:
        self.works = works

    async def of(self, run: Any, trained: Any) -> Any:
        self.works.transport.seconds = dict.fromkeys(self.works.plants, 0.0)
        found = await self.works.coordinator().evaluate(run, trained.weights, trained.risk_bound)
        self.works.transport.seconds = {}
        return found


def test_who_tells_what_another_tells_is_convicted_by_its_own_frames(patient: PatientWorks) -> None:
    other = patient.plants["plant-2"]
    patient.plants[LIAR].falsify = lambda task, said: (
        other.honest(other.asked[-1]) if task.kind == "round" and other.asked[-1].kind == "round" else said
    )
    patient.slow(plant_4=1.1)  # after the other, whom nobody waits for longer than a quarter more
    run = patient.waiting(min_sites=3, gap=1e-6)
    patient.trained(run)
    (out,) = patient.store.get_run(run.run_id).excluded
    assert (out.site_id, out.code) == (LIAR, "contradiction") and "points of its own" in out.reason
    assert verify_evidence(patient.store.evidence[LIAR])[0].startswith(f"proven: {LIAR} contradicts itself")


def test_a_plant_whose_key_was_taken_away_is_none_of_those_that_the_plan_needs(patient: PatientWorks) -> None:
    run = patient.join(patient.waiting(min_sites=4, absence_patience_seconds=5.0))
    patient.slow()
    coordinator = patient.coordinator()
    keys: Any = coordinator._parts.keys
    del keys[LIAR]
    with pytest.raises(TooFewSitesError, match="of the 4 sites .* in round 1 within 5 s"):
        patient.trained(run, coordinator)


def takes_the_key_away(coordinator: Any, number: int) -> Callable[[Any], bool]:
    """What takes the key of one plant away once a round is asked; nobody is silent."""

    def silent(task: Any) -> bool:
        if task.kind == "round" and task.round == number:
            coordinator._parts.keys.pop(LIAR, None)
        return False

    return silent


def test_a_plant_whose_key_was_taken_away_enters_by_its_cuts(patient: PatientWorks) -> None:
    transport, coordinator = patient.slow(), patient.coordinator()
    transport.silent = takes_the_key_away(coordinator, 6)
    trained, _ = patient.trained(patient.waiting(min_sites=3, absence_patience_seconds=20.0), coordinator)
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == pytest.approx(0.75)


def test_a_plant_whose_key_is_taken_away_while_it_works_counts_once_among_the_missing(patient: PatientWorks) -> None:
    """Its late answer fails, for nobody has its key: a run ended so, with as many answers as it needs."""
    transport, coordinator = patient.slow(plant_4=7.5), patient.coordinator()
    transport.silent = takes_the_key_away(coordinator, 3)
    trained, _ = patient.trained(patient.waiting(min_sites=3, absence_patience_seconds=20.0), coordinator)
    assert ("rejected", 1) in [(status, question) for _, status, question in patient.answers(LIAR)]
    assert trained.status is Status.CERTIFIED


def test_nothing_is_under_way_once_a_run_has_ended(patient: PatientWorks) -> None:
    transport = patient.slow(plant_4=30.0)
    patient.trained(patient.waiting(max_rounds=3, gap=1e-9))
    assert (LIAR, "open") in [(each.site_id, each.status) for each in patient.store.records[-1].answers]
    assert transport.under_way == 0, "who is still asked would answer into the next run"
