"""Runs from pending to an end."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError
from services.contracts.history.run import Run, RunStatus, SiteAnswer, SiteTermsRecord
from services.contracts.plans.overrides import tuning_alone
from services.contracts.plans.plan import Plan
from services.contracts.problems.tuning_curve import TunedCandidate, TuningCurve
from services.round_store.runs.run_rows import OVERTAKEN
from services.round_store.store import RoundStore
from services.round_store.tables.runs import RunRow

UNKNOWN = "0" * 32


def test_a_run_comes_back_as_it_was_created(store: RoundStore, plan: Plan) -> None:
    created = store.runs.create_run(plan, run_id="ab" * 16)
    assert created.run_id == "ab" * 16
    assert created.status == "pending"
    assert created.plan == plan
    assert created.created_at.tzinfo is UTC
    read = store.runs.get_run(created.run_id)
    assert read == created
    assert read.created_at.tzinfo is UTC
    assert str(read.plan.parameters["step"]) == "-0.0"


def test_begin_keeps_the_sites_scalars_bit_for_bit(
    store: RoundStore, plan: Plan, terms: tuple[SiteTermsRecord, ...]
) -> None:
    run = store.runs.create_run(plan)
    begun = store.runs.begin_run(run.run_id, terms)
    assert begun.status == "running"
    assert begun.sites == terms
    assert store.runs.get_run(run.run_id) == begun
    with pytest.raises(ConflictError, match="is running and cannot be begun"):
        store.runs.begin_run(run.run_id, terms)


def test_what_a_plant_says_that_does_not_join_is_one_line_and_cut(
    store: RoundStore, plan: Plan, terms: tuple[SiteTermsRecord, ...]
) -> None:
    away = SiteAnswer(site_id="c", status="refused_by_site", code="c" * 500, reason="no\nrows\x1b" + "x" * 5000)
    (told,) = store.runs.begin_run(store.runs.create_run(plan).run_id, terms, [away]).absentees
    assert len(told.code) == 80 and told.reason.startswith("no rows ") and told.reason.isprintable()
    assert len(told.reason) == 1000


def test_the_rows_that_sites_had_are_those_of_the_plans_last_completed_run(
    store: RoundStore, plan: Plan, terms: tuple[SiteTermsRecord, ...]
) -> None:
    def ended(status: str, rows: int, of: Plan = plan) -> None:
        run = store.runs.create_run(of)
        store.runs.begin_run(run.run_id, [site.model_copy(update={"n_samples": rows}) for site in terms])
        store.runs.finish_run(run.run_id, status, "")

    ended("completed", 7, plan.model_copy(update={"name": "other"}))
    first = store.runs.create_run(plan)
    assert store.runs.samples_before(first.run_id) == {}
    store.runs.finish_run(first.run_id, "cancelled", "")
    for status, rows in (("completed", 40), ("completed", 50), ("failed", 60)):
        ended(status, rows)
    assert store.runs.samples_before(store.runs.create_run(plan).run_id) == {site.site_id: 50 for site in terms}


def test_a_plan_has_one_unfinished_run(store: RoundStore, running: Run, plan: Plan) -> None:
    with pytest.raises(ConflictError, match=f"plan weekly has an unfinished run: {running.run_id}"):
        store.runs.create_run(plan)
    other = store.runs.create_run(plan.model_copy(update={"name": "other"}))
    store.runs.finish_run(running.run_id, "failed", "no sites")
    again = store.runs.create_run(plan)
    assert {run.run_id for run in store.runs.unfinished_runs()} == {other.run_id, again.run_id}
    assert [run.run_id for run in store.runs.unfinished_runs("weekly")] == [again.run_id]


def test_a_run_id_is_taken_once(store: RoundStore, running: Run, plan: Plan) -> None:
    with pytest.raises(ConflictError, match="is there"):
        store.runs.create_run(plan.model_copy(update={"name": "other"}), run_id=running.run_id)


def test_finish_is_final_and_repeatable(store: RoundStore, running: Run) -> None:
    store.runs.renew_lease(running.run_id, "me", 60)
    done = store.runs.finish_run(running.run_id, "completed", "gap reached")
    assert (done.status, done.reason) == ("completed", "gap reached")
    assert store.runs.finish_run(running.run_id, "completed", "again") == done
    with pytest.raises(ConflictError, match="has ended already: completed"):
        store.runs.finish_run(running.run_id, "failed", "")
    with pytest.raises(InvalidInputError, match="not running"):
        store.runs.finish_run(running.run_id, "running", "")


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_with_a_run_end_its_lease_its_frames_and_the_wait_for_its_gates(
    store: RoundStore, running: Run, make_record: Any, status: RunStatus
) -> None:
    assert store.runs.renew_lease(running.run_id, "me", 60)
    store.runs.commit_round(make_record(running.run_id, 1), {"w": np.ones(2)}, {"a": (b"asked", b"said")})
    store.model_versions.add("weekly", "1", running.run_id, {})
    store.runs.finish_run(running.run_id, status, "of the test", owner="me")
    assert store.runs.get_exchange(running.run_id, 1, "a") is None
    assert not store.runs.prolong_lease(running.run_id, "me", 60)
    with store.database.read() as session:
        row = session.get_one(RunRow, running.run_id)
        assert (row.lease_owner, row.lease_until) == (None, None)
    version = store.model_versions.get("weekly", "1")
    assert version.status == ("registered" if status == "completed" else "gates_failed")
    assert version.reason == ("" if status == "completed" else f"its run {status} after it was registered: of the test")


def test_a_run_is_tuned_once_and_before_its_first_round(
    store: RoundStore, running: Run, terms: tuple[SiteTermsRecord, ...], make_record: Any
) -> None:
    curve = TuningCurve(
        candidates=(TunedCandidate(radius=1.0, label_flip_cost=1.0),), chosen=0, why="of the test", rule="best",
        folds=2, seed=0, rounds=1, numbers=1.0, budget=1.0, reference_rounds=1, reference_numbers=1.0, base="ab",
    )
    tuned = running.plan.model_copy(update={"tuned": curve})
    assert store.runs.set_tuned(running.run_id, tuned, terms).plan.tuned == curve
    with pytest.raises(ConflictError, match="cannot be tuned") as twice:
        store.runs.set_tuned(running.run_id, tuned, terms)
    other = store.runs.begin_run(store.runs.create_run(running.plan.model_copy(update={"name": "o"})).run_id, terms)
    store.runs.commit_round(make_record(other.run_id, 1), {"w": np.ones(2)})
    with pytest.raises(ConflictError, match="after 1 rounds and cannot be tuned") as late:
        store.runs.set_tuned(other.run_id, tuned, terms)
    assert (twice.value.code, late.value.code) == (OVERTAKEN, OVERTAKEN)


def test_a_list_goes_on_after_a_run_of_the_same_moment_by_the_id(store: RoundStore, plan: Plan) -> None:
    ids = ["b" * 32, "a" * 32, "c" * 32]
    for number, run_id in enumerate(ids):
        store.runs.create_run(plan.model_copy(update={"name": f"plan-{number}"}), run_id)
    at = store.runs.get_run(ids[0]).created_at
    with store.database.write() as session:
        session.execute(update(RunRow).values(created_at=at))
    whole = [run.run_id for run in store.runs.list_runs()]
    assert whole == sorted(ids)
    assert [[run.run_id for run in store.runs.list_runs(after=(at, each))] for each in whole] == [
        whole[1:], whole[2:], []]


def test_cancel_and_links(store: RoundStore, running: Run) -> None:
    assert store.runs.is_cancelled(running.run_id) is False
    assert store.runs.request_cancel(running.run_id).cancel_requested
    assert store.runs.is_cancelled(running.run_id) is True
    assert store.runs.set_flow_run_id(running.run_id, "flow-1").flow_run_id == "flow-1"
    store.runs.finish_run(running.run_id, "completed", "")
    linked = store.runs.set_result(running.run_id, "mlflow-1", "3")
    assert (linked.mlflow_run_id, linked.model_version, linked.flow_run_id) == ("mlflow-1", "3", "flow-1")
    assert store.runs.get_run(running.run_id) == linked
    with pytest.raises(ConflictError, match="is completed and cannot be cancelled"):
        store.runs.request_cancel(running.run_id)


def test_a_run_says_what_it_does_until_it_ends(store: RoundStore, plan: Plan) -> None:
    run = store.runs.create_run(plan)
    assert run.doing == ""
    store.runs.set_doing(run.run_id, "asking who is there")
    asking = store.runs.get_run(run.run_id)
    assert (asking.doing, asking.status) == ("asking who is there", "pending") and asking.updated_at > run.updated_at
    store.runs.set_doing(run.run_id, "tuning,\nexchange 4")
    assert store.runs.get_run(run.run_id).doing == "tuning, exchange 4"
    ended = store.runs.finish_run(run.run_id, "failed", "for want of plants")
    assert (ended.doing, ended.reason) == ("", "for want of plants")
    store.runs.set_doing(run.run_id, "training")
    assert store.runs.get_run(run.run_id) == ended, "a process that was overtaken says nothing of a run that ended"


def test_lists_are_newest_first_and_filtered(store: RoundStore, plan: Plan) -> None:
    runs = []
    for name in ("one", "two", "three"):
        runs.append(store.runs.create_run(plan.model_copy(update={"name": name})))
    store.runs.finish_run(runs[0].run_id, "cancelled", "")
    assert [run.plan.name for run in store.runs.list_runs()] == ["three", "two", "one"]
    assert [run.plan.name for run in store.runs.list_runs(limit=1, offset=1)] == ["two"]
    assert [run.plan.name for run in store.runs.list_runs(status="cancelled")] == ["one"]
    assert [run.plan.name for run in store.runs.list_runs(plan="two", status="pending")] == ["two"]
    assert store.runs.list_runs(plan="four") == []


def test_unfinished_runs_are_the_oldest_first_whatever_their_ids(store: RoundStore, plan: Plan) -> None:
    """They are started in this order: one that waits is overtaken by none."""
    made = {}
    for age, digit in enumerate("7f0"):
        run = store.runs.create_run(plan.model_copy(update={"name": f"plan-{digit}"}), run_id=digit * 32)
        made[run.run_id] = run.created_at + timedelta(seconds=age)
        with store.database.write() as session:
            session.execute(update(RunRow).where(RunRow.run_id == run.run_id).values(created_at=made[run.run_id]))
    assert [run.run_id for run in store.runs.unfinished_runs()] == list(made)


def test_unknown_runs_are_said_to_be_unknown(store: RoundStore) -> None:
    runs = store.runs
    for call in (runs.get_run, runs.load_state, runs.get_rounds, runs.request_cancel, runs.is_cancelled):
        with pytest.raises(NotFoundError, match=f"no run {UNKNOWN}"):
            call(UNKNOWN)
    with pytest.raises(NotFoundError):
        store.runs.renew_lease(UNKNOWN, "me", 1)


def test_a_run_that_tuned_alone_is_no_training_and_takes_nobodys_place(
    store: RoundStore, plan: Plan, terms: tuple[SiteTermsRecord, ...], make_record: Any
) -> None:
    tuning = plan.model_copy(update={"tuning": "auto"})
    trained = store.runs.create_run(tuning)
    store.runs.begin_run(trained.run_id, terms)
    store.runs.commit_round(make_record(trained.run_id, 1), {"weights": np.ones(2)})
    store.runs.finish_run(trained.run_id, "completed", "")
    alone = store.runs.create_run(tuning_alone(tuning))
    store.runs.begin_run(alone.run_id, [site.model_copy(update={"n_samples": 1}) for site in terms])
    store.runs.finish_run(alone.run_id, "completed", "")
    late = store.runs.create_run(tuning)
    assert store.runs.get_run(alone.run_id).plan.tunes_only
    assert [run.run_id for run in store.runs.completed_before(late.run_id, limit=9)] == [trained.run_id]
    both = store.runs.completed_before(late.run_id, limit=9, tunings=True)
    assert [run.run_id for run in both] == [alone.run_id, trained.run_id]
    assert store.runs.samples_before(late.run_id) == {site.site_id: site.n_samples for site in terms}
    assert store.runs.load_end(trained.run_id) is not None, "the next training goes on from here"
    assert [run.run_id for run in store.runs.list_runs()] == [late.run_id, alone.run_id, trained.run_id]
    assert [run.run_id for run in store.runs.list_runs(tunings=False)] == [late.run_id, trained.run_id]


def test_what_an_auditor_finds_stands_before_what_a_run_ended_with(store: RoundStore, running: Run) -> None:
    store.runs.add_verdict(running.run_id, "cohort-1: nobody lied")
    assert store.runs.get_run(running.run_id).reason == "", "while it goes on it has ended with nothing"
    store.runs.finish_run(running.run_id, "failed", "some plant lied")
    for cohort in ("cohort-1", "cohort-2"):
        store.runs.add_verdict(running.run_id, f"{cohort}: plant-7 lied")
    reason = store.runs.get_run(running.run_id).reason
    first = "cohort-1: plant-7 lied; before the verdict: some plant lied"
    assert reason == f"cohort-2: plant-7 lied; before the verdict: {first}"
