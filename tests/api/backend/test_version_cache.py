"""Versions that pages show are read once, the longest unused go first, and there are never more than so many."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend import version_cache
from api.backend.version_cache import VersionCache
from services.contracts.errors import NotFoundError


@pytest.fixture
def read() -> Counter[str]:
    """How often each version, and each report, was read from the registry."""
    return Counter()


@pytest.fixture
def cache(read: Counter[str], monkeypatch: pytest.MonkeyPatch) -> VersionCache:
    monkeypatch.setattr(version_cache, "MOST", 2)

    def get(name: str, number: str) -> Any:
        read[number] += 1
        return SimpleNamespace(name=name, version=number)

    def report(version: Any) -> None:
        read[f"report {version.version}"] += 1

    registry: Any = SimpleNamespace(get=get, report=report)
    return VersionCache(lambda: registry, lambda: registry)


def test_the_longest_unused_version_goes_first(cache: VersionCache, read: Counter[str]) -> None:
    for number in ("1", "2", "1", "3", "1", "2"):
        assert cache.get("pumps", number).version == number
    assert read == {"1": 1, "2": 2, "3": 1}, "2 was the longest unused when 3 came"
    assert len(cache._versions) == 2


def test_that_there_is_no_report_is_kept_too_and_reports_take_no_versions_place(
    cache: VersionCache, read: Counter[str]
) -> None:
    one, two = cache.get("pumps", "1"), cache.get("pumps", "2")
    for version in (one, two, one):
        assert cache.report(version) is None
    cache.report(cache.get("pumps", "1"))
    assert read == {"1": 1, "2": 1, "report 1": 1, "report 2": 1} and len(cache._reports) == 2


def test_an_alias_which_may_move_is_never_kept(cache: VersionCache, read: Counter[str]) -> None:
    for name in ("champion", "1a", ""):
        with pytest.raises(NotFoundError):
            cache.get("pumps", name)
    assert not read and not cache._versions
