"""``ballast-site ledger``: find what of it was changed, and list its entries."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from services.process.command_line import tell
from services.process.terminal import shaded
from services.site_agent.outgoing.ledger_check import verify
from services.site_agent.settings import SiteSettings


def _ledger_path(chosen: argparse.Namespace) -> Path:
    path: Path | None = chosen.path
    return path if path is not None else SiteSettings.from_toml(chosen.config).ledger


def ledger_verify(chosen: argparse.Namespace) -> int:
    """Find what of the ledger was changed."""
    entries = verify(_ledger_path(chosen))
    span = f", from {entries[0]['time']} to {entries[-1]['time']}" if entries else ""
    size = sum(entry["bytes"] for entry in entries)
    told = f"{shaded('sound', 'good')}: {len(entries)} entries, {size} bytes left{span}"
    tell(chosen, {"sound": True, "entries": len(entries), "bytes": size}, told)
    return 0


def ledger_show(chosen: argparse.Namespace) -> int:
    """List the ledger's entries."""
    entries = verify(_ledger_path(chosen))
    for entry in entries[-chosen.last :] if chosen.last else entries:
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
