"""Versions that pages show, kept: a version never changes, and reading one from the registry takes a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from services.contracts.errors import NotFoundError
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import ModelReport

if TYPE_CHECKING:
    from services.predictor.cache import ModelSource
    from services.registry.mlflow_registry import ModelRegistry

MOST: Final = 128
"""Versions, and as many reports, that are kept; the longest unused go first."""
Kept = TypeVar("Kept")


class VersionCache:
    """Whole versions and their reports by model and number. Threads may share it."""

    def __init__(self, source: Callable[[], ModelSource], registry: Callable[[], ModelRegistry]) -> None:
        self._source = source
        self._registry = registry
        self._versions: OrderedDict[tuple[str, str], ModelVersion] = OrderedDict()
        self._reports: OrderedDict[tuple[str, str], ModelReport | None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, number: str) -> ModelVersion:
        """Version by its number (no alias: that may move); ``NotFoundError`` where there is none."""
        if not number.isdecimal():
            raise NotFoundError(f"no version {number[:40]} of model {name[:60]}")
        return self._kept(self._versions, (name, number), lambda: self._source().get(name, number))

    def report(self, version: ModelVersion) -> ModelReport | None:
        """Report that a version was registered with; None where there is none."""
        key = (version.name, version.version)
        return self._kept(self._reports, key, lambda: self._registry().report(version))

    def _kept(self, kept: OrderedDict[tuple[str, str], Kept], key: tuple[str, str], read: Callable[[], Kept]) -> Kept:
        with self._lock:
            if key in kept:
                kept.move_to_end(key)
                return kept[key]
        found = read()
        with self._lock:
            kept[key] = found
            while len(kept) > MOST:
                kept.popitem(last=False)
        return found
