"""What the plant tells of a trained model: its worst-case risk, and sums and counts over its held-out rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from models.basics import FloatArray
from models.methods.local_sgd.objectives.network import NetworkObjective
from services.contracts.all_scores import joint_loss, objective_of
from services.contracts.asset_type import AssetType
from services.contracts.messages import Task
from services.site_agent.local_scores import (
    calibration_counts,
    check_grid,
    check_interval,
    check_weights,
    confusion_counts,
    held_out_loss,
    regression_sums,
    spread_counts,
)
from services.site_agent.local_solve import head_risks, lifted
from services.site_agent.policy import SitePolicy
from services.site_agent.questions import Heads
from services.site_agent.vault.dataset import Dataset

_DIGITS = 4
"""Of held-out losses and errors, rounded down, and on sums of the risk, rounded up: where a model is made for it one
row alone has a loss, and all digits of a few such models are that row."""
_EPS = 4 * float(np.finfo(np.float64).eps)
"""What a division leaves of a number that has so few digits."""
_OF_ERRORS = frozenset({"loss", "absolute_error", "squared_error", "pinball_loss"})


def rounded_down(values: FloatArray, digits: int) -> FloatArray:
    """The largest numbers of so many significant digits at or below values of 0 or more; what is not finite stays."""
    some, whole = _last_places(values, digits)
    # A value that has so few digits stays what it is: 0.3 is 2999.9... of its last ones.
    return np.where(some, np.floor(values / whole * (1.0 + _EPS)) * whole, values)


def rounded_up(values: FloatArray, digits: int) -> FloatArray:
    """The smallest numbers of so many significant digits at or above values of 0 or more; what is not finite stays."""
    some, whole = _last_places(values, digits)
    return np.where(some, np.ceil(values / whole * (1.0 - _EPS)) * whole, values)


def _last_places(values: FloatArray, digits: int) -> tuple[NDArray[np.bool_], FloatArray]:
    """Which values are above 0 and finite, and what 1 in the last of their digits is; 1 for all others."""
    some = np.isfinite(values) & (values > 0)
    places = np.log10(values, where=some, out=np.full_like(values, digits - 1.0))
    return some, np.asarray(10.0 ** (np.floor(places) - (digits - 1)))


def few_digits(told: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """The same, losses and sums of errors to as many digits as reports have."""
    return {name: rounded_down(array, _DIGITS) if name in _OF_ERRORS else array for name, array in told.items()}


def told_of_model(
    task: Task, dataset: Dataset, of_heads: Heads, asset_type: AssetType, policy: SitePolicy
) -> dict[str, FloatArray]:
    """Arrays of the answer to a task ``evaluate``, as :class:`services.contracts.messages.SiteUpdate` has them."""
    heads, held_out = of_heads.problems, lifted(task.spec, dataset.test.features)
    objective, sizes = objective_of(task.spec, asset_type), (len(heads), held_out.shape[1])
    if isinstance(objective, NetworkObjective):
        sizes = (1, objective.size(held_out.shape[1]) - 1)
    elif objective is not None:
        sizes = (objective.n_classes, held_out.shape[1])
    joint = joint_loss(task.spec, asset_type)
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
    # On sums nothing tells a made model from the run's. A bound that is higher is one; single answers have theirs told.
    risk = head_risks(weights, heads, objective=objective)
    answer = {
        "risk": rounded_up(risk, _DIGITS) if task.reveal == "sums" else risk,
        "loss": held_out_loss(weights, held_out, test.outcomes(loss.task), joint or loss, n_classes, objective),
    }
    if loss.task == "regression":
        interval, quantile = check_interval(task.arrays.get("interval")), task.spec.loss.quantile or 0.5
        return few_digits(answer | regression_sums(weights, held_out, test.targets, interval, quantile))
    least = policy.min_class_samples
    counts = confusion_counts(weights, held_out, test.classes, n_classes, least, objective)
    return few_digits(answer) | {"confusion": counts}
