"""Reads an egress ledger and finds every entry that was changed, removed or moved. Reading changes nothing."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.contracts.errors import BallastError

FIRST_HASH = "0" * 64
"""What the first entry names as the hash before it."""


class LedgerError(BallastError):
    """The ledger cannot be used, or is not what was once written."""

    code = "bad_ledger"


@dataclass(frozen=True)
class LedgerReading:
    """What was read: the entries in the file's order, what is wrong, and the bytes of an unfinished last line."""

    entries: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]
    unfinished_bytes: int


def head_path(path: Path) -> Path:
    """File beside the ledger that keeps the count of entries and the last hash."""
    return path.with_name(path.name + ".head")


def entry_hash(entry: Mapping[str, Any]) -> str:
    """SHA-256 of an entry without its own hash, as JSON with sorted keys and no spaces."""
    essence = {key: value for key, value in entry.items() if key != "hash"}
    return hashlib.sha256(json.dumps(essence, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def verify(path: Path) -> tuple[dict[str, Any], ...]:
    """Entries of a sound ledger.

    ``LedgerError`` where no ledger is there, or with each entry that was changed, is missing, was put twice or out of
    order.
    """
    if not path.exists() and not head_path(path).exists():
        raise LedgerError(f"no ledger at {path}", code="not_found")
    reading = read_ledger(path)
    if reading.problems:
        raise LedgerError(f"{path}: " + "; ".join(reading.problems))
    return reading.entries


def read_sound(path: Path) -> LedgerReading:
    """Read a ledger that is to be gone on with (none is an empty one); :class:`LedgerError` where it is not sound."""
    reading = read_ledger(path)
    if reading.problems:
        raise LedgerError(
            f"{path} is not what was written: {reading.problems[0]}; "
            "find out why, then move it and its .head file aside to begin a new one"
        )
    return reading


def read_ledger(path: Path) -> LedgerReading:
    """Read a ledger (none is an empty one) and say all that is wrong with it; :class:`LedgerError` if unreadable.

    It may be read while an agent begins or writes it: whether it is there is asked first, then the head is read, so
    what is added meanwhile is more than the head counts, and never less.
    """
    begun, head = path.exists(), _read_head(head_path(path))
    try:
        data = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be read: {error.strerror}") from None
    whole, _, unfinished = data.rpartition(b"\n")
    lines = whole.split(b"\n") if whole else []
    entries: list[dict[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        entry = _parse(line)
        if entry is None:
            problems.append(f"line {number} was changed: it is not an entry any more")
        else:
            entries.append(entry)
    problems += _chain_problems(entries, unreadable=len(lines) - len(entries))
    problems += _head_problems(head_path(path).name, head, entries, begun=begun, known_bad=bool(problems))
    return LedgerReading(tuple(entries), tuple(problems), len(unfinished))


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    fits = isinstance(entry, dict) and isinstance(entry.get("sequence"), int) and {"hash", "previous"} <= entry.keys()
    return entry if fits else None


def _chain_problems(entries: list[dict[str, Any]], unreadable: int) -> list[str]:
    problems = []
    counts = Counter(entry["sequence"] for entry in entries)
    previous: dict[str, Any] | None = None
    for entry in entries:
        sequence = entry["sequence"]
        if entry_hash(entry) != entry["hash"]:
            problems.append(f"entry {sequence} was changed: it does not have its own hash")
        expected = previous["sequence"] + 1 if previous else 1
        if sequence > expected and not unreadable:
            first, last = expected, sequence - 1  # a number that was changed may be as large as any
            while first in counts:
                first += 1
            while last in counts:
                last -= 1
            problems += [_missing(first, last)] if first <= last else []
        if sequence != expected:
            if counts[sequence] > 1:
                problems.append(f"entry {sequence} is there {counts[sequence]} times")
            elif sequence < expected:
                problems.append(f"entry {sequence} is out of order: it stands after entry {expected - 1}")
        elif entry["previous"] != (previous["hash"] if previous else FIRST_HASH) and not unreadable:
            problems.append(f"entry {sequence} does not continue entry {sequence - 1}: one of them was changed")
        previous = entry
    return list(dict.fromkeys(problems))


def _missing(first: int, last: int) -> str:
    span = f"entry {first} is" if first == last else f"entries {first} to {last} are"
    return f"{span} missing"


def _read_head(head: Path) -> str | None:
    """Text of the head file; None where there is none, and what is no head where it cannot be read."""
    try:
        return head.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return "unreadable"


def _head_problems(
    name: str, head: str | None, entries: list[dict[str, Any]], *, begun: bool, known_bad: bool
) -> list[str]:
    """Entries cut off at the end, or a last entry that was replaced, by the count and hash in the head file.

    ``begun``: whether there is a ledger, which is never made before its head.
    """
    if head is None:
        return [f"{name} is missing, so entries cut off at the end cannot be noticed"] if begun else []
    if not head and not entries:
        return []  # a crash between making the file and filling it
    try:
        count_text, last_hash = head.split()
        count = int(count_text)
    except ValueError:
        count = -1
    if count < 0:
        return [f"{name} was changed: it does not hold a count and a hash"]
    if known_bad:
        return []
    if count > len(entries):
        return [_missing(len(entries) + 1, count) + ", cut off at the end"]
    # A crash between the line and the head leaves one line more than the head counts.
    hashes = [FIRST_HASH, *(entry["hash"] for entry in entries)]
    if hashes[count] != last_hash:
        return [f"entry {count} was changed: the head file has another hash for it"]
    return []
