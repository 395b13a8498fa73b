"""What the page needs to know of all entries of a ledger, in a few bytes each; the entries stay in the file."""

from __future__ import annotations

import math
from array import array
from datetime import UTC, datetime
from typing import Any

_MOST = 2**53
"""No honest figure is larger, and floats count no further."""


class LedgerIndex:
    """Where each entry begins, when it was written, its bytes, and whether it is a refusal; in the file's order."""

    def __init__(self) -> None:
        self.places, self._times, self._sizes = array("q"), array("d"), array("q")
        self._refusals = bytearray()
        self._runs: set[str] = set()
        self.last_answer: datetime | None = None
        self.last_hello: datetime | None = None

    def take(self, entry: dict[str, Any], place: int) -> None:
        """Take an entry in, whatever its fields hold."""
        at, what = moment(entry.get("time")), entry.get("message")
        self.places.append(place)
        self._times.append(math.nan if at is None else at.timestamp())
        self._sizes.append(whole(entry.get("bytes")) or 0)
        self._refusals.append(what == "refusal")
        if what == "update":
            self._runs.add(str(entry.get("run")))
            self.last_answer = at
        elif what == "hello":
            self.last_hello = at

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self.places)

    @property
    def bytes(self) -> int:
        """Bytes that left ever."""
        return sum(self._sizes)

    @property
    def runs(self) -> int:
        """How many runs were answered."""
        return len(self._runs)

    def since(self, start: datetime) -> tuple[int, int, int]:
        """Messages from a moment on, their bytes, and how many of them are refusals."""
        known = start.timestamp()
        found = [number for number, at in enumerate(self._times) if at >= known]
        sizes, refusals = (sum(each[number] for number in found) for each in (self._sizes, self._refusals))
        return len(found), sizes, refusals


def moment(text: object) -> datetime | None:
    """Time of an entry, in UTC; None where it holds none."""
    try:
        read = datetime.fromisoformat(str(text))
        return read.astimezone(UTC) if read.tzinfo is not None else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def whole(value: object) -> int | None:
    """A whole number of a size that counts have, as figures of JSON may be floats; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST else None
