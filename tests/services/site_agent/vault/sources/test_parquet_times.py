"""Parquet's kinds of time in a ``time_column``: to the nanosecond, in every zone, and beyond all calendars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import ParquetSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.vault.misfits import Rows
from tests.services.site_agent.vault.sources.test_parquet_source import write_parquet


def timed(rows: Rows, path: Path, kind: Any) -> ParquetSource:
    """A table with whole numbers of a kind of time in its column ``taken``, the last rows held out by them."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    write_parquet(rows, path)
    table = parquet.read_table(path)
    taken = pyarrow.array([1_790_000_000_000_001 + 1_000_001 * row for row in range(len(table))], pyarrow.int64())
    parquet.write_table(table.append_column("taken", taken.cast(kind(pyarrow))), path)
    return ParquetSource(kind="parquet", path=path, time_column="taken")


WITHOUT_PANDAS = """import sys
from pathlib import Path
from tests.services.site_agent import hidden_packages
hidden_packages.HIDDEN = ("pandas", "pytz")
sys.meta_path.insert(0, hidden_packages.Hidden())
from services.site_agent.settings import ParquetSource
from services.site_agent.vault.sources import parquet_source
from services.contracts.machines.asset_type import AssetType
source = ParquetSource(kind="parquet", path=Path(sys.argv[1]), time_column="taken")
print(*parquet_source.read(source, AssetType.from_toml(Path(sys.argv[2]))).split)
"""


def test_times_to_the_nanosecond_are_read_where_no_pandas_is(
    rows: Rows, asset_type_file: Path, tmp_path: Path
) -> None:
    """A plant installs pyarrow alone, which gives such times by pandas."""
    source = timed(rows, tmp_path / "data.parquet", lambda pyarrow: pyarrow.timestamp("ns", "Europe/Berlin"))
    command = [sys.executable, "-c", WITHOUT_PANDAS, str(source.path), str(asset_type_file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.stderr
    assert done.stdout.split() == ["False"] * 30 + ["True"] * 10


def test_a_time_counts_as_the_moment_that_it_is_whatever_the_zone(
    rows: Rows, asset_type: AssetType, tmp_path: Path
) -> None:
    found = [
        Vault(timed(rows, tmp_path / f"{number}.parquet", kind), asset_type).current()
        for number, kind in enumerate([
            lambda pyarrow: pyarrow.timestamp("us"), lambda pyarrow: pyarrow.timestamp("us", "+09:00"),
            lambda pyarrow: pyarrow.timestamp("us", "Mars/Phobos"), lambda pyarrow: pyarrow.int64(),
        ])
    ]
    assert [each.test.features.tolist() for each in found] == [found[0].test.features.tolist()] * 4
    assert len(found[0].test) == 10


@pytest.mark.parametrize(("kind", "said"), [
    (lambda pyarrow: pyarrow.timestamp("ms"), "row 1: column 'taken' must hold a number, or a time as ISO 8601 has it"),
    (lambda pyarrow: pyarrow.duration("s"), "column 'taken' holds duration.s., of which a value is too large"),
])
def test_times_beyond_all_calendars_are_said(
    rows: Rows, asset_type: AssetType, tmp_path: Path, kind: Any, said: str
) -> None:
    with pytest.raises(VaultError, match=said):
        Vault(timed(rows, tmp_path / "data.parquet", kind), asset_type).current()
