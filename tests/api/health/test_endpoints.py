from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from httpx import ASGITransport, AsyncClient, Response

from api.app import create_app
from api.backend.wiring import open_backend
from api.health.service import notices
from services.process.command_line import product_version
from services.process.settings import Settings


def ask(settings: Settings, *paths: str) -> list[Response]:
    app = create_app(settings)

    headers = {"Authorization": f"Bearer blst_{'0' * 12}_{'0' * 64}"}

    async def answers() -> list[Response]:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://ballast") as client:
            return [await client.get(path, headers=headers) for path in paths]

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        return portal.call(answers)


def test_ready_with_a_database_and_a_registry(shared_world: Any) -> None:
    assert shared_world.call(None, "GET", "/readyz").json() == {"ready": True, "missing": {}, "notices": {}}
    assert shared_world.call(None, "GET", "/healthz").json() == {"status": "ok", "version": product_version()}


def test_the_document_says_what_the_answer_is_where_something_is_missing(shared_world: Any) -> None:
    said = shared_world.app.openapi()["paths"]["/readyz"]["get"]["responses"]["503"]
    assert said["description"] == "what is missing"
    assert said["content"]["application/json"]["schema"]["$ref"].endswith("/Readiness")


def test_without_its_database_it_lives_and_says_so(
    tmp_path: Path, mlflow_settings: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    settings = Settings.model_validate({"home": tmp_path, "mlflow": mlflow_settings})
    caplog.set_level(logging.WARNING, "ballast.api")
    alive, ready, models = ask(settings, "/healthz", "/readyz", "/v1/models")
    assert alive.status_code == 200
    assert ready.status_code == 503
    assert set(ready.json()["missing"]) == {"database"}
    assert (models.status_code, models.headers["content-type"]) == (503, "application/problem+json")
    assert models.json()["code"] == "database_cannot_open"
    for answer in (ready, models):  # whoever asks without a token learns no paths
        assert str(tmp_path) not in answer.text
    assert str(tmp_path) in caplog.text
    assert not list(tmp_path.glob("*.db"))


def test_without_migrations_it_names_the_command(tmp_path: Path, mlflow_settings: dict[str, str]) -> None:
    (tmp_path / "ballast.db").touch()
    settings = Settings.model_validate({"home": tmp_path, "mlflow": mlflow_settings})
    (ready,) = ask(settings, "/readyz")
    assert "ballast migrate" in ready.json()["missing"]["database"]


def test_without_its_registry_it_says_so(tmp_path: Path, new_sqlite: Any) -> None:
    (tmp_path / "mlflow.db").mkdir()  # a folder where the database should be
    settings = Settings.model_validate({"home": tmp_path, "database_url": new_sqlite()})
    (ready,) = ask(settings, "/readyz")
    assert ready.status_code == 503
    assert set(ready.json()["missing"]) == {"registry"}


def test_a_registry_that_was_made_anew_is_a_notice(world: Any, new_mlflow: Any, tmp_path: Path) -> None:
    """MLflow makes a database that is gone anew, empty: every diagnosis is told that there is no such model."""
    (tmp_path / "anew").mkdir()
    mlflow = {"tracking_uri": new_mlflow(tmp_path / "anew"), "artifact_root": str(tmp_path / "anew")}
    (ready,) = ask(Settings.model_validate(world.settings.model_dump() | {"mlflow": mlflow}), "/readyz")
    assert ready.status_code == 200, "a new training may mend it, and `ballast up` waits until it is ready"
    assert "lacks a model that the store knows" in ready.json()["notices"]["registry"]


def test_a_read_only_database_still_answers_readers(
    tmp_path: Path, new_sqlite: Any, mlflow_settings: dict[str, str], opening: Any
) -> None:
    from services.contracts.access.identity import Role

    url = new_sqlite()
    with opening(tmp_path, url, mlflow_settings) as world:
        tokens = world.tokens
    settings = Settings.model_validate({"home": tmp_path, "database_url": f"{url}?mode=ro", "mlflow": mlflow_settings})
    app = create_app(settings)

    async def call(method: str, path: str) -> Response:
        async with AsyncClient(transport=ASGITransport(app), base_url="http://ballast") as client:
            header = {"Authorization": f"Bearer {tokens[Role.ADMINISTRATOR]}"}
            return await client.request(method, path, headers=header)

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        assert portal.call(call, "GET", "/v1/runs").status_code == 200
        ready = portal.call(call, "GET", "/readyz")
        refused = portal.call(call, "POST", "/v1/admin/plans/pumps/pause")
    assert "read-only" in ready.json()["missing"]["database"]
    assert (refused.status_code, refused.json()["code"]) == (503, "database_read_only")


def test_runs_that_nobody_is_there_to_start_are_a_notice(world: Any) -> None:
    from services.process.process_lock import held

    assert world.call(None, "GET", "/readyz").json()["notices"] == {}
    world.backend.store.runs.create_run(world.backend.store.plans.get("pumps").plan)
    answer = world.call(None, "GET", "/readyz")
    assert answer.status_code == 200 and "no flows process runs" in answer.json()["notices"]["flows"]
    with held(world.settings.flows_lock):
        assert world.call(None, "GET", "/readyz").json()["notices"] == {}
        os.utime(world.settings.flows_lock, (0, 0))
        assert "the flows process hangs" in world.call(None, "GET", "/readyz").json()["notices"]["flows"]


def test_what_a_flows_process_left_here_says_nothing_of_flows_elsewhere(world: Any) -> None:
    world.backend.store.runs.create_run(world.backend.store.plans.get("pumps").plan)
    world.settings.flows_lock.touch()
    os.utime(world.settings.flows_lock, (0, 0))
    prefect = world.settings.prefect.model_copy(update={"api_url": "https://prefect.example.com/api"})
    with open_backend(world.settings.model_copy(update={"prefect": prefect})) as backend:
        assert "flows" not in notices(backend)
