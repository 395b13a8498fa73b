"""Colour is for people at a terminal: a real one is opened for each call."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.contracts.plans.plan import Plan
from services.process.terminal import mood_of
from services.round_store.store import RoundStore

COLOUR = re.compile(r"\x1b\[\d+m")


@pytest.fixture
def home(tmp_path: Path, new_sqlite: Callable[[], str]) -> Path:
    """A home with a run that failed and one that waits."""
    Path(new_sqlite().removeprefix("sqlite:///")).rename(tmp_path / "ballast.db")
    store = RoundStore.open(f"sqlite:///{tmp_path / 'ballast.db'}")
    failed = store.runs.create_run(Plan(name="one", asset_type="rig"))
    store.runs.finish_run(failed.run_id, "failed", "of the test")
    store.runs.create_run(Plan(name="two", asset_type="rig"))
    store.close()
    return tmp_path


def shown(home: Path, *command: str, **environment: str) -> str:
    """What a command shows at a terminal."""
    ours, theirs = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", "api.cli.main", *command, "--home", str(home)],
        stdout=theirs, stderr=subprocess.STDOUT, env={**known, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    said = b""
    try:
        while data := os.read(ours, 65536):
            said += data
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    process.wait()
    return said.decode().replace("\r\n", "\n")


def test_a_table_has_colour_at_a_terminal_and_the_same_words_without(home: Path) -> None:
    coloured = shown(home, "run", "list")
    assert "\x1b[31mfailed\x1b[0m" in coloured and "\x1b[1mSTATUS\x1b[0m" in coloured
    pending = next(line for line in coloured.splitlines() if "pending" in line)
    assert not COLOUR.search(pending), "what is neither well nor wrong has none"
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert shown(home, "run", "list", **plain) == COLOUR.sub("", coloured)
    assert COLOUR.search(shown(home, "run", "list", NO_COLOR="")), "an empty one asks for nothing"


def test_a_program_that_reads_gets_none(home: Path) -> None:
    command = [sys.executable, "-m", "api.cli.main", "run", "list", "--home", str(home)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TERM": "xterm"})
    assert "failed" in said.stdout and not COLOUR.search(said.stdout)
    assert not COLOUR.search(shown(home, "run", "list", "--json"))


def test_the_doctors_findings_have_theirs(home: Path) -> None:
    said = shown(home, "doctor")
    assert "\x1b[32mok  \x1b[0m  store" in said and "\x1b[33mWARN\x1b[0m  backup" in said, said


@pytest.mark.parametrize(("state", "mood"), [
    ("connected", "good"), ("silent for 5 min", "warn"), ("never", "warn"), ("removed", "bad"), ("draft", None),
])
def test_moods_of_states(state: str, mood: str | None) -> None:
    assert mood_of(state) == mood
