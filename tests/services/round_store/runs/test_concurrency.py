"""Several processes and threads on one database: one wins, and all agree who."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest

from services.contracts.errors import ConflictError
from services.contracts.history.run import RoundRecord, Run
from services.contracts.plans.plan import Plan
from services.round_store.database.session import utc_now
from services.round_store.runs.run_rows import OVERTAKEN
from services.round_store.store import RoundStore
from tests.api.conftest import a_curve
from tests.waiting import PATIENCE

CONTENDERS = 8


@contextmanager
def stores(url: str) -> Iterator[list[RoundStore]]:
    opened = [RoundStore.open(url) for _ in range(CONTENDERS)]
    try:
        yield opened
    finally:
        for store in opened:
            store.close()


def race(url: str, attempt: Callable[[RoundStore, int], bool]) -> list[bool]:
    """Outcome of the same attempt by many threads at once, each with connections of its own."""
    barrier = threading.Barrier(CONTENDERS)

    def run(store: RoundStore, number: int) -> bool:
        store.runs.list_runs(limit=1)
        barrier.wait(timeout=PATIENCE)
        return attempt(store, number)

    with stores(url) as opened, ThreadPoolExecutor(CONTENDERS) as pool:
        return list(pool.map(run, opened, range(CONTENDERS)))


def refusal(call: Callable[[], object]) -> str:
    """Code of the error that a call ends with; empty where it has none."""
    try:
        call()
    except ConflictError as error:
        return error.code
    return ""


def test_whoever_comes_second_at_the_same_moment_is_told_so_by_the_code_of_a_moment_later(
    database_url: str, plan: Plan
) -> None:
    """Clients go by it: of a change that has an Idempotency-Key they ask again."""
    runs, changes = list[str](), list[str]()

    def attempt(store: RoundStore, number: int) -> bool:
        runs.append(refusal(lambda: store.runs.create_run(plan)))
        changes.append(refusal(lambda: store.outcomes.begin("token", "key", "asked")))
        return True

    race(database_url, attempt)
    assert sorted(runs) == ["", *["run_unfinished"] * (CONTENDERS - 1)]
    assert set(changes) <= {"", "idempotency_unfinished"}


def wins(call: Callable[[], object]) -> bool:
    try:
        call()
    except ConflictError:
        return False
    return True


def test_one_thread_gets_the_lease(store: RoundStore, database_url: str, running: Run) -> None:
    won = race(database_url, lambda each, number: each.runs.renew_lease(running.run_id, f"owner-{number}", 60))
    assert sum(won) == 1
    assert store.runs.renew_lease(running.run_id, f"owner-{won.index(True)}", 60)
    assert not store.runs.renew_lease(running.run_id, f"owner-{won.index(False)}", 60)


def test_one_process_gets_the_lease(database_url: str, running: Run) -> None:
    script = """
        import sys
        from services.round_store.store import RoundStore
        store = RoundStore.open(sys.argv[1])
        print("ready", flush=True)
        sys.stdin.readline()
        print(store.runs.renew_lease(sys.argv[2], sys.argv[3], 60), flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), database_url, running.run_id]
    contenders = [
        subprocess.Popen([*command, owner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for owner in ("one", "two")
    ]
    for process in contenders:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in contenders:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=PATIENCE)[0] for process in contenders]
    assert sorted(answers) == ["False\n", "True\n"]


def test_a_round_is_committed_by_one(
    store: RoundStore, database_url: str, running: Run, make_record: Callable[..., RoundRecord]
) -> None:
    def commit(each: RoundStore, number: int) -> bool:
        record = make_record(running.run_id, 1, upper=float(number))
        return wins(lambda: each.runs.commit_round(record, {"w": np.array([float(number)])}))

    won = race(database_url, commit)
    assert sum(won) == 1
    loaded = store.runs.load_state(running.run_id)
    assert loaded is not None
    assert loaded[1]["w"][0] == store.runs.get_rounds(running.run_id)[0].upper == won.index(True)


def test_a_plan_gets_one_run(store: RoundStore, database_url: str, plan: Plan) -> None:
    won = race(database_url, lambda each, _number: wins(lambda: each.runs.create_run(plan)))
    assert sum(won) == 1
    assert len(store.runs.unfinished_runs()) == 1


def test_the_audit_trail_does_not_fork(store: RoundStore, database_url: str) -> None:
    def append(each: RoundStore, number: int) -> bool:
        for _ in range(3):
            each.audit.append(actor=f"token-{number}", role=None, action="test", target="chain")
        return True

    race(database_url, append)
    report = store.audit.verify_chain()
    assert (report.ok, report.events, report.problem) == (True, 3 * CONTENDERS, "")


