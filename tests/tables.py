"""Public tables for the tests that need one; they are no part of the project, so a test without its table skips."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.data import MissingDataError, table_path


def table_or_skip(name: str) -> Path:
    """Path of a table; where it is not there the test is skipped, and the reason says how to get the table."""
    try:
        return table_path(name)
    except MissingDataError as missing:
        pytest.skip(str(missing))
