"""Colour is for people at a terminal: a real one is opened for each call."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.contracts.plans.plan import Plan
from services.contracts.wire.codec import encode
from services.contracts.wire.messages import SiteRefusal, SiteUpdate
from services.process.terminal import mood_of
from services.round_store.store import RoundStore
from services.site_agent.outgoing.ledger import Ledger

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
    """What a command of ``ballast`` shows at a terminal."""
    return at_terminal("api.cli.main", *command, "--home", str(home), **environment)


def at_terminal(module: str, *command: str, **environment: str) -> str:
    """What a program shows at a terminal."""
    ours, theirs = pty.openpty()
    known = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-m", module, *command],
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


def test_a_plants_commands_have_theirs(tmp_path: Path) -> None:
    said = {"kind": "round", "site_id": "s", "run_id": "b" * 32, "round": 1, "task_sha256": "0" * 64}
    refusal = SiteRefusal(**said, code="no_data", reason="of the test")
    update = SiteUpdate(**said, arrays={"value": np.zeros(1)})
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(update, encode(update))
        ledger.append(refusal, encode(refusal))
    coloured = at_terminal("services.site_agent", "ledger", "show", str(path))
    answered, refused = coloured.splitlines()
    assert "\x1b[33m" in refused and not COLOUR.search(answered)
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert at_terminal("services.site_agent", "ledger", "show", str(path), **plain) == COLOUR.sub("", coloured)
    sound = at_terminal("services.site_agent", "ledger", "verify", str(path))
    assert sound.startswith("\x1b[32msound\x1b[0m: 2 entries")
    command = [sys.executable, "-m", "services.site_agent", "ledger", "verify", str(path)]
    read = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TERM": "xterm"})
    assert read.stdout.startswith("sound: 2 entries"), "a program that reads gets none"


@pytest.mark.parametrize(("state", "mood"), [
    ("connected", "good"), ("silent for 5 min", "warn"), ("never", "warn"), ("removed", "bad"), ("draft", None),
])
def test_moods_of_states(state: str, mood: str | None) -> None:
    assert mood_of(state) == mood
