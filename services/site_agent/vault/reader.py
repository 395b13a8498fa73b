"""Opens the site's data, keeps the dataset in memory, and reads it again when the files change."""

from __future__ import annotations

import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from services.contracts.machines.asset_type import AssetType
from services.site_agent.file_stamp import file_stamp
from services.site_agent.settings import CsvSource, DataSource, ParquetSource, SimulatorSource
from services.site_agent.vault.dataset import Dataset, build_dataset
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.sources.table import RawTable

RUNS_KEPT = 4  # runs at once that a plant takes part in; each keeps its rows in memory
LOOKS = 10
"""How often files are looked at that change meanwhile."""
QUIET = 1.0
"""Seconds that nobody has written for, before files that changed are read again: many programs write in parts."""
Stamp = tuple[tuple[str, tuple[int, int, int]], ...]


class Vault:
    """The site's data. The source is opened for reading only."""

    def __init__(
        self, source: DataSource, asset_type: AssetType, seen: Callable[[Dataset], Dataset] | None = None
    ) -> None:
        """``seen``: what a run may see of the table as it is when the run first asks; None: all of it."""
        self._source = source
        self._seen = seen
        self._asset_type = asset_type
        self._mutex = threading.Lock()  # the first reading may meet the first task
        self._stamp: Stamp | None = None
        self._looked = False
        self._dataset: Dataset | None = None
        self._by_run: OrderedDict[str, Dataset] = OrderedDict()

    def dataset(self, run_id: str) -> Dataset:
        """Dataset for a run: what the files hold when the run first asks, and the same until the run ends.

        A cut or a bound that a site once gave is valid only for the rows it was computed on, so rows that arrive during
        a run wait for the next one. The datasets of the last few runs are kept; a restarted agent reads the files anew.
        """
        if run_id in self._by_run:
            self._by_run.move_to_end(run_id)
            return self._by_run[run_id]
        dataset = self.current() if self._seen is None else self._seen(self.current())
        self._by_run[run_id] = dataset
        if len(self._by_run) > RUNS_KEPT:
            self._by_run.popitem(last=False)
        return dataset

    def current(self) -> Dataset:
        """Dataset of the files as they are now, from memory unless they are other files, or their time or size differs.

        ``VaultError`` where something does not fit the contract, or somebody goes on writing while the files are read;
        the text says what and where, and stays in the plant.
        """
        with self._mutex:
            stamp = _stamp(_files(self._source))
            if self._dataset is None or stamp != self._stamp:
                self._dataset = None
                _refuse_streams(_files(self._source))
                table, self._stamp = self._whole(stamp)
                self._dataset = build_dataset(table, self._asset_type)
            return self._dataset

    def _whole(self, stamp: Stamp) -> tuple[RawTable, Stamp]:
        """A table of files that nobody changed while they were read, and their stamp.

        Rows of a file that is just being written are not all there, and the last of them may be cut within a number.
        """
        for _ in range(LOOKS):
            if self._looked:  # what a process finds at its start was there before it, as a rule
                time.sleep(max(QUIET - _age(stamp), 0.0))
            self._looked = True
            table, misfit = None, None
            if (before := _stamp(_files(self._source))) == stamp:
                try:
                    table = _read(self._source, self._asset_type)
                except VaultError as error:
                    misfit = error
            stamp = _stamp(_files(self._source))
            if before == stamp and misfit is not None:
                raise misfit
            if before == stamp and table is not None:
                return table, stamp
        raise VaultError(
            f"{self._source.path} was changed each of the {LOOKS} times that it was looked at: write the new one "
            "beside it, and put it in its place by renaming"
        )


def _age(stamp: Stamp) -> float:
    """Seconds since files were written last; 0 where another computer's clock says that it was later than now."""
    return max(time.time() - max((each[1] for _, each in stamp), default=0) / 1e9, 0.0)


def _stamp(paths: list[Path]) -> Stamp:
    """What tells the files apart from later ones; those that are not there are left to the reader to name."""
    found = ((str(path), file_stamp(path)) for path in paths)
    return tuple((path, stamp) for path, stamp in found if stamp is not None)


def _files(source: DataSource) -> list[Path]:
    if isinstance(source, SimulatorSource):
        from services.site_agent.vault.sources import simulator_source

        return simulator_source.files(source)
    return [source.path]


def _refuse_streams(paths: list[Path]) -> None:
    """A pipe gives its rows once, to whoever reads first, and holds up a reader until somebody writes."""
    for path in paths:
        try:
            kind = path.stat().st_mode
        except OSError:  # the reader says why
            continue
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise VaultError(f"{path} is a pipe or a device: a plant's table is a file, which is read again", "no_data")


def _read(source: DataSource, asset_type: AssetType) -> RawTable:
    """Each source is imported when it is used: a plant with CSV files loads no signal processing."""
    match source:
        case CsvSource():
            from services.site_agent.vault.sources import csv_source

            return csv_source.read(source, asset_type)
        case ParquetSource():
            from services.site_agent.vault.sources import parquet_source

            return parquet_source.read(source, asset_type)
        case SimulatorSource():
            from services.site_agent.vault.sources import simulator_source

            return simulator_source.read(source, asset_type)
        case _:
            assert_never(source)
