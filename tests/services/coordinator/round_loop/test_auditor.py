"""A plan with an auditor: what the plants of a cohort that contradicts itself open, to whom, and who is then found."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from models.basics import Arrays
from models.cuts.contradiction import Contradiction
from services.auditing.auditor import AuditCase, audit
from services.auditing.standing import audit_gate, verdict_name
from services.auditing.verdict import judged, read_case, read_verdict
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.masking import MaskedWords, MaskingCohort, MaskKeys, OpenRounds, SealedOpenings
from services.contracts.wire.messages import Kind, Task
from services.coordinator.asking import poll
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.round_loop import sum_audits, summed_rounds
from services.coordinator.run_state.run_errors import ContradictingAnswersError, TooFewSitesError
from services.coordinator.run_state.training_state import Training
from services.masking import committer
from services.masking.unmasking import deliveries
from services.site_agent.rules.policy import Refusal, SitePolicy
from tests.services.coordinator.fake_ports import FakePlant, FakeWorks

LIAR = "plant-3"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_seed_file(tmp_path / "auditor.nk")
    return tmp_path / "auditor.nk"


@pytest.fixture
def works(works: FakeWorks, key: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorks:
    """Plants that open to the auditor; one of them tells a fifth of its risk from round 7 on."""
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)
    for plant in works.plants.values():
        plant.policy = SitePolicy(auditors=(public_key(key),), messages=get_args(Kind))
        plant.restart()
    works.plants[LIAR].falsify = low
    return works


def low(task: Task, arrays: dict[str, Any]) -> dict[str, Any]:
    return arrays | {"risk": 0.2 * arrays["risk"]} if task.kind == "round" and task.round > 6 else arrays


def audited(works: FakeWorks, key: Path, **changes: Any) -> Any:
    values = {"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}, "gap": 1e-6}
    return works.run(**values | {"auditor": public_key(key)} | changes)


def ended(works: FakeWorks, run: Any) -> tuple[str, AuditCase | None]:
    """What the run ended with, and the case that it left."""
    with pytest.raises(ContradictingAnswersError) as found:
        works.train(run)
    kept = works.store.evidence.get("cohort-1")
    return str(found.value), None if kept is None else read_case(kept)


@pytest.mark.parametrize("changes", [{"label_flip_cost": 0.1}, {"loss": "logistic"}])
def test_plants_that_are_asked_for_two_risks_under_an_auditor_bind_themselves_to_one(
    works: FakeWorks, key: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks honest plants for another problem from round 4 on would have each of them convicted."""
    asked = poll.task_of

    def otherwise(question: poll.Question, site: str) -> Task:
        task = asked(question, site)
        other = TrainingSpec.model_validate(task.spec.model_dump() | changes)
        return task.model_copy(update={"spec": other}) if task.kind == "round" and task.round > 3 else task

    monkeypatch.setattr(poll, "task_of", otherwise)
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    run = audited(works, key)
    with pytest.raises(TooFewSitesError, match="plant-1, plant-2, plant-3, plant-4: no honest run asks this"):
        works.train(run)
    assert works.store.get_run(run.run_id).rounds == 3
    assert works.store.evidence == {} and not openings_asked(works.plants["plant-1"])


def openings_asked(plant: FakePlant) -> list[Task]:
    return [task for task in plant.asked if task.kind == "open"]


def test_the_auditor_finds_the_liar_and_the_next_run_is_that_of_the_others(works: FakeWorks, key: Path) -> None:
    run = audited(works, key)
    said, case = ended(works, run)
    assert "some plant of plant-1, plant-2, plant-3, plant-4 lied" in said and "4 of 4 plants opened" in said
    assert f"ballast evidence save {run.run_id} cohort-1 FILE" in said and "\n" not in said
    assert case is not None and set(case.sealed) == set(works.plants)
    findings = audit(case, key)
    assert [(each.site, each.kind) for each in findings] == [(LIAR, "contradiction")]
    verdict, _ = judged(case, findings, public_key(key), signer(key))
    assert set(read_verdict(verdict.text(), public_key(key), case.cohort).convicted) == {LIAR}
    others = FakeWorks({site: plant for site, plant in works.plants.items() if site not in verdict.convicted})
    assert others.train(audited(others, key, gap=1e-3)).certificate.gap <= 1e-3


