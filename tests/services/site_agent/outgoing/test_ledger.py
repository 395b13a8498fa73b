"""The egress ledger: what it says, and that nothing can be changed, removed or moved unseen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.wire.codec import digest, encode
from services.contracts.wire.messages import Hello, SiteRefusal, SiteUpdate
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.outgoing.ledger_check import (
    LedgerError,
    entries_at,
    entry_hash,
    head_path,
    read_ledger,
)
from services.site_agent.outgoing.ledger_commands import ledger_verify
from tests.ledgers import verified

RUN = "b" * 32


def update(number: int) -> SiteUpdate:
    arrays = {"value": np.array([float(number)]), "subgradient": np.zeros((1, 4))}
    return SiteUpdate(kind="round", site_id="s", run_id=RUN, round=number, task_sha256="0" * 64, arrays=arrays)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def six(path: Path) -> Path:
    """A ledger of six rounds."""
    with Ledger(path) as ledger:
        for number in range(1, 7):
            ledger.append(update(number), encode(update(number)))
    return path


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def rewrite(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change(lines(path))))


def test_an_entry_says_what_left_and_no_value(path: Path) -> None:
    message = update(3)
    frame = encode(message)
    with Ledger(path) as ledger:
        ledger.append(message, frame)
    (entry,) = verified(path)
    assert entry["sha256"] == digest(frame)
    assert entry["bytes"] == len(frame)
    assert (entry["run"], entry["round"], entry["kind"], entry["sequence"]) == (RUN, 3, "round", 1)
    assert entry["fields"] == ["subgradient", "value"]
    assert entry["shapes"] == {"subgradient": [1, 4], "value": [1]}
    assert entry["time"].endswith("+00:00")


def test_rounds_are_counted_as_they_are_answered(path: Path) -> None:
    with Ledger(path) as ledger:
        for count in (1, 2):
            ledger.append(update(1), encode(update(1)))
            assert (ledger.rounds_answered(RUN), ledger.rounds_answered("c" * 32)) == (count, 0)


def test_what_is_refused_or_is_no_round_is_none_of_a_runs_rounds(path: Path) -> None:
    """A policy's limit of rounds is used up by answers alone, also after a restart."""
    joined = update(0).model_copy(update={"kind": "join"})
    refused = SiteRefusal(
        kind="round", site_id="s", run_id=RUN, round=2, task_sha256="0" * 64, code="bad_data", reason="fixed"
    )
    with Ledger(path) as ledger:
        for message in (joined, update(1), refused):
            ledger.append(message, encode(message))
        assert ledger.rounds_answered(RUN) == 1
    with Ledger(path) as ledger:
        assert ledger.rounds_answered(RUN) == 1


def test_refusals_and_hellos_are_written_down_too(path: Path) -> None:
    refusal = SiteRefusal(
        kind="join", site_id="s", run_id=RUN, round=0, task_sha256="0" * 64, code="bad_data", reason="fixed"
    )
    with Ledger(path) as ledger:
        ledger.append(Hello(site_id="s", version="1"), b"hello")
        ledger.append(refusal, b"no")
    hello, no = verified(path)
    assert hello["message"] == "hello" and "run" not in hello
    assert no["message"] == "refusal" and no["code"] == "bad_data"
    for kept, missing in ((1, "entry 2 is missing"), (0, "entries 1 to 2 are missing")):
        rewrite(path, lambda both, kept=kept: both[:kept])  # type: ignore[misc]
        with pytest.raises(LedgerError, match=f"{missing}, cut off at the end"):
            verified(path)


def test_a_sound_ledger_is_sound_and_goes_on_after_a_restart(six: Path) -> None:
    assert len(verified(six)) == 6
    with Ledger(six) as ledger:
        assert ledger.rounds_answered(RUN) == 6
        ledger.append(update(7), encode(update(7)))
    assert [entry["sequence"] for entry in verified(six)] == [1, 2, 3, 4, 5, 6, 7]


