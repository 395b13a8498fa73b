"""A small run of the attacks: plants with the default policy give no row away, and an open one what it said."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from models.methods.catalogue import get_method
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.isolation.guard import VaultGuard
from tests.attacks.__main__ import ATTACKS, attack, bisected, dropped, failed, figures, main, views
from tests.attacks.finding import differences, pairwise, rows_along
from tests.attacks.gated_plants import Plant, dealt, honest_run
from tests.attacks.tables import read_table
from tests.attacks.tunings import rows_found, tuned_group

ROWS = 80


def table() -> tuple[np.ndarray, np.ndarray]:
    features, labels = load_breast_cancer(return_X_y=True)
    features = features[:ROWS, :6]
    return (features - features.min(axis=0)) / np.ptp(features, axis=0), np.where(labels[:ROWS] == 1, 1.0, -1.0)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("attacks")
    features, labels = table()
    with (folder / "cancer.csv").open("w", newline="") as file:
        written = csv.writer(file)
        written.writerow([*(f"x{number}" for number in range(6)), "label"])
        written.writerows([*row, label] for row, label in zip(features, labels, strict=True))
        written.writerow(["", *features[0, 1:], 1.0])
    (folder / "text.csv").write_text("a,label\nword,1\n")
    command = ["--json", str(folder / "found.json"), "--data", str(folder), "--methods", "level-bundle", "wafl"]
    assert main([*command, "--sites", "4"]) == 0
    found: list[dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return found


def test_every_attack_is_made_in_every_mode_of_a_method(lines: list[dict[str, Any]]) -> None:
    made = [(line["method"], line["mode"], line["attack"]) for line in lines]
    pairs = (("level-bundle", "per-site"), ("level-bundle", "sum"), ("wafl", "per-site"))
    assert made == [(method, mode, each) for method, mode in pairs for each in ATTACKS]
    assert all(line["table"] == "cancer" and line["rows"] == ROWS for line in lines)


def test_no_row_is_found_but_by_who_knows_every_coefficient(lines: list[dict[str, Any]]) -> None:
    assert not [line for line in lines if line["attack"] != "span" and line["rows_found"]]
    single = [line for line in lines if line["attack"] == "span" and line["method"] == "level-bundle"]
    assert 0 < single[0]["rows_found"] <= single[0]["exposure"]


def test_plants_whose_guard_sleeps_give_rows_away_on_sums_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VaultGuard, "choose", lambda self, question, candidate, vectors: candidate(0, None))
    monkeypatch.setattr(VaultGuard, "choose_cut", lambda self, question, near, exact, other: exact)
    features, labels = table()
    for mode in ("per-site", "sum"):
        sites = dealt(features, labels, 4, get_method("level-bundle"))
        plants = {site: Plant(problem, SitePolicy(exposure_limit=1.0)) for site, problem in sites.items()}
        honest_run(plants, "level-bundle", cohorts={"all": tuple(plants)} if mode == "sum" else None, max_rounds=25)
        group = list(plants.values())
        seen = zip(*views(group, mode), strict=True)
        found = sum(len(differences(vectors, rows)) for vectors, rows in seen)
        assert 0 < found <= figures(group)[1], mode
        assert 0 < dropped(plants, "level-bundle", mode)[0] <= figures(group)[1]
    open_plants = [Plant(problem, SitePolicy(exposure_limit=1.0)) for problem in sites.values()]
    assert bisected(open_plants, "level-bundle-plain", "per-site") > 5, "steep questions find many rows"


def test_sums_of_a_tuning_and_of_the_training_after_it_give_no_row_away() -> None:
    features, labels = table()
    tuned = tuned_group(features[:60, :4], labels[:60], "tuning-targets", "sum", 3)
    assert rows_found(tuned, "sum") == {"pairwise": 0, "differences": 0}
    lifts, trained = {lift for plant in tuned for lift in plant.sent}, [plant.plant.sent for plant in tuned]
    assert lifts == set(range(len(tuned[0].lifts))) and len(lifts) == 3
    assert all(trained) and not [plant for plant in tuned if plant.plant.refused]
    assert all("slope" in sent for plant in tuned for sent in plant.sent[0])


def test_sums_of_a_tuning_of_three_classes_give_no_row_away() -> None:
    """Each plant counts its rows alike here, where a vault's own weights would hide more."""
    features, labels = table()
    tuned = tuned_group(features[:90, :4], labels[:90], "tuning-several", "sum", 3)
    assert rows_found(tuned, "sum") == {"pairwise": 0, "differences": 0}
    sent = [answer for plant in tuned for each in plant.sent.values() for answer in each]
    assert sent and {answer["slope"].shape[0] for answer in sent} == {3} and not [p for p in tuned if p.plant.refused]
    assert {answer["norm_weight"].any() for answer in sent} == {False}, "squares have no ball"


