"""Whose home folder a listener serves: real processes on real ports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from api.cli.main import main
from api.cli.processes import listening
from api.system import facts
from services.contracts.errors import ConflictError
from services.process.listeners import other_home
from services.process.settings import Settings
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's tables of sockets")


@contextmanager
def api_of(home: Path, port: int, *, told: str | None = None, cwd: Path | None = None) -> Iterator[None]:
    """The REST API of a home on a port, as ``ballast up`` starts it, or told another way where its home is."""
    environment = {**os.environ, "BALLAST_HOME": told or str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [sys.executable, "-m", "uvicorn", "--factory", "api.app:create_app", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(listening.answers(f"http://127.0.0.1:{port}/healthz"), "the API answers")
        yield
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
