"""Scores from confusion counts: over the classes that a plant holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from models.basics import ProblemError
from models.evaluation.scores import class_recalls, f1_score, macro_f1_score

COUNTS = st.integers(2, 5).flatmap(
    lambda size: hnp.arrays(np.float64, (size, size), elements=st.integers(0, 9).map(float))
)


@settings(max_examples=100, derandomize=True)
@given(COUNTS)
def test_the_scores_are_those_of_the_rows_over_the_classes_that_they_have(confusion: np.ndarray) -> None:
    size = len(confusion)
    pairs = [(true, said) for true in range(size) for said in range(size) for _ in range(int(confusion[true, said]))]
    if not pairs:
        assert np.isnan(f1_score(confusion)) and np.isnan(macro_f1_score(confusion))
        assert np.isnan(class_recalls(confusion)).all()
        return
    truth, found = np.array(pairs).T
    held = np.unique(truth)
    labels = held[-1:] if size == 2 else held
    expected = metrics.f1_score(truth, found, labels=labels, average="macro", zero_division=0)
    assert f1_score(confusion) == pytest.approx(expected)
    macro = metrics.f1_score(truth, found, labels=held, average="macro", zero_division=0)
    assert macro_f1_score(confusion) == pytest.approx(macro)
    recalls = metrics.recall_score(truth, found, labels=range(size), average=None, zero_division=np.nan)
    np.testing.assert_allclose(class_recalls(confusion), recalls)


def test_a_plant_without_some_classes_is_not_told_of_them() -> None:
    """44 of 47 rows right, one taken for a class that the plant has not: accuracy .936."""
    confusion = np.array([[20.0, 1.0, 0.0, 1.0], [0.0, 24.0, 1.0, 0.0], [0.0] * 4, [0.0] * 4])
    assert f1_score(confusion) == pytest.approx((40 / 42 + 48 / 50) / 2)
    assert f1_score(confusion) > 0.93


def test_a_plant_without_faults_is_scored_on_what_it_has() -> None:
    assert f1_score(np.array([[9.0, 1.0], [0.0, 0.0]])) == pytest.approx(18 / 19)
    assert f1_score(np.array([[9.0, 1.0], [2.0, 6.0]])) == pytest.approx(12 / 15)


@pytest.mark.parametrize("wrong", [np.zeros((2, 3)), np.zeros(3), np.array([[1.0, -1.0], [0.0, 0.0]])])
def test_what_are_no_counts_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ProblemError, match="square matrix of counts"):
        f1_score(wrong)
