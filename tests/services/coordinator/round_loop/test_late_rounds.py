"""Rounds that wait for nobody: who is asked what, when an answer counts, and that none is lost or counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from models.problem import Status
from services.contracts.plans.plan import Plan
from services.contracts.wire.messages import Task
from services.coordinator.run_state.run_errors import TooFewSitesError
from tests.services.coordinator.fake_ports import FakeWorks
from tests.services.coordinator.patient_works import PatientWorks

SLOW = "plant-4"


def risk_of(works: FakeWorks, weights: Any) -> float:
    """Mean of the plants' worst-case risks, from their rows."""
    from services.contracts.problems.training_spec import TrainingSpec
    from services.site_agent.answers.local_solve import head_risks, site_problems
    from tests.services.coordinator.fake_ports import RIG

    spec = TrainingSpec.model_validate({"radius": {"rule": "fixed", "value": 0.02}})
    return float(np.mean([
        head_risks(weights, site_problems(spec, plant.features, plant.classes, RIG)).sum()
        for plant in works.plants.values()
    ]))


def test_a_slow_plant_sets_no_pace_and_all_that_it_answers_counts(patient: PatientWorks) -> None:
    patient.slow(plant_4=10.0)
    trained, seconds = patient.trained(patient.waiting())
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == 1.0
    found = patient.answers(SLOW)
    accepted = [(number, question or number) for number, status, question in found if status == "accepted"]
    assert len(accepted) >= 2 and any(question < number for number, question in accepted)
    assert len({question for _, question in accepted}) == len(accepted), "each question is answered once"
    asked = [question for _, site, question in patient.transport.asked if site == SLOW and question]
    assert len(asked) == len(set(asked)), "no question is asked twice, and none before the one before is answered"
    assert len(asked) - len(accepted) <= 1, "at the end one question may be open"
    again = FakeWorks(patient.plants)
    paced = again.train(again.run(gap=1e-4, max_rounds=400))
    assert seconds < 0.7 * 10.0 * len(again.store.records)
    assert risk_of(patient, trained.weights) == pytest.approx(trained.certificate.upper, rel=1e-6)
    assert trained.certificate.lower <= paced.certificate.upper * (1 + 1e-9)
    assert paced.certificate.lower <= trained.certificate.upper * (1 + 1e-9)


def test_a_round_says_who_works_on_which_question(patient: PatientWorks) -> None:
    patient.slow(plant_4=4.0)  # the first round waits a quarter longer than the others took
    patient.trained(patient.waiting(max_rounds=5))
    assert patient.answers(SLOW)[:4] == [(1, "open", 0), (2, "open", 1), (3, "open", 1), (4, "accepted", 1)]
    assert [record.fresh_weight for record in patient.store.records[:4]] == [0.0, 0.0, 0.0, 1.0]
    assert np.isinf([record.upper for record in patient.store.records[:3]]).all(), "no plant's risk is guessed"
    at_work = [each.seconds for record in patient.store.records[:3] for each in record.answers if each.site_id == SLOW]
    assert at_work == pytest.approx([1.25, 2.25, 3.25], abs=0.1), "since it was asked, not since the round began"


def test_a_plant_that_is_silent_ten_times_comes_back_and_nothing_is_lost(patient: PatientWorks) -> None:
    transport = patient.slow()
    transport.silent = lambda task: task.site_id == SLOW and task.kind == "round" and (
        2 < sum(site == SLOW and question > 0 for _, site, question in transport.asked) <= 12
    )
    run = patient.waiting(gap=1e-6)
    trained, _ = patient.trained(run)
    found = [(number, status) for number, status, _ in patient.answers(SLOW)]
    silent = [number for number, status in found if status == "absent"]
    assert silent and {status for _, status in found} == {"absent", "accepted"} and found[-1][1] == "accepted"
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == 1.0
    best = risk_of(patient, trained.weights)
    for record in patient.store.records:
        assert record.lower <= best * (1 + 1e-9) and best <= record.upper * (1 + 1e-6)
    state = patient.store.states[run.run_id][1]
    assert (state["cut_round"][0][state["cut_site"][0] == 3] < min(silent)).any(), "what it told before stays"


