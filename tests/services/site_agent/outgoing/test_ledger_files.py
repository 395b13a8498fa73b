"""The ledger's files: whose they are, what a power cut leaves of them; and what a line tells beside the arrays."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from services.contracts.wire.codec import encode
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.outgoing.ledger_check import LedgerError, head_path
from tests.ledgers import verified

JOIN = SiteUpdate(
    kind="join", site_id="s", run_id="b" * 32, round=0, task_sha256="0" * 64, arrays={"n_samples": np.array(40.0)},
    data_digest="c" * 64, own_scores=False, drift=0.25, exposed=0.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plant" / "ledger.jsonl"


def test_what_a_join_tells_beside_its_arrays_stands_in_the_ledger(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.append(JOIN, encode(JOIN))
    (entry,) = verified(path)
    told = {name: entry[name] for name in ("data_digest", "own_scores", "drift", "exposed")}
    assert told == {"data_digest": "c" * 64, "own_scores": False, "drift": 0.25, "exposed": 0.0}


def test_times_are_utc_whatever_clock_the_host_has(path: Path) -> None:
    """`ballast-site ledger show` prints them with a Z behind."""
    noon = datetime(2031, 1, 1, 12, tzinfo=timezone(timedelta(hours=5)))
    with Ledger(path, clock=lambda: noon) as ledger:
        ledger.append(JOIN, encode(JOIN))
    assert [entry["time"] for entry in verified(path)] == ["2031-01-01T07:00:00+00:00"]


def test_nobody_else_can_read_what_was_answered_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with Ledger(path) as ledger:
            ledger.append(JOIN, encode(JOIN))
    finally:
        os.umask(before)
    assert {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == dict.fromkeys(
        ("ledger.jsonl", "ledger.jsonl.head", "ledger.jsonl.lock"), 0o600
    )


def test_a_new_ledger_is_in_its_folder_after_a_power_cut(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is forced to the disk too: an empty folder would say that nothing has left."""
    forced: list[int] = []
    sync = os.fsync

    def seen(descriptor: int) -> None:
        forced.append(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr("services.site_agent.outgoing.ledger.os.fsync", seen)
    with Ledger(path):
        assert path.exists() and head_path(path).exists()
        assert forced[-1:] == [path.parent.stat().st_ino]


def test_an_answer_stays_where_the_head_cannot_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line is on the disk; cut off later, it would not be missed."""
    with Ledger(path) as ledger:
        ledger.append(JOIN, encode(JOIN))

        def full(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(LedgerError, match=rf"{head_path(path).name} cannot be written: .*; nothing was sent"):
            ledger.append(JOIN, encode(JOIN))
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="failed earlier; nothing more leaves"):
            ledger.append(JOIN, encode(JOIN))
    assert len(verified(path)) == 2
