"""A page as an outline: a line for each element with its attributes and the text that follows it.

What differs from day to day (moments, names drawn at random, this machine's folders) is named by its kind; of a drawing
its words are told.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

KINDS = (
    (r"[0-9a-f]{64}", "HASH"), (r"[0-9a-f]{32}", "ID"), (r"\?v=[0-9a-f]{12}", "?v=FILE"),
    *((rf"\b[0-9a-f]{{{size}}}\b", f"ID{size}") for size in (8, 12, 16)),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|\+00:00|Z)?", "MOMENT"),
    (r"/[^\s\"]*/pytest-[^\s\"/]*/[^\s\"]*", "FOLDER"), (r"\bU[A-Z0-9]{55}\b|\bU[A-Z0-9]{9}…", "KEY"),
)


class _Outline(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines = [""]
        self._drawing = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._drawing:
            told = [name if value is None else f'{name}="{value}"' for name, value in attrs]
            self.lines.append(f"<{' '.join([tag, *told])}>")
        self._drawing = self._drawing or tag == "svg"

    def handle_endtag(self, tag: str) -> None:
        self._drawing = self._drawing and tag != "svg"

    def handle_data(self, data: str) -> None:
        if text := " ".join(data.split()):
            self.lines[-1] += f" {text}"


def outline(html: str) -> str:
    """The outline, a line for each element."""
    found = _Outline()
    found.feed(html)
    text = "\n".join(found.lines) + "\n"
    for pattern, kind in KINDS:
        text = re.sub(pattern, kind, text)
    return text
