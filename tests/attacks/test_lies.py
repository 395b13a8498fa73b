"""A small run of the lies: each is convicted, and honest plants never are."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

from tests.attacks.lies import LIES, main


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, object]]]:
    folder = tmp_path_factory.mktemp("lies")
    features, labels = load_breast_cancer(return_X_y=True)
    with (folder / "cancer.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{number}" for number in range(4)), "label"])
        table.writerows([*row[:4], label] for row, label in zip(features[:80], labels[:80], strict=True))
    found = folder / "lies.json"
    command = ["--json", str(found), "--data", str(folder), "--tables", "cancer", "--seeds", "1", "--honest", "6"]
    assert main(command) == 0
    document: dict[str, list[dict[str, object]]] = json.loads(found.read_text())
    return document


def test_every_lie_to_single_questions_is_convicted(told: dict[str, list[dict[str, object]]]) -> None:
    lines = {str(line["lie"]): line for line in told["lies"] if line["mode"] == "per-site"}
    assert set(lines) == set(LIES)
    for line in lines.values():
        assert line["convicted"] == 1 and isinstance(line["last_round"], int) and line["last_round"] <= 40, line


def test_an_audit_of_every_round_convicts_what_sums_hide(told: dict[str, list[dict[str, object]]]) -> None:
    by_mode = {(line["mode"], line["lie"]): line for line in told["lies"]}
    for lie in LIES:
        assert by_mode["audited sum", lie]["convicted"] == 1
    assert by_mode["sum", "another plant's answer"]["convicted"] == 0, "a sum with a copy is a sum of convex risks"
    assert by_mode["sum", "signs flipped"]["convicted"] == 1


def test_honest_plants_are_never_convicted(told: dict[str, list[dict[str, object]]]) -> None:
    assert told["convicted"] == [] and told["audited"] == []


def test_the_folder_of_tables_may_be_any(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["--json", str(tmp_path / "x.json"), "--data", str(tmp_path), "--tables", "nothing"])
