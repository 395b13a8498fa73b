"""A small run of the attacks: rows are found, and never more than the plants' own figures say."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from tests.attacks.__main__ import ATTACKS, main


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("attacks")
    features, labels = load_breast_cancer(return_X_y=True)
    with (folder / "cancer.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{number}" for number in range(10)), "label"])
        table.writerows([*row[:10], label] for row, label in zip(features[:100], labels[:100], strict=True))
    (folder / "text.csv").write_text("a,label\nword,1\n")
    command = ["--json", str(folder / "found.json"), "--data", str(folder), "--methods", "level-bundle", "fdr-sm"]
    assert main([*command, "--sites", "2"]) == 0
    found: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return found


def test_every_attack_is_made_on_every_method(lines: list[dict[str, Any]]) -> None:
    assert len(lines) == 2 * len(ATTACKS)
    assert {line["table"] for line in lines} == {"cancer"}
    assert all(line["rows"] == 100 for line in lines)


def test_single_answers_give_rows_away_and_the_plants_know_how_many(lines: list[dict[str, Any]]) -> None:
    for method in ("level-bundle", "fdr-sm"):
        found = {f"{line['mode']} {line['attack']}": line for line in lines if line["method"] == method}
        for name in ("pairwise", "differences", "span"):
            line = found[f"per-site {name}"]
            assert 0 < line["rows_found"] <= line["exposure"], line
        assert found["per-site bisection"]["rows_found"] > 25, "steep questions find many rows"
        assert found["sum pairwise"]["rows_found"] < found["sum drop-one"]["rows_found"]


def test_a_cosine_a_little_off_is_not_found() -> None:
    from tests.attacks.finding import rows_along

    row = np.array([[0.6, 0.8, 1.0]])
    across = np.array([[0.8, -0.6, 0.0]]) * np.linalg.norm(row)
    assert rows_along(-3.0 * row + 1e-5 * across, row) == {0}
    assert rows_along(row + 2e-5 * across, row) == set()
