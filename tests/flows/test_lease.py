"""The lease holds for as long as the work lasts, whatever is done inside, and through a locked database."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flows import lease
from flows.lease import IN_PROGRESS, held_lease
from services.contracts.errors import ConflictError
from services.contracts.history.run import Run
from services.contracts.plans.plan import Plan
from services.round_store.store import RoundStore
from tests.flows.conftest import RIG
from tests.waiting import PATIENCE

SECONDS = 2.0
"""Of a lease: many times what a loaded machine takes to write a row."""


@pytest.fixture
def url(new_sqlite: Callable[[], str]) -> str:
    return new_sqlite()


@pytest.fixture
def store(url: str) -> Iterator[RoundStore]:
    opened = RoundStore.open(url, busy_seconds=60.0)
    opened.asset_types.add(RIG)
    yield opened
    opened.close()


@pytest.fixture
def run(store: RoundStore) -> Run:
    return store.runs.create_run(store.plans.create(Plan(name="nightly", asset_type="rig")).plan)


async def test_work_that_blocks_for_long_keeps_the_lease(store: RoundStore, run: Run) -> None:
    async with held_lease(store.runs, run.run_id, "me", SECONDS):
        time.sleep(3 * SECONDS)  # as publishing did: nothing else of the loop has its turn
        assert not store.runs.renew_lease(run.run_id, "another", SECONDS)
        assert store.runs.stale_runs(grace_seconds=0.0) == []
    assert store.runs.renew_lease(run.run_id, "another", SECONDS)


async def test_a_run_that_another_drives_is_said_to_be_so(store: RoundStore, run: Run) -> None:
    async with held_lease(store.runs, run.run_id, "me", SECONDS):
        with pytest.raises(ConflictError, match="driven by another process") as refused:
            async with held_lease(store.runs, run.run_id, "another", SECONDS):
                raise AssertionError("two drivers")
        assert refused.value.code == IN_PROGRESS


async def test_the_lease_of_a_process_that_is_gone_is_waited_for(store: RoundStore, run: Run) -> None:
    assert store.runs.renew_lease(run.run_id, "killed", 1.0)
    async with held_lease(store.runs, run.run_id, "me", SECONDS):
        assert not store.runs.renew_lease(run.run_id, "another", SECONDS)


async def test_work_ends_where_the_lease_is_lost(store: RoundStore, run: Run) -> None:
    with pytest.raises(ConflictError, match="driven by another process now") as lost:
        async with held_lease(store.runs, run.run_id, "me", SECONDS):
            store.runs.release_lease(run.run_id, "me")
            assert store.runs.renew_lease(run.run_id, "another", 2 * SECONDS)
            await asyncio.sleep(60.0)
    assert lost.value.code == IN_PROGRESS
    await asyncio.sleep(0)  # the task is not cancelled any more, and nobody further out takes it to be
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0
    assert not store.runs.renew_lease(run.run_id, "me", SECONDS)


async def test_a_lease_that_is_lost_when_the_work_is_done_cancels_nothing(
    store: RoundStore, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*given: Any) -> None:
        done, lose = given[-2:]
        done.wait(PATIENCE)
        lose()

    monkeypatch.setattr(lease, "_keep", keep)
    async with held_lease(store.runs, run.run_id, "me", SECONDS):
        pass
    await asyncio.sleep(0)
    assert store.runs.renew_lease(run.run_id, "another", SECONDS), "it was given back"


async def test_a_cancellation_from_outside_stays_one(store: RoundStore, run: Run) -> None:
    inside = asyncio.Event()

    async def drive() -> None:
        async with held_lease(store.runs, run.run_id, "me", SECONDS):
            inside.set()
            await asyncio.sleep(60.0)

    task = asyncio.create_task(drive())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.runs.renew_lease(run.run_id, "another", SECONDS)


async def test_a_database_that_is_locked_for_long_costs_nothing(store: RoundStore, run: Run, url: str) -> None:
    locked = threading.Event()

    def hold() -> None:
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        locked.set()
        time.sleep(3 * SECONDS)
        other.execute("ROLLBACK")
        other.close()

    holder = threading.Thread(target=hold)
    async with held_lease(store.runs, run.run_id, "me", SECONDS):
        holder.start()
        locked.wait()
        store.runs.set_flow_run_id(run.run_id, "after the lock")
        holder.join()
        await asyncio.sleep(SECONDS)
        assert not store.runs.renew_lease(run.run_id, "another", SECONDS)
    assert store.runs.get_run(run.run_id).flow_run_id == "after the lock"
