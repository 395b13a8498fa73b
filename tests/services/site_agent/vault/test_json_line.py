"""A line of NDJSON is one measurement, or one clear line that says why it is none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.json_line import LONGEST_LINE, scaled_line

COLUMNS = CsvSource(kind="csv", path=Path("-"), columns={"flow": "Q"})


def test_a_line_is_scaled_by_the_contracts_ranges(asset_type: AssetType) -> None:
    line = json.dumps({"Q": 25, "ripple": -5.0, "oil": 4.0, "other": "words"}).encode()
    np.testing.assert_allclose(scaled_line(line, "line 1", COLUMNS, asset_type).features, [[0.25, 0.25, 1.0]])


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("true", "'Q' must hold a number"), ('"25"', "'Q' must hold a number"), ("null", "'Q' must hold a number"),
        ("NaN", "'Q' must hold a finite number"), ("-Infinity", "'Q' must hold a finite number"),
        ("1e999", "'Q' must hold a finite number"), ("1" + "0" * 400, "'Q' must hold a finite number"),
    ],
)
def test_what_is_no_finite_number_is_said_with_its_line(asset_type: AssetType, cell: str, said: str) -> None:
    with pytest.raises(VaultError) as caught:
        scaled_line(f'{{"Q": {cell}, "ripple": 1.0}}'.encode(), "line 7", COLUMNS, asset_type)
    assert str(caught.value).startswith("line 7: ") and said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [(b"[" * 50_000, "it is not JSON"), (b"{", "it is not JSON"), (b"\xff", "it is not JSON"), (b"[1]", "object"),
     (b'{"Q": 25}', "ripple"),
     # As the OEM's API has it: of two readings neither is guessed at, and an answer must be able to name a key.
     (b'{"Q": 25, "ripple": 1, "Q": 5}', "the key 'Q' is there twice"),
     (b'{"Q": 25, "ripple": 1, "other": {"a": 1, "a": 1}}', "the key 'a' is there twice"),
     (b'{"\\ud800": 25, "ripple": 1}', "it is not JSON")],
)
def test_a_line_that_is_none_is_one_clear_line(asset_type: AssetType, line: bytes, said: str) -> None:
    with pytest.raises(VaultError) as caught:
        scaled_line(line, "line 7", COLUMNS, asset_type)
    assert str(caught.value).startswith("line 7: ") and said in str(caught.value)


def test_the_longest_line_is_read_and_one_byte_more_is_not(asset_type: AssetType) -> None:
    line = json.dumps({"Q": 25.0, "ripple": 1.0}).encode()
    longest = line + b" " * (LONGEST_LINE - len(line))
    assert scaled_line(longest, "line 1", COLUMNS, asset_type).features.shape == (1, 3)
    with pytest.raises(VaultError, match=f"it has {LONGEST_LINE + 1} bytes, {LONGEST_LINE} are the most"):
        scaled_line(longest + b" ", "line 1", COLUMNS, asset_type)
