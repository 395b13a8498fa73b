"""A ledger whose chain somebody made anew: its hashes hold, and its entries may hold anything."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.wire.codec import encode
from services.contracts.wire.messages import Hello, SiteUpdate
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.outgoing.ledger_check import FIRST_HASH, LedgerError, entry_hash, head_path, verify
from services.site_agent.outgoing.ledger_commands import ledger_show, ledger_verify

UPDATE = SiteUpdate(
    kind="round", site_id="s", run_id="b" * 32, round=3, task_sha256="0" * 64, arrays={"slope": np.zeros((1, 3))}
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of a hello and an answer."""
    found = tmp_path / "ledger.jsonl"
    hello = Hello(site_id="s", version="1")
    with Ledger(found) as ledger:
        ledger.append(hello, encode(hello))
        ledger.append(UPDATE, encode(UPDATE), {"by_differences": 0, "rows": 40})
    return found


def made_anew(path: Path, without: str = "", **changes: Any) -> None:
    """Change the last entry, and make the chain and the head of all entries anew."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    entries[-1] = {name: value for name, value in (entries[-1] | changes).items() if name != without}
    previous = FIRST_HASH
    for entry in entries:
        entry["previous"] = previous
        previous = entry["hash"] = entry_hash(entry)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    head_path(path).write_text(f"{len(entries):020d} {previous}\n")


def commands(path: Path) -> None:
    """Both commands; each tells of the same entry."""
    for command in (ledger_verify, ledger_show):
        with pytest.raises(LedgerError, match="entry 2 is none that an agent writes; its chain was made anew"):
            command(Namespace(path=path, json=False, last=None))


def test_what_an_agent_wrote_is_told(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_anew(path)
    arguments = Namespace(path=path, json=False, last=None)
    assert (ledger_verify(arguments), ledger_show(arguments)) == (0, 0)
    assert "round 3: " in (told := capsys.readouterr().out) and "slope(1, 3); isolated 0 of 40 rows" in told


@pytest.mark.parametrize("name", ["time", "message", "bytes", "shapes", "run", "round"])
def test_an_entry_without_a_part_is_told_in_one_line(path: Path, name: str) -> None:
    made_anew(path, without=name)
    assert verify(path).count == 2, "the chain alone does not tell it"
    commands(path)
    with Ledger(path) as ledger:
        assert ledger.rounds_answered("b" * 32) == (0 if name in ("message", "run") else 1)


@pytest.mark.parametrize("change", [
    {"time": 5}, {"time": "2031\x1b[2J"}, {"message": "\ud800"}, {"kind": ["round"]}, {"code": None}, {"run": 7},
    {"round": "3"}, {"bytes": float("inf")}, {"bytes": 10**400}, {"bytes": None}, {"shapes": [1]}, {"shapes": {"a": 3}},
    {"shapes": {"a\n": [3]}}, {"shapes": {"a": [[3]]}}, {"exposure": {}}, {"exposure": 3},
    {"exposure": {"by_differences": "\x1b[2J", "rows": 4}}, {"exposure": {"by_differences": float("nan"), "rows": 4}},
])
def test_an_entry_that_holds_what_no_agent_writes_is_told_in_one_line(path: Path, change: dict[str, Any]) -> None:
    made_anew(path, **change)
    commands(path)
