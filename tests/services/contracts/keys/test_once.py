"""A key's file is made whole or not at all, whatever happens meanwhile, and never in the place of another."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.contracts.errors import ConflictError
from services.contracts.keys.once import written_once
from services.contracts.keys.signing import new_seed_file, public_key
from tests.on_disk import noted_steps

_DIES_WRITING = """
import resource, signal, sys
from pathlib import Path
from services.contracts.keys.signing import new_seed_file
from services.process.private_files import made_once
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[3] == "killed" else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
new_seed_file(Path(sys.argv[1])) if sys.argv[2] == "seed" else made_once(Path(sys.argv[1]), lambda: "secret")
"""
"""No file may grow, so that the first byte of any file kills the process, or is refused."""


@pytest.mark.parametrize("what", ["seed", "secret"])
@pytest.mark.parametrize("how", ["killed", "no room"])
def test_who_dies_while_a_key_is_written_leaves_none(tmp_path: Path, what: str, how: str) -> None:
    path = tmp_path / "site.nk"
    ended = subprocess.run(
        [sys.executable, "-c", _DIES_WRITING, str(path), what, how], capture_output=True, text=True, check=False
    )
    assert ended.returncode == (-signal.SIGXFSZ if how == "killed" else 1), ended.stderr
    left = os.listdir(tmp_path)
    assert not path.exists() and (how == "killed" or not left), "the next start makes it"
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600 for name in left)
    assert new_seed_file(path) == public_key(path)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """Also where the file system has no links."""
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "key"
    assert [written_once(path, b"one"), written_once(path, b"two")] == [True, False]
    assert (path.read_bytes(), os.listdir(tmp_path), stat.S_IMODE(path.stat().st_mode)) == (b"one", ["key"], 0o600)
    with pytest.raises(ConflictError, match="a key is never overwritten"):
        new_seed_file(path)


def test_a_key_has_its_name_once_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty file by the name of a key would end each later start, and the key would be gone."""
    steps = noted_steps(monkeypatch, "link")
    assert written_once(tmp_path / "key", b"three") and steps == [("forced", 5), ("named", 5)]


def test_a_file_without_links_that_cannot_have_its_name_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are no links its name is taken first, by an empty file."""
    def refused(code: int) -> Callable[..., None]:
        def refuse(*_: object) -> None:
            raise OSError(code, os.strerror(code))
        return refuse

    with monkeypatch.context() as broken:
        broken.setattr(os, "link", refused(errno.EPERM))
        broken.setattr(os, "replace", refused(errno.EIO))
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            written_once(tmp_path / "key", b"one")
    assert os.listdir(tmp_path) == []
    assert written_once(tmp_path / "key", b"two") and (tmp_path / "key").read_bytes() == b"two"
