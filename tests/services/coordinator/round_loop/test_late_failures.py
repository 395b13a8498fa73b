"""Rounds that wait for nobody, where a plant fails: who is asked again, who is given up, and for how long."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from models.problem import Status
from tests.services.coordinator.patient_works import PatientWorks

SITE = "plant-4"


def test_the_patience_is_waited_out_once_and_a_plant_stays_given_up_until_it_answers(patient: PatientWorks) -> None:
    """Else each round would take the bound from above for one of all plants, or wait anew for who is known to be away.

    A gap of 1e-6 needs rounds after the one in which the plant is given up.
    """
    patient.slow().silent = lambda task: task.site_id == SITE and task.kind == "round" and task.round >= 6
    trained, _ = patient.trained(patient.waiting(absence_patience_seconds=20.0, gap=1e-6))
    assert trained.status is Status.CERTIFIED
    (given_up,) = [each.round for each in patient.store.records if each.seconds >= 19.0]
    assert len(patient.store.records) > given_up + 2
    assert [each.fresh_weight for each in patient.store.records if each.round < given_up] == [1.0] * (given_up - 1)
    assert {each.fresh_weight for each in patient.store.records if each.round >= given_up} == {0.75}


def test_a_plant_that_was_given_up_counts_again_with_its_next_answer(patient: PatientWorks) -> None:
    away = range(6, 11)
    patient.slow().silent = lambda task: task.site_id == SITE and task.kind == "round" and task.round in away
    trained, _ = patient.trained(patient.waiting(absence_patience_seconds=20.0, gap=1e-6))
    assert 0.75 in {each.fresh_weight for each in patient.store.records if each.round in away}
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == 1.0


def test_a_slow_plant_that_came_back_is_waited_for_again_at_what_it_works_on(patient: PatientWorks) -> None:
    """Else a bound from above would be one of fewer plants while each of them answers."""
    away = range(6, 11)
    patient.slow(plant_4=3.5).silent = lambda task: task.site_id == SITE and task.kind == "round" and task.round in away
    patient.trained(patient.waiting(absence_patience_seconds=20.0, max_rounds=30, gap=1e-9))
    fresh = {each.round: each.fresh_weight for each in patient.store.records}
    given_up = min(number for number, weight in fresh.items() if weight == 0.75)
    back = min(
        number for number, status, _ in patient.answers(SITE) if status == "accepted" and number > given_up
    )
    assert given_up < back < 25 and {fresh[number] for number in fresh if number >= back} == {1.0}


def test_a_plant_silent_for_once_is_not_given_up_where_the_others_take_longer_than_the_patience(
    patient: PatientWorks,
) -> None:
    transport = patient.slow(**{f"plant_{number}": 30.0 for number in (1, 2, 3, 4)})
    transport.silent = lambda task: task.site_id == SITE and task.kind == "round" and task.round == 5
    patient.trained(patient.waiting(absence_patience_seconds=20.0, max_rounds=7, gap=1e-9))
    assert (5, "absent", 0) in patient.answers(SITE)
    assert all(each.seconds > 20.0 and each.fresh_weight == 1.0 for each in patient.store.records)


def test_an_answer_that_cannot_be_true_leaves_its_plant_out_before_another_is_asked_of_it(
    patient: PatientWorks,
) -> None:
    """It comes alone, long before the others': asked once more the plant might tell something else."""
    patient.slow(plant_4=0.1)
    asked: list[int] = []

    def once(task: Any, said: dict[str, Any]) -> dict[str, Any]:
        if task.kind != "round" or task.round != 2:
            return said
        asked.append(task.round)
        return said | {"risk": np.full_like(said["risk"], np.nan)} if len(asked) == 1 else said

    patient.plants[SITE].falsify = once
    run = patient.waiting({"enough": 0.2}, min_sites=3)
    trained, _ = patient.trained(run)
    (out,) = patient.store.get_run(run.run_id).excluded
    assert (out.site_id, out.round, out.code, asked) == (SITE, 2, "not_finite", [2])
    assert set(trained.site_risks) == {"plant-1", "plant-2", "plant-3"}


def test_a_plant_that_failed_and_is_asked_again_in_its_round_has_one_account_and_sets_no_pace(
    patient: PatientWorks,
) -> None:
    """It fails at once and works four seconds on its second try; the others answer after a second."""
    transport = patient.slow(plant_4=4.0)
    transport.silent = lambda task: task.site_id == SITE and task.kind == "round" and (
        [number for _, site, number in transport.asked if site == SITE].count(1) == 1
    )
    patient.trained(patient.waiting({"enough": 0.2}, min_sites=4, max_rounds=5, gap=1e-9))
    assert [number for _, site, number in transport.asked if site == SITE][:3] == [0, 1, 1]
    assert patient.answers(SITE)[0] == (1, "open", 0) and patient.store.records[0].seconds < 2.0
    accounts = [Counter(each.site_id for each in record.answers) for record in patient.store.records]
    assert accounts[0] == dict.fromkeys(patient.plants, 1)
