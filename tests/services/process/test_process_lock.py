"""A lock says that a process of ours runs, for as long as it runs, and asking makes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.process.process_lock import held, idle_seconds, is_held, show_life


def test_it_is_held_until_the_last_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "flows.lock"
    with held(path):
        with held(path):
            assert is_held(path)
        assert is_held(path) and is_held(path), "asking takes nothing away"
    assert not is_held(path)
    with pytest.raises(ZeroDivisionError), held(path):
        _ = 1 / 0
    assert not is_held(path)


def test_asking_makes_no_file_and_the_lock_is_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "flows.lock"
    assert not is_held(path) and not path.exists()
    with held(path):
        assert path.stat().st_mode & 0o077 == 0


def test_a_lock_that_cannot_be_looked_at_is_held_by_nobody_that_one_knows_of(tmp_path: Path) -> None:
    """As one of another user's, or under what is no folder: who asks is told so, and does not end."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.lock").mkdir()
    assert not is_held(tmp_path / "file" / "flows.lock") and not is_held(tmp_path / "folder.lock")


def test_who_holds_it_shows_life_from_the_beginning_on(tmp_path: Path) -> None:
    path = tmp_path / "flows.lock"
    show_life(path)
    assert idle_seconds(path) == 0.0 and not path.exists(), "nothing is known, and nothing made"
    path.touch()
    os.utime(path, (0, 0))
    with held(path):
        assert idle_seconds(path) < 3600, "the one before it died long ago"
        os.utime(path, (0, 0))
        assert idle_seconds(path) > 3600
        show_life(path)
        assert idle_seconds(path) < 3600
        os.utime(path, (4e9, 4e9))
        assert idle_seconds(path) == 0.0, "the clock was put back since"
