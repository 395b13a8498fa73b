"""A confusion matrix as an SVG written by hand: counts of held-out rows, true class by row, diagnosed by column."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

CELL, LEFT, TOP = 84, 170, 90
LONGEST = 20
"""Characters of a class's name that are drawn; the title of its cell has all."""
OVER_A_CELL = 12  # characters that fit above a column; where a name has more all are slanted
SLANT, SLANTED_UP, SLANTED_BEYOND = 35, 50, 90  # degrees, and the room that the longest name takes then


def confusion_chart(classes: Sequence[str], counts: Sequence[Sequence[int]]) -> str:
    """SVG of counts (C, C); a cell is the darker the greater its share of its row, and says both."""
    size, slanted = len(classes), any(len(name) > OVER_A_CELL for name in classes)
    top = TOP + (SLANTED_UP if slanted else 0)
    width, height = LEFT + CELL * size + (SLANTED_BEYOND if slanted else 16), top + CELL * size + 40
    centre = LEFT + CELL * size / 2
    parts = [_text(centre, 24, "diagnosed class")]
    parts.append(_text(centre, height - 14, "rows: true class; counts of held-out rows"))
    for number, name in enumerate(classes):
        middle = LEFT + CELL * (number + 0.5)
        parts.append(_slanted(middle, top - 8, _short(name)) if slanted else _text(middle, top - 12, _short(name)))
        parts.append(_text(LEFT - 10, top + CELL * (number + 0.5) + 4, _short(name), "end"))
    for row, (true, line) in enumerate(zip(classes, counts, strict=True)):
        total = sum(line)
        for column, (diagnosed, count) in enumerate(zip(classes, line, strict=True)):
            share = count / total if total else 0.0
            parts += _cell(LEFT + CELL * column, top + CELL * row, count, share, f"{true} diagnosed as {diagnosed}")
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="12">\n<title>Confusion matrix</title>\n{body}\n</svg>\n'
    )


def _cell(x: float, y: float, count: int, share: float, told: str) -> list[str]:
    shade = round(255 - 175 * share)
    ink = "white" if share > 0.6 else "black"
    title = escape(f"{told}: {count} rows, {share:.1%} of the true class")
    return [
        f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="rgb({shade},{shade},{shade})" stroke="black">'
        f"<title>{title}</title></rect>",
        _text(x + CELL / 2, y + CELL / 2, str(count), ink=ink),
        _text(x + CELL / 2, y + CELL / 2 + 18, f"{share:.0%}", ink=ink),
    ]


def _short(name: str) -> str:
    """A name as it is drawn: its two ends where it is long, for stages of one fault differ in the last word."""
    half = LONGEST // 2
    return name if len(name) <= LONGEST else f"{name[: half - 1]}…{name[-half:]}"


def _slanted(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" transform="rotate(-{SLANT} {x:.1f} {y:.1f})">{escape(text)}</text>'


def _text(x: float, y: float, text: str, anchor: str = "middle", ink: str = "black") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}">{escape(text)}</text>'