def test_a_killed_coordinator_asks_the_open_question_again_and_ends_as_if_undisturbed(
    patient: PatientWorks, tmp_path: Path
) -> None:
    transport = patient.slow(plant_4=4.5)
    run = patient.waiting(max_rounds=30)
    patient.store.lose_after = 3
    with pytest.raises(KeyboardInterrupt):
        patient.trained(run)
    patient.store.lose_after = None
    state = patient.store.states[run.run_id][1]
    assert state["open_round"][0].tolist() == [0, 0, 0, 1]
    before = len(transport.asked)
    patient.trained(patient.store.get_run(run.run_id))
    assert (SLOW, 1) in [(site, question) for _, site, question in transport.asked[before:before + 4]]
    firsts = [task for task in patient.plants[SLOW].asked if task.kind == "round" and task.round == 1]
    assert all(np.array_equal(firsts[0].arrays[name], each.arrays[name]) for each in firsts for name in each.arrays)
    accepted = [question or number for number, status, question in patient.answers(SLOW) if status == "accepted"]
    assert accepted[0] == 1 and len(accepted) == len(set(accepted))


def test_a_run_killed_between_rounds_ends_at_the_very_same_weights(patient: PatientWorks) -> None:
    """Where the same answers come in the same rounds nothing shows that there was a kill."""
    ends = []
    for lose in (None, 4):
        works = PatientWorks(patient.plants)
        works.slow().silent = lambda task: task.site_id == SLOW and task.kind == "round" and task.round in (2, 3)
        works.store.lose_after = lose
        run = works.waiting(max_rounds=8)
        if lose:
            with pytest.raises(KeyboardInterrupt):
                works.trained(run)
            works.store.lose_after = None
        ends.append(works.trained(works.store.get_run(run.run_id))[0])
    assert np.array_equal(ends[0].weights, ends[1].weights) and ends[0].certificate == ends[1].certificate


def test_an_answer_to_an_earlier_question_counts_once(
    patient: PatientWorks, caplog: pytest.LogCaptureFixture
) -> None:
    plant, kept = patient.plants[SLOW], []
    patient.slow(plant_4=2.5)

    def repeat(task: Task) -> bytes | None:
        if task.kind != "round":
            return None
        kept.append(kept[0] if len(kept) == 1 else plant.update(plant.frame, task))
        return kept[-1]

    plant.behave = repeat
    patient.trained(patient.waiting(max_rounds=12))
    assert len(kept) > 3 and kept[0] == kept[1] and "is rejected: answer is for round 1, " in caplog.text
    accepted = [question or number for number, status, question in patient.answers(SLOW) if status == "accepted"]
    assert accepted[0] == 1 and len(accepted) == len(set(accepted))
    state = patient.store.states[patient.store.records[0].run_id][1]
    mine = state["cut_round"][0][state["cut_site"][0] == 3]
    assert (mine == 1).sum() == 2, "the two cuts of the first answer, once"


def test_a_plant_that_lies_late_is_convicted_by_its_own_frames(patient: PatientWorks) -> None:
    patient.slow(plant_4=2.5)
    patient.plants[SLOW].falsify = lambda task, arrays: (
        {**arrays, "risk": arrays["risk"] * 0.5} if task.kind == "round" and task.round > 1 else arrays
    )
    run = patient.waiting(min_sites=3)
    trained, _ = patient.trained(run)
    (out,) = patient.store.get_run(run.run_id).excluded
    assert out.site_id == SLOW and out.code == "contradiction"
    assert trained.status is Status.CERTIFIED and SLOW in patient.store.evidence
    assert (run.run_id, out.round, SLOW) not in patient.store.exchanges, "it is not in the sum of the round"


