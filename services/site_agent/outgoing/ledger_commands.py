"""``ballast-site ledger``: find what of it was changed, and list its entries."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from services.process.command_line import tell
from services.process.terminal import shaded
from services.site_agent.outgoing.ledger_check import entries_of, verify
from services.site_agent.settings import SiteSettings


def _ledger_path(chosen: argparse.Namespace) -> Path:
    path: Path | None = chosen.path
    return path if path is not None else SiteSettings.from_toml(chosen.config).ledger


def ledger_verify(chosen: argparse.Namespace) -> int:
    """Find what of the ledger was changed."""
    path = _ledger_path(chosen)
    count, size, times = verify(path).count, 0, ["", ""]
    for entry in entries_of(path, count):
        size += entry["bytes"]
        times = [times[0] or entry["time"], entry["time"]]
    span = f", from {times[0]} to {times[1]}" if count else ""
    told = f"{shaded('sound', 'good')}: {count} entries, {size} bytes left{span}"
    tell(chosen, {"sound": True, "entries": count, "bytes": size}, told)
    return 0


def ledger_show(chosen: argparse.Namespace) -> int:
    """List the ledger's entries: what was changed is told before the first of them."""
    path = _ledger_path(chosen)
    for entry in entries_of(path, verify(path).count, chosen.last):
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


def _isolated(figures: dict[str, Any] | None) -> str:
    """What the answers isolated with an entry; nothing for entries without the figure."""
    return "" if figures is None else f"; isolated {figures['by_differences']} of {figures['rows']} rows"
