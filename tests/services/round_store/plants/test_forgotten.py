"""What is forgotten of a plant that left: all that is of the plan and of it, and nothing that is another's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import NotFoundError
from services.contracts.history.run import Leaving, Run, RunStatus, SiteAnswer, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.identity.enrolment_codes import issue_code
from services.round_store.operation.events import note
from services.round_store.store import RoundStore

MakeRecord = Callable[..., Any]
STATE = {"weights": np.ones(2)}


def begun(store: RoundStore, plan: str, *sites: str, leaving: str = "", away: str = "") -> Run:
    """A running run of these sites; one of which another left, or to which another did not come."""
    run = store.runs.create_run(
        Plan(name=plan, asset_type="pump"), leaving=Leaving(site_id=leaving) if leaving else None
    )
    terms = [SiteTermsRecord(site_id=site, weight=1 / len(sites), radius=0.0, n_samples=9) for site in sites]
    absentees = [SiteAnswer(site_id=away, status="absent", code="no_responders", reason="")] if away else []
    return store.runs.begin_run(run.run_id, terms, absentees, None, {site: f"of {site}" for site in sites})


def ended(store: RoundStore, run: Run, status: RunStatus = "completed") -> str:
    return store.runs.finish_run(run.run_id, status, "").run_id


def test_plants_are_due_in_the_order_of_their_runs_unless_the_run_was_not_wanted(store: RoundStore) -> None:
    kinds: tuple[RunStatus, ...] = ("completed", "failed", "cancelled", "completed")
    runs = [ended(store, begun(store, "weekly", "b", "c", leaving=f"gone-{k}"), kind) for k, kind in enumerate(kinds)]
    ended(store, begun(store, "weekly", "b", "c"))
    begun(store, "weekly", "b", "c", leaving="gone-9")
    assert [run.run_id for run in store.leavings.due()] == [runs[0], runs[1], runs[3]]
    store.leavings.forget("weekly", "gone-0")
    assert [run.run_id for run in store.leavings.due()] == [runs[1], runs[3]]


def test_one_process_forgets_at_a_time_and_nobody_what_is_forgotten(store: RoundStore) -> None:
    run, other = (ended(store, begun(store, "weekly", "b", "c", leaving=gone)) for gone in ("gone-0", "gone-1"))
    leavings, before = store.leavings, store.runs.get_run(run).updated_at
    assert leavings.take(run, "one", 60.0) and leavings.take(run, "one", 60.0)
    assert not leavings.take(run, "two", 60.0) and leavings.take(other, "two", 60.0)
    leavings.give_back(run, "two")
    assert not leavings.take(run, "two", 60.0), "it was not its own"
    leavings.give_back(run, "one")
    assert leavings.take(run, "two", -1.0) and leavings.take(run, "three", 60.0), "who is killed holds nobody up"
    assert leavings.take(run, "four", 10.0), "a lease of before the clock was put back"
    leavings.give_back(run, "four")
    assert store.runs.get_run(run).updated_at == before
    leavings.forget("weekly", "gone-0")
    assert not leavings.take(run, "one", 60.0)
    usual = ended(store, begun(store, "weekly", "b", "c"))
    running = begun(store, "weekly", "b", "c", leaving="gone-2").run_id
    assert not leavings.take(running, "one", 60.0) and not leavings.take(usual, "one", 60.0)


def test_whoever_was_asked_or_left_out_took_part_and_the_newest_run_is_first(
    store: RoundStore, make_record: MakeRecord
) -> None:
    first = ended(store, begun(store, "weekly", "a", "b"))
    second = ended(store, begun(store, "weekly", "b", away="a"))
    third = begun(store, "weekly", "b", "c")
    lied = SiteAnswer(site_id="z", status="excluded", code="contradiction", reason="")
    store.runs.commit_round(make_record(third.run_id, 1, answers=(lied,)), STATE)
    ended(store, begun(store, "other", "a"))
    assert store.leavings.runs_with("weekly", "a") == [second, first]
    assert store.leavings.runs_with("weekly", "z") == [third.run_id]
    with pytest.raises(NotFoundError, match="no run of plan weekly had the site d"):
        store.leavings.runs_with("weekly", "d")
    assert store.leavings.plans_with("a", but="weekly") == ("other",)
    assert store.leavings.plans_with("b", but="weekly") == ()


def test_states_with_the_plant_go_and_those_without_it_stay(store: RoundStore, make_record: MakeRecord) -> None:
    runs = {}
    for plan, sites, leaving in (
        ("weekly", ("a", "b"), ""), ("other", ("b", "c"), ""), ("third", ("a", "b"), ""), ("fourth", ("a", "b"), "z"),
    ):
        run = begun(store, plan, *sites, leaving=leaving)
        store.runs.commit_round(make_record(run.run_id, 1), STATE)
        runs[plan] = ended(store, run)

    def states() -> list[bool]:
        return [store.runs.load_end(run_id) is not None for run_id in runs.values()]

    store.leavings.forget("other", "a")
    assert states() == [True] * 4, "its run had not the plant"
    store.leavings.forget("weekly", "a")
    assert states() == [False, True, True, True], "the other plans still have the plant"
    store.leavings.forget("fourth", "a")
    assert states() == [False, True, True, False], "that another plant had left is no reason to keep the cuts of this"
    assert store.runs.get_digests(runs["weekly"]) == {"b": "of b"}
    assert store.runs.get_digests(runs["third"]) == {"a": "of a", "b": "of b"}


def test_answers_frames_and_evidence_of_the_plant_go_in_this_plan_alone(
    store: RoundStore, make_record: MakeRecord
) -> None:
    frames = {"a": (b"asked", b"said"), "b": (b"asked", b"said")}
    runs = []
    for plan in ("weekly", "other"):
        run = begun(store, plan, "a", "b")
        proof = {"a": b"proof", "cohort-1": b"with site a and b", "cohort-2": b"with site a-2 and b"}
        store.runs.commit_round(make_record(run.run_id, 1), STATE, frames, proof)
        runs.append(run.run_id if plan == "other" else ended(store, run))
    again = begun(store, "weekly", "b")
    store.runs.commit_round(make_record(again.run_id, 1), STATE, frames)
    forgotten = store.leavings.forget("weekly", "a")
    assert forgotten.deleted["answers"] == 2 and forgotten.deleted["frames"] == 1
    assert forgotten.deleted["evidence files"] == 2 and forgotten.other_models == ("other",)
    assert set(store.runs.get_cases(runs[0])) == {"cohort-2"} and len(store.runs.get_cases(runs[1])) == 3
    told = [[each.site_id for each in store.runs.get_rounds(run)[0].answers] for run in (*runs, again.run_id)]
    assert told == [["b"], ["a", "b"], ["b"]]
    kept = [store.runs.get_exchange(run, 1, "a") is not None for run in (runs[1], again.run_id)]
    assert kept == [True, False]


def enrolled(store: RoundStore, asset_type: AssetType) -> None:
    store.asset_types.add(asset_type)
    store.sites.enrol("a", "UA", ["pump"])
    made = issue_code("a", "pump", datetime.now(UTC), timedelta(days=1), created_by="ada", certificate=None)
    store.enrolment_codes.add(made.stored)
    store.sites.remove("a")


@pytest.mark.parametrize("shared", [False, True])
def test_enrolment_and_events_go_where_no_other_plan_had_the_plant(
    store: RoundStore, asset_type: AssetType, shared: bool
) -> None:
    enrolled(store, asset_type)
    ended(store, begun(store, "weekly", "a", "b"))
    ended(store, begun(store, "other", "a" if shared else "c", "b"))
    with store.database.write() as session:
        for plan in ("weekly", "other", None):
            note(session, "site.silent", site_id="a", **({"plan": plan} if plan else {}))
    forgotten = store.leavings.forget("weekly", "a")
    assert (len(store.enrolment_codes.list_codes("a")), len(store.sites.list_sites())) == ((1, 1) if shared else (0, 0))
    assert forgotten.other_models == (("other",) if shared else ())
    told = [event.plan for event in store.events.after(0) if event.site_id == "a"]
    assert told == (["other", None] if shared else [])


def test_reasons_of_versions_aliases_and_versions_of_the_plan_name_it_no_more(
    store: RoundStore, asset_type: AssetType
) -> None:
    store.asset_types.add(asset_type)
    plan = store.plans.create(Plan(name="weekly", asset_type="pump")).plan
    store.plans.update(plan.model_copy(update={"max_rounds": 7}), reason="since site a is slow")
    run = ended(store, begun(store, "weekly", "a", "b"))
    store.model_versions.add("weekly", "1", run, {})
    store.model_versions.set_status("weekly", "1", "gates_failed", "no score from site a")
    store.model_versions.record_alias("weekly", "champion", "1", "me", "site a asked for it")
    forgotten = store.leavings.forget("weekly", "a")
    assert {kind: forgotten.pseudonymised[kind] for kind in ("plans", "versions", "aliases")} == {
        "plans": 1, "versions": 1, "aliases": 1}
    said = [each.reason for each in store.plans.versions("weekly")]
    said += [store.model_versions.get("weekly", "1").reason, store.model_versions.alias("weekly", "champion").reason]
    assert not any(word == "a" for reason in said for word in (reason or "").split())
    assert sum("site left-" in (reason or "") for reason in said) == 3
