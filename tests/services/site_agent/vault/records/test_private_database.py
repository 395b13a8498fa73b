"""The vault's private file: whose it is, what a power cut leaves of it, and that who only looks changes nothing."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from services.site_agent.vault.records.private_database import closed, looked_at, opened

TABLE = "CREATE TABLE IF NOT EXISTS told (model TEXT)"


def test_what_was_written_down_outlives_a_power_cut(tmp_path: Path) -> None:
    """An answer leaves after its line is in the record: each commit is forced to the disk, log or no log."""
    base = opened(tmp_path / "exposure.sqlite", TABLE)
    assert base.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    closed(base)


def test_it_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    path, before = tmp_path / "exposure.sqlite", os.umask(0)
    try:
        base = opened(path, TABLE)
        with base:
            base.execute("INSERT INTO told VALUES ('m')")
        left = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}
        closed(base)
    finally:
        os.umask(before)
    assert left and set(left.values()) == {0o600}


def test_who_only_looks_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "exposure.sqlite"
    closed(opened(path, TABLE))
    before = path.read_bytes()
    base = looked_at(path, f"{TABLE}; CREATE TABLE IF NOT EXISTS later (number INTEGER)")
    assert base.execute("SELECT * FROM later").fetchall() == [], "what an agent of before has not kept is empty"
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        base.execute("INSERT INTO told VALUES ('m')")
    closed(base)
    assert path.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == [path.name]
