"""Which rows a run gets: those of the files when it first asked, as long as it is one of the last few."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault import reader
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import LOOKS, RUNS_KEPT, Vault
from services.site_agent.vault.sources import csv_source
from services.site_agent.vault.sources.table import RawTable


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


def test_another_file_of_the_same_time_and_size_is_read_again(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    """A link may be led to the next of two exports that were unpacked together."""
    header, *rows = make_table(40)
    path, other = write_csv([header, *rows]), write_csv([header, *rows[::-1]], name="next.csv")
    vault, status = Vault(CsvSource(kind="csv", path=path), asset_type), path.stat()
    before = vault.current()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert other.stat().st_size == status.st_size
    other.replace(path)
    now = vault.current()
    assert now is not before and not (now.train.features == before.train.features).all()


@pytest.fixture
def write_amid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], object]], list[int]]:
    """Lets a program write, told how often before, right after each reading of a file and before anyone looks again."""

    def write_amid(write: Callable[[int], object]) -> list[int]:
        times: list[int] = []
        whole = csv_source.read

        def read(source: CsvSource, asset_type: AssetType) -> RawTable:
            try:
                return whole(source, asset_type)
            finally:
                write(len(times))
                times.append(len(times))

        monkeypatch.setattr(csv_source, "read", read)
        return times

    return write_amid


@pytest.mark.parametrize("first", ["half of the rows", "half of a row", "header"])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any, first: str, write_amid: Any
) -> None:
    """Of half an export a run would keep half the rows, and the last of them cut within a number."""
    table = make_table(40)
    path = write_csv({"half of the rows": table[:21], "header": table[:1]}.get(first, [*table[:21], table[21][:2]]))
    times = write_amid(lambda before: None if before else write_csv(table))
    dataset = Vault(CsvSource(kind="csv", path=path), asset_type).dataset("a" * 32)
    assert len(dataset.train) + len(dataset.test) == 40 and len(times) == 2


def test_a_file_that_never_stands_still_is_said(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any, write_amid: Any
) -> None:
    path = write_csv(make_table(40))
    times = write_amid(lambda before: write_csv(make_table(41 + before)))
    vault = Vault(CsvSource(kind="csv", path=path), asset_type)
    with pytest.raises(VaultError, match="data.csv was changed each of the 10 times that it was looked at: write the"):
        vault.current()
    assert len(times) == LOOKS == 10


@pytest.mark.parametrize("is_good", [True, False])
def test_a_file_that_changed_is_read_once_nobody_writes_into_it(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any, monkeypatch: pytest.MonkeyPatch,
    is_good: bool,
) -> None:
    """Programs write in parts, and between two of them a table is read without a change."""
    table, slept = make_table(80), list[float]()
    path = write_csv(table[: 21 if is_good else 1])
    vault = Vault(CsvSource(kind="csv", path=path), asset_type)
    with nullcontext() if is_good else pytest.raises(VaultError):
        vault.current()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) < 5:
            write_csv(table[: 20 * len(slept) + 1])

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(reader, "QUIET", 60.0)
    write_csv(table[:2])
    dataset = vault.dataset("a" * 32)
    assert len(dataset.train) + len(dataset.test) == 80
    assert len(slept) == 5 and all(0 < each <= 60 for each in slept)
    os.utime(path, (0, 0))
    assert len(vault.current().train) == 60 and slept[5:] == [0.0], "what is old is not waited for"


@pytest.mark.parametrize("link", [False, True], ids=["itself", "by a link"])
def test_a_pipe_is_no_table(
    asset_type: AssetType, tmp_path: Path, write_csv: Callable[..., Path], make_table: Any, link: bool
) -> None:
    text, pipe = write_csv(make_table(40)).read_text(), tmp_path / "rows.csv"
    os.mkfifo(pipe)
    path = tmp_path / "current.csv" if link else pipe
    if link:
        path.symlink_to(pipe)

    over = threading.Event()

    def write() -> None:  # there is a table to be read, for whoever opens the pipe
        while not over.is_set():
            with suppress(BrokenPipeError):
                pipe.write_text(text)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(VaultError, match=f"{path.name} is a pipe"):
        Vault(CsvSource(kind="csv", path=path), asset_type).current()
    over.set()
    while writer.is_alive():
        os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
