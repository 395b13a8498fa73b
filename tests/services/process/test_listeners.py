"""Whose home folder a listener serves: real processes on real ports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api.cli.main import main
from api.cli.processes import listening
from api.system import facts
from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.errors import ConflictError
from services.process.listeners import other_home
from services.process.settings import Settings
from tests.nats_server import start
from tests.ports import free_port
from tests.standstill import stand_still
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's tables of sockets")


@contextmanager
def api_of(home: Path, port: int, *, told: str | None = None, cwd: Path | None = None) -> Iterator[Any]:
    """The REST API of a home on a port, as ``ballast up`` starts it, or told another way where its home is."""
    environment = {**os.environ, "BALLAST_HOME": told or str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, "-m", "uvicorn", "--factory", "api.app:create_app", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(listening.answers(f"http://127.0.0.1:{port}/healthz"), "the API answers")
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def homes(tmp_path: Path, new_sqlite: Callable[[], str]) -> tuple[Path, Path]:
    """Two homes on one port each of them wants."""
    port = free_port()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        Path(new_sqlite().removeprefix("sqlite:///")).rename(tmp_path / name / "ballast.db")
        (tmp_path / name / "ballast.toml").write_text(f"[api]\nport = {port}\n")
    return tmp_path / "one", tmp_path / "two"


def test_the_api_of_another_home_is_not_ours(homes: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = homes
    ours, theirs = Settings.load(one, {}), Settings.load(two, {})
    port = ours.api.port
    with api_of(one, port):
        assert other_home(port, one) is None and other_home(port, two) == one
        here, there = next(facts.ports(ours)), next(facts.ports(theirs))
        assert (here.state, here.said) == ("ok", "the API answers")
        assert there.state == "fail" and str(one) in there.said and "another home folder" in there.said
        alive = listening.answers(f"http://127.0.0.1:{port}/healthz")
        assert alive() and listening.of_home(ours, port, alive)() and not listening.of_home(theirs, port, alive)()
        with pytest.raises(ConflictError, match=f"is taken already.*what holds it serves the home folder {one}"):
            listening.check_ports(theirs)
        assert main(["health", "api", "--home", str(two)]) == 1
        assert capsys.readouterr().err.startswith("ballast: api does not answer here")
    assert other_home(port, two) is None, "nobody listens"


def test_a_home_that_is_told_from_where_it_was_started_is_the_same(homes: tuple[Path, Path]) -> None:
    one, two = homes
    (one.parent / "link").symlink_to(one)
    with api_of(one, Settings.load(one, {}).api.port, told="link", cwd=one.parent):
        port = Settings.load(one, {}).api.port
        assert other_home(port, one) is None and other_home(port, two) == one


def test_a_server_of_ours_that_hangs_is_not_a_strangers(homes: tuple[Path, Path]) -> None:
    """Whoever is told that something else holds the port looks for it, or takes another port."""
    one, two = homes
    ours = Settings.load(one, {})
    port = ours.api.port
    with api_of(one, port) as process:
        stand_still(process.pid)
        here, there = next(facts.ports(ours)), next(facts.ports(Settings.load(two, {})))
        process.send_signal(signal.SIGCONT)
    assert (here.state, here.said) == ("fail", "the API holds it and does not answer")
    assert there.state == "fail" and str(one) in there.said


def test_a_nats_server_that_hangs_does_not_answer(tmp_path: Path) -> None:
    """Its process is there, and its port takes connections; no plant gets through."""
    files, port = BusFiles(tmp_path / "nats"), free_port()
    (tmp_path / "ballast.toml").write_text(f"[nats]\nport = {port}\n")
    settings = Settings.load(tmp_path, {})
    prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys={})
    server = start(files, host="127.0.0.1", port=port)
    try:
        found = [next(each for each in facts.ports(settings) if each.check == f"port {port}")]
        stand_still(server.pid)
        found.append(next(each for each in facts.ports(settings) if each.check == f"port {port}"))
        server.send_signal(signal.SIGCONT)
    finally:
        server.kill()
        server.wait()
    assert [(each.state, each.said) for each in found] == [
        ("ok", "the NATS server answers"), ("fail", "the NATS server holds it and does not answer"),
    ]
