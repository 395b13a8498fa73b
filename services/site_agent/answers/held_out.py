"""What the plant tells of a trained model: its worst-case risk, and sums and counts over its held-out rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from models.basics import FloatArray, ProblemError
from models.losses.joint import JointLoss
from models.methods.catalogue import get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.local_sgd.scores_of_all import ScoresObjective, method_of
from models.problem import SiteProblem
from models.worst_case.risk_range import risk_range
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import JOINT_METHODS, joint_loss, objective_of
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Task
from services.site_agent.answers.local_scores import (
    calibration_counts,
    check_grid,
    check_interval,
    check_weights,
    confusion_counts,
    held_out_loss,
    regression_sums,
    spread_counts,
)
from services.site_agent.answers.local_solve import head_risks, lifted
from services.site_agent.limits.questions import Heads
from services.site_agent.limits.row_reach import RowReach, row_reach
from services.site_agent.limits.told_steps import Draw, told_down, told_up
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.dataset import Dataset

_HELD_OUT = frozenset({"loss", "absolute_error", "squared_error", "pinball_loss"})
"""Losses and errors of held-out rows: a mean, and sums."""


def model_digest(spec: TrainingSpec, *weights: FloatArray) -> bytes:
    """SHA-256 of a problem and of models, which draws what their figures are told with."""
    return hashlib.sha256(b"".join([spec.model_dump_json().encode(), *(each.tobytes() for each in weights)])).digest()


def held_out_steps(
    told: Mapping[str, FloatArray], reach: RowReach, n_test: int, share: float
) -> dict[str, FloatArray]:
    """The same, the mean loss and the sums of errors of ``n_test`` rows in steps, from below."""
    reaches = {"loss": reach.loss / max(n_test, 1), **reach.errors}
    return {
        name: told_down(array, reaches[name], share) if name in _HELD_OUT else array for name, array in told.items()
    }


def network_on_sums(
    task: Task, arrays: Mapping[str, FloatArray], reach: RowReach, n_train: int, draw: Draw
) -> dict[str, FloatArray]:
    """A round's answer about a network as it leaves under masks: its risk as an evaluation tells it, and no cut."""
    share = float(draw(model_digest(task.spec, task.arrays["point"]))[0])
    risk = told_up(arrays["risk"], reach.risk / n_train, share)
    return {**arrays, "risk": risk, "cut_height": np.zeros_like(risk)}


def highest_risks(weights: FloatArray, heads: Sequence[SiteProblem]) -> FloatArray:
    """Largest risk (K,) that any rows have at weights (K, P + 1): who is told a higher one takes it for a lie."""
    return np.array([
        risk_range(
            row if head.spec.fit_intercept else row[:-1], head.spec.loss, radius=head.spec.radius,
            label_flip_cost=head.spec.label_flip_cost, transport_norm=head.spec.transport_norm,
            fit_intercept=head.spec.fit_intercept,
        ).high
        for row, head in zip(weights, heads, strict=True)
    ])


def check_trains(task: Task, objective: ScoresObjective | None, joint: JointLoss | None, n_features: int) -> None:
    """``ProblemError`` where the task's method trains no such model: a policy allows methods, not models."""
    method = get_method(task.method)
    if objective is not None:
        method_of(method, objective, n_features)
    if joint is not None and task.method not in JOINT_METHODS:
        raise ProblemError(f"method {task.method} does not train all classes as one problem")


def told_of_model(
    task: Task, dataset: Dataset, of_heads: Heads, asset_type: AssetType, policy: SitePolicy, draw: Draw
) -> dict[str, FloatArray]:
    """Arrays of the answer to a task ``evaluate``, as :class:`services.contracts.wire.messages.SiteUpdate` has them."""
    heads, held_out = of_heads.problems, lifted(task.spec, dataset.test.features)
    objective, sizes = objective_of(task.spec, asset_type), (len(heads), held_out.shape[1])
    if isinstance(objective, NetworkObjective):
        sizes = (1, objective.size(held_out.shape[1]) - 1)
    elif objective is not None:
        sizes = (objective.n_classes, held_out.shape[1])
    joint = joint_loss(task.spec, asset_type)
    check_trains(task, objective, joint, held_out.shape[1])
    if joint is not None:
        sizes = (joint.n_classes, held_out.shape[1])
    weights = check_weights(task.arrays.get("weights"), *sizes)
    test, loss, n_classes = dataset.test, task.spec.loss.loss, len(asset_type.fault_classes)
    if "calibration" in task.arrays:
        by_estimate = check_grid(task.arrays["calibration"], loss.task)
        outcomes = test.outcomes(loss.task)
        told = calibration_counts(weights, held_out, test.features, outcomes, loss.task, objective)
        if not by_estimate:
            return told
        return told | spread_counts(weights, held_out, test.targets, heads[0], policy.min_samples)
    reach = row_reach(weights, task.spec, asset_type, objective)
    of_training, of_held_out = draw(model_digest(task.spec, weights)).tolist()
    # On sums nothing tells a made model from the run's. A bound that is higher is one; single answers have theirs told.
    risk = head_risks(weights, heads, objective=objective)
    if task.reveal == "sums":
        above = told_up(risk, reach.risk / len(dataset.train), of_training)
        if objective is None and joint is None:
            above = np.minimum(above, highest_risks(weights, heads))
        risk = np.maximum(risk, above)
    mean_loss = held_out_loss(weights, held_out, test.outcomes(loss.task), joint or loss, n_classes, objective)
    answer = {"risk": risk, "loss": mean_loss}
    if loss.task == "regression":
        interval, quantile = check_interval(task.arrays.get("interval")), task.spec.loss.quantile or 0.5
        answer |= regression_sums(weights, held_out, test.targets, interval, quantile)
        return held_out_steps(answer, reach, len(test), of_held_out)
    least = policy.min_class_samples
    counts = confusion_counts(weights, held_out, test.classes, n_classes, least, objective)
    return held_out_steps(answer, reach, len(test), of_held_out) | {"confusion": counts}
