"""The benchmark of accuracy on odd tables: what is read, how it is dealt, and what is a line on stderr."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.accuracy import __main__ as command
from tests.benchmarks.accuracy.__main__ import main
from tests.benchmarks.accuracy.deal import PLANTS, class_numbers, deal
from tests.benchmarks.accuracy.learners import LEARNERS
from tests.benchmarks.accuracy.outcome import Outcome
from tests.benchmarks.accuracy.tables import read_table

Made = Callable[[str, list[str], list[list[Any]]], Path]
LINEAR = ["--learners", "linear-svm-pooled", "--seeds", "1"]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def write(name: str, header: list[str], rows: list[list[Any]]) -> Path:
        path = tmp_path / f"{name}.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    return write


def two_classes(count: int, scale: float = 1.0) -> list[list[Any]]:
    draw = np.random.default_rng(3)
    return [[scale * heat, load, "worn" if heat > load else "sound"] for heat, load in draw.normal(size=(count, 2))]


def said_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_numbers_with_a_decimal_comma_or_a_percent_sign_are_said_to_be_some(made: Made) -> None:
    """They were "columns of text", and of such a target it was said that it has fewer than two classes."""
    shares = [f"{number},5 %" for number in range(60)]
    rows: list[list[Any]] = [[0.5 * number, shares[number], f"n{number}", "ab"[number % 2]] for number in range(60)]
    table = read_table(made("shares", ["heat", "share", "note", "label"], rows))
    assert table.features.shape == (60, 1) and table.left_out == (
        "columns of text: note", "columns of numbers that need '.' for ',' and no '%': share",
    )
    with pytest.raises(ValueError, match="no column of numbers beside the label, without columns of numbers that need"):
        read_table(made("alone", ["share", "label"], [[row[1], row[3]] for row in rows]))
    with pytest.raises(ValueError, match=r"a target is numbers with '\.' and without '%', one is '0,5 %'"):
        read_table(made("target", ["heat", "label"], [row[:2] for row in rows]))
    graded = [[row[0], "1,5" if row[3] == "a" else "2,5"] for row in rows]
    few = read_table(made("few", ["heat", "label"], graded))
    assert set(few.outcomes) == {"1,5", "2,5"}, "few values are classes, whatever they look like"


@pytest.mark.parametrize("label", ["a", "c", "z"])
def test_a_class_of_one_machine_is_learnt_in_every_deal(made: Made, label: str) -> None:
    draw = np.random.default_rng(0)
    rows: list[list[Any]] = [[f"m{n % 16}", *draw.normal(size=2), "bd"[n % 2]] for n in range(330)]
    rows += [["only", *(draw.normal(size=2) + 3.0), label] for _ in range(30)]
    table = read_table(made("only", ["unit_number", "heat", "load", "label"], rows))
    for seed in range(20):
        train, test = deal(table, seed)
        assert set(test.outcomes) <= set(train.outcomes) == {"b", "d", label}
        assert set(train.plants) == set(test.plants) == set(range(PLANTS))


def test_a_class_that_was_not_learnt_is_no_neighbour_of_its_name() -> None:
    assert class_numbers(np.array(["b", "d"]), np.array(["d", "b"])).tolist() == [1, 0]
    for unseen in "acz":
        with pytest.raises(ValueError, match=f"class {unseen} is in no training row"):
            class_numbers(np.array(["b", "d"]), np.array(["d", unseen]))


def test_a_machine_with_most_of_the_rows_leaves_every_plant_both_parts(made: Made) -> None:
    draw = np.random.default_rng(1)
    cells = [["big" if n < 255 else f"m{n // 5}", *draw.normal(size=2), draw.normal()] for n in range(300)]
    table = read_table(made("big", ["unit_number", "heat", "load", "label"], cells))
    for seed in range(10):
        train, test = deal(table, seed)
        assert set(train.plants) == set(test.plants) == set(range(PLANTS))
        assert len(train.outcomes) >= 255, "the large machine is learnt from, not tested"


def test_a_plant_without_rows_of_a_part_is_a_line(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    cells: list[list[Any]] = [[float(n % 3), 0.5 * n] for n in range(7)]
    path = made("seven", ["heat", "label"], cells)
    assert main(["--data", str(path.parent), *LINEAR]) == 2
    assert said_of(capsys)[0] == "left out: seven: plant 4 has no test rows in deal 0: the table has too few rows"


@pytest.mark.parametrize("rows", [1, 2, 4, 7, 20])
def test_rows_that_are_drawn_from_a_table_are_looked_at_again(
    made: Made, capsys: pytest.CaptureFixture[str], rows: int
) -> None:
    folder = made("two", ["heat", "load", "label"], two_classes(200)).parent
    assert main(["--data", str(folder), "--rows", str(rows), *LINEAR]) == 2
    assert said_of(capsys) == [
        "left out: two.csv: fewer than two classes of 20 rows, so there is nothing to learn",
        f"no table in {folder} was learnt: see the lines above",
    ]


def test_odd_tables_are_a_line_each_and_the_others_go_on(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    header = ["heat", "load", "label"]
    folder = made("good", header, two_classes(80)).parent
    made("constant", header, [[1.0, 2.0, "ab"[n % 2]] for n in range(60)])
    (folder / "folder.csv").mkdir()
    made("huge", header, two_classes(80, 1e160))
    made("target", header, [[a, b, 1e200 * a] for a, b, _ in two_classes(80)])
    out = folder / "rows.json"
    assert main(["--data", str(folder), "--json", str(out), *LINEAR]) == 0
    assert [row["table"] for row in json.loads(out.read_text())] == ["good", "huge"]
    printed = capsys.readouterr()
    assert "huge: without columns with readings beyond 1e+150: heat" in printed.out
    assert printed.err.splitlines() == [
        "left out: constant.csv: no feature differs from row to row, so there is nothing to learn from",
        "left out: folder.csv cannot be read: Is a directory",
        "left out: target, linear-svm-pooled: targets beyond 1e+150 cannot be standardised: take another unit",
    ]


def test_what_a_contract_refuses_is_said_in_its_words(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [[load, (-1.7e308, 1.7e308)[n % 2] if n < 100 else load] for n, (_, load, _) in enumerate(two_classes(200))]
    folder = made("wide", ["load", "label"], cells).parent
    assert main(["--data", str(folder), "--learners", "ballast-default", "--seeds", "1"]) == 2
    said = "left out: wide, ballast-default: target: its range is too wide for a float64, got -1.7e+308, 1.7e+308"
    assert said_of(capsys)[0] == said


def test_a_learner_that_ends_in_whatever_way_is_a_line(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Outcome:
        raise IndexError("out of\nbounds")

    monkeypatch.setitem(LEARNERS, "alone", broken)
    folder = made("good", ["heat", "load", "label"], two_classes(80)).parent
    learners = ["--learners", "alone", "linear-svm-pooled"]
    assert main(["--data", str(folder), *learners, "--seeds", "1", "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err == "left out: good, alone: IndexError: out of bounds\n" and "linear-svm-pooled" in printed.out


def test_rows_are_written_as_soon_as_they_are_known(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*given: Any) -> Outcome:
        raise KeyboardInterrupt

    monkeypatch.setitem(LEARNERS, "alone", stopped)
    out = (folder := made("good", ["heat", "load", "label"], two_classes(80)).parent) / "rows.json"
    learners = ["--learners", "linear-svm-pooled", "alone"]
    with pytest.raises(KeyboardInterrupt):
        main(["--data", str(folder), "--json", str(out), *learners, "--seeds", "1", "--jobs", "1"])
    assert [row["learner"] for row in json.loads(out.read_text())] == ["linear-svm-pooled"]


def test_a_process_that_is_killed_is_said(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*given: Any) -> Iterator[Any]:
        raise BrokenExecutor

    monkeypatch.setattr(command, "rows_of", killed)
    folder = made("good", ["heat", "load", "label"], two_classes(80)).parent
    assert main(["--data", str(folder), *LINEAR]) == 1
    assert "--jobs 1" in said_of(capsys)[0]


def test_names_and_folders_that_are_not_there_are_said(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made("good", ["heat", "load", "label"], two_classes(80)).parent
    missing = f"left out: nosuch: there is no {folder / 'nosuch'}.csv; tables there are good"
    assert main(["--data", str(folder), "--tables", "good", "nosuch", *LINEAR]) == 0
    assert said_of(capsys) == [missing]
    assert main(["--data", str(folder), "--tables", "nosuch", *LINEAR]) == 2
    assert said_of(capsys) == [missing, f"no table in {folder} was learnt: see the lines above"]
    assert main(["--data", str(folder / "none"), *LINEAR]) == 2
    assert said_of(capsys) == [f"there is no folder {folder / 'none'}"]
    (folder / "empty").mkdir()
    assert main(["--data", str(folder / "empty"), *LINEAR]) == 2
    assert said_of(capsys)[0].endswith("was learnt: CSV files whose last column is 'label' are needed")


def test_a_table_of_semicolons_and_decimal_commas_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "spreadsheet.csv"
    path.write_text("heat;load;label\n1,5;2,5;worn\n")
    with pytest.raises(ValueError, match="spreadsheet.csv: decimals must have '.', cells divided by ','"):
        read_table(path)


def test_where_held_out_rows_are_too_few_the_estimator_says_no_coverage(made: Made) -> None:
    draw = np.random.default_rng(5)
    cells = [[n % 2 + draw.normal(), draw.normal(), "ab"[n % 2]] for n in range(44)]
    classes = read_table(made("few", ["heat", "load", "label"], cells))
    numbers = read_table(made("numbers", ["heat", "label"], [[x, 2.0 * x + 0.1] for x in draw.normal(size=32)]))
    for table in (classes, numbers):
        train, test = deal(table, 0)
        found = LEARNERS["estimator-default"](train, test, 0)
        assert found.coverage is None and found.width is None and len(found.predicted) == len(test.outcomes)


def test_what_the_training_rows_have_one_value_of_has_a_range_too(made: Made) -> None:
    """A target that differs in a test row alone, and a constant column so large that 1 more is lost in it."""
    draw = np.random.default_rng(5)
    cells = [[-1e20, *draw.normal(size=2), 1.5 if n == 0 else 2.0] for n in range(200)]
    table = read_table(made("rare", ["plate", "heat", "load", "label"], cells))
    train, test = deal(table, 0)
    assert set(train.outcomes) == {2.0} and set(test.outcomes) == {1.5, 2.0}
    for learner in ("ballast-default", "estimator-default"):
        assert LEARNERS[learner](train, test, 0).predicted.tolist() == pytest.approx([2.0] * len(test.outcomes))


@pytest.mark.parametrize("word", ["N/A", "-", "null", "inf", "1e999", " None "])
def test_a_missing_number_among_targets_costs_its_row(made: Made, word: str) -> None:
    cells: list[list[Any]] = [[0.1 * n, word if n == 7 else 0.5 * n] for n in range(200)]
    table = read_table(made("gap", ["heat", "label"], cells))
    assert table.task == "regression" and len(table.outcomes) == 199 and np.isfinite(table.outcomes).all()
    assert table.left_out == ("1 rows with a missing cell",)


def test_classes_of_numbers_are_named_by_their_value(made: Made) -> None:
    words = ["1", "2", "1.0", "2.0", " 2", "-0", "0", "1234567", "1234568"]
    table = read_table(made("codes", ["heat", "label"], [[0.1 * n, words[n % 9]] for n in range(360)]))
    assert set(table.outcomes) == {"0", "1", "2", "1234567", "1234568"} and table.left_out == ()
    few = read_table(made("few", ["heat", "label"], [[0.1 * n, "-" if n < 5 else words[n % 4]] for n in range(200)]))
    assert set(few.outcomes) == {"1", "2"} and few.left_out == ("5 rows with a missing cell",)
    often = read_table(made("often", ["heat", "label"], [[0.1 * n, ["none", *words[:3]][n % 4]] for n in range(200)]))
    assert set(often.outcomes) == {"none", "1", "2"}, "where it is as frequent as a class, none is one"
    text = read_table(made("text", ["heat", "label"], [[0.1 * n, ["007", "7", "worn"][n % 3]] for n in range(200)]))
    assert set(text.outcomes) == {"007", "7", "worn"}, "beside words a number is a word"


@pytest.mark.parametrize(("score", "shown"), [
    (0.98765, "  0.9877"), (0.0, "  0.0000"), (12345.678, "12345.6780"), (3.1e-7, " 3.1e-07"), (1e200, "  1e+200"),
    (1.23456789e200, "1.23457e+200"),
])
def test_a_score_is_printed_in_few_digits(score: float, shown: str) -> None:
    row = {"table": "t", "learner": "alone", "score": score, "worst_plant": score, "seconds": 1.0}
    line = command._line(row | dict.fromkeys(["rounds", "tuning_rounds", "coverage"]))
    assert line.split("alone")[1].strip().startswith(shown.strip()) and f"worst {shown}" in line and len(line) < 110