@pytest.mark.parametrize("name", ["tuning", "tuning-targets"])
def test_plants_whose_guard_sleeps_give_rows_away_in_a_tuning(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(VaultGuard, "choose", lambda self, question, candidate, vectors: candidate(0, None))
    monkeypatch.setattr(VaultGuard, "choose_cut", lambda self, question, near, exact, other: exact)
    policy = SitePolicy(exposure_limit=1.0)
    features, labels = table()
    found = rows_found(tuned_group(features[:60, :4], labels[:60], name, "per-site", 2, policy=policy), "per-site")
    assert 0 < found["pairwise"] <= found["differences"]


def whole_numbers() -> tuple[np.ndarray, np.ndarray]:
    """Three columns of five values: many sums of rows are a multiple of one."""
    draw = np.random.default_rng(5)
    features = draw.integers(0, 5, (ROWS, 3)) / 4
    scores = features @ draw.normal(size=3) + 0.5 * draw.normal(size=ROWS)
    return features, np.where(scores > np.median(scores), 1.0, -1.0)


@pytest.mark.parametrize("asleep", [False, True])
def test_of_whole_numbers_no_more_is_found_than_the_plants_say(monkeypatch: pytest.MonkeyPatch, asleep: bool) -> None:
    if asleep:
        monkeypatch.setattr(VaultGuard, "choose", lambda self, question, candidate, vectors: candidate(0, None))
        monkeypatch.setattr(VaultGuard, "choose_cut", lambda self, question, near, exact, other: exact)
    sites = dealt(*whole_numbers(), 4, get_method("cohort-bundle"))
    plants = {site: Plant(problem, SitePolicy(exposure_limit=1.0)) for site, problem in sites.items()}
    honest_run(plants, "cohort-bundle", cohorts={"all": tuple(plants)})
    for plant in plants.values():
        found = len(differences(plant.vectors(), plant.rows))
        assert found <= plant.figures.by_differences
        assert (found > 5) == asleep and (plant.figures.by_differences > 5) == asleep


def test_of_a_method_that_mixes_rows_all_of_them_count() -> None:
    features, labels = table()
    for line in attack(features, labels, "drflm", "per-site", 2):
        assert line["rows_found"] <= line["exposure"]
        assert line["attack"] == "bisection" or line["exposure"] == line["rows"]


@pytest.mark.parametrize(
    ("mode", "attacked", "found", "said", "fails"),
    [("sum", "pairwise", 1, 5, True), ("sum", "span", 1, 5, False), ("sum", "span", 6, 5, True),
     ("per-site", "pairwise", 1, 1, False), ("per-site", "bisection", 2, 1, True),
     ("sum", "drop-one runs", 0, 0, False)],
)
def test_the_command_fails_where_a_sum_or_a_figure_does(
    mode: str, attacked: str, found: int, said: int, fails: bool
) -> None:
    assert failed({"mode": mode, "attack": attacked, "rows_found": found, "exposure": said}) is fails


def test_a_cosine_a_little_off_is_not_found() -> None:
    row = np.array([[0.6, 0.8, 1.0]])
    across = np.array([[0.8, -0.6, 0.0]]) * np.linalg.norm(row)
    assert rows_along(-3.0 * row + 1e-5 * across, row) == {0}
    assert rows_along(row + 2e-5 * across, row) == set()
    base = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 2.0]])
    assert pairwise(np.vstack([base, base[1] + 0.1 * row[0]]), row) == {0}
    mixed = np.vstack([base[0], base[0] + across[0], base[1], base[1] + across[0] + 0.1 * row[0]])
    assert pairwise(mixed, row) == set() and differences(mixed, row) == {0}


def test_tables_are_read_without_the_rows_that_miss_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text("a,b,label\n0,1,x\n,2,x\n2,?,y\n4,3,y\n2,3,x\n")
    features, labels, missing = read_table(path)
    np.testing.assert_array_equal(features, [[0.0, 0.0], [1.0, 1.0], [0.5, 1.0]])
    assert (labels.tolist(), missing) == ([1.0, -1.0, 1.0], 2)
    for text, said in (("a,b\n1,2\n", "last column"), ("a,label\n1,x\n", "one class"), ("a,label\nword,x\n", "word")):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_table(path)