def rehashed(line: str, **changes: object) -> str:
    entry = json.loads(line) | changes
    entry["hash"] = entry_hash(entry)
    return json.dumps(entry, separators=(",", ":")) + "\n"


TAMPERING = {
    "changed": (lambda six: [*six[:2], six[2].replace('"round":3', '"round":9'), *six[3:]], "entry 3 was changed"),
    "a false value before the true one": (
        lambda six: [*six[:2], six[2].replace('"round":3', '"round":9,"round":3'), *six[3:]], "line 3 was changed",
    ),
    "changed with a new hash": (
        lambda six: [*six[:2], rehashed(six[2], bytes=1), *six[3:]],
        "entry 4 does not continue entry 3",
    ),
    "last changed with a new hash": (lambda six: [*six[:5], rehashed(six[5], bytes=1)], "entry 6 was changed"),
    "not JSON": (lambda six: [*six[:2], "{broken\n", *six[3:]], "line 3 was changed"),
    "first removed": (lambda six: six[1:], "entry 1 is missing"),
    "one removed": (lambda six: [*six[:2], *six[3:]], "entry 3 is missing"),
    "three removed": (lambda six: [six[0], *six[4:]], "entries 2 to 4 are missing"),
    "reordered": (lambda six: [six[0], six[2], six[1], *six[3:]], "entry 2 is out of order"),
    "twice": (lambda six: [*six[:3], six[2], *six[3:]], "entry 3 is there 2 times"),
    "last cut off": (lambda six: six[:5], "entry 6 is missing, cut off at the end"),
    "tail cut off": (lambda six: six[:2], "entries 3 to 6 are missing, cut off at the end"),
    "all cut off": (lambda six: [], "entries 1 to 6 are missing"),
    "a number that is larger than any ledger": (
        lambda six: [*six[:2], rehashed(six[2], sequence=10**12)], "entries 3 to 999999999999 are missing",
    ),
    "last torn after it was whole": (lambda six: [*six[:5], six[5][:30]], "entry 6 is missing"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_is_found_and_named_and_stops_the_agent(six: Path, name: str) -> None:
    change, expected = TAMPERING[name]
    rewrite(six, change)
    before = six.read_bytes()
    with pytest.raises(LedgerError, match=expected):
        verified(six)
    with pytest.raises(LedgerError, match="is not what was written"):
        Ledger(six)
    assert six.read_bytes() == before, "a ledger that is not sound must not be repaired"


@pytest.mark.parametrize("name", ["not JSON", "one removed", "three removed"])
def test_what_stands_in_the_middle_is_not_told_as_cut_off_at_the_end_too(six: Path, name: str) -> None:
    rewrite(six, TAMPERING[name][0])
    (problem,) = read_ledger(six).problems
    assert "cut off" not in problem


def test_a_renumbered_and_rehashed_tail_is_found(six: Path) -> None:
    """Removing an entry and giving all that follow new numbers and hashes leaves the head file against it."""

    def renumber(six_lines: list[str]) -> list[str]:
        kept = [json.loads(line) for line in (*six_lines[:2], *six_lines[3:])]
        previous = "0" * 64
        for sequence, entry in enumerate(kept, start=1):
            entry |= {"sequence": sequence, "previous": previous}
            previous = entry["hash"] = entry_hash(entry)
        return [json.dumps(entry) + "\n" for entry in kept]

    rewrite(six, renumber)
    with pytest.raises(LedgerError, match="entry 6 is missing, cut off at the end"):
        verified(six)


def test_a_head_file_that_is_gone_or_spoilt_is_found(six: Path) -> None:
    head = head_path(six)
    text = head.read_text()
    last = text.split()[1]
    for spoilt in (b"no number here\n", b"6\n", b"\xff\xfe\x00", f"-1 {last}\n".encode(), f"-9 {last}\n".encode()):
        head.write_bytes(spoilt)
        with pytest.raises(LedgerError, match="does not hold a count and a hash"):
            verified(six)
    head.write_text(f"{10**12} {last}\n")
    with pytest.raises(LedgerError, match="entries 7 to 1000000000000 are missing, cut off at the end"):
        verified(six)
    head.unlink()
    with pytest.raises(LedgerError, match="is missing, so entries cut off"):
        verified(six)
    head.write_text(text)
    assert len(verified(six)) == 6


def test_a_deleted_ledger_is_found_and_a_never_begun_one_is_said(six: Path, tmp_path: Path) -> None:
    six.unlink()
    with pytest.raises(LedgerError, match="entries 1 to 6 are missing"):
        verified(six)
    with pytest.raises(LedgerError, match="no ledger at"):
        verified(tmp_path / "other.jsonl")


def test_an_emptied_ledger_without_its_head_is_found_and_one_that_a_crash_left_is_begun(six: Path) -> None:
    six.write_bytes(b"")
    head_path(six).unlink()
    with pytest.raises(LedgerError, match=r"\.head is missing"):
        verified(six)
    with pytest.raises(LedgerError, match=r"\.head is missing"):
        Ledger(six)
    six.unlink()
    head_path(six).write_bytes(b"")  # made first, when the process died
    with Ledger(six) as ledger:
        ledger.append(update(1), encode(update(1)))
    assert len(verified(six)) == 1


def test_a_ledger_that_is_begun_between_two_reads_is_sound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Path.read_text

    def begun(self: Path, *given: Any, **more: Any) -> str:
        """The head is not there; then an agent begins the ledger, before the ledger itself is read."""
        try:
            return read(self, *given, **more)
        finally:
            monkeypatch.undo()
            with Ledger(path) as ledger:
                ledger.append(update(1), encode(update(1)))

    monkeypatch.setattr(Path, "read_text", begun)
    reading = read_ledger(path)
    assert reading.problems == () and reading.count == 1


def test_a_ledger_of_many_years_does_not_fill_the_memory(tmp_path: Path) -> None:
    """220,000 entries, of ten years of nights, took a gigabyte at each start of a plant's agent."""
    path, count = tmp_path / "ledger.jsonl", 4000
    with Ledger(path) as ledger:
        ledger.append(update(1), encode(update(1)))
    (entry,) = verified(path)
    with path.open("ab") as file:
        for number in range(2, count + 1):
            entry = entry | {"sequence": number, "previous": entry["hash"], "peers": {"plant-2": "U" * 900}}
            entry["hash"] = entry_hash(entry)
            file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
    head_path(path).write_text(f"{count:020d} {entry['hash']}\n")
    size = path.stat().st_size
    tracemalloc.start()
    with Ledger(path) as ledger:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert ledger.rounds_answered(entry["run"]) == count
    assert most < size / 4, f"{most} bytes for {size}"


@pytest.mark.parametrize("field", ["run", "bytes", "time"])
@pytest.mark.parametrize("value", [None, "x"])
def test_an_entry_that_lost_a_field_is_told_as_changed(six: Path, field: str, value: str | None) -> None:
    """What an entry holds is counted once all of them are found to be as they were written."""
    lines = [json.loads(line) for line in six.read_bytes().splitlines()]
    if value is None:
        del lines[2][field]
    else:
        lines[2][field] = [value]
    six.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(LedgerError, match="entry 3 was changed"):
        Ledger(six)
    with pytest.raises(LedgerError, match="entry 3 was changed"):
        ledger_verify(Namespace(path=six, json=False))


def test_entries_are_read_again_where_they_stood_and_another_file_is_told(six: Path) -> None:
    places: list[int] = []
    read_ledger(six, lambda _, place: places.append(place))
    assert [entry["round"] for entry in entries_at(six, places[:3:-1])] == [6, 5]
    six.write_bytes(b"x" * six.stat().st_size)
    with pytest.raises(LedgerError, match="another than a moment ago"):
        list(entries_at(six, places))
    six.unlink()
    with pytest.raises(LedgerError, match="cannot be read: No such file"):
        list(entries_at(six, places))
    assert list(entries_at(six, [])) == [], "an agent may have died before it began its ledger"


def test_a_line_that_a_crash_left_unfinished_is_cut_off(six: Path) -> None:
    with six.open("ab") as file:
        file.write(b'{"time":"2026-01-01T00:00:00+00:00","sequ')
    with Ledger(six) as ledger:
        ledger.append(update(7), encode(update(7)))
    assert [entry["round"] for entry in verified(six)] == [1, 2, 3, 4, 5, 6, 7]


def test_a_crash_between_line_and_head_keeps_the_line(six: Path) -> None:
    head = head_path(six)
    before = head.read_text()
    with Ledger(six) as ledger:
        ledger.append(update(7), encode(update(7)))
    head.write_text(before)
    assert len(verified(six)) == 7
    with Ledger(six):
        pass
    assert head.read_text().startswith(f"{7:020d} ")


def test_killed_at_any_moment_the_ledger_stays_sound(path: Path) -> None:
    """Kill -9 of a process that does nothing but append, several times: never a problem, never an entry lost."""
    code = (
        "import sys; from pathlib import Path; from services.site_agent.outgoing.ledger import Ledger\n"
        "from services.contracts.wire.messages import Hello\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "while True:\n"
        "    ledger.append(Hello(site_id='s', version='1'), b'x')\n"
        "    print(ledger._count, flush=True)\n"
    )
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [int(process.stdout.readline()) for _ in range(20)]
            process.kill()
            said += [int(line) for line in process.stdout.read().splitlines() if line]
        entries = verified(path)
        assert len(entries) >= said[-1], "an entry that was written before it could be sent is gone"


def test_the_line_is_forced_to_the_disk_before_the_frame_may_be_sent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only the operating system has is gone when the power is: the file is synced with the line in it."""
    with Ledger(path) as ledger:
        forced: list[tuple[bool, int]] = []
        sync = os.fsync

        def seen(descriptor: int) -> None:
            forced.append((descriptor == ledger._file, path.read_text().count("\n")))
            sync(descriptor)

        monkeypatch.setattr("services.site_agent.outgoing.ledger.os.fsync", seen)
        for number in (1, 2):
            ledger.append(update(number), encode(update(number)))
            assert forced[-1:] == [(True, number)] and len(forced) == number


def test_a_line_that_the_disk_does_not_confirm_is_not_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(path) as ledger:

        def broken(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("services.site_agent.outgoing.ledger.os.fsync", broken)
        with pytest.raises(LedgerError, match="cannot be written: Input/output error; nothing was sent"):
            ledger.append(update(1), encode(update(1)))


def test_one_agent_at_a_time(six: Path) -> None:
    with Ledger(six):
        with pytest.raises(LedgerError, match="another agent of this site is running"):
            Ledger(six)
    with Ledger(six):
        pass


def test_a_ledger_that_is_closed_lets_go_of_what_others_have_by_then(six: Path) -> None:
    """A second closing closed whatever had been given the numbers of its files, another ledger's lock too."""
    ledger = Ledger(six)
    ledger.close()
    with Ledger(six) as other:
        ledger.close()
        with pytest.raises(LedgerError, match="is closed; nothing more leaves"):
            ledger.append(update(7), encode(update(7)))
        with pytest.raises(LedgerError, match="another agent of this site is running"):
            Ledger(six)
        other.append(update(7), encode(update(7)))


@pytest.fixture
def full_disk(path: Path) -> Iterator[Ledger]:
    """A ledger whose file is the device that is always full."""
    ledger = Ledger(path)
    descriptor = os.open("/dev/full", os.O_WRONLY)
    os.dup2(descriptor, ledger._file)
    os.close(descriptor)
    yield ledger
    ledger.close()


def test_nothing_may_leave_when_the_disk_is_full(full_disk: Ledger) -> None:
    for expected in ("nothing was sent", "nothing more leaves"):
        with pytest.raises(LedgerError, match=expected):
            full_disk.append(update(1), encode(update(1)))


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / "file" / "ledger.jsonl")
