"""A table of rows, and the vault on it as CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.vault.misfits import Rows


@pytest.fixture
def load(asset_type: AssetType, write_csv: Callable[..., Path]) -> Callable[..., Dataset]:
    def load(rows: Rows, delimiter: str = ",", **source: Any) -> Dataset:
        path = write_csv(rows, delimiter=delimiter)
        return Vault(CsvSource(kind="csv", path=path, delimiter=delimiter, **source), asset_type).current()

    return load


@pytest.fixture
def rows(make_table: Callable[..., Rows]) -> Rows:
    return make_table(40)
