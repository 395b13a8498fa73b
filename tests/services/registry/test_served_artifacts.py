"""A model is loaded from another machine: by the server's address alone, with its password, and read only."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.contracts.versions.model_version import ModelVersion
from services.registry.mlflow_environment import mlflow_environment
from services.registry.mlflow_registry import ModelRegistry
from services.registry.mlflow_users import pages_environment
from services.registry.served_artifacts import ServedArtifacts
from tests.ports import free_port
from tests.waiting import PATIENCE

NAME = "fetched-pump"
PASSWORD = "p" * 32
ELSEWHERE = """
import mlflow, pandas as pd
from mlflow import MlflowClient
model = mlflow.pyfunc.load_model("models:/fetched-pump@champion")
run = MlflowClient().get_run(model.metadata.run_id)
print(run.info.artifact_uri)
print(sorted(file.path for file in MlflowClient().list_artifacts(run.info.run_id)))
print(model.predict(pd.DataFrame([{"flow_mean": 41, "flow_ripple": 2, "pressure": 151, "oil_temperature": 55}])))
"""


@pytest.fixture(scope="module")
def server(
    registry: ModelRegistry, registry_home: Path, tracking_uri: str, tmp_path_factory: pytest.TempPathFactory,
    module_make_version: Callable[..., ModelVersion],
) -> Iterator[str]:
    """MLflow's pages as ``ballast up`` starts them, over the tests' store with a champion in it."""
    registry.promote(NAME, str(registry.register(module_make_version(name=NAME), (), {}).version))
    home, port = tmp_path_factory.mktemp("pages"), free_port()
    (home / "password").write_text(PASSWORD + "\n")
    (home / "key").write_text("k" * 64 + "\n")
    told = pages_environment(
        home, user="ballast", password=home / "password", form_key=home / "key", host="127.0.0.1", port=port,
        tracking_uri=tracking_uri, artifact_root=(registry_home / "artifacts").resolve().as_uri(),
    )
    command = [sys.executable, "-m", "uvicorn", "--factory", "services.registry.mlflow_pages:create_app",
               "--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, env={**mlflow_environment(), **told}, stdout=log, stderr=log)
    address, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
    try:
        while True:
            assert process.poll() is None and time.monotonic() < deadline, (home / "log").read_text()
            try:
                urllib.request.urlopen(f"{address}/health", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        process.kill()
        process.wait()


def ask(address: str, method: str, path: str, body: bytes | None = None, *, password: str = PASSWORD) -> int:
    request = urllib.request.Request(f"{address}{path}", body, method=method)
    request.add_header("Authorization", f"Basic {b64encode(f'ballast:{password}'.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_model_is_loaded_by_the_servers_address_alone(
    server: str, registry: ModelRegistry, registry_home: Path, tmp_path: Path
) -> None:
    environment = {**mlflow_environment(), "MLFLOW_TRACKING_URI": server, "MLFLOW_TRACKING_USERNAME": "ballast",
                   "MLFLOW_TRACKING_PASSWORD": PASSWORD, "PYTHONSAFEPATH": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ELSEWHERE], env=environment, cwd=tmp_path, capture_output=True,
        text=True, timeout=PATIENCE, check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    uri, files, answer = done.stdout.splitlines()[-3:]
    assert uri.startswith(f"mlflow-artifacts:/{NAME}/") and "report.json" in files and "fault_class" in answer
    stored = registry._store.client.get_experiment_by_name(f"ballast-{NAME}").artifact_location
    assert stored == f"{(registry_home / 'artifacts').resolve().as_uri()}/{NAME}"


def test_artifacts_are_read_and_not_written_and_only_with_the_password(server: str) -> None:
    path = f"/api/2.0/mlflow-artifacts/artifacts/{NAME}/x"
    for method in ("PUT", "DELETE", "POST"):
        assert ask(server, method, path, b"x") == 405
    listing = f"/api/2.0/mlflow-artifacts/artifacts?path={NAME}"
    assert ask(server, "GET", listing) == 200
    assert ask(server, "GET", listing, password="q" * 32) == 401
    assert ask(server, "GET", "/api/2.0/mlflow-artifacts/artifacts?path=../..") == 400


def test_no_file_of_this_host_is_named(server: str, registry_home: Path) -> None:
    request = urllib.request.Request(
        f"{server}/api/2.0/mlflow/registered-models/alias?name={NAME}&alias=champion",
        headers={"Authorization": f"Basic {b64encode(f'ballast:{PASSWORD}'.encode()).decode()}"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        text = answer.read().decode()
    assert json.loads(text)["model_version"]["source"].startswith(f"mlflow-artifacts:/{NAME}/")
    assert str(registry_home) not in text and os.sep.join(registry_home.parts[:2]) not in text


def answered(path: str, method: str, body: tuple[bytes, ...], kind: str = "application/json") -> tuple[Any, bytes]:
    """Start and whole body of what comes back for an answer in parts, of files below ``/srv/art``."""
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        length = str(sum(map(len, body))).encode()
        headers = [(b"content-type", kind.encode()), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, part in enumerate(body, 1):
            await send({"type": "http.response.body", "body": part, "more_body": number < len(body)})

    async def keep(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    scope = {"type": "http", "path": path, "method": method, "headers": []}
    asyncio.run(ServedArtifacts(app, "file:///srv/art/")(scope, receive, keep))
    return sent[0], b"".join(each.get("body", b"") for each in sent[1:])


def test_files_of_the_folder_alone_are_renamed_in_an_answer_whatever_its_parts() -> None:
    body = (b'{"a": "file:///srv/', b'art/1/x", "b": "file:///srv/artful/x"}')
    start, told = answered("/api/2.0/mlflow/runs/get", "POST", body)
    assert json.loads(told) == {"a": "mlflow-artifacts:/1/x", "b": "file:///srv/artful/x"}
    assert dict(start["headers"])[b"content-length"] == str(len(told)).encode()
    assert answered("/x", "GET", body, "text/html")[1] == b"".join(body), "no other answer is held back or changed"


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE", "PATCH"])
def test_a_file_is_read_and_not_written(method: str) -> None:
    path = "/api/2.0/mlflow-artifacts/artifacts/1/x"
    start, _ = answered(path, method, (b"written",))
    assert start["status"] == 405 and dict(start["headers"])[b"allow"] == b"GET, HEAD"
    assert answered(path, "GET", (b'"file:///srv/art/x"',))[1] == b'"file:///srv/art/x"', "a file comes as it is"
