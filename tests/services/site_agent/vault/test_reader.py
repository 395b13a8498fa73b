"""Which rows a run gets: those of the files when it first asked, as long as it is one of the last few."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import RUNS_KEPT, Vault


def test_the_data_are_read_again_when_the_file_changes_and_only_then(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    path = write_csv(make_table(40))
    vault = Vault(CsvSource(kind="csv", path=path), asset_type)
    first = vault.current()
    assert vault.current() is first
    write_csv(make_table(80))
    assert len(vault.current().train) == 60
    write_csv([*make_table(79), ["melted", 0, 0, "leak"]])
    with pytest.raises(VaultError, match="text where a number"):
        vault.current()
    with pytest.raises(VaultError, match="text where a number"):
        vault.current()


def test_a_run_keeps_the_data_that_it_began_with(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    vault = Vault(CsvSource(kind="csv", path=write_csv(make_table(40))), asset_type)
    first = vault.dataset("a" * 32)
    path = write_csv(make_table(80))
    assert vault.dataset("a" * 32) is first
    assert len(vault.dataset("b" * 32).train) == 60
    path.unlink()
    assert len(vault.dataset("b" * 32).train) == 60
    with pytest.raises(VaultError, match="no data file"):
        vault.dataset("c" * 32)


def test_the_rows_of_the_runs_that_asked_last_are_kept_and_no_more(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    vault = Vault(CsvSource(kind="csv", path=write_csv(make_table(40))), asset_type)
    runs = [letter * 32 for letter in "abcdef"[: RUNS_KEPT + 1]]
    before = [vault.dataset(run) for run in runs[:-1]]
    write_csv(make_table(80))
    assert vault.dataset(runs[0]) is before[0]
    newest = vault.dataset(runs[-1])
    assert len(newest.train) == 60
    write_csv(make_table(120))
    assert [vault.dataset(run) for run in (*runs[2:-1], runs[0], runs[-1])] == [*before[2:], before[0], newest]
    assert len(vault.dataset(runs[1]).train) == 90, "the one that had not asked for longest reads the file anew"


def test_a_file_that_was_put_back_is_read_after_a_bad_one(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    path = write_csv(make_table(40))
    vault, good, status = Vault(CsvSource(kind="csv", path=path), asset_type), path.read_bytes(), path.stat()
    assert len(vault.current().train) == 30
    path.write_text("nothing")
    with pytest.raises(VaultError):
        vault.current()
    path.write_bytes(good)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert len(vault.current().train) == 30


@pytest.mark.parametrize(("n_rows", "later"), [(20, 0), (40, 1)], ids=["same time", "same size"])
def test_a_file_of_the_same_time_or_of_the_same_size_is_read_again(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any, n_rows: int, later: int
) -> None:
    """A copy may bring its time along, and other readings may be as many bytes as those before."""
    header, *rows = make_table(40)
    path = write_csv([header, *rows])
    vault, status = Vault(CsvSource(kind="csv", path=path), asset_type), path.stat()
    before = vault.current()
    write_csv([header, *rows[:n_rows][::-1]])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + later))
    assert (path.stat().st_size == status.st_size) == bool(later)
    now = vault.current()
    assert now is not before and len(now.train) + len(now.test) == n_rows