def test_a_plant_too_far_behind_is_waited_for(patient: PatientWorks) -> None:
    patient.slow(plant_4=30.0)
    patient.trained(patient.waiting({"furthest_behind": 4}, max_rounds=9, gap=1e-9))
    found = patient.answers(SLOW)
    told = [question or number for number, status, question in found if status == "accepted"]
    assert told[0] == 1 and [number for number, status, _ in found if status == "accepted"][0] == 4


def test_a_plant_that_stays_away_enters_by_its_cuts_and_the_version_of_it_says_so(patient: PatientWorks) -> None:
    patient.slow().silent = lambda task: task.site_id == SLOW and task.kind == "round" and task.round >= 6
    trained, seconds = patient.trained(patient.waiting(absence_patience_seconds=20.0))
    assert trained.status is Status.CERTIFIED and trained.certificate.fresh_weight == pytest.approx(0.75)
    assert seconds > 20.0, "the plan's patience was waited out"


def test_a_round_waits_for_a_plant_as_long_as_the_plan_says(patient: PatientWorks) -> None:
    patient.slow(plant_4=3.0)
    patient.trained(patient.waiting({"sites": {SLOW: 5.0}}, max_rounds=4, gap=1e-9))
    assert {status for _, status, _ in patient.answers(SLOW)} == {"accepted"}
    assert {question for _, _, question in patient.answers(SLOW)} == {0}


def test_nobody_there_ends_the_run_with_one_line(patient: PatientWorks) -> None:
    patient.slow().silent = lambda task: task.kind == "round" and task.round >= 2 and task.site_id != "plant-1"
    with pytest.raises(TooFewSitesError, match=r"1 of the 2 sites .* within 5 s \(plant-2, plant-3, plant-4: nobody"):
        patient.trained(patient.waiting(min_sites=2, absence_patience_seconds=5.0))


@pytest.mark.parametrize(("changes", "line"), [
    ({"reveal": "sums"}, 'waiting goes with reveal = "each site"'),
    ({"reveal": "each site", "method": "fdr-admm"}, "fdr-admm needs the answers of a round together"),
    ({"reveal": "each site", "sites": ["a", "b"], "waiting": {"sites": {"c": 1.0}}}, "not in sites: c"),
])
def test_a_plan_that_cannot_wait_less_is_refused_with_one_line(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ValidationError, match=line):
        Plan.model_validate({"name": "nightly", "asset_type": "rig", "waiting": {}, **changes})


def test_a_version_says_how_fresh_each_plant_is(patient: PatientWorks) -> None:
    from flows.versions import freshness

    patient.slow(plant_4=3.0)
    run = patient.waiting(max_rounds=4, gap=1e-9)
    trained, _ = patient.trained(run)
    fresh = freshness(patient.store.get_run(run.run_id), trained, patient.store.records)
    found = {each.site_id: each for each in fresh or ()}
    slow = found[SLOW]
    assert (slow.question, slow.came, slow.at_work) == (1, 3, True)
    assert found["plant-1"].question == found["plant-1"].came == 4 and not found["plant-1"].at_work
    assert slow.at_model and trained.certificate.fresh_weight == 1.0, "the one point that all told is the model"
    patient.slow().silent = lambda task: task.site_id == SLOW and task.kind == "round"
    run = patient.waiting(absence_patience_seconds=1.0, max_rounds=30)
    trained, _ = patient.trained(run)
    records = [record for record in patient.store.records if record.run_id == run.run_id]
    fresh = freshness(patient.store.get_run(run.run_id), trained, records)
    gone = {each.site_id: each for each in fresh or ()}[SLOW]
    assert (gone.question, gone.came, gone.at_model, gone.at_work) == (None, None, False, False)
    assert freshness(patient.run(), trained, records) is None
