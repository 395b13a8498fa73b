from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.contracts.errors import UnavailableError
from services.site_agent.health import STALE_SECONDS, beat, check_alive, note, told_by


@pytest.fixture
def settings(tmp_path: Any) -> Any:
    return SimpleNamespace(log=tmp_path / "site.log", site_id="plant-1")


async def some_beats(settings: Any, connected: bool) -> None:
    task = asyncio.create_task(beat(settings, lambda: connected, 0.0, lambda: "asset type pump version 2"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done(), "it goes on for ever"
    task.cancel()


async def test_an_agent_without_a_connection_is_not_well(settings: Any) -> None:
    await some_beats(settings, connected=False)
    with pytest.raises(UnavailableError, match="was ever connected"):
        check_alive(settings)


async def test_a_connected_agent_is_well_until_its_note_is_old(settings: Any) -> None:
    await some_beats(settings, connected=True)
    written = note(settings).stat()
    assert written.st_mode & 0o077 == 0 and told_by(settings) == "asset type pump version 2"
    assert check_alive(settings, written.st_mtime + STALE_SECONDS - 1) == pytest.approx(STALE_SECONDS - 1)
    assert check_alive(settings, written.st_mtime + STALE_SECONDS) == pytest.approx(STALE_SECONDS, abs=1e-4)
    assert check_alive(settings, written.st_mtime - 5) == 0.0, "the clock was put back"
    with pytest.raises(UnavailableError, match="last connected 31 s ago"):
        check_alive(settings, written.st_mtime + STALE_SECONDS + 1)
    with pytest.raises(UnavailableError, match="last connected before the clock was put back"):
        check_alive(settings, written.st_mtime - 86_400)
    with pytest.raises(UnavailableError, match="before the clock was put back"):
        check_alive(settings, written.st_mtime - STALE_SECONDS - 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES])
async def test_a_disk_that_takes_nothing_ends_no_agent(
    settings: Any, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_text", refuse)
    await some_beats(settings, connected=True)


async def test_a_folder_that_is_gone_ends_no_agent(settings: Any) -> None:
    settings.log = settings.log.parent / "missing" / "site.log"
    await some_beats(settings, connected=True)
    assert os.listdir(settings.log.parent.parent) == [] and told_by(settings) == ""
