"""What the coupling of trained planes asks of the rows: softmax losses of their scores. Arrays in, arrays out.

The slopes are sums over the rows of scores, so all that leaves of a point has the size of the coupling. The account and
the guard are those of a round. The planes that a point makes are held to what an honest run asks, in the ball that the
site trains with: couplings of steep planes would tell rows apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from models.basics import Arrays, FloatArray, ProblemError
from models.cohorts.fixed_point import Words, asked_points, to_words
from models.losses.joint import Softmax
from models.methods.guard import Guard
from models.methods.row_account import Accounted, joined
from models.multiclass import predict_scores
from models.problem import RobustSpec, SiteProblem
from models.tuning.at_hand import answer_cuts
from models.tuning.coupling import coupled_planes
from models.validation import check_site_problem
from models.worst_case.joint_risk import joint_planes, joint_weights
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.lift import is_accounted
from services.contracts.wire.messages import Task
from services.site_agent.answers.local_scores import check_weights
from services.site_agent.answers.local_solve import lift_box, lifted, radius_of
from services.site_agent.answers.local_tuning import Check
from services.site_agent.limits.questions import Heads
from services.site_agent.vault.dataset import Part

NAME = "coupling"


def coupling_answer(task: Task, rows: Part, asset_type: AssetType, guard: Guard, check: Check) -> Accounted:
    """Arrays of the answer, each name with the number of its point, and their account over all ``rows``.

    Raises
    ------
    Refusal
        ``check`` refuses the planes of a point.
    ProblemError
        The task does not fit the rows.
    """
    asked, spec, n_classes = task.tuning, task.spec, len(asset_type.fault_classes)
    assert isinstance(asked, CouplingTask)
    if n_classes < 3 or spec.loss.task != "classification" or spec.support != "unbounded" or not spec.fit_intercept:
        raise ProblemError("planes of three classes at least are coupled, with intercepts, on features without bounds")
    features = lifted(spec, rows.features)
    heads = check_weights(task.arrays.get("heads"), n_classes, features.shape[1])
    loss, classes = Softmax(n_classes), rows.outcomes(spec.loss.task).astype(np.float64)
    ball = partial(RobustSpec, label_flip_cost=spec.label_flip_cost, transport_norm=spec.transport_norm, loss=loss)
    whole = SiteProblem(features, classes, ball(radius_of(spec, features, rows.outcomes(spec.loss.task)).radius))
    box = lift_box(spec.lift, rows.features)
    problem = SiteProblem(predict_scores(heads, features), classes, ball(0.0))
    check_site_problem(problem)
    arrays: dict[str, FloatArray] = {}
    accounts = []
    for j in range(asked.points):
        point = task.arrays.get(f"point_{j}")
        if point is None or point.shape != (1, problem.dimension) or not np.isfinite(point).all():
            raise ProblemError(f"point {j} of a coupling must be finite and of shape {(1, problem.dimension)}")
        planes = coupled_planes(heads, joint_planes(point[0], loss, n_classes, True))
        check(f"{NAME} of {features.shape[1]} features", joint_weights(planes, True)[np.newaxis], Heads((whole,), box))
        found = answer_cuts((problem,), point, guard)
        arrays |= {f"{name}_{j}": array for name, array in found.arrays.items()}
        # As in a round: under a lift the coefficients need not be all that is told.
        is_whole = found.account.whole and is_accounted(spec.lift)
        accounts.append(replace(found.account, whole=is_whole))
    return Accounted(arrays, joined(accounts))


def coupling_words(task: Task, answer: Arrays, share: float) -> Words:
    """Words (L,) of an answer times the plant's share, point by point."""
    asked, words = task.tuning, []
    assert isinstance(asked, CouplingTask)
    for j in range(asked.points):
        plain = {name.rpartition("_")[0]: each for name, each in answer.items() if name.rpartition("_")[2] == str(j)}
        words.append(to_words(plain, share, asked_points({"point": task.arrays[f"point_{j}"]})))
    return np.concatenate(words)
