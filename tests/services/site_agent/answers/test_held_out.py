"""Held out by machine and by time: a training row's neighbours are never the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from services.contracts.machines.asset_type import AssetType
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.sources.csv_source import read
from services.site_agent.vault.sources.held_out import by_machine, by_time, held_by_machine, held_by_time, seconds


@pytest.fixture
def load(asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any) -> Callable[..., Any]:
    def load(column: list[Any], **source: Any) -> Any:
        rows = make_table(len(column))
        path = write_csv([[*rows[0], "extra"], *([*row, cell] for row, cell in zip(rows[1:], column, strict=True))])
        return CsvSource(kind="csv", path=path, **source)

    return load


def test_a_machine_is_on_one_side_with_all_of_its_rows(load: Any, asset_type: AssetType) -> None:
    machines = [f"pump {number // 6}" for number in range(60)]
    source = load(machines, machine_column="extra")
    held = read(source, asset_type).split
    assert isinstance(held, np.ndarray) and 0 < held.sum() < 60
    sides = {name: held[[other == name for other in machines]].mean() for name in machines}
    assert set(sides.values()) == {0.0, 1.0}
    assert sum(sides.values()) == 2, "a quarter of ten machines, to a whole one"
    others = [read(load(machines, machine_column="extra", seed=seed), asset_type).split for seed in range(1, 5)]
    assert any(not np.array_equal(other, held) for other in others)
    dataset = Vault(source, asset_type).current()
    assert (len(dataset.train), len(dataset.test)) == (48, 12) and dataset.train.features.shape[1] == 3


def test_machines_are_chosen_by_name_and_seed_and_not_by_the_order_of_rows() -> None:
    machines = [f"m{number % 20}" for number in range(100)]
    one = held_by_machine(machines, 0.3, 0)
    other = held_by_machine(machines[::-1], 0.3, 0)[::-1]
    np.testing.assert_array_equal(one, other)
    assert one.sum() == 30 and not np.array_equal(one, held_by_machine(machines, 0.3, 1))


@pytest.mark.parametrize("style", ["number", "iso", "zone"])
def test_the_last_rows_are_held_out_and_those_of_one_time_together(
    load: Any, asset_type: AssetType, style: str
) -> None:
    order = np.random.default_rng(2).permutation(40) // 2
    texts = {
        "number": [str(day / 10) for day in order], "iso": [f"2026-01-{day + 1:02d} 10:00" for day in order],
        "zone": [f"2026-01-{day + 1:02d}T10:00:00+0{day % 5}:00" for day in order],
    }
    held = read(load(texts[style], time_column="extra", test_fraction=0.25), asset_type).split
    assert isinstance(held, np.ndarray)
    np.testing.assert_array_equal(held, order >= 15)


def test_times_may_be_numbers_with_a_decimal_comma(
    asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    rows = [[*row, "hours" if at == 0 else at / 4] for at, row in enumerate(make_table(40))]
    path = write_csv([[str(cell).replace(".", ",") for cell in row] for row in rows], delimiter=";")
    source = CsvSource(kind="csv", path=path, delimiter=";", decimal=",", time_column="hours")
    held = read(source, asset_type).split
    assert isinstance(held, np.ndarray) and held.tolist() == [False] * 30 + [True] * 10


def test_a_cut_among_equal_times_takes_them_all_or_what_comes_after() -> None:
    np.testing.assert_array_equal(held_by_time(np.array([1.0, 2.0, 2.0, 2.0]), 0.25), [False, True, True, True])
    np.testing.assert_array_equal(held_by_time(np.array([2.0, 2.0, 2.0, 3.0]), 0.5), [False, False, False, True])
    assert seconds("2026-01-01T00:00:00+02:00") < seconds("2026-01-01T00:00:00")


@pytest.mark.parametrize(
    ("column", "source", "said"),
    [
        (["a"] * 40, {"machine_column": "extra"}, "names one machine"),
        (["3"] * 40, {"time_column": "extra"}, "one time for all rows"),
        (["3"] * 39 + ["yesterday"], {"time_column": "extra"}, "line 41: column 'extra' must hold a number"),
        (["3"] * 39 + ["nan"], {"time_column": "extra"}, "line 41: column 'extra' must hold a number"),
        (["a"] * 39 + [""], {"machine_column": "extra"}, "line 41: column 'extra' holds an empty cell"),
        (["", *["a"] * 39], {"machine_column": "extra"}, "line 2: column 'extra' holds an empty cell"),
        (["a"] * 40, {"machine_column": "machine"}, "no column 'machine' for holding out"),
        (["20260105", *["2026-01-04"] * 39], {"time_column": "extra"}, "line 3: .* a time of ISO 8601, the rows"),
        (["2026-01-04"] * 39 + ["46001"], {"time_column": "extra"}, "line 41: .* a number, the rows before it times"),
    ],
)
def test_a_column_that_tells_nothing_is_refused(
    load: Any, asset_type: AssetType, column: list[str], source: dict[str, str], said: str
) -> None:
    with pytest.raises(VaultError, match=said):
        read(load(column, **source), asset_type)


def test_one_rule_says_what_is_held_out() -> None:
    with pytest.raises(ValidationError, match="machine_column and time_column each say which rows belong together"):
        CsvSource(kind="csv", path=Path("x.csv"), machine_column="a", time_column="b")


def test_training_rows_of_one_machine_are_known_to_belong_together(load: Any, asset_type: AssetType) -> None:
    machines = [f"pump {number % 10}" for number in range(60)]
    train = Vault(load(machines, machine_column="extra"), asset_type).current().train
    assert train.together is not None and len(np.unique(train.together)) == 8, "two of ten are held out"
    held = held_by_machine(machines, 0.25, 0)
    kept = [machine for machine, out in zip(machines, held, strict=True) if not out]
    np.testing.assert_array_equal(train.together, by_machine(kept))
    assert Vault(load(machines), asset_type).current().train.together is None


def test_a_split_that_is_told_is_kept_beside_a_column_of_machines(
    load: Any, asset_type: AssetType, write_csv: Callable[..., Path], make_table: Any
) -> None:
    rows, split = make_table(40), ["test" if number % 4 == 0 else "train" for number in range(40)]
    told = [[*row, f"m{number // 5}", side] for number, (row, side) in enumerate(zip(rows[1:], split, strict=True))]
    path = write_csv([[*rows[0], "machine", "split"], *told])
    source = CsvSource(kind="csv", path=path, split_column="split", machine_column="machine")
    found = read(source, asset_type)
    assert isinstance(found.split, np.ndarray) and found.together is not None
    assert found.split.tolist() == [side == "test" for side in split]
    assert len(np.unique(found.together)) == 8


def test_blocks_of_time_follow_one_another_and_hold_alike_many_rows() -> None:
    times = np.random.default_rng(4).permutation(np.repeat(np.arange(100.0), 2))
    blocks = by_time(times)
    assert np.bincount(blocks).tolist() == [10] * 20
    assert np.array_equal(np.argsort(times, kind="stable"), np.lexsort((np.arange(200), times, blocks)))
    assert all(len(np.unique(blocks[times == each])) == 1 for each in np.unique(times))
