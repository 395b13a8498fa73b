"""What a task gets of the rows, join, round, tuning or evaluation, and the questions that get nothing.

Behind :mod:`services.site_agent.door.local_round`, which has checked the task and holds what comes out to the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from models.basics import FloatArray
from models.methods.catalogue import get_method
from models.methods.local_sgd.objectives.network import NetworkObjective
from models.methods.row_account import Accounted
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.all_scores import objective_of
from services.contracts.problems.coupling import CouplingTask
from services.contracts.problems.lift import is_accounted
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.messages import Task
from services.site_agent.answers.held_out import network_on_sums, told_of_model
from services.site_agent.answers.local_coupling import coupling_answer
from services.site_agent.answers.local_join import joined
from services.site_agent.answers.local_solve import head_risks, lift_box, lifted, site_problems, solve_round
from services.site_agent.answers.local_tuning import tuning_answer
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.limits.questions import Heads, Questions, asked_weights, check_steepness, check_sums
from services.site_agent.limits.row_reach import row_reach
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.isolation.guard import VaultGuard
from services.site_agent.vault.records.exposure_gate import NOTHING

_TUNED_KEPT = 2000  # candidates and folds of the last tunings, for as many runs as a plant takes part in at once


class RowAnswers:
    """Answers of one site's rows. Not thread-safe: one task at a time."""

    def __init__(self, asset_type: AssetType, policy: SitePolicy, masks: MaskedRuns | None) -> None:
        self._asset_type, self._policy, self._masks = asset_type, policy, masks
        self._questions, self._tuned = Questions(), Questions(_TUNED_KEPT)
        self._kept: tuple[Dataset, TrainingSpec, Heads] | None = None

    def note(self, task: Task, told: Mapping[str, FloatArray]) -> None:
        """Remember a round that was answered: the next question of the run is held to it."""
        if task.kind == "round":
            self._questions.note(task.run_id, task.arrays, told.get("risk"))

    def found(self, task: Task, dataset: Dataset, guard: VaultGuard) -> Accounted:
        """Arrays of the answer with their account; ``Refusal`` for a question without an honest purpose."""
        match task.kind:
            case "join":
                return Accounted(joined(task, dataset), NOTHING)
            case "round":
                return self._round(task, dataset, guard)
            case "tune":
                check = partial(self._check_tuned, task)
                if isinstance(task.tuning, CouplingTask):
                    return coupling_answer(task, dataset.train, self._asset_type, guard, check)
                return tuning_answer(task, dataset.train, self._asset_type, self._policy, guard, check, guard.shares)
            case "evaluate":
                heads = self.heads(task, dataset)
                told = told_of_model(task, dataset, heads, self._asset_type, self._policy, guard.shares)
                return Accounted(told, NOTHING)
            case "agree" | "prepare" | "unmask" | "open":
                raise Refusal("bad_task", f"a task {task.kind} asks nothing of the data")

    def heads(self, task: Task, dataset: Dataset) -> Heads:
        """Problem of each head; the last ones are kept, for every round of a run asks about the same."""
        kept = self._kept
        if kept is None or kept[0] is not dataset or kept[1] != task.spec:
            spec, train = task.spec, dataset.train
            rows, outcomes = lifted(spec, train.features), train.outcomes(spec.loss.task)
            problems = site_problems(spec, rows, outcomes, self._asset_type)
            kept = self._kept = (dataset, spec, Heads(problems, lift_box(spec.lift, train.features)))
        return kept[2]

    def _round(self, task: Task, dataset: Dataset, guard: VaultGuard) -> Accounted:
        heads = self.heads(task, dataset)
        objective = objective_of(task.spec, self._asset_type, self._policy.min_samples)
        # Solved first, for that holds the message to its shapes; a refused question's answer stays in here.
        memory = self._masks.memory(task.run_id) if self._masks is not None and task.masking is not None else None
        found, kept = solve_round(
            task.method, task.parameters, task.arrays, heads.problems, self._policy.min_samples, memory, guard,
            objective,
        )
        if task.masking is not None and objective is None:
            check_sums(asked_weights(task.arrays), heads)
        if not get_method(task.method).ignores_radius:
            for weights in asked_weights(task.arrays):
                check_steepness(weights, heads, self._policy.steepness_limit)
        if "point" in task.arrays and objective is None:  # nothing bounds what those of all scores change by
            self._questions.check_nearness(
                task.run_id, task.arrays, heads, self._policy.nearness_limit, hidden=task.masking is not None
            )
        if self._masks is not None and memory is not None:
            self._masks.remember(task.run_id, kept)
        if isinstance(objective, NetworkObjective) and task.masking is not None:
            reach = row_reach(task.arrays["point"], task.spec, self._asset_type, objective)
            found = replace(found, arrays=network_on_sums(task, found.arrays, reach, len(dataset.train), guard.shares))
        if not is_accounted(task.spec.lift):
            # A segment that few rows reach has a slope of these few; products and waves are more equations than a row.
            return replace(found, account=replace(found.account, whole=False))
        return found

    def _check_tuned(self, task: Task, part: str, points: FloatArray, heads: Heads) -> None:
        """The same of a part of a tuning: each candidate and fold is a risk of its own."""
        name, message = f"{task.run_id} {part}", {"point": points}
        check_steepness(points, heads, self._policy.steepness_limit)
        hidden = task.masking is not None
        if hidden:
            check_sums([points], heads)
        self._tuned.check_nearness(name, message, heads, self._policy.nearness_limit, hidden=hidden)
        self._tuned.note(name, message, head_risks(points, heads.problems, whole=True))
