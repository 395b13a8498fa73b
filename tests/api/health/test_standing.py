"""Readiness while a server stands still: it is said within seconds what does not answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.backend import looks
from api.backend.wiring import open_backend
from api.health import service
from api.health.service import missing_parts, notices
from services.process.settings import Settings
from tests.standstill import postgresql_stands
from tests.waiting import wait_until


def test_a_database_that_stands_still_does_not_answer(
    tmp_path: Path, new_postgresql: Callable[[], str], mlflow_settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections of the pool among them, on which an answer would be waited for until the server goes on."""
    database = new_postgresql()
    settings = Settings.model_validate({"home": tmp_path, "database_url": database, "mlflow": mlflow_settings})
    with open_backend(settings) as backend:
        assert missing_parts(backend) == {}
        monkeypatch.setattr(looks, "LOOK_SECONDS", 0.3)
        with postgresql_stands(database):
            for _ in range(2):
                assert missing_parts(backend) == {"database": "does not answer; the server's log says why"}
        wait_until(lambda: missing_parts(backend) == {}, "a database that goes on")


def test_servers_that_hang_are_a_notice(shared_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Diagnoses go on without them, so the process is ready all the same."""
    monkeypatch.setattr(service, "hanging", lambda _: {"plant link": "it hangs"})
    answer = shared_world.call(None, "GET", "/readyz")
    assert (answer.status_code, answer.json()["notices"]) == (200, {"plant link": "it hangs"})
    assert notices(shared_world.backend) == {"plant link": "it hangs"}
