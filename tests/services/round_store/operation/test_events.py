"""Events of the store: what is told of a run, in pages, and for thirty days."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from services.contracts.history.events import DRIFTED
from services.contracts.history.run import Run, SiteAnswer
from services.contracts.plans.plan import Plan
from services.round_store.database.session import utc_now
from services.round_store.operation import events
from services.round_store.operation.events import KEPT, note
from services.round_store.store import RoundStore
from services.round_store.tables.operation import EventRow


def noted(store: RoundStore, count: int) -> list[int]:
    with store.database.write() as session:
        for number in range(count):
            note(session, "model.promoted", plan="weekly", version=str(number))
    return [event.number for event in store.events.after(0)][-count:]


def aged(store: RoundStore, number: int, by: timedelta) -> None:
    with store.database.write() as session:
        session.execute(update(EventRow).where(EventRow.number == number).values(at=utc_now(session) - by))


def test_events_are_read_in_order_after_a_number_and_so_many(store: RoundStore) -> None:
    assert store.events.span() == (1, 0) and store.events.after(0) == []
    numbers = noted(store, 4)
    assert store.events.span() == (numbers[0], numbers[-1])
    assert [event.number for event in store.events.after(numbers[0], limit=2)] == numbers[1:3]
    assert [event.version for event in store.events.after(numbers[1])] == ["2", "3"]
    assert store.events.after(numbers[-1]) == [] == store.events.after(0, ["run.begun"])


def test_no_event_is_committed_after_one_of_a_greater_number(store: RoundStore) -> None:
    """Whoever has followed events up to a number has all before it: a webhook would never be told of the other."""
    begun, done = threading.Event(), threading.Event()

    def second() -> None:
        begun.wait()
        noted(store, 1)
        done.set()

    other = threading.Thread(target=second)
    other.start()
    with store.database.write() as session:
        note(session, "model.promoted", plan="weekly", version="first")
        begun.set()
        assert not done.wait(0.3) and store.events.after(0) == []
    other.join()
    assert [event.version for event in store.events.after(0)] == ["first", "0"]


def test_what_is_older_than_thirty_days_goes_and_the_rest_stays(
    store: RoundStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, young, newest = noted(store, 3)
    aged(store, old, KEPT + timedelta(hours=1))
    aged(store, young, KEPT - timedelta(hours=1))
    monkeypatch.setattr(events, "PRUNED_EVERY", newest + 2)
    (between,) = noted(store, 1)
    assert store.events.span()[0] == old, "not with every event is looked for old ones"
    (last,) = noted(store, 1)
    assert [event.number for event in store.events.after(0)] == [young, newest, between, last]


def test_sites_that_drifted_or_refused_for_their_exposure_or_lied_are_told_and_no_others(
    store: RoundStore, plan: Plan, terms: Any, make_record: Callable[..., Any]
) -> None:
    drifts = zip(terms, (DRIFTED, DRIFTED - 0.01), strict=True)
    joined = tuple(site.model_copy(update={"drift": drift}) for site, drift in drifts)
    away = SiteAnswer(site_id="c", status="refused_by_site", code="exposure_limit", reason="it would isolate rows")
    run: Run = store.runs.begin_run(store.runs.create_run(plan).run_id, joined, (away,))
    answers = (
        SiteAnswer(site_id="a", status="excluded", code="contradiction", reason="it contradicts itself"),
        SiteAnswer(site_id="b", status="refused_by_site", code="no_data", reason="the site has no data"),
        SiteAnswer(site_id="d", status="rejected", code="exposure_limit", reason="said by nobody"),
        SiteAnswer(site_id="e", status="excluded", code="absent", reason="it made no masks for 60 s"),
    )
    store.runs.commit_round(make_record(run.run_id, 1, answers=answers), {})
    told = [(event.kind, event.site_id, event.round, event.code, event.drift) for event in store.events.after(0)
            if not event.kind.startswith("run.")]
    assert sorted(told) == [
        ("exposure.refused", "c", 0, "exposure_limit", None), ("site.convicted", "a", 1, "contradiction", None),
        ("site.drifted", "a", None, "", DRIFTED), ("site.left_out", "e", 1, "absent", None),
    ]
    assert {(event.plan, event.run_id) for event in store.events.after(0)} == {(plan.name, run.run_id)}
