"""Parts of the HTML pages of reports: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
body { font: 15px/1.5 sans-serif; color: #000; background: #fff; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem } caption { text-align: left; font-weight: bold }
th, td { border: 1px solid #666; padding: .2rem .6rem; text-align: left } td.n { text-align: right }
td:first-child { white-space: nowrap }
svg { max-width: 100%; height: auto }
"""


def page(title: str, body: str, style: str = STYLE) -> str:
    """Whole page; ``title`` is a text, ``body`` is HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table with a caption; without a head the first column names the rows."""
    top = "<tr>" + "".join(f'<th scope="col">{escape(name)}</th>' for name in head) + "</tr>" if head else ""
    lines = "\n".join("<tr>" + "".join(_cell(text, bool(head)) for text in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption>\n{top}\n{lines}\n</table>"


def _cell(text: str, aligned: bool) -> str:
    number = aligned and text.replace(".", "", 1).replace("e-", "", 1).replace("-", "", 1).isdigit()
    return f'<td class="n">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"


def figure(value: float | None) -> str:
    """Number as text, four digits of it."""
    if value is None or math.isnan(value):
        return "not known"
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else ("infinite" if value > 0 else "minus infinity")
