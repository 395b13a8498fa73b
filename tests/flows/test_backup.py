"""A works on PostgreSQL, backed up in the middle of a run and under load, goes on from SQLite elsewhere."""

from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.backend.wiring import Backend
from api.recovery import backup as backups
from api.recovery.backup import make_backup
from api.recovery.restore import restore_backup
from flows.publish import keep_draft, promote_if_gates_hold, register
from flows.wiring import FlowContext
from services.backup.sealed_stream import KeyCost
from services.contracts.history.audit import BACKUP_MADE, BACKUP_RESTORED
from services.process.settings import Settings
from services.round_store.store import RoundStore
from tests.flows.conftest import RIG, InProcessWorks, rig_sources

PASSPHRASE = "a horse of another colour"
CHEAP = KeyCost(operations=1, memory=2**16)
CUT_AFTER = 5


class KilledError(Exception):
    pass


@contextmanager
def killed_after(store: RoundStore, rounds: int) -> Iterator[None]:
    commit = store.runs.commit_round

    def commit_and_die(record: Any, *args: Any, **more: Any) -> None:
        commit(record, *args, **more)
        if record.round == rounds:
            raise KilledError

    store.runs.commit_round = commit_and_die
    try:
        yield
    finally:
        store.runs.commit_round = commit


@contextmanager
def load(store: RoundStore) -> Iterator[list[int]]:
    """Somebody who writes to the trail and to the sites for as long as it lasts."""
    stop, done = threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            with store.atomic() as unit:
                unit.audit.append(actor="load", role=None, action="load", target=f"n:{done[0]}", reason="x" * 200)
            done[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield done
    finally:
        stop.set()
        writer.join()


def resumed(works: InProcessWorks, context: FlowContext, run_id: str) -> Any:
    async def go_on() -> Any:
        run = context.store.runs.get_run(run_id)
        async with works._plants(()), context.plant_link() as transport:
            coordinator = context.coordinator(run, transport)
            trained = await coordinator.train(run)
            run = context.store.runs.get_run(run_id)
            return run, trained, await coordinator.evaluate(run, trained.weights, trained.risk_bound)

    return asyncio.run(go_on())


def test_a_backup_under_load_goes_on_elsewhere(
    tmp_path: Path, new_postgresql: Callable[[], str], opening_works: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "there").mkdir()
    url = new_postgresql()
    with opening_works(tmp_path / "there", url, RIG, rig_sources(tmp_path / "there")) as works:
        context, home = works.context, works.context.settings.home
        (home / "ballast.toml").write_text(f'database_url = "{url}"\nlease_seconds = 7.0\n')
        plan = works.plan("weekly", warm_start=False)
        run, _, version = works.train(plan)
        promote_if_gates_hold(context, run, version)
        with killed_after(context.store, CUT_AFTER), pytest.raises(KilledError):
            asyncio.run(_train(works, plan))
        (cut,) = context.store.runs.unfinished_runs()
        assert cut.rounds == CUT_AFTER

        # In the middle of the backup a version is registered and promoted that the store's state does not know.
        seen = {}
        taken = backups.registry_snapshot

        def registering(*args: Any) -> Any:
            late = context.registry.register(version.model_copy(update={"run_id": "f" * 32, "version": ""}), (), {}, {})
            context.registry.point("weekly", "champion", late.version)
            seen["late"] = late.version
            return taken(*args)

        monkeypatch.setattr(backups, "registry_snapshot", registering)
        before = context.store.audit.verify_chain()
        with load(context.store) as written:
            summary = make_backup(Backend(context.settings, context.store), tmp_path / "b.ballast", PASSPHRASE, CHEAP)
        assert written[0] > 0 and summary.versions == 1 and summary.notes == []
        assert stat.S_IMODE((tmp_path / "b.ballast").stat().st_mode) == 0o600
        assert not [path for path in home.iterdir() if path.name.startswith(".ballast-backup")]
        assert context.store.audit.list_events(action=BACKUP_MADE, limit=1)[0].number > before.events

        port = works.context.settings.nats.port
        environment = {"BALLAST_DATABASE_URL": url, "BALLAST_NATS_PORT": str(port)}
        elsewhere = tmp_path / "elsewhere"
        done = restore_backup(
            tmp_path / "b.ballast", elsewhere, PASSPHRASE, self_contained=True, environment=environment
        )
        assert done.champions == {"weekly": version.version} and done.unfinished == [cut.run_id]
        settings = Settings.load(elsewhere, {"BALLAST_NATS_PORT": str(port)})
        assert settings.database.startswith("sqlite") and settings.lease_seconds == 7.0
        assert [path for path in elsewhere.rglob("*") if path.stat().st_mode & 0o077] == []
        for name in ("nats/coordinator.nk", "nats/ca.pem", "nats/server.key"):
            assert (elsewhere / name).read_bytes() == (home / name).read_bytes()
        store = RoundStore.open(settings.database)
        try:
            there = replace(context, settings=settings, store=store)
            held = store.audit.verify_chain()
            assert held.ok and held.events == done.manifest.audit_events + 1
            assert store.audit.list_events(limit=1)[0].action == BACKUP_RESTORED
            (last,) = context.store.audit.list_events(before=done.manifest.audit_events + 1, limit=1)
            assert last == store.audit.list_events(before=held.events, limit=1)[0]  # so all before it are alike too
            assert there.registry.aliases("weekly") == {"champion": version.version, "challenger": version.version}
            assert [each.version for each in there.registry.versions("weekly")] == [version.version]
            assert np.array_equal(there.registry.get("weekly", "champion").weights, version.weights)
            assert there.registry.report(version) is not None
            assert store.runs.get_rounds(run.run_id) == context.store.runs.get_rounds(run.run_id)

            ended, trained, evaluation = resumed(works, there, cut.run_id)
            _, expected, _ = resumed(works, context, cut.run_id)
            assert ended.rounds > CUT_AFTER
            assert np.array_equal(trained.weights, expected.weights)
            second = register(there, ended, keep_draft(there, ended, trained, evaluation))
            assert second.version != version.version
        finally:
            store.close()


async def _train(works: InProcessWorks, plan: Any) -> None:
    run = works.context.store.runs.create_run(plan)
    async with works._plants(()), works.context.plant_link() as transport:
        coordinator = works.context.coordinator(run, transport)
        await coordinator.train(await coordinator.join(run))
