"""Reads an egress ledger and finds every entry that was changed, removed or moved. Reading changes nothing."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from services.contracts.errors import BallastError
from services.contracts.repeated_keys import RepeatedKeyError, without_repeats

FIRST_HASH = "0" * 64
"""What the first entry names as the hash before it."""


Take = Callable[[dict[str, Any], int], None]
"""What is done with an entry that was read, and with the byte at which its line begins."""


def drop(_entry: dict[str, Any], _place: int) -> None:
    """Keep nothing of an entry."""


class LedgerError(BallastError):
    """The ledger cannot be used, or is not what was once written."""

    code = "bad_ledger"


@dataclass(frozen=True)
class LedgerReading:
    """What was read: how many entries, the hash of the last one, what is wrong, bytes of an unfinished last line."""

    count: int
    last_hash: str
    problems: tuple[str, ...]
    unfinished_bytes: int


class _Link(NamedTuple):
    """What the chain's check keeps of an entry: its number, and whether it has its own hash and names that before."""

    sequence: int
    own: bool
    continues: bool


def head_path(path: Path) -> Path:
    """File beside the ledger that keeps the count of entries and the last hash."""
    return path.with_name(path.name + ".head")


def entry_hash(entry: Mapping[str, Any]) -> str:
    """SHA-256 of an entry without its own hash, as JSON with sorted keys and no spaces."""
    essence = {key: value for key, value in entry.items() if key != "hash"}
    return hashlib.sha256(json.dumps(essence, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def verify(path: Path) -> LedgerReading:
    """Read a sound ledger.

    ``LedgerError`` where no ledger is there, or with each entry that was changed, is missing, was put twice or out of
    order.
    """
    if not path.exists() and not head_path(path).exists():
        raise LedgerError(f"no ledger at {path}", code="not_found")
    reading = read_ledger(path)
    if reading.problems:
        raise LedgerError(f"{path}: " + "; ".join(reading.problems))
    return reading


def read_sound(path: Path) -> LedgerReading:
    """Read a ledger that is to be gone on with (none is an empty one); :class:`LedgerError` where it is not sound."""
    reading = read_ledger(path)
    if reading.problems:
        raise LedgerError(
            f"{path} is not what was written: {reading.problems[0]}; "
            "find out why, then move it and its .head file aside to begin a new one"
        )
    return reading


def read_ledger(path: Path, take: Take = drop) -> LedgerReading:
    """Read a ledger (none is an empty one) and say all that is wrong with it; :class:`LedgerError` if unreadable.

    ``take`` is given each entry, also of a ledger that is not sound, whose entries may hold anything, and the byte at
    which its line begins, in the file's order. Entries are not kept: those
    of ten years would fill the memory of a plant's computer. It may be read while an agent begins or writes it: whether
    it is there is asked first, then the head is read, so what is added meanwhile is more than the head counts, and
    never less.
    """
    begun, head = path.exists(), _read_head(head_path(path))
    counted = _head_count(head)
    links: list[_Link] = []
    problems: list[str] = []
    last_hash, at_head, place, unfinished = FIRST_HASH, FIRST_HASH, 0, 0
    for number, line in enumerate(_lines(path), start=1):
        if not line.endswith(b"\n"):
            unfinished = len(line)
            break
        entry = _parse(line)
        if entry is None:
            problems.append(f"line {number} was changed: it is not an entry any more")
        else:
            links.append(_Link(
                entry["sequence"], entry_hash(entry) == entry["hash"], entry["previous"] == last_hash
            ))
            last_hash = entry["hash"]
            if len(links) == counted:
                at_head = last_hash
            take(entry, place)
        place += len(line)
    problems += _chain_problems(links, unreadable=len(problems))
    problems += _head_problems(head_path(path).name, head, len(links), at_head, begun=begun, known_bad=bool(problems))
    return LedgerReading(len(links), last_hash, tuple(problems), unfinished)


def entries_of(path: Path, count: int, last: int | None = None) -> Iterator[dict[str, Any]]:
    """The first ``count`` entries of a ledger that was found to be sound, or the ``last`` ones of these."""
    first = 0 if last is None else max(count - last, 0)
    return (entry for line in islice(_lines(path), first, count) if (entry := _parse(line)) is not None)


def entries_at(path: Path, places: Collection[int]) -> Iterator[dict[str, Any]]:
    """Entries of a ledger by the bytes at which their lines begin, as :func:`read_ledger` told them.

    ``LedgerError`` where it cannot be read, or another file stands in its place. For none it is not looked for.
    """
    if not places:
        return
    try:
        with path.open("rb") as file:
            for place in places:
                file.seek(place)
                entry = _parse(file.readline())
                if entry is None:
                    raise LedgerError(f"the ledger {path} is another than a moment ago")
                yield entry
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be read: {error.strerror}") from None


def _lines(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be read: {error.strerror}") from None


def _parse(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None where it is none, or has a key twice.

    Of the first value of such a key, which who reads the file may take for what left, the hash says nothing.
    """
    try:
        entry = json.loads(line, object_pairs_hook=without_repeats)
    except (ValueError, RecursionError, RepeatedKeyError):
        return None
    fits = isinstance(entry, dict) and isinstance(entry.get("sequence"), int) and {"hash", "previous"} <= entry.keys()
    return entry if fits else None


def _chain_problems(links: list[_Link], unreadable: int) -> list[str]:
    problems = []
    counts = Counter(link.sequence for link in links)
    before: int | None = None
    for link in links:
        sequence = link.sequence
        if not link.own:
            problems.append(f"entry {sequence} was changed: it does not have its own hash")
        expected = 1 if before is None else before + 1
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
        elif not link.continues and not unreadable:
            problems.append(f"entry {sequence} does not continue entry {sequence - 1}: one of them was changed")
        before = sequence
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


def _head_count(head: str | None) -> int:
    """How many entries the head counts; -1 where it is none."""
    try:
        count_text, _ = (head or "").split()
        return int(count_text)
    except ValueError:
        return -1


def _head_problems(
    name: str, head: str | None, entries: int, at_head: str, *, begun: bool, known_bad: bool
) -> list[str]:
    """Entries cut off at the end, or a last entry that was replaced, by the count and hash in the head file.

    ``begun``: whether there is a ledger, which is never made before its head. ``at_head``: the hash of the entry up to
    which the head counts.
    """
    if head is None:
        return [f"{name} is missing, so entries cut off at the end cannot be noticed"] if begun else []
    if not head and not entries:
        return []  # a crash between making the file and filling it
    count = _head_count(head)
    if count < 0:
        return [f"{name} was changed: it does not hold a count and a hash"]
    if known_bad:
        return []
    if count > entries:
        return [_missing(entries + 1, count) + ", cut off at the end"]
    # A crash between the line and the head leaves one line more than the head counts.
    if at_head != head.split()[1]:
        return [f"entry {count} was changed: the head file has another hash for it"]
    return []
