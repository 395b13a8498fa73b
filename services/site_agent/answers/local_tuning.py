"""What a tuning asks of the rows: cuts and starts on the rows without a fold, counts on the fold. Arrays in and out.

The folds are dealt here, from the task's seed and the rows, and leave in no form. The account of a cut is over all rows
that the task learns from, 0 in the fold, and the guard chooses with that: so answers over different folds, of one
candidate or of several, are held against one another as all answers are. Counts are without classes of fewer rows than
the policy wants counted; those that are told of several folds together are held to it together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray, ProblemError
from models.cohorts.fixed_point import Words, to_words
from models.losses.joint import JointLoss
from models.losses.regression import Pinball
from models.methods.guard import Guard
from models.methods.row_account import Accounted, RowAccount, joined
from models.tuning.at_hand import answer_cuts
from models.tuning.fold_guard import FoldGuard, over_all
from models.tuning.folds import Dealt, deal
from models.tuning.least_squares import of_squares
from models.tuning.scores import class_counts, error_sums, without_rare
from models.tuning.starts import answer_start
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.lift import is_accounted
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.problems.tuning_task import TuningPart, TuningTask
from services.contracts.wire.messages import Task
from services.site_agent.answers.held_out import model_digest
from services.site_agent.answers.local_scores import check_weights
from services.site_agent.answers.local_solve import lift_box, lifted, site_problems
from services.site_agent.limits.questions import Heads
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.limits.told_steps import Draw, told_down
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Part

Check = Callable[[str, FloatArray, Heads], None]
"""Refuses weights (K, D) of a part, by its name, that no honest run asks about."""

_SQUARES = b"how often rows count in squares"
_NO_POINT = np.zeros(1)  # scores and the ends of steps belong to none


def tuning_answer(
    task: Task, rows: Part, asset_type: AssetType, policy: SitePolicy, guard: Guard, check: Check, draw: Draw
) -> Accounted:
    """Arrays of the answer, each name with the number of its part, and their account over all ``rows``.

    Raises
    ------
    Refusal
        Too few rows for the folds, or ``check`` refuses a part.
    ProblemError
        The task does not fit the rows.
    """
    asked = _asked(task)
    dealt = _dealt(asked, rows, task, policy)
    arrays: dict[str, FloatArray] = {}
    accounts: list[RowAccount] = []
    for j, part in enumerate(asked.parts):
        if asked.scored:
            places = asked.together(j)
            if not places:
                continue
            found = Accounted({"score": _score(task, asked, places, rows, dealt, asset_type, policy, draw)})
        else:
            found = _cuts(task, asked, part, j, rows, dealt.learnt(part.fold), asset_type, guard, check, draw)
        arrays |= {f"{name}_{j}": array for name, array in found.arrays.items()}
        accounts.append(found.account)
    return Accounted(arrays, joined(accounts))


def tuning_words(task: Task, answer: Arrays, share: float) -> Words:
    """Words (L,) of an answer, part by part: cuts times the plant's share, counts as they are."""
    asked, words = _asked(task), []
    for j in range(len(asked.parts)):
        plain = {name.rpartition("_")[0]: each for name, each in answer.items() if name.rpartition("_")[2] == str(j)}
        if asked.scored and not plain:  # told with an earlier part
            continue
        if asked.scored:
            words.append(to_words(plain, 1.0, _NO_POINT))
        else:
            words.append(to_words(plain, share, task.arrays.get(f"point_{j}", _NO_POINT)))
    return np.concatenate(words)


def _asked(task: Task) -> TuningTask:
    if not isinstance(task.tuning, TuningTask):
        raise ProblemError("a task tune says what it asks")
    return task.tuning


def _dealt(asked: TuningTask, rows: Part, task: Task, policy: SitePolicy) -> Dealt:
    classes = task.spec.loss.task == "classification"
    strata = rows.classes if classes else np.zeros(len(rows), dtype=np.intp)
    try:
        return deal(
            rows.features, strata, asked.folds, asked.seed, rows.together,
            least_train=policy.min_samples, least_test=policy.min_test_samples,
        )
    except ProblemError as error:
        raise Refusal("too_few_samples", str(error)) from None


