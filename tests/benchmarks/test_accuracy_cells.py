"""The benchmark of accuracy reads cells as plants do, and words that spreadsheets write for what is no number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.accuracy.tables import read_table


def written(folder: Path, header: str, cells: list[str]) -> Path:
    path = folder / "made.csv"
    path.write_text("\n".join([header, *cells]) + "\n", encoding="utf-8")
    return path


def test_blanks_around_names_classes_and_words_count_for_nothing(tmp_path: Path) -> None:
    """``worn`` and ``worn `` were two classes, and ``unit_number `` a sensor."""
    states, words = ("dry", " dry", "wet "), ("worn", "worn ", "sound")
    cells = [f"m{n % 8} , {n % 7}.5,{states[n % 3]}, {words[n % 3]}" for n in range(120)]
    table = read_table(written(tmp_path, "unit_number ,heat, oil,label ", cells))
    assert set(table.outcomes) == {"worn", "sound"} and table.features.shape == (120, 3)
    assert table.machines is not None and set(table.machines) == {f"m{n}" for n in range(8)}


@pytest.mark.parametrize("word", ["#DIV/0!", "#VALUE!", "#N/A", " - "])
def test_a_spreadsheets_error_costs_its_row_and_not_the_column(tmp_path: Path, word: str) -> None:
    cells = [f"{n % 9}.5,{word if n == 5 else n % 7},{('worn', 'sound')[n % 2]}" for n in range(120)]
    table = read_table(written(tmp_path, "heat,load,label", cells))
    assert table.features.shape == (119, 2) and table.left_out == ("1 rows with a missing cell",)
