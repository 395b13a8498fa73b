"""The vault: what fits is read right, and what does not is said precisely, on the plant's side alone."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.plain_words import plain
from services.site_agent.settings import CsvSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from tests.services.site_agent.vault.misfits import Rows, clear, drop_cell, drop_column, keep_header, put


def test_features_are_scaled_by_the_sensor_ranges_and_columns_may_stand_in_any_order(load: Any) -> None:
    rows = [["note", "label", "ripple", "flow", "oil"], ["x", "healthy", -10, 25, 1], ["y", "leak", 5, 100, 4]]
    dataset = load(rows, test_fraction=0.1)
    np.testing.assert_allclose(dataset.train.features, [[0.25, 0.0, 0.25], [1.0, 0.75, 1.0]])
    np.testing.assert_array_equal(dataset.train.classes, [0, 1])
    assert len(dataset.test) == 0 and not dataset.clipped and not dataset.absent


def test_columns_labels_and_the_european_way_of_writing_numbers(load: Any) -> None:
    rows = [["Durchfluss", "ripple [bar]", "Zustand"], ["50,0", "1,5", "gut"], ["75,0", "0", "undicht"]]
    dataset = load(
        rows, delimiter=";", decimal=",", columns={"flow": "Durchfluss"}, label_column="Zustand",
        labels={"gut": "healthy", "undicht": "leak"}, units={"flow": "L/min"}, test_fraction=0.1,
    )
    np.testing.assert_allclose(dataset.train.features[:, :2], [[0.5, 0.575], [0.75, 0.5]])
    assert dataset.absent == ("oil",)
    np.testing.assert_array_equal(dataset.train.features[:, 2], 0.5)


@pytest.mark.parametrize("word", ["leck", "le\u200back", 'a "b"', "\u0085x\x9b"])
def test_the_line_that_is_told_for_a_word_of_the_plants_own_is_right(load: Any, rows: Rows, word: str) -> None:
    """Of signs that nobody sees a terminal is told a blank, which is another word."""
    rows[5][3] = '"' + word.replace('"', '""') + '"'
    with pytest.raises(VaultError) as caught:
        load(rows)
    said = plain(str(caught.value)).partition("under [data.labels], as ")[2]
    assert load(rows, labels=tomllib.loads(said.replace("CLASS", '"leak"')))


@pytest.mark.parametrize("where", ["heading", "settings"])
def test_a_unit_that_reads_like_the_contracts_is_it(
    asset_type: AssetType, write_csv: Any, rows: Rows, where: str
) -> None:
    """German keyboards type the micro sign, Greek ones the letter; nobody sees which it is."""
    features = asset_type.features
    wanted = features[2].model_copy(update={"unit": "\u00b5m"})
    metered = asset_type.model_copy(update={"features": (*features[:2], wanted)})
    rows[0][2] = "oil [\u03bcm]" if where == "heading" else "oil"
    source = CsvSource(kind="csv", path=write_csv(rows), units={"oil": "\u03bcm"} if where == "settings" else {})
    assert not Vault(source, metered).current().absent


def test_a_split_column_is_obeyed(load: Any, rows: Rows) -> None:
    for number, row in enumerate(rows):
        row.append("split" if number == 0 else "test" if number <= 10 else "train")
    dataset = load(rows, split_column="split")
    assert (len(dataset.train), len(dataset.test)) == (30, 10)


def test_a_split_column_that_leaves_nothing_to_learn_from_is_said(load: Any, rows: Rows) -> None:
    for number, row in enumerate(rows):
        row.append("split" if number == 0 else "test")
    with pytest.raises(VaultError, match="no row is in the training part") as caught:
        load(rows, split_column="split")
    assert caught.value.refusal_code == "no_data"


def test_the_held_out_part_is_stratified_and_does_not_depend_on_the_order(load: Any, make_table: Any) -> None:
    rows = make_table(200)
    one, other = load(rows), load([rows[0], *reversed(rows[1:])])
    assert (len(one.train), len(one.test)) == (150, 50)
    np.testing.assert_array_equal(np.bincount(one.test.classes), [25, 25])
    np.testing.assert_array_equal(np.unique(one.test.features, axis=0), np.unique(other.test.features, axis=0))
    assert not np.array_equal(np.unique(load(rows, seed=1).test.features, axis=0), np.unique(one.test.features, axis=0))


def test_a_value_outside_its_range_is_clipped_or_refused_as_the_contract_says(load: Any, rows: Rows) -> None:
    rows[3][0] = 1e9
    dataset = load(rows)
    assert dataset.clipped == {"flow": 1}
    assert max(dataset.train.features.max(), dataset.test.features.max()) == 1.0
    rows[4][1] = 10.5
    with pytest.raises(VaultError, match=r"line 5: feature ripple is outside its sensor range \[-10, 10\] bar"):
        load(rows)


MISFITS: dict[str, tuple[Callable[[Rows], None], dict[str, Any], str]] = {
    "unknown class in the settings": (
        put(0, 0, "flow"), {"labels": {"leak": "leek"}},
        "settings make the class 'leek' of 'leak', but pump has no such class; its classes are healthy, leak",
    ),
    "unknown class in the settings, of a word that no row has": (
        put(0, 0, "flow"), {"labels": {"undicht": "leek"}}, "settings make the class 'leek' of 'undicht'",
    ),
    "a mark in a name that nobody sees": (put(0, 0, "\u200bflow"), {}, "it has: '.u200bflow', ripple, oil, label"),
    "missing column": (drop_column, {}, "no column 'flow' for feature flow; it has: ripple, oil, label"),
    "missing mapped column": (put(0, 0, "q"), {"columns": {"flow": "Q"}}, "no column 'Q' for feature flow"),
    "missing label column": (put(0, 3, "state"), {}, "no column 'label' for the label"),
    "missing split column": (put(0, 0, "flow"), {"split_column": "part"}, "no column 'part' for the split"),
    "unknown feature in the mapping": (put(0, 0, "flow"), {"columns": {"flwo": "q"}}, "no such feature"),
    "unknown feature in the units": (put(0, 0, "flow"), {"units": {"flwo": "q"}}, "no such feature"),
    "wrong unit in the settings": (
        put(0, 0, "flow"), {"units": {"flow": "m3/h"}}, "flow is in 'm3/h', the contract wants 'L/min'",
    ),
    "wrong unit in the header": (put(0, 0, "flow [gpm]"), {}, "flow is in 'gpm', the contract wants 'L/min'"),
    "text": (put(5, 1, "high"), {}, "line 6: column 'ripple' holds text where a number must be"),
    "empty cell": (put(5, 1, ""), {}, "line 6: column 'ripple' holds an empty cell"),
    "NaN": (put(9, 0, "nan"), {}, "line 10: column 'flow' holds NaN"),
    "infinity": (put(9, 0, "-inf"), {}, "line 10: column 'flow' holds an infinite value"),
    "overflow": (put(9, 0, "1e999"), {}, "line 10: column 'flow' holds an infinite value"),
    "unknown class": (
        put(9, 3, "melted"), {}, "line 10: label 'melted' is not a class of pump; its classes are healthy, leak; a "
        r'word of the plant\'s own goes under \[data.labels\], as "melted" = CLASS',
    ),
    "class in capitals": (put(9, 3, "Leak"), {}, "line 10: label 'Leak' is not a class of pump"),
    "wrong split": (put(0, 0, "flow"), {"split_column": "label"}, "must hold 'train' or 'test'"),
    "short row": (drop_cell, {}, "line 8: 3 cells, the header has 4"),
    "column twice": (put(0, 2, "flow"), {}, "column 'flow' is there 2 times"),
    "column twice, with its unit": (
        put(0, slice(0, 3, 2), ["flow [L/min]", "flow [L/min]"]), {}, "column 'flow' is there 2 times",
    ),
    "wrong unit in a mapped column's heading": (
        put(0, 0, "Q [m3/h]"), {"columns": {"flow": "Q [m3/h]"}}, "flow is in 'm3/h', the contract wants 'L/min'",
    ),
    "one column for two features": (
        put(0, 0, "flow"), {"columns": {"ripple": "flow"}}, "column 'flow' would be both flow and ripple",
    ),
    "point at thousands": (
        put(1, 0, "1.234"), {"decimal": ",", "delimiter": ";"}, "line 2: column 'flow' holds a point",
    ),
    "underscore": (put(9, 0, "1_0"), {}, "line 10: column 'flow' holds text where a number must be"),
    "header only": (keep_header, {}, "has a header but no rows"),
    "empty": (clear, {}, "is empty"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_said_precisely(load: Any, rows: Rows, name: str) -> None:
    change, source, expected = MISFITS[name]
    change(rows)
    with pytest.raises(VaultError, match=expected) as caught:
        load(rows, **source)
    assert "\n" not in str(caught.value)
    assert caught.value.refusal_code == ("no_data" if name in ("header only", "empty") else "bad_data")


def test_one_class_only_is_refused(load: Any, make_table: Any) -> None:
    dataset = load(make_table(40, classes=("leak",)))
    with pytest.raises(VaultError, match="one class only.*one_class = true") as caught:
        dataset.refuse_one_class()
    assert caught.value.refusal_code == "one_class_only"
