"""Which rows versions of the data share is known by keyed numbers, of the last versions, after a restart too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records import version_rows
from services.site_agent.vault.records.version_rows import VersionRows


def part(rows: list[int]) -> Part:
    count = len(rows)
    return Part(np.array([[each, 0.5] for each in rows]), np.zeros(count, np.intp), np.full(count, np.nan))


def test_rows_are_known_again_in_any_order_after_a_restart_and_only_by_who_has_the_secret(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    record = VersionRows(path, b"secret")
    assert record.shared("first", part([1, 2, 3])) == {}
    record.note("first", part([1, 2, 3]))
    record.note("other", part([7]))
    record.close()
    again = VersionRows(path, b"secret")
    shared = again.shared("second", part([4, 3, 1]))
    assert {name: rows.tolist() for name, rows in shared.items()} == {"first": [False, True, True]}
    assert again.shared("first", part([1, 2, 3])) == {}, "a version is none beside itself"
    again.close()
    assert VersionRows(path, b"another").shared("second", part([4, 3, 1])) == {}


def test_of_versions_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version_rows, "VERSIONS_KEPT", 2)
    record = VersionRows(None, b"secret")
    for name in ("a", "b", "b", "c"):
        record.note(name, part([1]))
    assert set(record.shared("d", part([1]))) == {"b", "c"}
