"""The works that all journeys share, on one real Prefect server; they end with the folder: idle servers cost time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from api.cli.processes.child_environment import PREFECT_GUARDS
from services.registry.mlflow_environment import QUIET
from tests.journeys.flows_process import FlowsProcess
from tests.journeys.host import Host, open_host
from tests.journeys.works import PREFECT_SECRET, ProcessWorks, open_process_works, rows_of
from tests.ports import free_port
from tests.waiting import wait_until


@pytest.fixture(scope="package")
def prefect_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefect")


@pytest.fixture(scope="package")
def prefect_url(prefect_home: Path) -> Iterator[str]:
    home, port = prefect_home, free_port()
    environment = {**os.environ, **QUIET, "PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    # As `ballast up` starts it: behind a secret, with the tokens against orders of other pages.
    environment |= {**PREFECT_GUARDS, "PREFECT_SERVER_API_AUTH_STRING": PREFECT_SECRET}
    environment["PREFECT_SERVER_LOGGING_LEVEL"] = "WARNING"
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}/api"

    def answers() -> bool:
        assert server.poll() is None, (home / "server.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        wait_until(answers, "Prefect server", every=0.25)
        yield url
    finally:
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)  # what it holds is thrown away
        server.wait()


@pytest.fixture(scope="session")
def rig_rows() -> Callable[[int, int, int], list[list[str]]]:
    return rows_of


@pytest.fixture(scope="package")
def works(
    tmp_path_factory: pytest.TempPathFactory, prefect_url: str, new_mlflow: Callable[[Path], str]
) -> Iterator[ProcessWorks]:
    with open_process_works(tmp_path_factory.mktemp("works"), prefect_url) as running:
        assert new_mlflow(running.home) == running.settings.tracking_uri
        yield running


@pytest.fixture(scope="package")
def flows_process(works: ProcessWorks) -> Iterator[FlowsProcess]:
    process = FlowsProcess(works)
    yield process
    process.kill()


@pytest.fixture(scope="module")
def running(flows_process: FlowsProcess) -> FlowsProcess:
    """The flows process, started; a test that kills it starts the next one."""
    flows_process.start()
    return flows_process


@pytest.fixture(scope="module")
def alone(flows_process: FlowsProcess) -> None:
    """No flows process: it would drive the runs that a test asks for and drives itself."""
    flows_process.kill()


@pytest.fixture(scope="package")
def host(empty_postgresql: Callable[[], str]) -> Iterator[Host]:
    with open_host(empty_postgresql()) as running:
        yield running
