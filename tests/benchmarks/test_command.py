"""Commands refuse what cannot be measured or written before they measure, in one line."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from models.basics import ProblemError
from services.contracts.errors import UnavailableError
from tests.benchmarks.command import at_least, in_words, output_file
from tests.benchmarks.data import MissingDataError

COMMANDS = (
    "accuracy.__main__", "api", "conformal", "console", "drfl", "masking", "noise", "overhead", "predictor", "prox",
    "rounds", "scale.__main__", "server_step", "serving.__main__", "simulator", "splines", "splines_made", "unlearning",
    "verification", "waiting", "weekly", "worst_case",
)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_cannot_be_written_is_told_before_the_measuring(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = importlib.import_module(f"tests.benchmarks.{name}")
    for path, said in ((tmp_path / "no" / "rows.json", "there is no folder"), (tmp_path, "is a folder")):
        with pytest.raises(SystemExit) as ended:
            command.main(["--json", str(path)])
        assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize(("name", "arguments"), [
    ("overhead", ["--sites", "0"]), ("overhead", ["--rounds", "1"]), ("server_step", ["--only", "7"]),
    ("unlearning", ["--seeds", "0"]), ("unlearning", ["--questions", "9"]), ("weekly", ["--draws", "0"]),
    ("waiting", ["--seeds", "-1"]), ("rounds", ["--seed", "one"]), ("scale.__main__", ["--cohort", "2"]),
    ("scale.__main__", ["--sites", "2"]), ("scale.__main__", ["--sites", "3", "--page", "page.txt"]),
    *(("serving.__main__", ["--seconds", seconds]) for seconds in ("0", "-1", "nan", "inf", "1e999", "two")),
    ("prox", ["--penalty", "0"]), ("prox", ["--penalty", "nan"]),
])
def test_numbers_that_measure_nothing_are_refused(name: str, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"tests.benchmarks.{name}").main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(("name", "arguments"), [
    ("multiclass", ["--splits", "0"]), ("multiclass", ["--tables"]),
    *((f"papers.{name}", ["--repetitions", "0"]) for name in ("fdr_svm.table1", "fdr_svm.table2", "drfl.sweeps")),
    ("papers.fdr_svm.table1", ["--jobs", "0"]), ("papers.relative_fairness.table1", ["--jobs", "0"]),
    ("papers.relative_fairness.federated", ["--rounds", "0"]), ("papers.drflm.table2", ["--rounds", "few"]),
])
def test_so_do_commands_that_take_their_arguments_from_the_line(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(name, arguments, monkeypatch) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(("is not a whole number at or above 1", "expected at least one argument"))


@pytest.mark.parametrize(("name", "option"), [
    ("fdr_svm.table5", "--jobs"), ("fdr_svm.table5", "--quick"), ("fdr_svm.ours_against", "--jobs"),
    ("fdr_svm.ours_against", "--quick"), ("drfl.figure1", "--jobs"), ("relative_fairness.rate", "--quick"),
])
def test_an_experiment_takes_no_option_that_does_nothing(
    name: str, option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(f"papers.{name}", [option, *(["2"] if option == "--jobs" else [])], monkeypatch) == 2
    assert f"unrecognized arguments: {option}" in capsys.readouterr().err


def refusal(name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Exit code of a command whose arguments are refused."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"tests.benchmarks.{name}").main()
    return ended.value.code


def test_a_table_that_is_not_there_is_told_before_others_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "palmer_penguins.csv").touch()
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path))
    multiclass = importlib.import_module("tests.benchmarks.multiclass")
    monkeypatch.setattr(multiclass, "read", lambda name: pytest.fail(f"{name} was read"))
    with pytest.raises(MissingDataError, match="there is no .*/nothing.csv"):
        multiclass.main(["--tables", "palmer_penguins", "nothing"])


def test_whole_numbers() -> None:
    assert at_least(0)("0") == 0 and at_least(2, 3)("3") == 3
    for text in ("1", "4", "-2", "2.5", "two", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="at or above 2 and at most 3"):
            at_least(2, 3)(text)


def test_a_file_in_the_folder_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert output_file("rows.json") == Path("rows.json")


def test_a_missing_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def of(error: Exception) -> int:
        def main() -> None:
            raise error

        return in_words(main)

    assert in_words(lambda: None) == 0 and in_words(lambda: 3) == 3
    for error in (
        MissingDataError("there is no sonar.csv"), ProblemError("gap must be finite"),
        UnavailableError("the database x.db cannot be reached or opened"),
    ):
        assert of(error) == 1
        assert capsys.readouterr().err == f"error: {error}\n"


def test_a_database_that_cannot_be_opened_is_one_line_too() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.server_step", "--only", "4", "--database", "sqlite:////no/b.db"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (1, "error: the database /no/b.db cannot be reached or opened\n")
