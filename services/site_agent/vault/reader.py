"""Opens the site's data, keeps the dataset in memory, and reads it again when the files change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource, DataSource, ParquetSource, SimulatorSource
from services.site_agent.vault.dataset import Dataset, build_dataset
from services.site_agent.vault.sources.table import RawTable

RUNS_KEPT = 4  # runs at once that a plant takes part in; each keeps its rows in memory
Stamp = tuple[tuple[str, int, int], ...]


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
        """Dataset of the files as they are now, from memory unless their time of change or size differs.

        ``VaultError`` where something does not fit the contract; the text says what and where, and stays in the plant.
        """
        with self._mutex:
            stamp = _stamp(_files(self._source))
            if self._dataset is None or stamp != self._stamp:
                self._dataset = None
                self._dataset = build_dataset(_read(self._source, self._asset_type), self._asset_type)
                self._stamp = stamp
            return self._dataset


def _stamp(paths: list[Path]) -> Stamp:
    found = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue  # the reader will say what is missing
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)


def _files(source: DataSource) -> list[Path]:
    if isinstance(source, SimulatorSource):
        from services.site_agent.vault.sources import simulator_source

        return simulator_source.files(source)
    return [source.path]


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
