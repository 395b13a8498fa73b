"""The model as MLflow itself serves it, held to the predictor's answers."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor
from services.registry.mlflow_environment import mlflow_environment
from services.registry.mlflow_registry import ModelRegistry
from tests.ports import free_port

MakeVersion = Callable[..., ModelVersion]
NAME = "served-pump"
SAMPLES = [
    {"flow_mean": 41.0, "flow_ripple": 2.5, "pressure": 151.0, "oil_temperature": 55.0},
    {"flow_mean": 12.0, "flow_ripple": 12.4, "pressure": 300.0, "oil_temperature": -19.0},
    {"flow_mean": 95.0, "flow_ripple": -1.0, "pressure": 10.0, "oil_temperature": 60.0},
]


def post(address: str, body: object) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"{address}/invocations", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture(scope="module")
def served_version(registry: ModelRegistry, module_make_version: MakeVersion) -> ModelVersion:
    version = module_make_version(name=NAME, n_classes=4, seed=7, spec=TrainingSpec(transport_norm="linf"))
    registered = registry.register(version, (), {})
    return registry.promote(NAME, registered.version)


@pytest.fixture(scope="module")
def address(
    served_version: ModelVersion, tracking_uri: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A real ``mlflow models serve`` of the champion, away from this project's folder."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", f"models:/{NAME}@champion"]
    command += ["--env-manager", "local", "-h", "127.0.0.1", "-p", str(port)]
    folder: Path = tmp_path_factory.mktemp("serving")
    environment = {**mlflow_environment(), "MLFLOW_TRACKING_URI": tracking_uri, "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONPATH", None)
    # MLflow starts uvicorn by name, as in an activated environment.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_up(server, f"http://127.0.0.1:{port}", folder / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _wait_until_up(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/ping", timeout=2):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    pytest.fail(f"mlflow models serve did not come up:\n{log.read_text()[-2000:]}")


def test_mlflow_serves_what_the_predictor_answers(address: str, served_version: ModelVersion) -> None:
    status, answer = post(address, {"dataframe_records": SAMPLES})
    assert status == 200
    for served, expected in zip(answer["predictions"], Predictor(served_version).diagnose(SAMPLES), strict=True):
        assert served["fault_class"] == expected.fault_class and served["severity"] == expected.severity
        assert served["scores"] == pytest.approx(expected.scores, rel=1e-12)
        assert math.isclose(served["robustness_radius"], expected.robustness_radius or math.nan, rel_tol=1e-12)


def test_mlflow_serves_a_sample_without_its_optional_feature(address: str, served_version: ModelVersion) -> None:
    sample = {name: value for name, value in SAMPLES[0].items() if name != "oil_temperature"}
    status, answer = post(address, {"dataframe_records": [sample]})
    (expected,) = Predictor(served_version).diagnose([sample])
    assert status == 200 and answer["predictions"][0]["scores"] == pytest.approx(expected.scores, rel=1e-12)


@pytest.mark.parametrize(
    "change", [{"flow_mean": None}, {"pressure": 311.0}, {"flow_mean": "a lot"}, {"flow_ripple": "drop"}]
)
def test_mlflow_refuses_what_does_not_fit(address: str, change: dict[str, object]) -> None:
    sample: dict[str, object] = {**SAMPLES[0], **change}
    if change == {"flow_ripple": "drop"}:
        del sample["flow_ripple"]
    status, answer = post(address, {"dataframe_records": [sample]})
    assert 400 <= status < 500 and next(iter(change)) in json.dumps(answer)