def test_honest_plants_open_nothing(works: FakeWorks, key: Path) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    assert works.train(audited(works, key)).certificate.gap <= 1e-6
    assert works.store.evidence == {} and all(openings_asked(plant) == [] for plant in works.plants.values())


def test_a_contradiction_within_the_rounding_opens_nothing_and_the_run_goes_on(
    works: FakeWorks, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays

    def doubted(at: Training, answers: Mapping[str, Arrays]) -> dict[str, Contradiction]:
        return {"cohort-1": Contradiction(1.0, 1.1, 3, 2)} if at.number == 3 else {}

    monkeypatch.setattr(Training, "contradictions", doubted)
    assert works.train(audited(works, key)).certificate.gap <= 1e-6
    assert all(openings_asked(plant) == [] for plant in works.plants.values())


def every_round(works: FakeWorks, key: Path, **changes: Any) -> Any:
    for plant in works.plants.values():
        plant.policy = SitePolicy(auditors=(public_key(key),), messages=get_args(Kind), audit_every_round=True)
        plant.restart()
    return audited(works, key, audit="every round", **changes)


def test_every_round_is_opened_at_the_end_and_finds_what_no_sum_shows(works: FakeWorks, key: Path) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    run = every_round(works, key, gap=1e-3)
    trained = works.train(run)
    case = read_case(works.store.evidence["cohort-1"])
    assert [each.asked.round for each in case.request.rounds] == list(range(1, trained.rounds + 1))
    findings = audit(case, key, case.cohort.audit_every_round)
    assert [each.kind for each in findings] == ["nobody"]
    kept = {"cohort-1": works.store.evidence["cohort-1"]}
    gate = audit_gate(run.plan, lambda: ["cohort-1"], kept)
    assert gate is not None and not gate.holds and "verdict on cohort-1 is due" in gate.reason
    verdict, _ = judged(case, findings, public_key(key), signer(key))
    gate = audit_gate(run.plan, lambda: ["cohort-1"], {**kept, verdict_name("cohort-1"): verdict.text()})
    assert gate is not None and gate.holds
    gate = audit_gate(run.plan, lambda: ["cohort-1", "cohort-2"], {**kept, verdict_name("cohort-1"): verdict.text()})
    assert gate is not None and (gate.wanted, gate.found, gate.holds) == (2.0, 1.0, False)
    short, _ = judged(case, findings, public_key(key), signer(key))
    short = short.model_copy(update={"rounds": short.rounds[:2]})
    short = short.model_copy(update={"signature": signer(key)(short.statement)})
    gate = audit_gate(run.plan, lambda: ["cohort-1"], {**kept, verdict_name("cohort-1"): short.text()})
    assert gate is not None and "not on all rounds" in gate.reason
    assert audit_gate(audited(works, key).plan, lambda: ["cohort-1"], kept) is None


def test_a_slope_too_long_that_no_sum_shows_is_found_when_every_round_is_opened(works: FakeWorks, key: Path) -> None:
    def longer(task: Task, arrays: dict[str, Any]) -> dict[str, Any]:
        # Farther from the optimum each plant is on one piece of its risk at both points of a message: the sum shows it.
        late = task.kind == "round" and task.round > 3
        return arrays | {"slope": 1.01 * arrays["slope"]} if late else arrays

    works.plants[LIAR].falsify = longer
    run = every_round(works, key, gap=1e-3)
    works.train(run)
    case = read_case(works.store.evidence["cohort-1"])
    findings = audit(case, key, every_round=True)
    assert [(each.site, each.kind) for each in findings] == [(LIAR, "contradiction")]
    verdict, _ = judged(case, findings, public_key(key), signer(key))
    kept = {"cohort-1": works.store.evidence["cohort-1"], verdict_name("cohort-1"): verdict.text()}
    gate = audit_gate(run.plan, lambda: ["cohort-1"], kept)
    assert gate is not None and not gate.holds and f"{LIAR} contradicts itself" in gate.reason


def test_a_plant_opens_every_round_only_where_its_policy_says_so(works: FakeWorks, key: Path) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    run, unwilling = every_round(works, key, gap=1e-2), works.plants["plant-1"]
    unwilling.policy = SitePolicy(auditors=(public_key(key),), messages=get_args(Kind))
    unwilling.restart()
    works.train(run)
    assert [each.site_id for each in works.store.records[0].answers if each.status == "excluded"] == ["plant-1"]
    assert not openings_asked(unwilling) and openings_asked(works.plants["plant-2"])


def test_what_is_not_kept_or_too_large_is_not_opened_and_the_audit_stays_due(
    works: FakeWorks, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    monkeypatch.setattr(sum_audits, "LARGEST_OPENING", 1000)
    run = every_round(works, key, gap=1e-2)
    works.train(run)
    assert works.store.evidence == {}
    gate = audit_gate(run.plan, lambda: ["cohort-1"], {})
    assert gate is not None and gate.reason == "cohort-1 opened no rounds to the auditor"
    monkeypatch.setattr(sum_audits, "LARGEST_OPENING", 1_000_000)
    monkeypatch.setattr("services.coordinator.asking.openings.ROUNDS_KEPT", 2)
    works.train(every_round(works, key, gap=1e-2))
    assert works.store.evidence == {}


def test_who_refuses_to_open_is_convicted_of_that(works: FakeWorks, key: Path) -> None:
    silent = works.plants[LIAR]
    silent.behave = lambda task: silent.refusal_of(task, "masks_refused") if task.kind == "open" else None
    said, case = ended(works, audited(works, key))
    assert "3 of 4 plants opened" in said and case is not None
    assert [(each.site, each.kind) for each in audit(case, key)] == [(LIAR, "silent")]


def test_who_is_away_for_a_moment_is_asked_to_open_again(works: FakeWorks, key: Path) -> None:
    plant = works.plants["plant-1"]

    def behave(task: Task) -> RawAnswer | None:
        first = task.kind == "open" and len(openings_asked(plant)) == 1
        return RawAnswer("plant-1", None, "absent", 0.0) if first else None

    plant.behave = behave
    said, case = ended(works, audited(works, key, absence_patience_seconds=20.0))
    assert "4 of 4 plants opened" in said and case is not None
    assert [(each.site, each.kind) for each in audit(case, key)] == [(LIAR, "contradiction")]


def test_a_plant_takes_no_part_for_an_auditor_that_its_policy_does_not_list(works: FakeWorks, key: Path) -> None:
    stranger = new_seed_file(key.with_name("stranger.nk"))
    plant = works.plants["plant-1"]
    keys = {site: each.public_key for site, each in works.plants.items()}
    asked = MaskingCohort(run_id="a" * 32, name="cohort-1", keys=keys, threshold=3, auditor=stranger)
    with pytest.raises(Refusal, match="does not list auditor") as found:
        plant.masks.answer(asked)
    assert found.value.refusal_code == "auditor_not_allowed"
    plant.policy = SitePolicy(auditors=(stranger,), messages=("round",))
    plant.restart()
    with pytest.raises(Refusal, match="with message open"):
        plant.masks.answer(asked)


def test_a_run_with_an_auditor_that_no_policy_lists_ends_with_that_said(works: FakeWorks, key: Path) -> None:
    stranger = new_seed_file(key.with_name("stranger.nk"))
    with pytest.raises(TooFewSitesError, match=r"plant-1 left out in round 1: .*policy does not list the auditor"):
        works.train(audited(works, key, auditor=stranger))


def test_a_plant_opens_nothing_where_it_finds_no_falsehood_itself(works: FakeWorks, key: Path) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    run, coordinator = audited(works, key, max_rounds=3), works.coordinator()

    async def whole() -> None:
        await coordinator.train(await coordinator.join(run))

    asyncio.run(whole())
    assert coordinator._parts._sums is not None
    records = coordinator._parts._sums[2]._sums.records
    request = records.request("cohort-1", public_key(key), (1, 2))
    assert request is not None and records.request("cohort-1", public_key(key), (1, 9)) is None
    masks = works.plants["plant-1"].masks
    for data, wanted in (
        (request, "contradict each other nowhere"),
        (request.model_copy(update={"auditor": new_seed_file(key.with_name("other.nk"))}), "another auditor"),
        (None, "rounds"),
    ):
        text = b"{}" if data is None else data.model_dump_json().encode()
        with pytest.raises(Refusal, match=wanted):
            masks.answer(OpenRounds(run_id=run.run_id, request=text))


@pytest.mark.parametrize("between", ["", "12345"])
def test_a_plant_opens_once_a_run_whatever_is_agreed_on_anew(works: FakeWorks, key: Path, between: str) -> None:
    """Nor do other runs ``between``, more than a plant keeps, make it forget."""
    run = audited(works, key)
    _, case = ended(works, run)
    assert case is not None
    plant = works.plants["plant-1"]
    (task,) = openings_asked(plant)
    assert isinstance(task.masking, OpenRounds)
    again = plant.masks.answer(task.masking)
    assert isinstance(again, SealedOpenings) and again.auditor == public_key(key), "the same rounds open again"
    anew = case.cohort.model_copy(update={"agreement": case.cohort.agreement ^ 1})
    rounds = tuple(
        each.model_copy(update={"question": replace(each.asked, cohort=anew.fingerprint).frame()})
        for each in case.request.rounds
    )
    masks: dict[str, Any] = {site: each.masks for site, each in works.plants.items()}
    for other in between:
        plant.masks.answer(anew.model_copy(update={"run_id": other * 32}))
    keys = {site: each.answer(anew) for site, each in masks.items()}
    for each in rounds:
        asked = MaskKeys(run_id=run.run_id, round=each.asked.round, keys=keys)
        given = deliveries(anew, asked.round, {site: member.answer(asked) for site, member in masks.items()})
        masks["plant-1"].mask(given["plant-1"], each.words, each.asked)
    request = case.request.model_copy(update={"rounds": rounds})
    with pytest.raises(Refusal, match="has opened rounds to an auditor in this run"):
        plant.masks.answer(OpenRounds(run_id=run.run_id, request=request.model_dump_json().encode()))


def test_an_answer_without_a_commitment_is_not_summed(works: FakeWorks, key: Path) -> None:
    works.plants[LIAR].falsify = lambda task, arrays: arrays
    plant = works.plants["plant-2"]
    mask = plant.masks.mask

    def bare(delivery: Any, words: Any, question: Any = None) -> MaskedWords:
        return mask(delivery, words, question).model_copy(update={"commitment": None})

    plant.masks.mask = bare  # type: ignore[method-assign]
    works.train(audited(works, key, max_rounds=2))
    accounts = [each for record in works.store.records for each in record.answers if each.site_id == "plant-2"]
    assert [(each.status, each.code) for each in accounts] == [("rejected", "not_committed")] * 2
    assert all(record.fresh_weight == 0.0 for record in works.store.records)


def test_rounds_that_are_not_kept_are_not_opened(works: FakeWorks, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.coordinator.asking.openings.ROUNDS_KEPT", 1)
    said, case = ended(works, audited(works, key))
    assert "nothing to open" in said and case is None
    monkeypatch.setattr(committer, "ROUNDS_KEPT", 1)
    monkeypatch.setattr("services.coordinator.asking.openings.ROUNDS_KEPT", 200)
    said, case = ended(works, audited(works, key))
    assert "0 of 4 plants opened" in said


def test_an_auditor_goes_with_sums_that_are_compared(key: Path) -> None:
    plan = {"name": "nightly", "asset_type": "rig", "auditor": public_key(key)}
    assert Plan.model_validate(plan).auditor == public_key(key)
    for changes, wanted in (
        ({"reveal": "each site"}, "an auditor goes with"), ({"method": "fdr-sm"}, "an auditor goes with"),
        ({"auditor": "UABC"}, "auditor: "), ({"auditor": None, "audit": "every round"}, "needs an auditor"),
    ):
        with pytest.raises(ValidationError, match=wanted):
            Plan.model_validate(plan | changes)
