"""Files and folders that go between two looks: right after the folder that they stand in was listed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest


class _Listed:
    """What a folder held, as ``os.scandir`` gives it."""

    def __init__(self, entries: list[os.DirEntry[str]]) -> None:
        self._entries: Iterator[os.DirEntry[str]] = iter(entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> os.DirEntry[str]:
        return next(self._entries)


def after_listing(monkeypatch: pytest.MonkeyPatch, folder: Path, act: Callable[[], object]) -> None:
    """Let ``act`` happen once, right after a folder was listed, and before anything is made of the list."""
    real, due = os.scandir, [act]

    def look(at: Any = ".") -> Any:
        if not due or isinstance(at, int) or Path(at) != folder:
            return real(at)
        with real(at) as found:
            listed = _Listed(list(found))
        due.pop()()
        return listed

    monkeypatch.setattr(os, "scandir", look)