def test_a_lease_lapses_is_prolonged_and_given_back(store: RoundStore, running: Run) -> None:
    run_id = running.run_id
    assert store.runs.renew_lease(run_id, "one", 60)
    assert store.runs.renew_lease(run_id, "one", 60)
    assert not store.runs.renew_lease(run_id, "two", 60)
    assert store.runs.renew_lease(run_id, "one", 0.2)
    time.sleep(0.3)
    assert [run.run_id for run in store.runs.stale_runs()] == [run_id]
    assert store.runs.renew_lease(run_id, "two", 60)
    assert not store.runs.renew_lease(run_id, "one", 60)
    assert store.runs.stale_runs() == []
    store.runs.release_lease(run_id, "one")
    assert not store.runs.renew_lease(run_id, "one", 60)
    store.runs.release_lease(run_id, "two")
    assert store.runs.renew_lease(run_id, "one", 60)
    store.runs.finish_run(run_id, "completed", "")
    assert not store.runs.renew_lease(run_id, "one", 60)


def test_a_lease_of_before_the_clock_was_put_back_holds_nobody_up(store: RoundStore, running: Run) -> None:
    run_id = running.run_id
    assert store.runs.renew_lease(run_id, "dead", 3600.0)  # by a clock that was an hour ahead
    assert store.runs.stale_runs() == [] and store.runs.stale_runs(lease_seconds=3600.0) == []
    assert [run.run_id for run in store.runs.stale_runs(lease_seconds=30.0)] == [run_id]
    assert store.runs.renew_lease(run_id, "alive", 30.0)
    assert not store.runs.renew_lease(run_id, "dead", 30.0)


def test_who_was_overtaken_is_told_so(store: RoundStore, running: Run) -> None:
    with pytest.raises(ConflictError) as begun:
        store.runs.begin_run(running.run_id, running.sites)
    store.runs.finish_run(running.run_id, "cancelled", "an operator said so")
    with pytest.raises(ConflictError) as ended:
        store.runs.begin_run(running.run_id, running.sites)
    assert (begun.value.code, ended.value.code) == (OVERTAKEN, "conflict")


def test_who_tunes_a_run_that_went_on_without_it_is_told_so(store: RoundStore, running: Run) -> None:
    """Its lease had expired, and another process tuned and trained: a later try goes on from there, nothing failed."""
    store.runs.set_tuned(running.run_id, running.plan.model_copy(update={"tuned": a_curve()}), running.sites)
    with pytest.raises(ConflictError, match="cannot be tuned") as late:
        store.runs.set_tuned(running.run_id, running.plan, running.sites)
    store.runs.finish_run(running.run_id, "failed", "a plant lied")
    with pytest.raises(ConflictError, match="is failed after 0 rounds") as ended:
        store.runs.set_tuned(running.run_id, running.plan, running.sites)
    assert (late.value.code, ended.value.code) == (OVERTAKEN, "conflict")


def test_a_run_that_nobody_took_is_stale_after_a_while(store: RoundStore, plan: Plan) -> None:
    run = store.runs.create_run(plan)
    with store.database.read() as session:
        now = utc_now(session)
    assert store.runs.stale_runs(now) == []
    assert store.runs.stale_runs(now + timedelta(seconds=59)) == []
    assert [each.run_id for each in store.runs.stale_runs(now + timedelta(seconds=61))] == [run.run_id]
    assert [each.run_id for each in store.runs.stale_runs(now + timedelta(seconds=1), grace_seconds=0)] == [run.run_id]
    store.runs.finish_run(run.run_id, "failed", "")
    assert store.runs.stale_runs(now + timedelta(days=1)) == []


def test_readers_do_not_wait_for_a_writer(store: RoundStore, database_url: str, running: Run) -> None:
    other = RoundStore.open(database_url)
    with store.atomic() as unit:
        unit.runs.request_cancel(running.run_id)
        # A reader that waits for the writer would wait for ever: the writer ends after it, in this thread.
        assert not other.runs.get_run(running.run_id).cancel_requested
    assert other.runs.get_run(running.run_id).cancel_requested
    other.close()


def test_atomic_is_all_or_nothing(store: RoundStore, running: Run) -> None:
    with pytest.raises(ConflictError), store.atomic() as unit:
        unit.runs.request_cancel(running.run_id)
        unit.audit.append(actor="me", role=None, action="run.cancel", target=running.run_id)
        assert unit.runs.get_run(running.run_id).cancel_requested
        unit.runs.begin_run(running.run_id, ())
    assert not store.runs.get_run(running.run_id).cancel_requested
    assert store.audit.list_events() == []
    assert store.audit.verify_chain().ok
