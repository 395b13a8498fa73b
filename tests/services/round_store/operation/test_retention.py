"""What is old goes; what is evidence stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.contracts.plans.plan import Plan
from services.process.settings import RetentionSettings
from services.round_store.store import RoundStore
from services.round_store.tidying import TIDIED, tidy

SETTINGS = RetentionSettings(rounds_days=30, keep_versions=2, events_days=7)
LATER = datetime.now(UTC) + timedelta(days=31)


@pytest.fixture
def runs(store: RoundStore, plan: Plan, terms: Any, make_record: Callable[..., Any]) -> list[str]:
    """Six finished runs with a version each and a round; the first was champion, the third convicted a site."""
    made = []
    for number in range(6):
        run = store.runs.begin_run(store.runs.create_run(plan).run_id, terms)
        evidence = {"a": b"proof"} if number == 2 else None
        store.runs.commit_round(make_record(run.run_id, 1), {}, evidence=evidence)
        store.runs.finish_run(run.run_id, "completed", "done")
        store.model_versions.add("weekly", str(number + 1), run.run_id, {})
        made.append(run.run_id)
    store.model_versions.record_alias("weekly", "champion", "1", "me", "first")
    store.model_versions.record_alias("weekly", "champion", "6", "me", "best")
    return made


def rounds(store: RoundStore, runs: list[str]) -> list[int]:
    return [len(store.runs.get_rounds(run_id)) for run_id in runs]


def test_rounds_of_old_runs_go_and_evidence_stays(
    store: RoundStore, runs: list[str], plan: Plan, terms: Any, make_record: Callable[..., Any]
) -> None:
    unfinished = store.runs.begin_run(store.runs.create_run(plan).run_id, terms)
    store.runs.commit_round(make_record(unfinished.run_id, 1), {})
    store.model_versions.add("fan", "2", runs[5], {})
    store.model_versions.record_alias("fan", "champion", "2", "me", "of another model")
    trail = store.audit.verify_chain()
    told = tidy(store, SETTINGS, actor="me", role=None, dry_run=True, now=LATER)
    assert set(told.runs) == {runs[1], runs[3]} and told.rounds == 2 and told.events > 0
    assert rounds(store, [*runs, unfinished.run_id]) == [1] * 7 and store.audit.verify_chain() == trail
    (*_, newest) = store.events.after(0)
    assert tidy(store, SETTINGS, actor="me", role=None, now=LATER) == told
    assert rounds(store, [*runs, unfinished.run_id]) == [1, 0, 1, 0, 1, 1, 1]
    assert store.runs.get_run(runs[1]).rounds == 1 and store.runs.get_evidence(runs[2], "a") == b"proof"
    assert store.events.after(0) == [newest]
    held = store.audit.verify_chain()
    assert held.ok and held.events == trail.events + 1
    assert store.audit.list_events(limit=1)[0].action == TIDIED
    assert tidy(store, SETTINGS, actor="me", role=None, now=LATER).runs == ()
    assert store.audit.verify_chain() == held, "nothing was dropped, and yet it was noted"


def test_versions_that_were_forgotten_are_not_among_the_newest(store: RoundStore, runs: list[str]) -> None:
    """Nobody can go back to them: of those that stand as many are kept as the settings say."""
    store.model_versions.mark_forgotten("weekly", ["5"], "a plant left")
    told = tidy(store, RetentionSettings(rounds_days=1, keep_versions=2), actor="me", role=None, now=LATER)
    assert set(told.runs) == {runs[1], runs[4]}


def test_what_is_young_or_kept_for_ever_stays(store: RoundStore, runs: list[str]) -> None:
    assert tidy(store, SETTINGS, actor="me", role=None).runs == ()
    assert tidy(store, RetentionSettings(), actor="me", role=None, now=LATER + timedelta(days=9999)).rounds == 0
    assert rounds(store, runs) == [1] * 6


def test_an_unfinished_run_keeps_its_rounds_whoever_asks(
    store: RoundStore, plan: Plan, terms: Any, make_record: Callable[..., Any]
) -> None:
    run = store.runs.begin_run(store.runs.create_run(plan).run_id, terms)
    store.runs.commit_round(make_record(run.run_id, 1), {})
    assert store.retention.drop_rounds(run.run_id) == 0
    assert rounds(store, [run.run_id]) == [1]


def test_rounds_of_what_has_become_evidence_since_it_was_counted_stay(store: RoundStore, runs: list[str]) -> None:
    """An auditor's case may come, or a version be promoted, while a long tidying is at the runs before it."""
    before = [store.runs.get_rounds(run_id) for run_id in runs]
    assert all(record.answers for (record,) in before)
    assert [store.retention.drop_rounds(run_id) for run_id in runs[:3]] == [0, 1, 0]
    after = [store.runs.get_rounds(run_id) for run_id in runs]
    assert after == [*before[:1], [], *before[2:]], "with all that was answered in them"


@pytest.mark.parametrize("moment", ["before its turn", "on its way"])
def test_rounds_of_a_version_that_is_promoted_while_others_are_dropped_stay(
    store: RoundStore, runs: list[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """An operator goes back to an old version while a long tidying is at the runs before it."""
    drop = store.retention.drop_rounds
    begun, waits = threading.Event(), store.engine.dialect.name == "postgresql" and moment == "on its way"

    def promote() -> None:
        with store.atomic() as unit:
            unit.model_versions.record_alias("weekly", "champion", "4", "me", "as it was")
            begun.set()
            time.sleep(0.3 if waits else 0.0)  # it moves the registry

    promotion = threading.Thread(target=promote)

    def dropped(run_id: str) -> int:
        if run_id == runs[3]:
            promotion.start()
            begun.wait() if waits else promotion.join()
        return drop(run_id)

    monkeypatch.setattr(store.retention, "drop_rounds", dropped)
    told = tidy(store, SETTINGS, actor="me", role=None, now=LATER)
    promotion.join()
    assert (told.runs, told.rounds, rounds(store, runs)) == ((runs[1],), 1, [1, 0, 1, 1, 1, 1])


def test_numbers_of_events_go_on_where_all_before_are_old(store: RoundStore, plan: Plan) -> None:
    """A webhook is told of what is numbered above the last that it had: numbers that began anew would not be told."""
    for _ in range(2):
        store.runs.finish_run(store.runs.begin_run(store.runs.create_run(plan).run_id, ()).run_id, "failed", "no site")
        newest = store.events.span()[1]
        tidy(store, SETTINGS, actor="me", role=None, now=LATER)
        assert store.events.span() == (newest, newest)
        tidied = tidy(store, SETTINGS, actor="me", role=None, dry_run=True, now=LATER)
        assert tidied.events == 0, "what stays is not said to go"
    assert newest == 4


def test_rounds_are_kept_for_their_own_number_of_days(store: RoundStore, runs: list[str]) -> None:
    told = tidy(store, SETTINGS, actor="me", role=None, now=datetime.now(UTC) + timedelta(days=29))
    assert (told.runs, told.rounds) == ((), 0) and told.events > 0
    assert rounds(store, runs) == [1] * 6


def test_old_rounds_go_where_no_event_is_old(store: RoundStore, runs: list[str]) -> None:
    assert tidy(store, RetentionSettings(events_days=7), actor="me", role=None, now=LATER).events > 0
    told = tidy(store, SETTINGS, actor="me", role=None, now=LATER)
    assert (set(told.runs), told.rounds, told.events) == ({runs[1], runs[3]}, 2, 0)
    assert rounds(store, runs) == [1, 0, 1, 0, 1, 1]
