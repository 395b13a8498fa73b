"""How many rows of each class there are: what "auto" asks of two classes before its race, and the loss goes by.

The question is a score like those of the race, at planes that call every row by one class: the counts over all folds
together are then the rows of each class, which every later score tells as well. On sums they are a cohort's.
"""

from __future__ import annotations

import numpy as np

from models.basics import FloatArray
from models.tuning.scores import score_shape
from services.contracts.asset_type import AssetType
from services.contracts.lift import lifted_size, numbered, pinned
from services.contracts.plan import Plan
from services.contracts.tuning import TuningPart, TuningSpec, TuningTask
from services.coordinator.tuning_exchange import TuningAnswers, TuningQuestion


def counting_question(plan: Plan, asset_type: AssetType, spec: TuningSpec) -> TuningQuestion:
    """Exchange 1: scores, over all folds together, of planes (1, K + 1) of zeros in the plan's own features."""
    n_features, folds = len(asset_type.features), range(spec.folds)
    lift = pinned(numbered(plan.spec.lift, asset_type.feature_names), n_features)
    parts = tuple(
        TuningPart(radius=1.0, label_flip_cost=plan.spec.label_flip_cost, lift=0, fold=fold) for fold in folds
    )
    task = TuningTask(folds=spec.folds, seed=spec.seed, lifts=(lift,), parts=parts, scored=True, pooled=True)
    planes = np.zeros((1, lifted_size(lift, n_features) + 1))
    shape = score_shape(plan.spec.loss.loss, len(asset_type.fault_classes))
    told = ({"score": shape}, *({} for _ in parts[1:]))
    return TuningQuestion(1, task, {f"weights_{fold}": planes for fold in folds}, told)


def rows_by_class(said: TuningAnswers) -> FloatArray:
    """Rows (C,) of each class of all who answered; without those that a plant's policy does not count."""
    return np.asarray(np.add.reduce([parts[0]["score"] for parts in said.parts.values()]).sum(axis=1))
