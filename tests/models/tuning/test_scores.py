"""What a fold says of a candidate, against scikit-learn's metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics

from models.losses.catalogue import get_loss
from models.tuning.scores import class_counts, error_sums, fold_score, score_shape, without_rare

ROWS = np.random.default_rng(5).uniform(size=(50, 3))
COUNTS = np.random.default_rng(6).integers(1, 4, 50).astype(float)


@pytest.mark.parametrize("counts", [None, COUNTS])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_counts_are_the_confusion_matrix_of_rows_that_count_so_often(n_classes: int, counts: np.ndarray | None) -> None:
    random = np.random.default_rng(n_classes)
    classes = random.integers(n_classes, size=50)
    planes = random.normal(size=(1 if n_classes == 2 else n_classes, 4))
    scores = ROWS @ planes[:, :-1].T + planes[:, -1]
    told = (scores[:, 0] > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    found = class_counts(planes, ROWS, classes, n_classes, counts)
    expected = metrics.confusion_matrix(classes, told, labels=range(n_classes), sample_weight=counts)
    np.testing.assert_allclose(found, expected)
    assert found.shape == score_shape(get_loss("hinge"), n_classes)
    held = np.unique(classes)
    macro = metrics.f1_score(classes, told, labels=held, average="macro", sample_weight=counts, zero_division=0)
    assert fold_score(found, get_loss("hinge")) == pytest.approx(macro)


def test_a_true_class_of_too_few_rows_is_not_counted() -> None:
    counts = np.array([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(without_rare(counts, 3), [[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


@pytest.mark.parametrize("counts", [None, COUNTS])
@pytest.mark.parametrize("name", ["huber", "pinball", "epsilon_insensitive"])
def test_errors_are_absolute_ones_but_of_a_quantile_its_own_loss(name: str, counts: np.ndarray | None) -> None:
    loss = get_loss(name, quantile=0.9 if name == "pinball" else None)
    random = np.random.default_rng(7)
    plane, targets = random.normal(size=(1, 4)), random.normal(size=50)
    told = ROWS @ plane[0, :-1] + plane[0, -1]
    found = error_sums(plane, ROWS, targets, loss, counts)
    if name == "pinball":
        mean = metrics.mean_pinball_loss(targets, told, alpha=0.9, sample_weight=counts)
    else:
        mean = metrics.mean_absolute_error(targets, told, sample_weight=counts)
    assert found.shape == score_shape(loss, 2)
    assert found[0] == (50.0 if counts is None else counts.sum()) and fold_score(found, loss) == pytest.approx(-mean)
    assert math.isnan(fold_score(np.zeros(2), loss))
