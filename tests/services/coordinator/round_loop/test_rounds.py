"""One round, whoever is left out of it: who goes on from where, what is kept against whom, and what was told before."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.cuts.contradiction import Contradiction
from models.problem import Status
from services.contracts.history.run import Run
from services.contracts.wire.codec import digest
from services.coordinator.asking.poll import Poll
from services.coordinator.round_loop import summed_rounds
from services.coordinator.round_loop.rounds import Rounds
from services.coordinator.run_state.run_errors import TooFewSitesError
from services.verification.contradiction import verify_evidence
from tests.services.coordinator.fake_ports import FakePlant, FakeStore, FakeWorks
from tests.services.coordinator.patient_works import PatientWorks

ON_SUMS = {"reveal": "sums", "method": "cohort-bundle", "parameters": {"questions": 2}}


def lowered(first: int) -> Any:
    """Says half of its risk, from a round on."""
    return lambda task, said: (
        said | {"risk": 0.5 * said["risk"]} if task.kind == "round" and task.round >= first else said
    )


def stale() -> Any:
    """Says again in every round what it said in the first."""
    kept: list[Any] = []

    def lie(task: Any, said: Any) -> Any:
        if task.kind != "round":
            return said
        kept.append(said)
        return kept[0]

    return lie


def negative(number: int) -> Any:
    """Says a risk that no rows have, in one round."""
    return lambda task, said: (
        said | {"risk": -said["risk"]} if task.kind == "round" and task.round == number else said
    )


def at_the_end(task: Any, said: Any) -> Any:
    """Says half of its risk when the model is evaluated."""
    return said | {"risk": 0.5 * said["risk"]} if task.kind == "evaluate" else said


def left_out(works: FakeWorks, run: Run) -> list[tuple[str, int]]:
    return [(each.site_id, each.round) for each in works.store.get_run(run.run_id).excluded]


def test_a_rounds_record_has_the_sizes_of_what_went_and_came_and_the_digest_of_what_came(works: FakeWorks) -> None:
    run = works.run(max_rounds=2)
    works.train(run)
    for record in works.store.records:
        for each in record.answers:
            task, answer = works.store.exchanges[run.run_id, record.round, each.site_id]
            assert (each.bytes_out, each.bytes_in, each.payload_sha256) == (len(task), len(answer), digest(answer))


@pytest.mark.parametrize("liar", ["plant-1", "plant-3"])
def test_the_others_keep_what_each_of_them_told_before(works: FakeWorks, liar: str) -> None:
    works.plants[liar].falsify = lowered(3)
    run = works.run(min_sites=3)
    trained = works.train(run)
    assert left_out(works, run)[0][0] == liar and trained.status is Status.CERTIFIED
    others = {name: plant for name, plant in works.plants.items() if name != liar}
    again = FakeWorks(others)
    alone = again.train(again.run(min_sites=3))
    assert max(trained.certificate.lower, alone.certificate.lower) <= min(
        trained.certificate.upper, alone.certificate.upper
    ) + 1e-9, "bounds of one problem"


def test_who_lied_at_the_end_and_who_lies_in_the_round_after_it_are_both_on_record(works: FakeWorks) -> None:
    works.plants["plant-4"].falsify = at_the_end
    run = works.run(min_sites=2)
    trained = works.train(run)
    run = works.store.get_run(run.run_id)
    judged = asyncio.run(works.coordinator().evaluate(run, trained.weights, trained.risk_bound))
    number = trained.rounds + 1
    works.plants["plant-2"].falsify = negative(number)
    after = asyncio.run(works.coordinator().train(run, None, judged))
    assert left_out(works, run) == [("plant-4", number), ("plant-2", number)]
    assert set(after.site_risks) == {"plant-1", "plant-3"}
    assert "the evaluation" in verify_evidence(works.store.evidence["plant-4"])[0]


def test_what_is_asked_apart_has_the_plans_deadline(works: FakeWorks) -> None:
    works.plants["plant-4"].falsify = lambda task, said: (
        works.plants["plant-2"].honest(task) if task.kind == "round" else said
    )
    run = works.run(min_sites=3, gap=1e-6, round_deadline_seconds=7.0)
    works.train(run)
    assert len(left_out(works, run)) == 1 and set(works.transport.deadlines) == {7.0}


@pytest.mark.parametrize("keys", [{}, {"plant-4": ""}])
def test_of_a_plant_whose_key_was_taken_away_meanwhile_there_is_no_evidence(
    works: FakeWorks, keys: dict[str, str]
) -> None:
    parts: Any = SimpleNamespace(keys=keys, store=works.store)
    at: Any = SimpleNamespace(run=works.run())
    frames = {"plant-4": (b"asked", b"said")}
    found = {"plant-4": Contradiction(risk=0.1, bound=0.2, risk_round=2, cut_round=2)}
    assert Rounds(parts).evidence(at, Poll({}, (), 0.0, frames), found, 2) == {}


def test_without_the_frames_of_before_there_is_no_evidence_and_the_liar_is_left_out_all_the_same(
    works: FakeWorks,
) -> None:
    liar = works.plants["plant-4"]

    def forget(task: Any) -> None:
        if task.kind == "round":
            works.store.exchanges.clear()

    liar.behave, liar.falsify = forget, stale()
    run = works.run(min_sites=3)
    works.train(run)
    assert [site for site, _ in left_out(works, run)] == ["plant-4"] and works.store.evidence == {}


def test_a_run_that_lacks_plants_says_in_which_round_it_lost_them(works: FakeWorks) -> None:
    works.plants["plant-4"].falsify = negative(3)
    with pytest.raises(TooFewSitesError, match="3 of the 4 sites .* are left: plant-4 left out in round 3: "):
        works.train(works.run(min_sites=4))


def test_plants_that_a_run_on_sums_loses_one_after_the_other_are_all_on_record(
    works: FakeWorks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summed_rounds, "RETRY_SECONDS", 0.0)
    works.plants["plant-5"] = FakePlant("plant-5", tmp_path / "plant-5" / "site.nk", 4)
    run = works.join(works.run(min_sites=3, **ON_SUMS))
    refusing, coordinator = works.plants["plant-4"], works.coordinator()
    refuses = partial(refusing.refusal_of, code="too_few_samples")
    refusing.behave = lambda task: None if task.kind == "join" else refuses(task)
    keys: Any = coordinator._parts.keys
    del keys["plant-5"]
    trained = asyncio.run(coordinator.train(run))
    assert sorted(left_out(works, run)) == [("plant-4", 1), ("plant-5", 1)]
    assert trained.status is Status.CERTIFIED and set(trained.worst_weights) == {"plant-1", "plant-2", "plant-3"}


class Remembering(FakeStore):
    """A store whose plants all sign that nothing changed, so that a run goes on from the one before it."""

    def load_end(self, run_id: str) -> Any:
        return self.states[run_id][1]

    def get_digests(self, run_id: str) -> dict[str, str]:
        return {f"plant-{number}": f"{number:064x}" for number in range(1, 5)}


@pytest.mark.parametrize("late", [{}, {"waiting": {}, "absence_patience_seconds": 60.0}], ids=["paced", "late"])
def test_a_plant_whose_rows_refute_what_it_told_in_an_earlier_run_is_no_liar(
    patient: PatientWorks, late: dict[str, Any]
) -> None:
    """It signed that nothing changed; what proves it is gone with the frames of that run, so the cuts go, not it."""
    patient.store = Remembering()
    plan = {"min_sites": 3, "max_rounds": 200, "gap": 1e-2, **late}
    if late:
        patient.slow()
    patient.trained(first := patient.run(**plan))
    patient.store.finish_run(first.run_id, "completed", "done")
    changed = patient.plants["plant-4"]
    changed.features = np.where(changed.classes[:, None] == 1, [0.95, 0.9], [0.05, 0.1])  # far better told apart
    second = patient.run(**plan)
    trained, _ = patient.trained(second)
    run = patient.store.get_run(second.run_id)
    assert run.start is not None and run.start.after == first.run_id and run.excluded == ()
    assert trained.status is Status.CERTIFIED and trained.certificate.gap <= 1e-2
    lower, upper = trained.certificate.lower, trained.certificate.upper
    fresh = FakeWorks(patient.plants)
    alone = fresh.train(fresh.run(**plan | {"waiting": None})).certificate
    assert max(lower, alone.lower) <= min(upper, alone.upper) + 1e-9


def test_a_round_hands_the_store_what_it_adds_and_not_what_stands_there(works: Any) -> None:
    """Else the store would grow with the square of the rounds."""
    commit, begun = works.store.commit_round, []

    def noted(record: Any, state: Any, exchanges: Any, evidence: Any, added: Any) -> None:
        begun.append(added["points"].start)
        commit(record, state, exchanges, evidence, added)

    works.store.commit_round = noted
    trained = works.train(works.run())
    assert begun == list(range(trained.rounds)) and trained.rounds > 4
