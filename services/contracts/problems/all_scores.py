"""What a problem of all classes at once trains: its objective or loss, its halves, its size.

Numpy's half of it is imported where it is asked for: a command that only shows a version needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec

if TYPE_CHECKING:
    from models.losses.joint import CrammerSinger
    from models.methods.local_sgd.scores_of_all import ScoresObjective
    from models.methods.protocol import Method


def objective_of(spec: TrainingSpec, asset_type: AssetType, least_rows: int = 1) -> ScoresObjective | None:
    """What the steps descend on where the loss is one of all scores: a network or a softmax regression; else None.

    ``least_rows``: of a plant's rows that a hidden unit must see before it tells of them.
    """
    if not spec.loss.of_all_scores:
        return None
    from models.methods.local_sgd.objectives.network import NetworkObjective
    from models.methods.local_sgd.objectives.softmax import SoftmaxObjective

    n_classes = len(asset_type.fault_classes)
    if spec.network is None:
        return SoftmaxObjective(n_classes)
    return NetworkObjective(n_classes, spec.network.hidden, spec.network.dropout, least_rows=max(1, least_rows))


def method_for(method: Method, spec: TrainingSpec, asset_type: AssetType, least_rows: int = 1) -> Method:
    """The method with the halves that the problem needs; ``ProblemError`` where it does not train such a model."""
    objective = objective_of(spec, asset_type, least_rows)
    if objective is None:
        return method
    from models.methods.local_sgd.scores_of_all import method_of

    seed = 0 if spec.network is None else spec.network.seed
    return method_of(method, objective, len(asset_type.features), seed)


JOINT_METHODS = ("cohort-bundle", "level-bundle", "level-bundle-plain")
"""Methods that train all classes as one problem: they meet its risk by values and cuts alone."""


def joint_loss(spec: TrainingSpec, asset_type: AssetType) -> CrammerSinger | None:
    """The loss of all classes as one problem, where the plan says so and there are more than two; else None."""
    if spec.multi_class != "crammer_singer" or len(asset_type.fault_classes) <= 2:
        return None
    from models.losses.joint import CrammerSinger

    return CrammerSinger(len(asset_type.fault_classes))


def trained_heads(spec: TrainingSpec, asset_type: AssetType) -> int:
    """Vectors that are trained side by side: one of all parameters, or one for each plane."""
    together = spec.loss.of_all_scores or joint_loss(spec, asset_type) is not None
    return 1 if together else asset_type.heads(spec.loss.task)
