"""The benchmark of accuracy: what it makes of a table, how it deals, and a whole run on a small one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.accuracy.__main__ import main
from tests.benchmarks.accuracy.deal import PLANTS, deal
from tests.benchmarks.accuracy.tables import read_table


def written(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def wear(path: Path, count: int = 200, machines: int = 20) -> Path:
    draw = np.random.default_rng(2)
    rows: list[list[object]] = []
    for number in range(count):
        heat, noise = draw.uniform(0.0, 100.0), draw.uniform(0.0, 1.0)
        rows.append([f"m{number % machines}", heat, noise, 0.5 * heat + 3.0 * draw.standard_normal()])
    return written(path, ["unit_number", "heat", "noise", "label"], rows)


def test_labels_are_classes_or_a_target_by_what_they_are(tmp_path: Path) -> None:
    cells = [[0.1 * number, "abc"[number % 3], number % 4] for number in range(80)]
    codes = read_table(written(tmp_path / "codes.csv", ["x", "kind", "label"], [*cells]))
    assert (codes.task, codes.features.shape, sorted(set(codes.outcomes))) == ("classification", (80, 4), list("0123"))
    many = [[0.1 * number, number] for number in range(80)]
    assert read_table(written(tmp_path / "many.csv", ["x", "label"], [*many])).task == "regression"
    holes = [[0.1 * number if number % 2 else "", "up" if number % 3 else "down"] for number in range(200)]
    kept = read_table(written(tmp_path / "holes.csv", ["x", "label"], [*holes]))
    assert len(kept.outcomes) == 100 and "100 rows with a missing cell" in kept.left_out
    with pytest.raises(ValueError, match="the last column must be 'label'"):
        read_table(written(tmp_path / "none.csv", ["label", "x"], [[1, 2]]))


def test_machines_stay_whole_and_the_machine_is_no_feature(tmp_path: Path) -> None:
    table = read_table(wear(tmp_path / "wear.csv"))
    assert table.features.shape == (200, 2) and table.machines is not None
    train, test = deal(table, 1)
    assert len(train.outcomes) + len(test.outcomes) == 200
    assert set(train.plants) == set(test.plants) == set(range(PLANTS))
    machine = {tuple(row): name for row, name in zip(table.features.tolist(), table.machines, strict=True)}
    where = [(machine[tuple(row)], int(plant), part) for part, dealt in enumerate((train, test))
             for row, plant in zip(dealt.features.tolist(), dealt.plants, strict=True)]
    assert len({name for name, _, _ in where}) == len(set(where)), "a machine is at one plant, in one part"


def test_plants_are_unlike_and_every_plant_can_learn_and_test_what_it_has(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows: list[list[object]] = []
    for number in range(240):
        label = "rare" if number < 24 else "often"
        rows.append([draw.normal() + (label == "rare"), draw.normal(), label])
    table = read_table(written(tmp_path / "rare.csv", ["a", "b", "label"], rows))
    for seed in range(3):
        train, test = deal(table, seed)
        for plant in range(PLANTS):
            own, held = train.of(plant), test.of(plant)
            assert all((own.outcomes == label).sum() >= 2 for label in set(held.outcomes))
            assert set(held.outcomes) <= set(own.outcomes)
        means = [train.of(plant).features.mean(axis=0) for plant in range(PLANTS)]
        assert max(np.abs(a - b).max() for a in means for b in means) > 0.5


def test_a_folder_of_tables_gives_a_row_for_each_learner(tmp_path: Path) -> None:
    wear(tmp_path / "wear.csv", 240, 24)
    out = tmp_path / "rows.json"
    learners = ["estimator-default", "linear-svm-pooled", "alone", "ballast-default-seen", "ballast-auto"]
    assert main(["--json", str(out), "--data", str(tmp_path), "--learners", *learners, "--seeds", "1"]) == 0
    rows = json.loads(out.read_text())
    assert [row["learner"] for row in rows] == learners
    assert set(rows[0]) == {
        "table", "task", "learner", "metric", "score", "worst_plant", "seconds", "rounds", "bytes_per_site", "coverage",
        "width", "tuning_rounds", "tuning_bytes", "scores",
    }
    ours = rows[0]
    assert ours["metric"] == "mean absolute error" and ours["score"] <= ours["worst_plant"] < 6.0
    assert ours["rounds"] >= 1 and ours["bytes_per_site"] > 0 and ours["coverage"] > 0.8 and ours["width"] > 0
    assert rows[1]["rounds"] is None and rows[1]["coverage"] is None
    seen, tuned = rows[3:]
    assert seen["score"] == pytest.approx(ours["score"], rel=0.05), "the estimator and the service solve one problem"
    assert seen["coverage"] is None and seen["tuning_rounds"] is None and seen["scores"] == [seen["score"]]
    assert tuned["score"] < 6.0 and 0 < tuned["tuning_rounds"] < tuned["rounds"]
    assert 0 < tuned["tuning_bytes"] < tuned["bytes_per_site"]
