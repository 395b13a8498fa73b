"""``ballast-site ledger``: find what of it was changed, and list its entries."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from services.process.command_line import tell
from services.process.terminal import shaded
from services.site_agent.outgoing.ledger_check import LedgerError, entries_of, verify
from services.site_agent.settings import SiteSettings

_MOST = 2.0**53
"""No honest figure is as large."""


def _ledger_path(chosen: argparse.Namespace) -> Path:
    path: Path | None = chosen.path
    return path if path is not None else SiteSettings.from_toml(chosen.config).ledger


def ledger_verify(chosen: argparse.Namespace) -> int:
    """Find what of the ledger was changed."""
    path = _ledger_path(chosen)
    count, size, times = verify(path).count, 0, ["", ""]
    for entry in _written(path, count):
        size += entry["bytes"]
        times = [times[0] or entry["time"], entry["time"]]
    span = f", from {times[0]} to {times[1]}" if count else ""
    told = f"{shaded('sound', 'good')}: {count} entries, {size} bytes left{span}"
    tell(chosen, {"sound": True, "entries": count, "bytes": size}, told)
    return 0


def ledger_show(chosen: argparse.Namespace) -> int:
    """List the ledger's entries: what was changed is told before the first of them."""
    path = _ledger_path(chosen)
    for entry in _written(path, verify(path).count, chosen.last):
        if chosen.json:
            print(json.dumps(entry))
            continue
        what = " ".join(str(entry[key]) for key in ("message", "kind", "code") if key in entry)
        what = shaded(what, "warn" if "code" in entry else None)  # the plant refused
        where = f" run {entry['run'][:8]} round {entry['round']}" if "run" in entry else ""
        shapes = " ".join(f"{name}{tuple(shape)}" for name, shape in entry["shapes"].items())
        line = f"{entry['sequence']:>6} {entry['time'][:19]}Z {what}{where}: {entry['bytes']} bytes {shapes}".rstrip()
        print(line + _isolated(entry.get("exposure")))
    return 0


def _written(path: Path, count: int, last: int | None = None) -> Iterator[dict[str, Any]]:
    """Entries of a ledger whose chain holds; :class:`LedgerError` at one that no agent writes.

    Whoever can write the file can make the chain anew, whatever the entries hold.
    """
    for entry in entries_of(path, count, last):
        if not _is_an_agents(entry):
            why = "is none that an agent writes; its chain was made anew"
            raise LedgerError(f"{path}: entry {entry['sequence']} {why}")
        yield entry


def _is_an_agents(entry: dict[str, Any]) -> bool:
    """Whether an entry has what the commands tell of it, and words that print."""
    shapes, figures = entry.get("shapes"), entry.get("exposure", {"by_differences": 0, "rows": 0})
    if not isinstance(shapes, dict) or not all(isinstance(shape, list) for shape in shapes.values()):
        return False
    if not isinstance(figures, dict) or not {"by_differences", "rows"} <= figures.keys():
        return False
    if ("run" in entry) != ("round" in entry):
        return False
    words = [entry.get("time"), entry.get("message"), *(entry.get(key, "") for key in ("kind", "code", "run")), *shapes]
    sides = [side for shape in shapes.values() for side in shape]
    numbers = [entry.get("bytes"), entry.get("round", 0), *figures.values(), *sides]
    return all(isinstance(word, str) and word.isprintable() for word in words) and all(
        isinstance(number, int | float) and abs(number) < _MOST for number in numbers
    )


def _isolated(figures: dict[str, Any] | None) -> str:
    """What the answers isolated with an entry; nothing for entries without the figure."""
    return "" if figures is None else f"; isolated {figures['by_differences']} of {figures['rows']} rows"
