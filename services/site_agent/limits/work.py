r"""What a task would cost, before anything of it is computed: its operations, and the size of its answer.

Limits of single numbers (units of a network, local steps, parts of a tuning) bound no product of them. So operations
are counted as multiplications with the rows:

- of a round of local steps ``steps max(3 (B D + N), 1e4)`` for each head, B the rows of a batch, N all rows and D the
  weights: a step reads its rows for the scores and for the slope, draws dropouts, keeps an account of all rows, and
  costs something whatever its size; of a network with H units D is ``H^2 / 8`` more, for each unit's rows are held
  against those of the others;
- of a part of a tuning ``max(N D, 1e5)`` for each head, and 30 times that where it is a step of the plant's own
  (``models.tuning.starts``);
- of each lift ``N P M`` for M features, and of a Nystrom kernel at m points ``m^3``;
- of everything else ``N D`` a head, 30 times in a round, for most methods solve a small problem over their rows.

A second answer that the guard looks for where the first would isolate a row costs the same again, 7 times at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from models.methods.catalogue import check_parameters, get_method
from models.methods.local_sgd.site import LocalStepsSite
from models.one_vs_rest import OneVsRestServer
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import joint_loss, objective_of, trained_heads
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.lift import LiftSpec, NystromLiftSpec, lifted_size
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.problems.tuning_task import TuningTask
from services.contracts.wire.messages import Task
from services.site_agent.rules.policy import Refusal, SitePolicy

_OF_A_STEP = 10_000.0  # what a step costs however few its rows are
_OF_A_CUT = 100_000.0  # what a cut costs however few its rows are
_CUTS = 30.0  # of a local problem, as models.tuning.starts has them
_PASSES = 3.0  # scores, slopes, and what a step does beside
_OF_SETS = 8  # bits are quicker than numbers
_NUMBER_BYTES = 8  # a double


def check_work(task: Task, n_rows: int, asset_type: AssetType, policy: SitePolicy) -> None:
    """Raise :class:`Refusal` where a task over ``n_rows`` training rows would cost more than the policy allows.

    ``ProblemError`` for no such method or parameter.
    """
    work, numbers = operations(task, n_rows, asset_type, policy.min_samples), answer_numbers(task, asset_type)
    if work > policy.max_operations:
        raise Refusal(
            "work_limit", f"the task takes {work:.2g} operations, the policy allows {policy.max_operations:.2g} "
            "(max_operations)"
        )
    if numbers * _NUMBER_BYTES > policy.max_message_bytes:
        raise Refusal(
            "message_too_large", f"the answer would be {numbers} numbers of {_NUMBER_BYTES} bytes, the policy allows "
            f"{policy.max_message_bytes} bytes"
        )


def operations(task: Task, n_rows: int, asset_type: AssetType, least_rows: int) -> float:
    """Operations that a task takes, about; infinite where they are no number."""
    heads, size, asked = trained_heads(task.spec, asset_type), _size(task.spec, asset_type), task.tuning
    n_features = len(asset_type.features)
    if isinstance(asked, TuningTask):
        lifts = _of_lifts(asked.lifts, n_rows, n_features)
        sizes = [lifted_size(lift, n_features) + 1 for lift in asked.lifts]
        cuts = sum(
            (1.0 if part.penalty is None else _CUTS) * max(float(n_rows * sizes[part.lift]), _OF_A_CUT)
            for part in asked.parts
        )
        return lifts + heads * cuts
    once = _of_lifts([task.spec.lift], n_rows, n_features) + float(heads * n_rows * size)
    if isinstance(asked, CouplingTask):
        return once * asked.points
    return once + (heads * _of_round(task, n_rows, size, least_rows) if task.kind == "round" else 0.0)


def answer_numbers(task: Task, asset_type: AssetType) -> int:
    """Numbers that the answer to a task has at least, for a round as its method states them; of counts none."""
    heads, size, asked = trained_heads(task.spec, asset_type), _size(task.spec, asset_type), task.tuning
    if isinstance(asked, TuningTask):
        sizes = [lifted_size(lift, len(asset_type.features)) for lift in asked.lifts]
        return 0 if asked.scored else heads * sum(sizes[part.lift] for part in asked.parts)
    if task.kind != "round":
        return 0
    method = get_method(task.method)
    shapes = OneVsRestServer(method.server, heads).answer_shapes(
        size, parameters=check_parameters(method, task.parameters)
    )
    return sum(math.prod(shape) for shape in shapes.values())


def _of_round(task: Task, n_rows: int, size: int, least_rows: int) -> float:
    method = get_method(task.method)
    parameters = {**check_parameters(method, task.parameters), "least_rows": float(least_rows)}
    if not isinstance(method.site, LocalStepsSite):
        points = task.arrays["points"].shape[1] if "points" in task.arrays and task.arrays["points"].ndim > 1 else 1
        return _CUTS * points * n_rows * size
    steps, batch = method.site.steps(n_rows, parameters)
    size += 0 if task.spec.network is None else task.spec.network.hidden**2 // _OF_SETS
    return steps * max(_PASSES * (batch * size + n_rows), _OF_A_STEP)


def _of_lifts(lifts: Iterable[LiftSpec | None], n_rows: int, n_features: int) -> float:
    total = 0.0
    for lift in lifts:
        if lift is not None:
            points = lift.components or len(lift.points) if isinstance(lift, NystromLiftSpec) else 0
            total += float(n_rows) * n_features * lift.size(n_features) + float(points) ** 3
    return total


def _size(spec: TrainingSpec, asset_type: AssetType) -> int:
    """D: numbers of a head, or of all scores."""
    objective, n_features = objective_of(spec, asset_type), len(asset_type.features)
    if objective is not None:
        return objective.size(n_features)
    planes = 1 if joint_loss(spec, asset_type) is None else len(asset_type.fault_classes) - 1
    return planes * (lifted_size(spec.lift, n_features) + int(spec.fit_intercept))
