"""Two changes of one plant at the same moment: the later one tells what the earlier one left, not what was before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from api.backend.actor import local_administrator
from api.backend.wiring import Backend, open_backend
from api.models.unlearning import _end_enrolment
from api.sites import service
from api.sites.schemas import KeyChange
from services.contracts.keys.signing import new_seed_file
from services.process.settings import Settings
from tests.waiting import wait_until

WAITS = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")


def rotated(backend: Backend, key: str) -> str:
    service.rotate_key(backend, local_administrator(), "plant-7", KeyChange(public_key=key))
    (told,) = backend.store.audit.list_events(action="site.rotate_key")
    return str((told.before or {})["status"])


def removed(backend: Backend, _key: str) -> str:
    service.remove(backend, local_administrator(), "plant-7")
    (told,) = backend.store.audit.list_events(action="site.remove")
    return str((told.before or {})["status"])


def unlearnt(backend: Backend, _key: str) -> str:
    with backend.store.atomic() as store:
        before, _ = _end_enrolment(store, "plant-7")
    return "" if before is None else before.status


def looking_on(backend: Backend) -> Connection:
    """A connection that sees at each question who waits now."""
    return backend.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")


@pytest.mark.parametrize("change", [rotated, removed, unlearnt])
def test_what_stood_before_is_what_the_change_before_left(
    tmp_path: Path, new_postgresql: Callable[[], str], new_key: Callable[[], str],
    change: Callable[[Backend, str], str],
) -> None:
    found: list[str] = []
    with open_backend(Settings.load(tmp_path, {"BALLAST_DATABASE_URL": new_postgresql()})) as backend:
        backend.settings.bus_folder.mkdir()
        new_seed_file(backend.settings.bus_folder / "coordinator.nk")
        backend.store.sites.enrol("plant-7", new_key(), ())
        other = threading.Thread(target=lambda: found.append(change(backend, new_key())))
        with backend.store.atomic() as store, looking_on(backend) as looking:
            store.sites.suspend("plant-7")
            other.start()
            wait_until(lambda: looking.scalar(WAITS) == 1, "a change that waits for this one")
        other.join()
    assert found == ["suspended"]
