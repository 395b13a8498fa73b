"""Numbers with their units, times and durations, as every page writes them."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from services.looks import parts

UNKNOWN = parts.UNKNOWN
size = parts.size


def figure(value: float | None, digits: int = 4) -> str:
    """Number with so many significant digits; a dash where it is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u202f")
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    # The shortest form would be 4.74e+04, and 1e+04 of what is a little below it.
    if 10**digits <= abs(float(f"{value:.{digits}g}")) and abs(value) < 1e9:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.{digits}g}"


def percent(value: float | None, digits: int = 3) -> str:
    """Share as a percentage."""
    return UNKNOWN if value is None or math.isnan(value) else f"{figure(100 * value, digits)}\u202f%"


def duration(seconds: float | None) -> str:
    """Time in ms, s, min or h."""
    if seconds is None:
        return UNKNOWN
    for unit, factor in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if seconds >= factor:
            return f"{figure(seconds / factor, 3)}\u202f{unit}"
    return f"{figure(1000.0 * seconds, 3)}\u202fms"


def when(moment: datetime | None) -> Markup:
    """Moment as ``<time>``: in UTC, which a script writes anew in the reader's zone."""
    if moment is None:
        return Markup(UNKNOWN)
    utc = moment.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M UTC")
    )


def unit(name: str) -> str:
    """Unit with a thin blank before it; nothing for what has none."""
    return "" if name == "1" else f"\u202f{name}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Count with its noun."""
    return f"{figure(count)} {one if count == 1 else many or one + 's'}"


def compact_json(value: Any) -> str:
    """JSON for a data attribute (the page escapes it), or for a cell."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def shown(value: Any) -> Markup:
    """Value of a field of a contract, as a change shows it."""
    if value is None:
        return Markup('<span class="quiet">not set</span>')
    if isinstance(value, dict | list):
        return Markup("<code>{}</code>").format(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str))
    return escape(value)
