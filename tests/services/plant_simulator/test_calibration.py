"""The diagnosis is neither trivial nor hopeless: what a linear SVM on the pooled plants scores."""

import numpy as np
import pytest

from models.features.condition_indicators import condition_indicators
from services.contracts.machines.value_range import Ranges
from services.plant_simulator.assets import builtin_asset_type
from services.plant_simulator.writer import simulate_plants

svm = pytest.importorskip("sklearn.svm")
metrics = pytest.importorskip("sklearn.metrics")


def load(folders, split, asset_type):
    """Scaled features, labels and plant numbers of one split of all plants."""
    features, labels, plants = [], [], []
    for number, folder in enumerate(folders):
        with np.load(folder / f"{split}.npz", allow_pickle=False) as archive:
            indicators = condition_indicators(archive["flow"], 1000.0)
            features.append(np.clip(Ranges(asset_type.features).scale(indicators), 0.0, 1.0))
            labels.append(archive["label"])
            plants.append(np.full(len(archive["label"]), number))
    return np.concatenate(features), np.concatenate(labels), np.concatenate(plants)


def f1_of(folders, model):
    """F-1 over all test rows and at the plant of the faintest leak, trained on all training rows."""
    asset_type = builtin_asset_type("triplex-pump")
    X, labels, _ = load(folders, "train", asset_type)
    Z, truth, plants = load(folders, "test", asset_type)
    found = model.fit(X, labels).predict(Z)

    def f1(rows):
        return metrics.f1_score(truth[rows], found[rows], pos_label="leak")

    return f1(plants >= 0), f1(plants == 0)


@pytest.mark.parametrize("penalty", [1.0, 10.0, 100.0])
def test_a_centralised_linear_svm_scores_between_90_and_97(nominal, penalty):
    overall, faintest = f1_of(nominal, svm.SVC(kernel="linear", C=penalty))
    assert 0.90 <= overall <= 0.97
    assert faintest < overall
    if penalty >= 10.0:
        assert faintest >= 0.80


def test_so_it_does_for_another_seed_with_other_measurements(nominal, tmp_path):
    folders = simulate_plants(tmp_path / "out", seed=5, n_test=400)
    speeds = [np.load(plants[0] / "train.npz", allow_pickle=False)["operating_speed"] for plants in (nominal, folders)]
    assert not np.isclose(*speeds).any()
    overall, faintest = f1_of(folders, svm.SVC(kernel="linear", C=10.0))
    assert 0.90 <= overall <= 0.97
    assert faintest >= 0.80


def test_every_combination_of_faults_is_told_apart_far_better_than_by_chance(tmp_path):
    asset_type = builtin_asset_type("triplex-pump-faults")
    folders = simulate_plants(
        tmp_path / "out", n_train=320, n_test=320, faults=("leak", "blocked_inlet", "worn_bearing")
    )
    X, labels, _ = load(folders, "train", asset_type)
    Z, truth, _ = load(folders, "test", asset_type)
    found = svm.LinearSVC(C=10.0, intercept_scaling=10.0, max_iter=20_000, random_state=0).fit(X, labels).predict(Z)
    assert len(set(truth)) == 8
    assert metrics.f1_score(truth, found, average="macro") > 0.8
