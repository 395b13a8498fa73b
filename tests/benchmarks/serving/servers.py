"""The two servers on one version: ours as ``ballast up`` starts it, and ``mlflow models serve`` as it comes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from api.models.examples import FEATURES_EXAMPLE
from services.registry.mlflow_environment import mlflow_environment
from tests.benchmarks.serving.load import Target, request
from tests.benchmarks.serving.stopping import end_if_told

OURS, MLFLOW = "ballast", "mlflow models serve"
PATH = "/v1/models/benchmark/diagnose"


@contextmanager
def ballast(home: Path, token: str) -> Iterator[tuple[Target, int]]:
    """Our API on a home, and its group of processes."""
    port = free_port()
    program = [sys.executable, "-m", "uvicorn", "--factory", "api.app:create_app", "--host", "127.0.0.1",
               "--port", str(port), "--log-level", "warning", "--timeout-graceful-shutdown", "3"]
    with running(program, {"BALLAST_HOME": str(home)}, f"http://127.0.0.1:{port}/readyz") as group:
        yield Target(OURS, port, ours(port, token, 1)), group


def ours(port: int, token: str, n_samples: int) -> bytes:
    """Request of a number of samples to our API."""
    asked = {"sample": FEATURES_EXAMPLE} if n_samples == 1 else {"samples": [FEATURES_EXAMPLE] * n_samples}
    return request(port, PATH, json.dumps(asked).encode(), {"Authorization": f"Bearer {token}"})


@contextmanager
def mlflow(model: Path) -> Iterator[tuple[Target, int]]:
    """MLflow's own server on a version's folder: one uvicorn worker, its default, in this environment; its group."""
    port = free_port()
    program = [sys.executable, "-m", "mlflow", "models", "serve", "--model-uri", str(model), "--env-manager", "local",
               "--host", "127.0.0.1", "--port", str(port)]
    # MLflow starts its worker as the command ``uvicorn``, which must be this environment's.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    with running(program, {"PATH": path}, f"http://127.0.0.1:{port}/ping") as group:
        yield Target(MLFLOW, port, theirs(port, 1)), group


def theirs(port: int, n_samples: int) -> bytes:
    """Request of a number of samples to MLflow, in the form that it reads fastest."""
    rows = [list(FEATURES_EXAMPLE.values())] * n_samples
    asked = {"dataframe_split": {"columns": list(FEATURES_EXAMPLE), "data": rows}}
    return request(port, "/invocations", json.dumps(asked).encode(), {})


@contextmanager
def running(program: list[str], environment: dict[str, str], ready: str, seconds: float = 120.0) -> Iterator[int]:
    """Run a server until it is ready, and end it with all that it started; its group of processes."""
    server = subprocess.Popen(
        program, env=mlflow_environment() | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait(server, ready, seconds)
        yield server.pid
    finally:
        end(server)


def wait(server: subprocess.Popen[bytes], url: str, seconds: float) -> None:
    """Wait until an address answers 200."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        end_if_told()
        try:
            if httpx.get(url, timeout=10.0).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError(f"no server became ready at {url}")


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server and its workers, which are in its own group of processes."""
    if server.poll() is not None:
        return
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
