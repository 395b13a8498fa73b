"""Charts as SVG made by the server: readable without a script, coloured by the page's style, no style of their own.

Series differ by dash and mark as well as by colour. A script may put a livelier chart in their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from services.reporting.html import labels

WIDTH, HEIGHT = 640, 280
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 44
SMALLEST: Final = 1e-12
"""A value of 0 has no place on a logarithmic axis: it is drawn here."""
Point = tuple[float, float | None]


@dataclass(frozen=True)
class Line:
    """One series: its name, its points (None: not drawn), and its kind, which the style sheet knows."""

    name: str
    points: Sequence[Point]
    kind: str = "a"


def line_chart(
    title: str, lines: Sequence[Line], across: str, up: str, *, log: bool = False,
    within: tuple[float, float] | None = None,
) -> Markup:
    """Lines over common axes; an empty drawing with a sentence where no point is finite.

    ``within``: ends of the upright axis, for charts that are to be compared; None: those of the lines.
    """
    drawn = [(x, y) for line in lines for x, y in line.points if y is not None and math.isfinite(y)]
    if not drawn:
        return Markup('<p class="empty">No figure to draw yet.</p>')
    low_x, high_x = _widened(min(x for x, _ in drawn), max(x for x, _ in drawn))
    heights = [_height(y, log) for _, y in drawn]
    low_y, high_y = _widened(*(within or (min(heights), max(heights))))
    if log:
        low_y, high_y = math.floor(low_y), max(math.ceil(high_y), math.floor(low_y) + 1)

    def place(x: float, y: float) -> tuple[float, float]:
        right = LEFT + (WIDTH - LEFT - RIGHT) * (x - low_x) / (high_x - low_x)
        return right, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (_height(y, log) - low_y) / (high_y - low_y)

    counted = high_x > 1 and all(x == round(x) for x, _ in drawn)
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        *_grid(low_x, high_x, low_y, high_y, log, counted, place), *_titles(across, up),
        *(_drawn(line, place) for line in lines), "</svg>",
    ]
    return Markup("\n".join(parts)) + legend(lines)


def legend(lines: Sequence[Line]) -> Markup:
    """Names of the series with a piece of their line; nothing for a single one."""
    if len(lines) < 2:
        return Markup("")
    items = "".join(
        f'<li><svg class="key" viewBox="0 0 28 8" aria-hidden="true"><path class="line {escape(line.kind)}" '
        f'd="M0 4H28"/></svg>{escape(line.name)}</li>'
        for line in lines
    )
    return Markup(f'<ul class="legend">{items}</ul>')


def bar(share: float | None, kind: str = "plain") -> Markup:
    """Bar of a share in [-1, 1]; a negative one goes to the left of the middle. Beside a figure, never alone."""
    if share is None or not math.isfinite(share):
        return Markup("")
    length = 100 * min(abs(share), 1.0)
    if kind == "signed":
        start = 50 if share >= 0 else 50 - length / 2
        side = "plus" if share >= 0 else "minus"
        rect = f'<rect class="{side}" x="{start:.1f}" width="{length / 2:.1f}" height="8"/>'
        middle = '<path class="middle" d="M50 0V8"/>'
        return Markup(f'<svg class="bar" viewBox="0 0 100 8" aria-hidden="true">{rect}{middle}</svg>')
    return Markup(
        f'<svg class="bar" viewBox="0 0 100 8" aria-hidden="true"><rect class="{escape(kind)}" width="{length:.1f}" '
        'height="8"/></svg>'
    )


def _height(value: float, log: bool) -> float:
    return math.log10(max(value, SMALLEST)) if log else value


def _widened(low: float, high: float) -> tuple[float, float]:
    """Range that is not a point."""
    return (low, high) if high > low else (low - max(abs(low), 1.0) * 0.05, high + max(abs(high), 1.0) * 0.05)


def _ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Round numbers within a range, at most so many and one; ``whole`` ones for what is counted."""
    raw = max((high - low) / most, 1.0 if whole else 0.0)
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _grid(
    low_x: float, high_x: float, low_y: float, high_y: float, log: bool, whole: bool,
    place: Callable[[float, float], tuple[float, float]],
) -> list[str]:
    parts, up, across = [], _ticks(low_y, high_y), _ticks(low_x, high_x, 8, whole=whole)
    for number, label in zip(up, [f"1e{round(each)}" for each in up] if log else labels(up), strict=True):
        if log and number != round(number):
            continue
        _, y = place(low_x, 10.0**number if log else number)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    foot = HEIGHT - BOTTOM
    for number, label in zip(across, labels(across), strict=True):
        x = LEFT + (WIDTH - LEFT - RIGHT) * (number - low_x) / (high_x - low_x)
        parts.append(f'<text x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{label}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{foot}H{WIDTH - RIGHT}"/>')
    return parts


def _titles(across: str, up: str) -> list[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    return [
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>',
        f'<text x="14" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 14 {middle:.0f})">{escape(up)}'
        "</text>",
    ]


def _drawn(line: Line, place: Callable[[float, float], tuple[float, float]]) -> str:
    """Path of a series, broken where a value is missing; marks where the points are few."""
    path, pen, marks = [], "M", []
    for x, y in line.points:
        if y is None or not math.isfinite(y):
            pen = "M"
            continue
        across, down = place(x, y)
        path.append(f"{pen}{across:.1f} {down:.1f}")
        marks.append(f'<circle class="mark {escape(line.kind)}" cx="{across:.1f}" cy="{down:.1f}" r="3"/>')
        pen = "L"
    shown = "".join(marks) if len(marks) <= 40 else ""
    return f'<path class="line {escape(line.kind)}" d="{"".join(path)}"/>{shown}'
