"""What is missing and what somebody should look at, from what the parts say: no place of anything, no old news."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import Response

from api.backend.looks import Looks
from api.health import endpoints, service
from api.health.service import NOTICE_TIME, missing_parts, notices
from services.contracts.errors import UnavailableError
from services.registry.alias_check import RESTORED

PLACE = "/var/lib/ballast/ballast.db"


def away(code: str) -> Callable[..., None]:
    def ask(**_: object) -> None:
        raise UnavailableError(f"{PLACE} cannot be opened", code=code)

    return ask


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Everything is well; a test changes what it is about."""
    monkeypatch.setattr(service, "disk_problem", lambda _: "")
    monkeypatch.setattr(service, "flows_at_work", lambda _: True)
    monkeypatch.setattr(service, "flows_idle", lambda _: timedelta())
    monkeypatch.setattr(service, "moved_aliases", lambda *_: [])
    monkeypatch.setattr(service, "hanging", lambda _: {})
    return SimpleNamespace(
        check_store=lambda: None, looks=Looks(), registry=SimpleNamespace(models=list), settings=None,
        service_keys=SimpleNamespace(problem=lambda name: ""),
        store=SimpleNamespace(
            runs=SimpleNamespace(unfinished_runs=list), audit=SimpleNamespace(list_events=lambda **_: []),
            model_versions=SimpleNamespace(models=lambda: ["pumps"]),
        ),
    )


def test_where_all_is_well_nothing_is_said(backend: Any) -> None:
    assert missing_parts(backend) == {} == notices(backend)


@pytest.mark.parametrize("code", ["database_cannot_open", "database_no_table", "database_read_only", "of_another_kind"])
def test_of_a_part_that_is_away_is_said_what_to_do_and_not_where_it_is(backend: Any, code: str) -> None:
    backend.check_store = backend.registry.models = away(code)
    found = missing_parts(backend)
    assert list(found) == ["database", "registry"] and PLACE not in str(found)
    assert ("does not answer" in found["database"]) is (code not in service.WHAT_TO_DO)


def test_a_key_that_is_not_the_services_makes_it_unready_without_saying_which(backend: Any) -> None:
    backend.service_keys.problem = lambda name: f"{PLACE} is another key" if name == "pseudonyms.key" else ""
    found = missing_parts(backend)
    assert list(found) == ["keys"] and PLACE not in str(found) and "the server's log says" in found["keys"]
    backend.check_store = away("database_no_table")
    assert list(missing_parts(backend)) == ["database"], "while the store is away nobody knows the service's keys"


@pytest.mark.parametrize(("at_work", "waits", "told"), [
    (False, True, True), (None, True, False), (True, True, False), (False, False, False),
])
def test_runs_wait_for_nobody_where_the_flows_are_known_not_to_run(
    backend: Any, monkeypatch: pytest.MonkeyPatch, at_work: bool | None, waits: bool, told: bool
) -> None:
    monkeypatch.setattr(service, "flows_at_work", lambda _: at_work)
    backend.store.runs.unfinished_runs = lambda: ["a run"] if waits else []
    assert ("flows" in notices(backend)) is told


@pytest.mark.parametrize(("age", "told"), [
    (timedelta(0), True), (NOTICE_TIME - timedelta(minutes=5), True), (NOTICE_TIME + timedelta(minutes=5), False),
])
def test_an_alias_that_was_put_back_is_spoken_of_for_a_day(backend: Any, age: timedelta, told: bool) -> None:
    events = {RESTORED: [SimpleNamespace(at=datetime.now(UTC) - age)]}
    backend.store.audit.list_events = lambda *, action, limit: events[action][:limit]
    assert ("put back; the audit trail says which" in notices(backend).get("registry", "")) is told
    assert timedelta(days=1) == NOTICE_TIME


def test_an_alias_that_stands_where_it_should_not_comes_first(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "moved_aliases", lambda *asked: ["champion"] if asked[-1] == "pumps" else [])
    assert "it is put back within seconds" in notices(backend)["registry"]
    backend.store.audit.list_events = away("database_busy")
    assert notices(backend) == {}


@pytest.mark.parametrize(("missing", "asked"), [({"disk": "full"}, []), ({}, ["notices"])])
def test_what_somebody_should_look_at_is_looked_for_where_nothing_is_missing(
    backend: Any, monkeypatch: pytest.MonkeyPatch, missing: dict[str, str], asked: list[str]
) -> None:
    """A probe that finds a part away does not wait for others."""
    looked: list[str] = []

    def look(_: Any) -> dict[str, str]:
        looked.append("notices")
        return {"flows": "none runs"}

    monkeypatch.setattr(endpoints, "missing_parts", lambda _: missing)
    monkeypatch.setattr(endpoints, "notices", look)
    answer = Response()
    said = endpoints.readyz(backend, answer)
    assert (said.ready, said.missing, looked) == (not missing, missing, asked)
    assert (answer.status_code, said.notices) == ((503, {}) if missing else (200, {"flows": "none runs"}))
