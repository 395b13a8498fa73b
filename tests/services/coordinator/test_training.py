"""The coordinator on ports that are none: who is missing and why, who is heard, and when a run ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.one_vs_rest import OneVsRestServer
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import RefusalCode, Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.round_loop import run_parts
from services.coordinator.run_state.run_errors import RunCancelledError, TooFewSitesError
from tests.services.coordinator import fake_ports
from tests.services.coordinator.automatic import GRADES


def rounds_only(send: Callable[[Task], Any], first: int = 1, last: int = 10**6) -> Callable[[Task], Any]:
    """Behave so in rounds, from the first of them to the last, and honestly otherwise."""
    return lambda task: send(task) if task.kind == "round" and first <= task.round <= last else None


def missing(site: str, failure: str) -> Callable[[Task], RawAnswer]:
    return lambda task: RawAnswer(site, None, failure, 0.5)


def answers_of(works: Any, site: str) -> list[tuple[str, str]]:
    answers = [each for record in works.store.records for each in record.answers]
    return [(each.status, each.code) for each in answers if each.site_id == site]


def test_four_honest_plants_make_a_model_with_a_certificate(works: Any) -> None:
    run = works.run(min_sites=4, round_deadline_seconds=7.0)
    trained = works.train(run)
    found = trained.certificate
    assert found.gap <= 1e-3 and found.lower <= found.upper and found.fresh_weight == 1.0
    assert works.store.get_run(run.run_id).excluded == ()
    assert {answer for site in works.plants for answer in answers_of(works, site)} == {("accepted", "")}
    assert set(works.transport.deadlines) == {7.0}, "every question has the plan's deadline"


def test_who_joins_with_what_cannot_be_is_left_to_the_plans_patience(works: Any) -> None:
    """It may be its first reading of a table that is written just then; in a round it would be out for good."""
    def none(task: Task, said: Any) -> Any:
        return said | {"n_samples": np.array(0.0)} if task.kind == "join" else said

    works.plants["plant-2"].falsify = none
    (away,) = works.join(works.run(min_sites=3)).absentees
    assert (away.site_id, away.status, away.code) == ("plant-2", "rejected", "implausible")
    asked = len(works.transport.deadlines)
    with pytest.raises(TooFewSitesError, match="3 of the 4 sites .*plant-2: it joined with n_samples = "):
        works.join(works.run(min_sites=4, absence_patience_seconds=0.05))
    assert len(works.transport.deadlines) > asked + 1, "asked again as long as that lasts"


@pytest.mark.parametrize("planes", [1, 3])
def test_the_lower_bound_that_is_told_is_the_one_that_others_can_prove(
    works: Any, monkeypatch: pytest.MonkeyPatch, planes: int
) -> None:
    """`ballast verify` would refuse a version that says more than what it carries."""
    if planes > 1:
        monkeypatch.setattr(fake_ports, "RIG", GRADES)
        for plant in works.plants.values():
            plant.classes = np.arange(plant.count) % 3
    carried = OneVsRestServer.carried_proofs

    def weaker(self: Any, *given: Any) -> Any:
        return tuple(replace(each, lower=each.lower - 0.01) for each in carried(self, *given))

    monkeypatch.setattr(OneVsRestServer, "carried_proofs", weaker)
    trained = works.train(works.run())
    assert len(trained.proofs) == planes and trained.certificate.lower == sum(each.lower for each in trained.proofs)


@pytest.mark.parametrize("failure", ["absent", "late"])
def test_a_plant_that_is_away_for_some_rounds_is_accounted_for_and_not_waited_for(works: Any, failure: str) -> None:
    works.plants["plant-2"].behave = rounds_only(missing("plant-2", failure), 2, 4)
    trained = works.train(works.run(min_sites=3))
    assert answers_of(works, "plant-2")[:5] == [("accepted", ""), *[(failure, failure)] * 3, ("accepted", "")]
    assert works.store.records[2].fresh_weight == pytest.approx(0.75)
    assert trained.certificate.gap <= 1e-3 and trained.certificate.fresh_weight == 1.0


def test_an_answer_does_not_count_whose_key_was_taken_away_while_it_was_under_way(works: Any) -> None:
    coordinator, run = works.coordinator(), works.run(min_sites=3, max_rounds=3)

    def taken_away(task: Task) -> None:
        coordinator._parts.keys.pop("plant-2", None)

    works.plants["plant-2"].behave = rounds_only(taken_away, 2, 2)
    asyncio.run(coordinator.train(works.join(run)))
    assert answers_of(works, "plant-2") == [("accepted", ""), ("rejected", "bad_signature")]
    assert [record.fresh_weight for record in works.store.records] == pytest.approx([1.0, 0.75, 0.75])


def test_a_plant_that_refuses_is_recorded_with_its_code(works: Any) -> None:
    plant = works.plants["plant-2"]
    plant.behave = rounds_only(lambda task: plant.refusal(encode(task), task))
    works.train(works.run(min_sites=3, max_rounds=2))
    assert answers_of(works, "plant-2") == [("refused_by_site", "too_few_samples")] * 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"round": 99}, "wrong_round"), ({"run_id": "f" * 32}, "wrong_run"), ({"site_id": "plant-3"}, "wrong_site"),
        ({"task_sha256": "0" * 64}, "wrong_task"), ({"arrays": {}}, "wrong_fields"),
    ],
)
def test_a_wrong_answer_is_rejected_and_the_plant_asked_again_in_the_next_round(
    works: Any, changes: dict[str, Any], code: str
) -> None:
    plant = works.plants["plant-2"]
    plant.behave = rounds_only(lambda task: plant.update(encode(task), task, **changes), 1, 1)
    run = works.run(min_sites=3, max_rounds=2)
    works.train(run)
    assert answers_of(works, "plant-2") == [("rejected", code), ("accepted", "")]
    assert works.store.get_run(run.run_id).excluded == ()


def test_an_answer_sent_twice_counts_for_its_own_round_alone(works: Any) -> None:
    """The answer of round 1 comes again in round 2: it is of another round, and enters no second time."""
    plant = works.plants["plant-2"]
    kept: list[bytes] = []

    def repeat(task: Task) -> bytes:
        kept.append(kept[0] if kept else plant.update(encode(task), task))
        return kept[-1]

    plant.behave = rounds_only(repeat, 1, 2)
    works.train(works.run(min_sites=3, max_rounds=3))
    assert answers_of(works, "plant-2") == [("accepted", ""), ("rejected", "wrong_round"), ("accepted", "")]
    alone = works.store.states[works.store.records[0].run_id][1]["risks"]
    assert alone.shape[1] == 3, "one column of risks for each round"


def test_too_few_answers_are_no_round_and_the_run_says_who_was_missing(works: Any) -> None:
    works.plants["plant-2"].behave = rounds_only(missing("plant-2", "absent"), 3)
    run = works.run(min_sites=4)
    with pytest.raises(TooFewSitesError) as failure:
        works.train(run)
    assert str(failure.value) == (
        "3 of the 4 sites that the plan needs answered in round 3 within 0 s (plant-2: nobody answers for the site)"
    )
    assert works.store.get_run(run.run_id).rounds == 2, "the round was not committed"


def test_where_too_many_refuse_for_good_nobody_is_asked_again(works: Any) -> None:
    for name in ("plant-2", "plant-3"):
        plant = works.plants[name]
        plant.behave = partial(plant.refusal_of, code="too_few_samples")
    run = works.run(min_sites=3, absence_patience_seconds=1.0)
    with pytest.raises(TooFewSitesError, match="2 of the 3 sites that .* to join and no more will"):
        works.train(run)
    assert len(works.plants["plant-1"].asked) == len(works.plants["plant-2"].asked) == 1


def test_who_waits_for_its_table_may_answer_later(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_parts, "RETRY_SECONDS", 0.0)
    codes: Iterator[RefusalCode] = iter(["no_data", "bad_data", "internal_error"])
    plant = works.plants["plant-2"]

    def behave(task: Task) -> bytes | None:
        code = next(codes, None)
        return None if code is None else plant.refusal_of(task, code)

    plant.behave = behave
    assert works.train(works.run(min_sites=4, max_rounds=1, absence_patience_seconds=3600.0)).rounds == 1


def test_the_same_question_is_asked_again_until_enough_plants_answer(
    works: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([False, False, True])
    plant = works.plants["plant-2"]
    plant.behave = rounds_only(lambda task: None if next(times) else missing("plant-2", "late")(task), 1, 1)
    works.train(works.run(min_sites=4, max_rounds=1, absence_patience_seconds=60.0))
    in_round = [task for task in plant.asked if task.kind == "round"]
    assert len(in_round) == 3 and len({encode(task) for task in in_round}) == 1


def test_patience_ends_by_the_clock(works: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr(run_parts, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    works.plants["plant-1"].behave = missing("plant-1", "absent")
    run = works.run(min_sites=4, absence_patience_seconds=25.0)
    with pytest.raises(TooFewSitesError, match="3 of the 4 .* answered to join within 25 s"):
        works.join(run)
    assert len(works.transport.deadlines) == 3, "asked at 10 s and 20 s, and at 30 s for the last time"


def test_sites_that_do_not_join_are_named_and_not_asked_again(works: Any) -> None:
    works.plants["plant-4"].behave = missing("plant-4", "absent")
    run = works.run(min_sites=3, max_rounds=2)
    works.train(run)
    run = works.store.get_run(run.run_id)
    assert [site.site_id for site in run.sites] == ["plant-1", "plant-2", "plant-3"]
    assert [(each.site_id, each.status) for each in run.absentees] == [("plant-4", "absent")]
    assert [task.kind for task in works.plants["plant-4"].asked] == ["join"]


@pytest.mark.parametrize("change", [
    {"n_samples": 0.0}, {"n_samples": 2.5}, {"radius": -1e-9}, {"radius": 0.03}, {"confidence": 1.0},
    {"radius_is_estimate": 2.0}, {"lift_check": 7.0},
])
def test_a_plant_that_joins_with_what_cannot_be_does_not_take_part(works: Any, change: dict[str, float]) -> None:
    works.plants["plant-4"].falsify = lambda task, arrays: arrays | {
        name: np.array(value) for name, value in change.items() if task.kind == "join"
    }
    run = works.join(works.run(min_sites=3))
    assert len(run.sites) == 3
    (absentee,) = run.absentees
    assert (absentee.site_id, absentee.status, absentee.code) == ("plant-4", "rejected", "implausible")
    assert "cannot be" in absentee.reason or "otherwise than the plan says" in absentee.reason


def test_a_cancelled_run_stops_after_its_round(works: Any) -> None:
    run = works.run()
    plant = works.plants["plant-1"]

    def cancel(task: Task) -> None:
        works.store.change(run.run_id, cancel_requested=True)

    plant.behave = rounds_only(cancel, 3, 3)
    with pytest.raises(RunCancelledError, match="cancelled"):
        works.train(run)
    assert works.store.get_run(run.run_id).rounds == 3


def test_a_cancelled_run_does_not_wait_for_plants(works: Any) -> None:
    works.plants["plant-1"].behave = missing("plant-1", "absent")
    run = works.run(min_sites=4, absence_patience_seconds=86_400.0)
    works.store.change(run.run_id, cancel_requested=True)
    with pytest.raises(RunCancelledError):
        works.join(run)


def test_a_run_that_was_killed_goes_on_to_the_same_model(works: Any) -> None:
    whole = works.train(works.run())
    works.store.records.clear()
    run = works.run()
    works.store.lose_after = 4
    with pytest.raises(KeyboardInterrupt):
        works.train(run)
    works.store.lose_after = None
    resumed = works.train(works.store.get_run(run.run_id))
    assert json.dumps([resumed.weights.tolist(), asdict(resumed.certificate), resumed.rounds]) == json.dumps(
        [whole.weights.tolist(), asdict(whole.certificate), whole.rounds]
    )
