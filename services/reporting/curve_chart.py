"""What each sensor adds to a score by its reading, as SVGs written by hand: one a sensor, a line a class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from services.contracts.versions.report import SensorCurve
from services.reporting.html import labels

WIDTH, HEIGHT = 460, 220
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 24, 40
LETTER = 6.9  # width of a letter of 12 px, about; a picture is as wide as its names are long
LONGEST = 100
"""Characters of a sensor's name and unit that are drawn; the title of its picture has all."""
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 5", "10 4", "4 2 1 2")
"""Lines of different classes, readable in black and white; they come around again after the last."""


def curve_charts(curves: Iterable[SensorCurve], most: int) -> list[str]:
    """One SVG a sensor, those whose lines rise or fall the most first; ``most`` of them."""
    sensors: dict[str, list[SensorCurve]] = {}
    for curve in curves:
        sensors.setdefault(curve.sensor, []).append(curve)
    ordered = sorted(sensors.values(), key=lambda lines: -max(max(line.heights) - min(line.heights) for line in lines))
    ends = [end for lines in ordered for line in lines for end in (min(line.heights), max(line.heights))]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    # All pictures have one scale, so that a sensor which says little looks so.
    return [curve_chart(lines, low, high) for lines in ordered[:most]]


def curve_chart(lines: Sequence[SensorCurve], low: float, high: float) -> str:
    """SVG of the lines of one sensor, one a class, on an axis from ``low`` to ``high``."""
    first, last = lines[0].readings[0], lines[0].readings[-1]
    top = high if high > low else low + 1.0

    def across(reading: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (reading - first) / (last - first)

    def down(height: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (height - low) / (top - low)

    sensor = f"{lines[0].sensor} ({lines[0].unit})"
    drawn = sensor if len(sensor) <= LONGEST else f"{sensor[: LONGEST - 1]}…"
    right, floor, ends = WIDTH - RIGHT, HEIGHT - BOTTOM, labels((first, last))
    half, classes = LETTER * len(drawn) / 2, max(len(line.fault_class) for line in lines)
    middle = max((LEFT + right) / 2, half + 4)  # a name that is wider than the lines begins at the left edge
    wide = max(WIDTH, round(middle + half + 4), round(right + 44 + LETTER * classes))
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{floor - TOP}" fill="white" stroke="black"/>',
        f'<line x1="{LEFT}" y1="{down(0.0):.1f}" x2="{right}" y2="{down(0.0):.1f}" stroke="#bbb"/>',
        _text(LEFT - 6, down(low) + 4, f"{low:.3g}", "end"), _text(LEFT - 6, down(top) + 4, f"{top:.3g}", "end"),
        _text(LEFT, floor + 16, ends[0], "start"), _text(right, floor + 16, ends[1], "end"),
        _text(middle, HEIGHT - 8, drawn, "middle"),
    ]
    for number, line in enumerate(lines):
        path = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(line.readings, line.heights, strict=True))
        dash = DASHES[number % len(DASHES)]
        stroke = f'fill="none" stroke="black" stroke-width="1.5"{f" stroke-dasharray={dash!r}" if dash else ""}'
        parts.append(f'<polyline points="{path}" {stroke}/>')
        if line.fault_class:
            y = TOP + 10 + 16 * number
            parts.append(f'<polyline points="{right + 6},{y} {right + 34},{y}" {stroke}/>')
            parts.append(_text(right + 40, y + 4, line.fault_class, "start"))
    tall = max(HEIGHT, TOP + 20 + 16 * len(lines))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}" '
        f'role="img" font-family="sans-serif" font-size="12">\n<title>{escape(sensor)}</title>\n{body}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
