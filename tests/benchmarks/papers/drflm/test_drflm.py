"""Table 2's own parts: the folds, the flips, the fits of every column, the table."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.methods.local_sgd.objectives.base import Rows
from tests.benchmarks.data import MissingDataError
from tests.benchmarks.papers.drflm.adult import CLIENTS, load_adult
from tests.benchmarks.papers.drflm.clients import FOLDS, folds
from tests.benchmarks.papers.drflm.fashion import load_fashion
from tests.benchmarks.papers.drflm.settings import BUNDLE, SETTINGS, STEPS, correct, fit, settings_of
from tests.benchmarks.papers.drflm.table2 import QUICK, SEEDS, SETS, Size, jobs, reached, run_cell, summary, table
from tests.tables import table_or_skip


def two_clients(n_classes: int = 2) -> dict[str, Rows]:
    random, clients = np.random.default_rng(0), {}
    for g, n in enumerate((60, 200)):
        features = random.normal(size=(n, 3))
        signs = np.where(features @ [1.0, -1.0, 0.5] + 0.3 * g > 0, 1.0, -1.0)
        clients[str(g)] = (features, signs if n_classes == 2 else (signs + 1) / 2 + (features[:, 0] > 1))
    return clients


def test_every_row_is_tested_once_and_only_training_labels_are_turned() -> None:
    clients = two_clients()
    tested, turned = 0, []
    true = {tuple(x): y for features, labels in clients.values() for x, y in zip(features, labels, strict=True)}
    for split in folds(clients, 1, 0.3):
        parts = [{tuple(x) for name in clients for x in part[name][0]} for part in (split.train, split.validation)]
        test = {tuple(x) for name in clients for x in split.test[name][0]}
        assert not (parts[0] & parts[1] or parts[0] & test or parts[1] & test)
        tested += len(test)
        for part in (split.validation, split.test):
            for features, labels in part.values():
                assert [true[tuple(x)] for x in features] == labels.tolist()
        turned += [true[tuple(x)] != y for f, labels in split.train.values() for x, y in zip(f, labels, strict=True)]
    assert tested == 260
    assert np.mean(turned) == pytest.approx(0.3, abs=0.06)


def test_flips_of_three_classes_lead_to_the_other_two_and_rows_can_be_capped() -> None:
    clients = two_clients(3)
    (first, *_), plain = folds(clients, 0, 1.0, n_classes=3, most=40), clients["1"]
    true = {tuple(x): y for x, y in zip(*plain, strict=True)}
    features, labels = first.train["1"]
    assert set(labels) <= {0.0, 1.0, 2.0} and features.shape[0] == 40 // FOLDS * 3 * 4 // 5
    assert all(true[tuple(x)] != y for x, y in zip(features, labels, strict=True))


@pytest.mark.parametrize("column", SETTINGS)
def test_every_column_learns(column: str) -> None:
    clients = two_clients()
    for setting in SETTINGS[column][:1]:
        weights = fit(column, setting, clients, n_classes=2, rounds=60, seed=0)
        assert min(correct(weights, rows, 2).mean() for rows in clients.values()) > 0.85
        if column != BUNDLE:
            weights = fit(column, setting, two_clients(3), n_classes=3, rounds=60, seed=0)
            assert min(correct(weights, rows, 3).mean() for rows in two_clients(3).values()) > 0.6


@pytest.mark.parametrize("n_classes", [2, 3])
def test_networks_learn_by_the_same_settings(n_classes: int) -> None:
    clients = two_clients(n_classes)
    for column, (setting,) in settings_of("network").items():
        weights = fit(column, setting, clients, model="network", n_classes=n_classes, rounds=40, seed=0)
        assert min(correct(weights, rows, n_classes, "network").mean() for rows in clients.values()) > 0.8


def test_validation_chooses_and_the_verdict_follows_the_means() -> None:
    rows = []
    for column, best in (("FedAvg", 0.70), ("DRFA", 0.72), ("DRFLM", 0.71)):
        for seed in SEEDS:
            for setting, validation in (("0", 0.5), ("1", 0.6)):
                test = best if setting == "1" else 0.99
                rows.append(
                    {"data": "Adult+Flip", "column": column, "setting": setting, "seed": str(seed),
                     "validation_worst": validation, "worst_client": test, "accuracies": json.dumps({"a": test})}
                )
    found = summary(rows)
    assert {row["worst_client"] for row in found} == {0.70, 0.71, 0.72}
    assert reached(found) == {"FedAvg": True, "DRFA": False}
    text = table(found)
    assert "DRFLM is above FedAvg." in text and "DRFLM is **not** above DRFA." in text
    assert "| Adult+Flip | DRFLM | 0.6866 | 0.7100 ± 0.0000 |" in text
    assert all(dict(job.key)["column"] != BUNDLE for job in jobs("linear", "fashion_mnist", QUICK, list(SETTINGS)))


def test_a_shortened_run_tests_the_rows_of_its_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = two_clients()
    monkeypatch.setitem(SETS, "toy", ("Toy", lambda: clients, 2))
    for count in (1, FOLDS):
        splits = list(folds(clients, 0))[:count]
        cell = run_cell("linear", "toy", "", "FedAvg", 0, 0, Size(5, count))
        right = {name: [] for name in clients}
        for split in splits:
            weights = fit("FedAvg", SETTINGS["FedAvg"][0], split.train, n_classes=2, rounds=5, seed=0)
            for name, own in right.items():
                own.extend(correct(weights, split.test[name], 2))
        assert json.loads(cell.accuracies) == pytest.approx({name: np.mean(own) for name, own in right.items()})


def test_steps_on_pixels_are_smaller() -> None:
    assert {one["step_size"] for one in settings_of("network", images=True)["DRFLM"]} == {0.01}
    linear = settings_of("linear", images=True)
    assert BUNDLE not in linear and [len(linear[column]) for column in linear] == [2, 2, 4]
    assert max(one["step_size"] for column in linear.values() for one in column) < min(STEPS)


def test_adult_is_two_clients() -> None:
    table_or_skip("adult")
    clients = load_adult()
    assert list(clients) == list(CLIENTS)
    doctors, others = clients["doctorate"], clients["non-doctorate"]
    assert (doctors[0].shape[0], others[0].shape[0]) == (413, 32148)
    assert (doctors[0].sum(axis=1) == 8).all() and (others[0].sum(axis=1) == 8).all()
    assert (doctors[1] > 0).mean() > 0.7 and (others[1] > 0).mean() < 0.25


def test_fashion_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("BALLAST_DATA_DIR", str(tmp_path))
    with pytest.raises(MissingDataError, match="fetch fashion_mnist"):
        load_fashion()
