"""The ledger as the page shows it. A ledger that was tampered with holds anything: nothing in it is taken on trust."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from services.contracts.errors import NotFoundError
from services.site_agent.file_stamp import file_stamp
from services.site_agent.outgoing.ledger_check import LedgerError, LedgerReading, head_path, read_ledger

PAGE = 50
"""Entries of one page."""
_MOST = 2**53
"""No honest figure is larger, and floats count no further."""


@dataclass(frozen=True)
class Line:
    """One entry in words and figures; None where the entry does not say it."""

    sequence: int
    time: datetime | None
    what: str
    refused: bool
    run: str
    round: int | None
    bytes: int | None
    fields: str
    exposure: str


class LedgerView:
    """Reads the ledger anew when its files change. For several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._kept: tuple[object, LedgerReading] | None = None

    def reading(self) -> LedgerReading:
        """Entries and what is wrong with them; none where there is no ledger yet. ``LedgerError`` if unreadable."""
        with self._mutex:
            stamp = [file_stamp(self._path), file_stamp(head_path(self._path))]
            if self._kept is None or self._kept[0] != stamp:
                self._kept = (stamp, read_ledger(self._path))
            return self._kept[1]

    def summary(self, now: datetime) -> dict[str, Any]:
        """Whether it is sound, and what left today (in UTC) and ever."""
        try:
            reading = self.reading()
        except LedgerError as error:
            return {"sound": False, "problems": [str(error)], "entries": 0}
        entries = reading.entries
        updates = [entry for entry in entries if entry.get("message") == "update"]
        midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        refusals = [entry for entry in entries if entry.get("message") == "refusal"]
        return {
            "sound": not reading.problems, "problems": list(reading.problems), "entries": len(entries),
            "bytes": _bytes(entries), "bytes_today": _bytes(_since(entries, midnight)),
            "messages_today": len(_since(entries, midnight)),
            "refusals_of_a_day": len(_since(refusals, now - timedelta(days=1))),
            "runs": len({str(entry.get("run")) for entry in updates}),
            "last_answer": _told(updates), "last_hello": _told(
                [entry for entry in entries if entry.get("message") == "hello"]
            ),
        }

    def page(self, number: int) -> dict[str, Any]:
        """Entries of a page as they stand in the file, the newest first.

        ``NotFoundError`` where there is no such page, ``LedgerError`` where the ledger cannot be read.
        """
        reading = self.reading()
        pages = max(1, -(-len(reading.entries) // PAGE))
        if not 1 <= number <= pages:
            raise NotFoundError(f"the ledger has {pages} pages, got page {number}")
        newest = reading.entries[::-1][(number - 1) * PAGE : number * PAGE]
        return {
            "sound": not reading.problems, "problems": list(reading.problems), "count": len(reading.entries),
            "bytes": _bytes(reading.entries), "page": number, "pages": pages, "entries": list(newest),
            "trouble": None,
        }


def line(entry: dict[str, Any]) -> Line:
    """An entry as a line of the page, whatever its fields hold."""
    kinds = [str(entry[name]) for name in ("message", "kind", "code") if name in entry]
    masking, shapes = entry.get("masking"), entry.get("shapes")
    fields = [f"{name}{_shape(shape)}" for name, shape in shapes.items()] if isinstance(shapes, dict) else []
    if isinstance(masking, dict):
        words = masking.get("words")
        fields.append(f"{masking.get('message')}" + (f", {words} masked words" if _count(words) is not None else ""))
    return Line(
        sequence=entry["sequence"], time=moment(entry.get("time")), what=" ".join(kinds),
        refused=entry.get("message") == "refusal", run=str(entry.get("run", "")), round=_count(entry.get("round")),
        bytes=_count(entry.get("bytes")), fields=", ".join(fields), exposure=_isolated(entry.get("exposure")),
    )


def moment(text: object) -> datetime | None:
    """Time of an entry, in UTC; None where it holds none."""
    try:
        read = datetime.fromisoformat(str(text))
        return read.astimezone(UTC) if read.tzinfo is not None else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _isolated(figures: object) -> str:
    """What the answers isolated with an entry; nothing for entries without the figure."""
    if not isinstance(figures, dict):
        return ""
    isolated, rows = _count(figures.get("by_differences")), _count(figures.get("rows"))
    return "" if isolated is None or rows is None else f"{isolated} of {rows}"


def _shape(shape: object) -> str:
    """Shape behind a field's name; a scalar has none."""
    return f"({', '.join(map(str, shape))})" if isinstance(shape, list) and shape else ""


def _count(value: object) -> int | None:
    """A whole number of a size that counts have, as figures of JSON may be floats; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= _MOST else None


def _bytes(entries: Sequence[dict[str, Any]]) -> int:
    return sum(_count(entry.get("bytes")) or 0 for entry in entries)


def _since(entries: Sequence[dict[str, Any]], start: datetime) -> list[dict[str, Any]]:
    return [entry for entry in entries if (at := moment(entry.get("time"))) is not None and at >= start]


def _told(entries: Sequence[dict[str, Any]]) -> datetime | None:
    return moment(entries[-1].get("time")) if entries else None
