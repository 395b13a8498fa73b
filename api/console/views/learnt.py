"""What a report or an answer says beyond what every version has: read as JSON, and shown where it is there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from api.console.charts import Line, line_chart

KINDS = ("a", "b", "d", "e", "c")


def sensor_charts(parts: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """A chart for each sensor: what it adds to each class's score, or to the target, by its reading in its unit.

    Those that say most come first, and all have one upright axis, so that a sensor which says little looks so.
    """
    by_sensor: dict[str, list[Line]] = {}
    units: dict[str, str] = {}
    for curve in parts.get("curves") or ():
        sensor = str(curve["sensor"])
        lines = by_sensor.setdefault(sensor, [])
        lines.append(_line(curve, KINDS[len(lines) % len(KINDS)]))
        units[sensor] = str(curve["unit"])
    ends = {sensor: _ends(lines) for sensor, lines in by_sensor.items()}
    if not ends:
        return []
    within = min(low for low, _ in ends.values()), max(high for _, high in ends.values())

    def chart(sensor: str) -> Markup:
        across = f"{sensor} ({units[sensor]})"
        return line_chart(f"What {sensor} adds", by_sensor[sensor], across, "adds", within=within)

    ordered = sorted(by_sensor, key=lambda sensor: ends[sensor][0] - ends[sensor][1])
    return [(sensor, chart(sensor)) for sensor in ordered]


def _line(curve: Mapping[str, Any], kind: str) -> Line:
    points = [(float(x), _number(y)) for x, y in zip(curve["readings"], curve["heights"], strict=True)]
    return Line(str(curve.get("fault_class") or "the target"), points, kind)


def _ends(lines: Sequence[Line]) -> tuple[float, float]:
    """Lowest and highest point of a sensor's lines; 0 where none is finite."""
    heights = [y for line in lines for _, y in line.points if y is not None]
    return min(heights, default=0.0), max(heights, default=0.0)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
