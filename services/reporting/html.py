"""Parts of the HTML pages of reports: no script, no font, no picture from elsewhere."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from itertools import pairwise

_TOKENS = """
:root { color-scheme: light dark; --bg: #f5f6f8; --surface: #fff; --raised: #eef1f5; --ink: #161a20; --quiet: #545c69;
  --line: #d5dae1; --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
@media (prefers-color-scheme: dark) { :root { --bg: #11141a; --surface: #191d24; --raised: #232933; --ink: #e9ebef;
  --quiet: #a9b2bf; --line: #353d49 } }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: var(--ink); background: var(--bg); max-width: 76rem; margin: 2rem auto; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere } h2 { font-size: 1.1875rem; margin-top: 2.25rem }
p { max-width: 80ch } a { color: inherit }
"""
"""The looks of the console's pages (``services/looks/console.css``), for pages that stand alone."""

STYLE = _TOKENS + """
table { border-collapse: collapse; margin: .75rem 0 1.5rem; background: var(--surface); border: 1px solid var(--line);
  border-radius: 6px; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; width: fit-content;
  max-width: 100% }
caption { text-align: left; font-weight: 600; padding: .6rem .5rem .3rem }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .5rem; text-align: left; vertical-align: top }
th { font-size: 13px; color: var(--quiet) } tr:last-child td { border-bottom: 0 }
td.n { text-align: right } td:first-child { white-space: nowrap }
svg { max-width: 100%; height: auto; background: #fff; color: #161a20; border: 1px solid var(--line);
  border-radius: 6px }
@media print { body { max-width: none; margin: 0; padding: 0 } svg, tr { break-inside: avoid }
  table { display: table; max-width: none; font-size: 9px } th { font-size: 8px } th, td { padding: .2rem .15rem }
  td:first-child { white-space: normal; min-width: 8em } }
"""

HOME_STYLE = _TOKENS + """
h2 { border-bottom: 1px solid var(--line) } h3 { margin: 1.5rem 0 .2rem; font: bold 15px var(--mono) }
pre { background: var(--raised); padding: .6rem; overflow-x: auto; border-radius: 6px }
.role { font-weight: normal; font-family: sans-serif }
"""


def page(title: str, body: str, style: str = STYLE) -> str:
    """Whole page; ``title`` is a text, ``body`` is HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def style_digest(style: str = STYLE) -> str:
    """What a content security policy names a page's style by, so that it allows this one and no other."""
    return f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table with a caption; without a head the first column names the rows."""
    top = "<tr>" + "".join(f'<th scope="col">{escape(name)}</th>' for name in head) + "</tr>" if head else ""
    lines = "\n".join("<tr>" + "".join(_cell(text, bool(head)) for text in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption>\n{top}\n{lines}\n</table>"


def _cell(text: str, aligned: bool) -> str:
    number = aligned and text.replace(".", "", 1).replace("e-", "", 1).replace("-", "", 1).isdigit()
    return f'<td class="n">{escape(text)}</td>' if number else f"<td>{escape(text)}</td>"


def labels(values: Sequence[float]) -> list[str]:
    """Numbers along an axis: four digits, or as many as place each to a hundredth of the least step between them."""
    ordered = sorted(values)
    step = min((after - before for before, after in pairwise(ordered) if after > before), default=math.inf)
    for digits in (4, 6, 9, 12):
        told = [f"{value:.{digits}g}" for value in values]
        if all(abs(float(text) - value) <= 0.01 * step for text, value in zip(told, values, strict=True)):
            return told
    return [f"{value:.17g}" for value in values]


def figure(value: float | None) -> str:
    """Number as text, four digits of it."""
    if value is None or math.isnan(value):
        return "not known"
    if isinstance(value, int):
        return str(value)
    return f"{value:.4g}" if math.isfinite(value) else ("infinite" if value > 0 else "minus infinity")
