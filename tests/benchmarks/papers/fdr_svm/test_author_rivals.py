"""The authors' rivals, many runs and candidates side by side, against one plain run after the other."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.papers.fdr_svm import author_columns, our_features
from tests.benchmarks.papers.fdr_svm.author_columns import AUTHORS, PUMP_BETAS, RIVALS, knobs, rival_points
from tests.benchmarks.papers.fdr_svm.authors import TEMPERATURES
from tests.benchmarks.papers.fdr_svm.choice import Grid, as_printed, sites_of
from tests.benchmarks.papers.fdr_svm.printed import Site
from tests.benchmarks.papers.fdr_svm.rivals import Knob
from tests.benchmarks.papers.fdr_svm.runs import stacked
from tests.benchmarks.papers.fdr_svm.test_fdr_svm import small_split, toy
from tests.benchmarks.papers.fdr_svm.uci import SETS, split
from tests.tables import table_or_skip

STATE = Path(__file__).parent / "results" / "table1-cells.csv"


def hinge_slope(weights: np.ndarray, x: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    active = y * (x @ weights) < 1.0
    return np.asarray(-(active * y) @ x / y.shape[0] + 2.0 * ridge * weights)


def plain_fedsgd(sites: list[Site], step: float, rounds: int) -> Iterator[np.ndarray]:
    weights = np.zeros(sites[0].features.shape[1])
    for t in range(1, rounds + 1):
        slopes = [hinge_slope(weights, s.features, s.labels, s.radius) for s in sites]
        weights = weights - step / np.sqrt(t) * np.mean(slopes, axis=0)
        yield weights


def plain_fedavg(sites: list[Site], step: float, rounds: int, proximal: float) -> Iterator[np.ndarray]:
    random, weights = np.random.default_rng(0), np.zeros(sites[0].features.shape[1])
    for _ in range(rounds):
        ended = []
        for site in sites:
            point, size = weights, int(0.2 * site.labels.shape[0])
            for epoch in range(1, 6):
                order = random.permutation(site.labels.shape[0])
                for start in range(0, 5 * size, size):
                    rows = order[start : start + size]
                    slope = hinge_slope(point, site.features[rows], site.labels[rows], site.radius)
                    point = point - step / np.sqrt(epoch) * (slope + proximal * (point - weights))
            ended.append(point)
        weights = np.mean(ended, axis=0)
        yield weights


def plain_feddro(
    sites: list[Site], step: float, rounds: int, temperature: float, tracking: float
) -> Iterator[np.ndarray]:
    random, inner = np.random.default_rng(0), 0.0
    points = [np.zeros(sites[0].features.shape[1]) for _ in sites]
    for t in range(1, 5 * rounds + 1):
        means, slopes = [], []
        for point, site in zip(points, sites, strict=True):
            rows = random.choice(site.labels.shape[0], int(0.2 * site.labels.shape[0]), replace=False)
            x, y = site.features[rows], site.labels[rows]
            losses = 1.0 - y * (x @ point)
            lifted = np.where(losses > 0.0, np.exp(np.maximum(losses, 0.0) / temperature), 0.0)
            means.append(lifted.mean())
            slopes.append(-(lifted * y) @ x / y.shape[0])
        inner = (1.0 - tracking) * inner + tracking * float(np.mean(means))
        if inner > 0.0:
            moves = [step / np.sqrt(t) / (temperature * inner) * slope for slope in slopes]
            points = [point - move for point, move in zip(points, moves, strict=True)]
        if t % 5 == 0:
            points = [np.mean(points, axis=0) for _ in sites]
            yield points[0]


def plain_points(name: str, chosen: str, sites: list[Site], knob: Knob, rounds: int) -> Iterator[np.ndarray]:
    """One candidate on one set of sites, a step after the other."""
    step, more = knob[:2] if isinstance(knob, tuple) else (knob, 0.0)
    if name == "FedSGD":
        return plain_fedsgd(sites, step, rounds)
    if name == "FedDRO (KL)":
        temperature = knob[2] if isinstance(knob, tuple) and len(knob) > 2 else TEMPERATURES[chosen]
        return plain_feddro(sites, step, rounds, temperature, more)
    return plain_fedavg(sites, step, rounds, more)


@pytest.mark.parametrize("name", RIVALS)
def test_runs_side_by_side_are_those_of_one_after_the_other(name: str) -> None:
    """Runs of other sizes, so of other draws, and sites whose batches differ in size; every candidate, every round."""
    runs = [[toy(1, 20), toy(2, 33)], [toy(3, 20), toy(4, 33)], [toy(5, 36), toy(6, 19)]]
    candidates = knobs(name, "UKM")
    found = np.stack(list(rival_points(name, "UKM", stacked(runs), candidates, 15)))
    for r, sites in enumerate(runs):
        for c, knob in enumerate(candidates):
            plain = np.stack(list(plain_points(name, "UKM", sites, knob, 15)))
            np.testing.assert_allclose(found[:, r, c], plain, rtol=1e-9, atol=1e-12)
    short = list(islice(rival_points(name, "UKM", stacked(runs), candidates, 4), 4))
    np.testing.assert_array_equal(short[-1], found[3])


def test_a_batch_holds_the_rows_that_were_drawn_and_else_nothing() -> None:
    """The largest site draws the fewest rows here."""
    sites = [toy(1, 6), toy(2, 9)]
    drawn = [np.array([4, 0, 2]), np.array([8])]
    batch = next(stacked([sites]).batches(lambda sizes: iter([[drawn]])))[0]
    np.testing.assert_array_equal(batch.counts, [[3, 1]])
    for g, (site, rows) in enumerate(zip(sites, drawn, strict=True)):
        np.testing.assert_array_equal(batch.features[0, g, : len(rows)], site.features[rows])
        np.testing.assert_array_equal(batch.labels[0, g, : len(rows)], site.labels[rows])
        assert not batch.features[0, g, len(rows) :].any() and not batch.labels[0, g, len(rows) :].any()


@pytest.mark.parametrize("chosen", ["UKM", "Rice", "pump"])
@pytest.mark.parametrize("name", RIVALS)
def test_a_column_chooses_as_one_run_after_the_other_does(
    monkeypatch: pytest.MonkeyPatch, name: str, chosen: str
) -> None:
    """Same scores and same choice as the tuning of the columns as printed, whose loop is over single runs."""
    monkeypatch.setattr(author_columns, "PUMP_ROUNDS", 40)
    data = replace(small_split(), name=chosen)
    data = replace(data, features=data.features[:-3], labels=data.labels[:-3], site=data.site[:-3], fold=data.fold[:-3])
    grid = Grid(rounds=(3, 8), folds=3)
    cell = AUTHORS[f"{name}, code's settings"](data, grid)
    rounds = (40,) if chosen == "pump" else grid.rounds
    # Of the two sets in [0, 1] the features are scaled by the training rows.
    low, high = data.features.min(axis=0), data.features.max(axis=0)
    if chosen != "UKM":
        data = replace(
            data, features=(data.features - low) / (high - low), test_features=(data.test_features - low) / (high - low)
        )
    betas = PUMP_BETAS if chosen == "pump" and name != "FedDRO (KL)" else (10.0,)
    plain = as_printed(
        data, replace(grid, betas=betas), rounds, knobs(name, chosen),
        lambda sites, knob, t: plain_points(name, chosen, sites, knob, t),
    )
    assert (cell.f1, cell.f1_macro, cell.tuned) == (plain.f1, plain.f1_macro, plain.tuned)
    assert cell.f1 > 0.7 or chosen != "UKM"


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_on_our_features_have_an_intercept_and_the_unit_box(name: str) -> None:
    data = small_split()
    far = np.concatenate([data.test_features[:-9], 50.0 * data.test_features[-9:]])
    data = replace(data, features=data.features + 5.0, test_features=far + 5.0, name="UKM")
    grid = Grid(rounds=(10, 40), folds=2)
    cell = our_features.ON_OUR_FEATURES[f"{name}, our features"](data, grid)
    low, high = data.features.min(axis=0), data.features.max(axis=0)
    unit, test = ((x - low) / (high - low) for x in (data.features, data.test_features))
    both = replace(
        data, features=np.c_[unit, np.ones(len(unit))], test_features=np.c_[test.clip(0.0, 1.0), np.ones(len(test))]
    )
    plain = as_printed(
        both, grid, grid.rounds, our_features.knobs(name),
        lambda sites, knob, t: plain_points(name, "UKM", sites, knob, t),
    )
    assert (cell.f1, cell.tuned) == (plain.f1, plain.tuned)
    assert cell.f1 > 0.8


def test_every_set_has_a_temperature_and_a_run_that_diverges_goes_on() -> None:
    assert set(TEMPERATURES) == {*(chosen.name for chosen in SETS), "pump"}
    wide = [replace(site, features=1e4 * site.features) for site in (toy(1, 20), toy(2, 30))]
    *_, last = rival_points("FedDRO (KL)", "Rice", stacked([wide]), knobs("FedDRO (KL)", "Rice"), 20)
    assert last.shape == (1, 4, 3) and not np.isfinite(last[0, -1]).all()


@pytest.mark.parametrize("name", RIVALS)
def test_a_stored_cell_is_what_the_column_makes(name: str) -> None:
    """The last repetition of UKM."""
    chosen = next(each for each in SETS if each.name == "UKM")
    table_or_skip(chosen.file)
    column = f"{name}, code's settings"
    with STATE.open(newline="", encoding="utf-8") as file:
        stored = [row for row in csv.DictReader(file) if (row["set"], row["column"]) == ("UKM", column)]
    cell = AUTHORS[column](split(chosen, int(stored[-1]["repetition"])), Grid())
    assert (cell.tuned, cell.f1) == (stored[-1]["tuned"], pytest.approx(float(stored[-1]["f1"]), abs=1e-12))


def test_the_column_of_the_code_has_its_own_features_and_scores_the_test_part_once() -> None:
    data = replace(small_split(), name="UKM")
    cell = AUTHORS["FedAvg, code's settings"](data, Grid(rounds=(5, 12), folds=1))
    turned = AUTHORS["FedAvg, code's settings"](replace(data, test_labels=-data.test_labels), Grid((5, 12), folds=1))
    assert cell.f1 > 0.85 and turned.tuned == cell.tuned
    sites = sites_of(data, np.ones(80, dtype=bool), 10.0, 1.0)
    assert [site.radius for site in sites] == [1 / 200] * 4
