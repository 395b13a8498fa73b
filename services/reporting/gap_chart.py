"""The certified gap against the rounds, as an SVG written by hand: no plotting package, readable in black and white."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from services.contracts.history.run import RoundPoint

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 48
SMALLEST = 1e-12
"""A gap of 0 has no place on a logarithmic axis: it is drawn here."""


def gap_chart(points: Sequence[RoundPoint], wanted_gap: float) -> str:
    """SVG of the gap by round on a logarithmic axis, with a dashed line at the wanted gap.

    A filled mark is a round that every site answered, a hollow one a round in which some weight was not fresh. Rounds
    without a bound yet (infinite gap) are not drawn.
    """
    drawn = [point for point in points if math.isfinite(point.gap)]
    low, high = _decades([max(point.gap, SMALLEST) for point in drawn], wanted_gap)
    last = max((point.round for point in points), default=1)

    def across(number: int) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (number - 1) / max(last - 1, 1)

    def down(gap: float) -> float:
        share = (math.log10(max(gap, SMALLEST)) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    parts = [_frame(), *_decade_lines(low, high, down), *_round_ticks(last, across), *_wanted(wanted_gap, down)]
    marks = [(across(point.round), down(point.gap), point) for point in drawn]
    if marks:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in marks)
        parts.append(f'<polyline points="{path}" fill="none" stroke="black" stroke-width="1.5"/>')
        parts.extend(_mark(x, y, point) for x, y, point in marks)
    else:
        parts.append(_text(WIDTH / 2, HEIGHT / 2, "no round has a finite gap", "middle"))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" font-family="sans-serif" font-size="12">\n<title>Certified gap by round</title>\n{body}\n</svg>\n'
    )


def _decades(gaps: Sequence[float], wanted: float) -> tuple[int, int]:
    values = [*gaps, max(wanted, SMALLEST)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return (low, high) if high > low else (low - 1, high)


def _frame() -> str:
    return (
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}" '
        'fill="white" stroke="black"/>'
    )


def _decade_lines(low: int, high: int, down: Callable[[float], float]) -> list[str]:
    step = max(1, math.ceil((high - low) / 8))
    lines = []
    for power in range(low, high + 1, step):
        y = down(10.0**power)
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#bbb"/>')
        lines.append(_text(LEFT - 6, y + 4, f"1e{power}" if power else "1", "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 14 {middle:.0f})"'
    lines.append(f'<text x="14" y="{middle:.0f}" text-anchor="middle" {turned}>certified relative gap</text>')
    return lines


def _round_ticks(last: int, across: Callable[[int], float]) -> list[str]:
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if last / step <= 12)
    numbers = [1, *range(step if step > 1 else 2, last + 1, step)]
    model_minimiser = HEIGHT - BOTTOM
    ticks = [_text(across(number), model_minimiser + 18, str(number), "middle") for number in numbers]
    ticks.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "round (hollow: not every site answered)", "middle"))
    return ticks


def _wanted(wanted: float, down: Callable[[float], float]) -> list[str]:
    y = down(wanted)
    line = f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="black" stroke-dasharray="6 4"/>'
    return [line, _text(LEFT + 6, y - 4, f"wanted {wanted:.3g}", "start")]


def _mark(x: float, y: float, point: RoundPoint) -> str:
    fill = "black" if point.fresh_weight >= 1.0 else "white"
    told = escape(f"round {point.round}: gap {point.gap:.3g}, fresh weight {point.fresh_weight:.3g}")
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{fill}" stroke="black"><title>{told}</title></circle>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
