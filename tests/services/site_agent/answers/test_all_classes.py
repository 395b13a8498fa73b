"""What a plant tells of a model of all classes as one problem: its held-out loss, and of which methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.basics import ProblemError
from models.losses.joint import CrammerSinger
from models.methods.catalogue import METHODS
from services.contracts.problems.all_scores import JOINT_METHODS
from services.site_agent.answers.held_out import check_trains
from services.site_agent.answers.local_scores import held_out_loss


@pytest.mark.parametrize("seed", range(4))
def test_the_held_out_loss_is_how_far_the_best_other_class_reaches_above_the_own_less_one(seed: int) -> None:
    """Of Crammer and Singer: the mean of ``max(0, 1 + max_k s_k - s_y)``, k any other class than y."""
    rng = np.random.default_rng(seed)
    weights, rows, classes = rng.normal(size=(3, 5)), rng.random((30, 4)), rng.integers(3, size=30)
    wanted = 0.0
    for row, own in zip(rows, classes, strict=True):
        scores = weights[:, :-1] @ row + weights[:, -1]
        wanted += max(0.0, 1.0 + max(scores[k] for k in range(3) if k != own) - scores[own]) / 30
    assert float(held_out_loss(weights, rows, classes, CrammerSinger(3), 3)) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_model_of_all_classes_is_told_of_for_the_methods_that_train_one(method: str) -> None:
    task: Any = SimpleNamespace(method=method)
    if method in JOINT_METHODS:
        check_trains(task, None, CrammerSinger(3), 4)
        return
    with pytest.raises(ProblemError, match=f"method {method} does not train all classes"):
        check_trains(task, None, CrammerSinger(3), 4)
