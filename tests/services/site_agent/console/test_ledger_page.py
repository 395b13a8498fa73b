"""The page of the ledger: damage is told first, a line that is being written is none."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.errors import NotFoundError
from services.site_agent.console.ledger_index import moment
from services.site_agent.console.ledger_view import PAGE, LedgerView
from services.site_agent.outgoing import ledger_check
from services.site_agent.outgoing.ledger_check import read_ledger
from tests.services.site_agent.conftest import RUN
from tests.services.site_agent.console.conftest import Reader, answer, forged, settings_of


def test_a_ledger_that_was_tampered_with_is_told_first(answered: Any, seen: Reader) -> None:
    path = answered.folder / "ledger.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    changed = json.loads(lines[3]) | {"bytes": 1}
    path.write_text("".join([*lines[:3], json.dumps(changed) + "\n", *lines[4:]]))
    first, ledger = seen.text("/"), seen.text("/ledger")
    assert "act The ledger is not what was written entry 4 was changed" in first and "Ledger changed" in first
    assert "entry 4 was changed: it does not have its own hash" in ledger and "Sound" not in ledger
    found = seen.json("/ledger.json")
    assert not found["sound"] and any("entry 4" in problem for problem in found["problems"])
    path.write_text("".join(lines[:-1]))
    assert "entry 9 is missing, cut off at the end" in seen.text("/ledger")


def test_it_is_read_while_the_agent_answers(answered: Any, seen: Reader) -> None:
    """The agent holds its lock and writes; who looks neither waits for it nor stops it, and sees each answer."""
    for number in range(4, 10):
        assert answer(answered, RUN, number, np.full(4, number / 10)).type == "update"
        assert seen.json("/ledger.json")["count"] == 9 + number - 3
        assert seen.json("/exposure.json")["answers"] == 8 + number - 3


def test_an_entry_that_is_written_between_two_reads_is_no_damage(
    answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent writes line and head while the page has read one file and not yet the other."""
    path, lines = answered.folder / "ledger.jsonl", ledger_check._lines

    def slow(path: Path) -> Iterator[bytes]:
        yield from lines(path)
        answered.ask(run_id="c" * 32, round=0)

    before = read_ledger(path).count
    monkeypatch.setattr(ledger_check, "_lines", slow)
    reading = read_ledger(path)
    assert reading.problems == () and reading.count == before
    monkeypatch.undo()
    assert read_ledger(path).count > before, "it was written meanwhile"


def test_long_ledgers_have_pages(tmp_path: Path, look: Callable[..., Reader]) -> None:
    settings, last = settings_of(tmp_path / "long"), {"sequence": 0, "hash": "0" * 64}
    lines = []
    for number in range(2 * PAGE + 3):
        last = forged(last, message="hello", bytes=1, time=datetime.now(UTC).isoformat(), shapes={}, fields=[number])
        lines.append(json.dumps(last) + "\n")
    settings.ledger.write_text("".join(lines))
    Path(f"{settings.ledger}.head").write_text(f"{len(lines):020d} {last['hash']}\n")
    seen = look(settings).enter()
    assert "Entries 1 to 50 of 103" in seen.text("/ledger")
    _, _, second = seen.ask("/ledger?page=2")
    assert 'rel="prev" href="/ledger?page=1"' in second and 'rel="next" href="/ledger?page=3"' in second
    third = seen.json("/ledger.json?page=3")
    assert [entry["sequence"] for entry in third["entries"]] == [3, 2, 1] and third["bytes"] == 103


def hellos(path: Path, times: list[datetime]) -> Path:
    """A ledger of one entry at each of the times, without a head."""
    last: dict[str, Any] = {"sequence": 0, "hash": "0" * 64}
    lines = []
    for at in times:
        last = forged(last, message="hello", bytes=1, time=at.isoformat())
        lines.append(json.dumps(last) + "\n")
    path.write_text("".join(lines))
    return path


def test_full_pages_have_no_empty_one_behind_them(tmp_path: Path) -> None:
    view = LedgerView(hellos(tmp_path / "ledger.jsonl", [datetime(2026, 3, 4, tzinfo=UTC)] * 2 * PAGE))
    last = view.page(2)
    assert last["pages"] == 2 and [entry["sequence"] for entry in last["entries"]] == list(range(PAGE, 0, -1))
    with pytest.raises(NotFoundError, match="has 2 pages, got page 3"):
        view.page(3)


def test_what_left_at_midnight_itself_left_today(tmp_path: Path) -> None:
    midnight = datetime(2026, 3, 4, tzinfo=UTC)
    view = LedgerView(hellos(tmp_path / "ledger.jsonl", [midnight - timedelta(microseconds=1), midnight]))
    assert view.summary(midnight + timedelta(hours=1))["messages_today"] == 1


def test_today_begins_at_midnight(tmp_path: Path) -> None:
    path, last = tmp_path / "ledger.jsonl", {"sequence": 0, "hash": "0" * 64}
    now = datetime(2026, 3, 4, 0, 30, tzinfo=UTC)
    lines = []
    for minutes, size in ((29, 5), (31, 7)):
        at = (now - timedelta(minutes=minutes)).isoformat()
        last = forged(last, message="refusal", bytes=size, time=at)
        lines.append(json.dumps(last) + "\n")
    path.write_text("".join(lines))
    found = LedgerView(path).summary(now)
    assert (found["bytes"], found["bytes_today"], found["refusals_of_a_day"]) == (12, 5, 2)
    assert LedgerView(path).summary(now + timedelta(days=1))["refusals_of_a_day"] == 0


def test_today_is_that_of_utc_wherever_the_plant_is_and_a_day_of_refusals_is_24_hours(tmp_path: Path) -> None:
    path, last = tmp_path / "ledger.jsonl", {"sequence": 0, "hash": "0" * 64}
    here = timezone(timedelta(hours=5))
    now = datetime(2026, 3, 4, 3, 0, tzinfo=here)  # 22:00 of the day before in UTC
    lines = []
    for hours, message, run in ((25, "refusal", "b"), (23, "refusal", "c"), (20, "update", "a"), (4, "hello", None)):
        last = forged(last, message=message, run=run, bytes=1, time=(now - timedelta(hours=hours)).isoformat())
        lines.append(json.dumps(last) + "\n")
    path.write_text("".join(lines))
    found = LedgerView(path).summary(now)
    assert (found["messages_today"], found["refusals_of_a_day"], found["runs"]) == (2, 1, 1)
    assert found["last_answer"] == now - timedelta(hours=20) and found["last_hello"] == now - timedelta(hours=4)


def test_a_time_without_a_zone_is_one_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert moment("2026-01-01T12:00:00") == datetime(2026, 1, 1, 12, tzinfo=UTC)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_head_that_was_changed_alone_is_seen(answered: Any) -> None:
    view = LedgerView(answered.folder / "ledger.jsonl")
    assert view.reading()[0].problems == ()
    head = answered.folder / "ledger.jsonl.head"
    head.write_text(head.read_text().replace("9 ", "8 ", 1))
    assert view.reading()[0].problems != ()
