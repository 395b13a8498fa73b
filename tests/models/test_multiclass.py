"""Labels of the heads, and the class that their scores say."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError
from models.multiclass import head_labels, n_heads, predict_class, predict_scores


def test_labels_and_predictions() -> None:
    assert head_labels(np.array([0, 1, 1]), 2).tolist() == [[-1, 1, 1]]
    assert head_labels(np.array([0, 2]), 3).tolist() == [[1, -1], [-1, -1], [-1, 1]]
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 0.5]])
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert predict_class(weights, rows).tolist() == [0, 1, 2]
    assert predict_scores(weights, rows).shape == (3, 3)
    assert predict_class(np.array([[1.0, -0.5]]), np.array([[1.0], [0.2], [0.5]])).tolist() == [1, 0, 0], "0: no fault"


def test_refusals() -> None:
    with pytest.raises(ProblemError, match="at least two classes"):
        n_heads(1)
    with pytest.raises(ProblemError, match="integers from 0 to 2"):
        head_labels(np.array([0, 3]), 3)
    with pytest.raises(ProblemError, match=r"weights must be \(K, P \+ 1\)"):
        predict_scores(np.zeros((1, 3)), np.zeros((4, 3)))
