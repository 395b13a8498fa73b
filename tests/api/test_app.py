"""The application as a process of its own: what is done before it opens anything, and how it ends where it may not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from api import app
from services.identity.service_keys import OtherKeyError
from services.process.settings import Settings


@pytest.fixture
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a process does to itself, in its order."""
    found: list[Any] = []
    monkeypatch.setenv("BALLAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("BALLAST_LOG_LEVEL", "debug")
    monkeypatch.setattr(app, "keep_private", lambda: found.append("private"))
    monkeypatch.setattr(app, "reach_this_host_directly", lambda: found.append("direct"))
    monkeypatch.setattr(app, "set_up_logs", lambda logging: found.append(logging.level))
    monkeypatch.setattr(app, "begin_with_keys", lambda settings: found.append(settings.home))
    return found


def test_a_process_is_private_asks_this_host_itself_and_logs_as_the_settings_say_before_it_has_its_keys(
    done: list[Any], tmp_path: Path
) -> None:
    app.create_app()
    assert done == ["private", "direct", "debug", tmp_path / "home"]


def test_a_process_with_another_key_ends_with_one_line(done: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Settings) -> None:
        raise OtherKeyError("webhooks.key is another key")

    monkeypatch.setattr(app, "begin_with_keys", refuse)
    with pytest.raises(SystemExit) as ended:
        app.create_app()
    assert ended.value.code == "ballast: webhooks.key is another key", "on stderr, with exit code 1"


def test_an_application_within_another_process_leaves_that_as_it_is(done: list[Any], tmp_path: Path) -> None:
    app.create_app(Settings.model_validate({"home": tmp_path}))
    assert done == []


def test_a_request_is_matched_with_the_very_routes_of_the_subjects(tmp_path: Path) -> None:
    """No copies, which the first request would have to wait for, and no router between a request and its route."""
    made = app.create_app(Settings.model_validate({"home": tmp_path})).router.routes
    assert [id(route) for route in made[: len(app.routes())]] == [id(route) for route in app.routes()]
    assert [getattr(route, "path", None) for route in made[len(app.routes()) :]] == ["/openapi.json"]


def test_nothing_of_an_application_goes_on_after_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the store is away, with which it starts."""
    done: list[str] = []

    class Deliverer:
        def __init__(self, _: Any) -> None:
            pass

        def start(self) -> None:
            done.append("started")

        def stop(self) -> None:
            done.append("stopped")

    async def lived() -> int:
        made = app.create_app(Settings.model_validate({"home": tmp_path}))
        async with made.router.lifespan_context(made):
            assert done == ["started"] and len(asyncio.all_tasks()) == 2, "what reads events is at work"
        return len(asyncio.all_tasks())

    monkeypatch.setattr(app, "Deliverer", Deliverer)
    assert asyncio.run(lived()) == 1, "of the tasks only this one is left"
    assert done == ["started", "stopped"]
