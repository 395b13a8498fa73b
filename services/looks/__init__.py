"""The one look of every page of Ballast: its style sheet, its sign, and what pages are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
FILES: Final = {"console.css": "text/css", "icon.svg": "image/svg+xml"}
"""Files that pages load, with their media types; they come with the package."""


def content(name: str) -> bytes:
    """A file of :data:`FILES`; ``KeyError`` for another name."""
    if name not in FILES:
        raise KeyError(name)
    return (FOLDER / name).read_bytes()
