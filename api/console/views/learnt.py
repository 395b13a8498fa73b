"""What a report or an answer says beyond what every version has: read as JSON, and shown where it is there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from api.console.charts import Line, line_chart

KINDS = ("a", "b", "d", "e", "c")


def sensor_charts(parts: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """A chart for each sensor: what it adds to each class's score, or to the target, by its reading in its unit."""
    by_sensor: dict[str, list[Mapping[str, Any]]] = {}
    for curve in parts.get("curves") or ():
        by_sensor.setdefault(str(curve["sensor"]), []).append(curve)
    return [(sensor, _chart(sensor, curves)) for sensor, curves in by_sensor.items()]


def _chart(sensor: str, curves: Sequence[Mapping[str, Any]]) -> Markup:
    lines = [
        Line(
            str(curve.get("fault_class") or "the target"),
            [(float(x), _number(y)) for x, y in zip(curve["readings"], curve["heights"], strict=True)],
            KINDS[number % len(KINDS)],
        )
        for number, curve in enumerate(curves)
    ]
    return line_chart(f"What {sensor} adds", lines, f"{sensor} ({curves[0]['unit']})", "adds")


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def rows_of(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Fields of nested JSON as rows of a table, by their paths; lists of plain values stay whole."""
    if isinstance(value, Mapping):
        return [row for key, item in value.items() for row in rows_of(item, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [row for at, item in enumerate(value, start=1) for row in rows_of(item, f"{name} {at}")]
    if isinstance(value, list):
        return [(name, ", ".join(map(_shown, value)))]
    return [(name, _shown(value))]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)