def spec_of(spec: TrainingSpec, asked: TuningTask, part: TuningPart) -> TrainingSpec:
    """The problem of a part: the task's, whose radius is the one that the site joined with, with the part's terms.

    :class:`ProblemError` for another radius.
    """
    if spec.radius.rule != "fixed":
        raise ProblemError("a tuning starts from the radius that the site joined with")
    changes = {
        "radius": RadiusRule(rule="fixed", value=spec.radius.value * part.radius),
        "label_flip_cost": part.label_flip_cost, "lift": asked.lifts[part.lift],
    }
    return TrainingSpec.model_validate({**dict(spec), **changes})


def _cuts(
    task: Task, asked: TuningTask, part: TuningPart, j: int, rows: Part, kept: NDArray[np.bool_],
    asset_type: AssetType, guard: Guard, check: Check, draw: Draw,
) -> Accounted:
    spec, train = spec_of(task.spec, asked, part), rows.chosen(kept)
    problems = site_problems(spec, lifted(spec, train.features), train.outcomes(spec.loss.task), asset_type)
    if part.penalty is not None:
        return _over_all(answer_start(problems, part.penalty, FoldGuard(guard, kept)), kept, spec)
    if part.squares:
        if isinstance(problems[0].spec.loss, JointLoss):
            raise ProblemError(f"squares are of a target or of classes one against the rest, not of {spec.loss.name}")
        counts = row_counts(draw, len(rows))[kept]
        problems = tuple(of_squares(problems, counts / counts.mean()))
    size = problems[0].features.shape[1] + int(spec.fit_intercept)
    points = task.arrays.get(f"point_{j}")
    if points is None or points.shape != (len(problems), size) or not np.isfinite(points).all():
        raise ProblemError(f"part {j} of a tuning needs finite points of shape {(len(problems), size)}")
    check(f"{part.model_dump_json()}", points, Heads(problems, lift_box(spec.lift, train.features)))
    return _over_all(answer_cuts(problems, points, FoldGuard(guard, kept)), kept, spec)


def row_counts(draw: Draw, n_rows: int) -> FloatArray:
    """How often each row (N,) counts in squares, from 1/2 to 3/2: the vault's own, anew with each version of its rows.

    Gradients of squares go with the weights, so from a dozen of them whoever asks knows all others over these rows.
    Were a later version to count its rows alike, one more gradient would tell what is new in it, be it a single row.
    """
    seed = (np.asarray(draw(_SQUARES)) * 2.0**53).astype(np.uint64)
    return np.random.default_rng(seed).uniform(0.5, 1.5, n_rows)


def _over_all(found: Accounted, kept: NDArray[np.bool_], spec: TrainingSpec) -> Accounted:
    """With the account over all rows; as in a round, under a lift, it need not be the whole of what is told."""
    account = over_all(found.account, kept)
    return Accounted(found.arrays, replace(account, whole=account.whole and is_accounted(spec.lift)))


def _score(
    task: Task, asked: TuningTask, places: Sequence[int], rows: Part, dealt: Dealt, asset_type: AssetType,
    policy: SitePolicy, draw: Draw,
) -> FloatArray:
    """Counts, or sums of errors, of the parts at some places together; each row is held out by one of them."""
    told = [_counted(task, asked, j, rows.chosen(dealt.scored(asked.parts[j].fold)), asset_type) for j in places]
    total = np.asarray(np.add.reduce(told))
    if task.spec.loss.task == "classification":
        return without_rare(total, policy.min_class_samples)
    models = [task.arrays[f"weights_{j}"] for j in places]
    reach = max(
        _error_reach(spec_of(task.spec, asked, asked.parts[j]), asset_type, each)
        for j, each in zip(places, models, strict=True)
    )
    return np.array([total[0], float(told_down(total[1:], reach, float(draw(model_digest(task.spec, *models))[1]))[0])])


def _error_reach(spec: TrainingSpec, asset_type: AssetType, weights: FloatArray) -> float:
    """What one row may add to a sum of errors as ``models.tuning.scores`` has them."""
    name = "pinball_loss" if isinstance(spec.loss.loss, Pinball) else "absolute_error"
    return row_reach(weights, spec, asset_type).errors[name]


def _counted(task: Task, asked: TuningTask, j: int, test: Part, asset_type: AssetType) -> FloatArray:
    spec = spec_of(task.spec, asked, asked.parts[j])
    features, loss = lifted(spec, test.features), spec.loss.loss
    weights = check_weights(task.arrays.get(f"weights_{j}"), asset_type.heads(loss.task), features.shape[1])
    if loss.task == "regression":
        return error_sums(weights, features, test.targets, loss)
    return class_counts(weights, features, test.classes, len(asset_type.fault_classes))
