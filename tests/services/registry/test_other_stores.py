"""The same registry on PostgreSQL and behind an MLflow server, and a promotion seen through the predictor's cache."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.run import RoundRecord
from services.contracts.versions.model_version import ModelVersion
from services.predictor.cache import PredictorCache
from services.registry.mlflow_environment import mlflow_environment
from services.registry.mlflow_registry import ModelRegistry
from tests.ports import free_port
from tests.waiting import PATIENCE, wait_until

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]


def exercise(registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds) -> None:
    """Register, read, promote, roll back, and be told no."""
    name = "elsewhere"
    versions = [make_version(name=name, n_classes=4, seed=seed) for seed in range(2)]
    for number, version in enumerate(versions, start=1):
        registered = registry.register(version, make_rounds(version.run_id), {"kind": "report"}, {"page.html": "<p>"})
        assert registered.version == str(number)
        assert registry.get(name, str(number)).weights.tobytes() == version.weights.tobytes()
    assert registry.register(versions[0], make_rounds(versions[0].run_id), {}).version == "1"
    registry.promote(name, "1", actor="anna", reason="first")
    registry.promote(name, "challenger")
    assert registry.get(name, "champion").version == "2" and registry.rollback(name).version == "1"
    with pytest.raises(ConflictError, match="no champion before version 1"):
        registry.rollback(name)
    for call in (lambda: registry.get(name, "3"), lambda: registry.get(name, "none"), lambda: registry.versions("nix")):
        with pytest.raises(NotFoundError) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert [summary.version for summary in registry.versions(name)] == ["2", "1"]
    assert [(model.name, model.champion, model.challenger) for model in registry.models()] == [(name, "1", "2")]


def test_on_postgresql(
    empty_postgresql: Callable[[], str], tmp_path: Path, make_version: MakeVersion, make_rounds: MakeRounds
) -> None:
    address = empty_postgresql()
    one, other = (ModelRegistry(address, tmp_path) for _ in range(2))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ModelRegistry.prepare, (one, other)))
    exercise(one, make_version, make_rounds)
    assert other.resolve("elsewhere", "champion") == "1"


def test_processes_that_open_a_new_store_at_the_same_time_do_not_break_it(tmp_path: Path) -> None:
    code = (
        "import sys; from services.registry.mlflow_registry import ModelRegistry\n"
        "registry = ModelRegistry(sys.argv[1]); registry.prepare(); print(registry.models())"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/new/mlflow.db"]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in started:
        out, error = process.communicate(timeout=PATIENCE)
        assert out == "()\n", error


@pytest.fixture
def server(tmp_path: Path, new_mlflow: Callable[[Path], str]) -> Iterator[str]:
    """A real MLflow server that keeps the artifacts itself."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", new_mlflow(tmp_path)]
    command += ["--artifacts-destination", str(tmp_path / "kept")]
    environment = {**mlflow_environment(), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 90
        while process.poll() is None:
            try:
                with urllib.request.urlopen(f"{address}/health", timeout=2):
                    break
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.2)
        yield address
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_behind_an_mlflow_server_that_keeps_the_artifacts(
    server: str, tmp_path: Path, make_version: MakeVersion, make_rounds: MakeRounds
) -> None:
    exercise(ModelRegistry(server), make_version, make_rounds)
    assert len(list((tmp_path / "kept").rglob("artifacts/model.json"))) == 2


def test_a_promotion_is_seen_by_the_predictor(
    registry: ModelRegistry, make_version: MakeVersion, name: str
) -> None:
    for seed in range(2):
        registry.register(make_version(name=name, seed=seed), (), {})
    registry.promote(name, "1")
    cache = PredictorCache(registry)
    assert cache.get(name).version.version == "1"
    registry.promote(name, "2")
    wait_until(lambda: cache.get(name).version.version == "2", "second champion")
    assert cache.get(name) is cache.get(name, "2")
    with pytest.raises(NotFoundError):
        cache.get(name, "3")
