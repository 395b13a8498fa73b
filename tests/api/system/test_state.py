"""The state of the service in one answer: who is connected now, what waits and what runs, and room on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import update

from api.backend.wiring import Backend, open_backend
from api.system.state import system_state
from services.contracts.errors import UnavailableError
from services.contracts.plans.plan import Plan
from services.process.settings import Settings
from services.round_store.tables.sites import SiteRow
from tests.api.conftest import START


@pytest.fixture
def backend(tmp_path: Path, new_sqlite: Callable[[], str]) -> Iterator[Backend]:
    with open_backend(Settings.load(tmp_path, {"BALLAST_DATABASE_URL": new_sqlite()})) as opened:
        yield opened


def test_who_is_connected_and_what_waits_and_runs(
    backend: Backend, new_key: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sites, runs = backend.store.sites, backend.store.runs
    for name in ("here", "silent", "never", "held", "gone"):
        sites.enrol(name, new_key(), ())
    sites.connected(["here", "silent", "held"])
    with backend.store.database.write() as session:
        session.execute(update(SiteRow).where(SiteRow.site_id == "silent").values(last_seen=START.replace(year=2020)))
    sites.suspend("held")
    sites.remove("gone")
    waits, works, ended = (runs.create_run(Plan(name=name, asset_type="rig")).run_id for name in ("a", "b", "c"))
    runs.begin_run(works, ())
    runs.finish_run(ended, "failed", "no plant")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=10, used=7, free=3))
    found = system_state(backend)
    assert (found.connected_sites, found.active_sites) == (("here",), 3)
    assert (found.pending_runs, found.running_runs) == ((waits,), (works,))
    assert (found.store, found.last_backup, found.flows_running) == ("sqlite", None, False)
    assert found.disk_free_bytes == 3 and found.uptime_seconds > 0


def test_of_a_store_that_is_not_there_nothing_is_told(tmp_path: Path) -> None:
    with open_backend(Settings.load(tmp_path, {})) as missing, pytest.raises(UnavailableError, match="ballast migrate"):
        system_state(missing)
