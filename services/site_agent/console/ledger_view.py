"""The ledger as the page shows it. A ledger that was tampered with holds anything: nothing in it is taken on trust."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from services.contracts.errors import NotFoundError
from services.site_agent.console.ledger_index import LedgerIndex, moment, whole
from services.site_agent.file_stamp import file_stamp
from services.site_agent.outgoing.ledger_check import LedgerError, LedgerReading, entries_at, head_path, read_ledger

PAGE = 50
"""Entries of one page."""


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
        self._kept: tuple[object, LedgerReading, LedgerIndex] | None = None

    def reading(self) -> tuple[LedgerReading, LedgerIndex]:
        """What is wrong with it, and its entries; none where there is no ledger yet. ``LedgerError`` if unreadable."""
        with self._mutex:
            stamp = [file_stamp(self._path), file_stamp(head_path(self._path))]
            if self._kept is None or self._kept[0] != stamp:
                index = LedgerIndex()
                self._kept = (stamp, read_ledger(self._path, index.take), index)
            return self._kept[1:]

    def summary(self, now: datetime) -> dict[str, Any]:
        """Whether it is sound, and what left today (in UTC) and ever."""
        try:
            reading, index = self.reading()
        except LedgerError as error:
            return {"sound": False, "problems": [str(error)], "entries": 0}
        today, bytes_today, _ = index.since(now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0))
        return {
            "sound": not reading.problems, "problems": list(reading.problems), "entries": len(index),
            "bytes": index.bytes, "bytes_today": bytes_today, "messages_today": today,
            "refusals_of_a_day": index.since(now - timedelta(days=1))[2],
            "runs": index.runs, "last_answer": index.last_answer, "last_hello": index.last_hello,
        }

    def page(self, number: int) -> dict[str, Any]:
        """Entries of a page as they stand in the file, the newest first.

        ``NotFoundError`` where there is no such page, ``LedgerError`` where the ledger cannot be read.
        """
        reading, index = self.reading()
        pages = max(1, -(-len(index) // PAGE))
        if not 1 <= number <= pages:
            raise NotFoundError(f"the ledger has {pages} pages, got page {number}")
        newest = index.places[::-1][(number - 1) * PAGE : number * PAGE]
        return {
            "sound": not reading.problems, "problems": list(reading.problems), "count": len(index),
            "bytes": index.bytes, "page": number, "pages": pages,
            "entries": list(entries_at(self._path, newest)), "trouble": None,
        }


def line(entry: dict[str, Any]) -> Line:
    """An entry as a line of the page, whatever its fields hold."""
    kinds = [str(entry[name]) for name in ("message", "kind", "code") if name in entry]
    masking, shapes = entry.get("masking"), entry.get("shapes")
    fields = [f"{name}{_shape(shape)}" for name, shape in shapes.items()] if isinstance(shapes, dict) else []
    if isinstance(masking, dict):
        words = masking.get("words")
        fields.append(f"{masking.get('message')}" + (f", {words} masked words" if whole(words) is not None else ""))
    return Line(
        sequence=entry["sequence"], time=moment(entry.get("time")), what=" ".join(kinds),
        refused=entry.get("message") == "refusal", run=str(entry.get("run", "")), round=whole(entry.get("round")),
        bytes=whole(entry.get("bytes")), fields=", ".join(fields), exposure=_isolated(entry.get("exposure")),
    )


def _isolated(figures: object) -> str:
    """What the answers isolated with an entry; nothing for entries without the figure."""
    if not isinstance(figures, dict):
        return ""
    isolated, rows = whole(figures.get("by_differences")), whole(figures.get("rows"))
    return "" if isolated is None or rows is None else f"{isolated} of {rows}"


def _shape(shape: object) -> str:
    """Shape behind a field's name; a scalar has none."""
    return f"({', '.join(map(str, shape))})" if isinstance(shape, list) and shape else ""
