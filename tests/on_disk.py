"""In which order a file comes to the disk and to its name: after a power cut a name must not be of an empty file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def noted_steps(monkeypatch: pytest.MonkeyPatch, naming: str) -> list[tuple[str, int]]:
    """What happens from now on, with the bytes that the file has then; ``naming``: the call of ``os`` that names it."""
    steps, sync = list[tuple[str, int]](), os.fsync
    put: Callable[[Path, Path], None] = getattr(os, naming)

    def forced(descriptor: int) -> None:
        sync(descriptor)
        steps.append(("forced", os.fstat(descriptor).st_size))

    def named(source: Path, target: Path) -> None:
        steps.append(("named", source.stat().st_size))
        put(source, target)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(os, naming, named)
    return steps
