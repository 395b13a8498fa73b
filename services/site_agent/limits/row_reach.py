r"""How far one row's readings can move what is told of a model, whatever the rows: from the weights and the contract.

A row adds its loss over the number of rows to a mean. Where its readings move through their ranges, which are scaled to
[0, 1], its score moves by no more than

    T = sum_p max_x |d s(x) / d x_p|,

``sum_p |w_p|`` of a plane; with a lift or a network a bound by its steepest places, so that a model that is steep in a
narrow place has no finer steps there. Its loss moves by c T, c the Lipschitz constant, and so does what it adds to a
worst-case risk: the price of transport changes nothing of what the row's own score is owed (DRFL Corollaries B.1 to
B.6). Of scores of all classes T is the largest over the differences of two, of which every slope of these losses is a
mean. A target is a reading too: of residuals T + 1; of their squares ``2 Z (T + 1)``, Z the largest residual there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.basics import FloatArray, ProblemError
from models.features.lift import Lift
from models.losses.regression import Pinball
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.objectives.network_answers import steepness
from models.methods.local_sgd.scores_of_all import ScoresObjective
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import joint_loss
from services.contracts.problems.lift import draw_lift
from services.contracts.problems.training_spec import TrainingSpec


@dataclass(frozen=True)
class RowReach:
    """What one row's readings can move at most: its own loss, by head (K,) its part of the risk, and its errors."""

    loss: float
    risk: FloatArray
    errors: Mapping[str, float] = field(default_factory=dict)


def row_reach(
    weights: FloatArray, spec: TrainingSpec, asset_type: AssetType, objective: ScoresObjective | None = None
) -> RowReach:
    """Of planes (K, P + 1), or the parameters (1, D) of a network; ``ProblemError`` where it is no finite number."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = _reach(weights, spec, asset_type, objective)
    if not math.isfinite(found.loss) or not np.isfinite([*found.risk, *found.errors.values()]).all():
        raise ProblemError("the weights are so large that what a row may add is no number")
    return found


def _reach(
    weights: FloatArray, spec: TrainingSpec, asset_type: AssetType, objective: ScoresObjective | None
) -> RowReach:
    lift, loss = draw_lift(spec.lift, len(asset_type.features)), spec.loss.loss
    if isinstance(objective, NetworkObjective):
        return _of_all(_network_reach(weights[0], objective, len(asset_type.features)))
    if objective is not None or joint_loss(spec, asset_type) is not None:
        planes = weights[:, :-1]
        return _of_all(float(score_reach(planes[:, None] - planes, lift).max()))
    if loss.task == "regression":
        return _of_target(weights[0], spec, lift)
    heads = loss.lipschitz * score_reach(weights[:, :-1], lift)
    return RowReach(float(heads.sum()), heads)


def score_reach(planes: FloatArray, lift: Lift | None) -> FloatArray:
    """T of scores with planes (.., P), the intercepts left out: (..,)."""
    return np.abs(planes).sum(axis=-1) if lift is None else lift.steepness(planes, "linf")


def _network_reach(weights: FloatArray, network: NetworkObjective, n_features: int) -> float:
    inner, _, outer, _ = network.layers(weights, n_features)
    return max(float(steepness(inner, outer - each, "linf").max()) for each in outer)


def _of_all(reach: float) -> RowReach:
    return RowReach(reach, np.array([reach]))


def _of_target(weights: FloatArray, spec: TrainingSpec, lift: Lift | None) -> RowReach:
    loss, planes = spec.loss.loss, weights[:-1]
    reach = float(score_reach(planes, lift)) + 1.0
    low, high = (np.zeros(planes.size), np.ones(planes.size)) if lift is None else (lift.support.low, lift.support.high)
    ends = [float(np.minimum(planes * low, planes * high).sum()), float(np.maximum(planes * low, planes * high).sum())]
    squared = 2.0 * (max(abs(end + float(weights[-1])) for end in ends) + 1.0) * reach
    of_loss = loss.lipschitz * reach if math.isfinite(loss.lipschitz) else squared
    errors = {
        "absolute_error": reach, "squared_error": squared,
        "pinball_loss": Pinball(spec.loss.quantile or 0.5).lipschitz * reach,
    }
    return RowReach(of_loss, np.array([of_loss]), errors)
