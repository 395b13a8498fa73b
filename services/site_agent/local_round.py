"""The one door between the plant's data and the world: a task's bytes in, an answer's bytes out.

Task -> policy -> vault -> models -> update or refusal -> ledger -> bytes. What is computed on rows stays in here; what
goes out has the shape of the model, whatever the number of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from models.basics import FloatArray, ProblemError
from models.losses.base import Task as LearningTask
from models.methods.catalogue import get_method
from models.methods.row_account import Accounted
from models.problem import SiteProblem
from services.contracts.asset_type import AssetType
from services.contracts.codec import Frame, FrameError, digest, unpack
from services.contracts.errors import InvalidInputError
from services.contracts.lift import LiftMismatchError, draw_lift, lift_check
from services.contracts.messages import SiteRefusal, SiteUpdate, Task, TrainingSpec
from services.site_agent.egress import Egress, TooLargeError
from services.site_agent.local_solve import (
    check_interval,
    check_weights,
    confusion_counts,
    head_risks,
    held_out_loss,
    join_answer,
    lifted,
    regression_sums,
    site_problems,
    solve_round,
)
from services.site_agent.logs import LOG, PRIVATE
from services.site_agent.policy import Refusal, SitePolicy
from services.site_agent.questions import Questions, asked_weights, check_steepness
from services.site_agent.settings import CsvSource, DataSource, SiteSettings
from services.site_agent.vault.csv_source import read_measurements
from services.site_agent.vault.dataset import Dataset, Part, apply_contract
from services.site_agent.vault.exposure_gate import NOTHING, ExposureGate
from services.site_agent.vault.exposure_record import ExposureRecord, ExposureRecordError
from services.site_agent.vault.exposure_words import exposure_lines, exposure_summary
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.table import VaultError

NO_RUN = "0" * 32
"""Run id in the refusal of a task that names none."""


class LocalRound:
    """Answers tasks for one site. Not thread-safe: one task at a time."""

    def __init__(
        self, site_id: str, source: DataSource, asset_type: AssetType, policy: SitePolicy, egress: Egress,
        exposure: Path | None = None,
    ) -> None:
        """``exposure`` is the file with the record of what was answered; without one it lasts as long as this.

        Raises
        ------
        ExposureRecordError
            The record cannot be read: without it nothing may be answered.
        """
        self._site_id = site_id
        self._asset_type = asset_type
        self._policy = policy
        self._egress = egress
        self._vault = Vault(source, asset_type)
        self._record = ExposureRecord(exposure)
        self._gate = ExposureGate(self._record, policy)
        self._questions = Questions()
        self._problems: tuple[Dataset, TrainingSpec, tuple[SiteProblem, ...]] | None = None

    def answer(self, task_frame: bytes) -> bytes:
        """Signed frame of a ``SiteUpdate`` or ``SiteRefusal``; it stands in the ledger when this returns.

        The same task over the same data gets the same bytes again. ``LedgerError`` where the ledger could not take the
        answer's line: nothing may be sent.
        """
        reply_to, parsed = _salvage(task_frame, self._site_id)
        try:
            task = self._read(parsed, len(task_frame))
            found, exposure = self._compute(task)
            frame = self._egress.release(SiteUpdate(**reply_to, arrays=found), exposure)
        except TooLargeError as error:
            return self._refuse(Refusal("message_too_large", str(error)), reply_to)
        except Refusal as refusal:
            return self._refuse(refusal, reply_to)
        LOG.info("answered %s of run %s, round %d: %d bytes", task.kind, task.run_id[:8], task.round, len(frame))
        return frame

    def close(self) -> None:
        """Let go of the record."""
        self._record.close()

    def warm_up(self) -> None:
        """Read the data before the first task asks; what does not fit goes to the log."""
        try:
            dataset = self._vault.current()
        except VaultError as error:
            refusal = Refusal(error.refusal_code, str(error))
            LOG.warning("the data cannot be used at present: %s", refusal.reason)
            PRIVATE.warning("%s", error)
            return
        LOG.info("data opened")
        PRIVATE.info("%d training rows, %d held out", len(dataset.train), len(dataset.test))

    def _read(self, frame: Frame | FrameError, size: int) -> Task:
        """Task of a frame, if it is one, is for this site, and the policy and the contract allow it."""
        if size > self._policy.max_message_bytes:
            raise Refusal("message_too_large", f"{size} bytes, the policy allows {self._policy.max_message_bytes}")
        if isinstance(frame, FrameError):
            raise Refusal("bad_task", str(frame))
        try:
            task = frame.message()
        except FrameError as error:
            raise Refusal("bad_task", str(error)) from None
        if not isinstance(task, Task):
            raise Refusal("bad_task", f"a task was due, got a {task.type}")
        if task.site_id != self._site_id:
            raise Refusal("wrong_site", f"the task is for site {task.site_id}")
        self._policy.check_task(task, self._egress.rounds_answered(task.run_id))
        if task.asset_type != self._asset_type.name:
            raise Refusal("asset_type_not_allowed", f"this site holds {self._asset_type.name}, not {task.asset_type}")
        if task.contract != self._asset_type.fingerprint:
            raise Refusal("contract_mismatch", "the OEM's asset type file differs from the one here")
        missing = self._asset_type.missing_for_task(task.spec.loss.task)
        if missing:
            raise Refusal("no_labels", missing)
        return task

    def _compute(self, task: Task) -> tuple[dict[str, FloatArray], dict[str, float]]:
        """Arrays of the answer, and what the answers isolate with it, which stands in the record then."""
        try:
            whole = self._vault.dataset(task.run_id)
            dataset = whole.rows_for(task.spec.loss.task)
            self._policy.check_samples(len(dataset.train), len(dataset.test), task.kind)
            if task.spec.loss.task == "classification":
                dataset.refuse_one_class()
            self._gate.check_budget(whole.train, task.run_id)
            found = self._found(task, dataset)
            known = whole.train.known(task.spec.loss.task)
            figures = self._gate.admit(whole.train, known, task.run_id, found.account)
            if task.kind == "round":
                self._questions.note(task.run_id, task.arrays, found.arrays.get("risk"))
            return found.arrays, asdict(figures)
        except VaultError as error:
            raise Refusal(error.refusal_code, str(error)) from None
        except LiftMismatchError as error:
            raise Refusal("contract_mismatch", str(error)) from None
        except ProblemError as error:
            raise Refusal("bad_task", str(error)) from None
        except ExposureRecordError as error:
            raise Refusal("internal_error", str(error)) from None
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
            PRIVATE.exception("task %s of run %s failed", task.kind, task.run_id)
            raise Refusal("internal_error", f"{type(error).__name__}: {error}") from None

    def _found(self, task: Task, dataset: Dataset) -> Accounted:
        match task.kind:
            case "join":
                return Accounted(self._join(task, dataset), NOTHING)
            case "round":
                return self._round(task, dataset)
            case "evaluate":
                return Accounted(self._evaluate(task, dataset), NOTHING)

    def _join(self, task: Task, dataset: Dataset) -> dict[str, FloatArray]:
        train, spec = dataset.train, task.spec
        check = lift_check(draw_lift(spec.lift, train.features.shape[1]))
        return join_answer(spec, lifted(spec, train.features), train.outcomes(spec.loss.task), check)

    def _heads(self, task: Task, dataset: Dataset) -> tuple[SiteProblem, ...]:
        """Problem of each head; the last ones are kept, for every round of a run asks about the same."""
        kept = self._problems
        if kept is None or kept[0] is not dataset or kept[1] != task.spec:
            spec, train = task.spec, dataset.train
            rows, outcomes = lifted(spec, train.features), train.outcomes(spec.loss.task)
            kept = self._problems = (dataset, spec, site_problems(spec, rows, outcomes, self._asset_type))
        return kept[2]

    def _round(self, task: Task, dataset: Dataset) -> Accounted:
        heads = self._heads(task, dataset)
        found = solve_round(task.method, task.parameters, task.arrays, heads, self._policy.min_samples)
        if not get_method(task.method).ignores_radius:
            for weights in asked_weights(task.arrays):
                check_steepness(weights, heads, self._policy.steepness_limit)
        if "point" in task.arrays:
            self._questions.check_nearness(task.run_id, task.arrays, heads, self._policy.nearness_limit)
        return found

    def _evaluate(self, task: Task, dataset: Dataset) -> dict[str, FloatArray]:
        heads, held_out = self._heads(task, dataset), lifted(task.spec, dataset.test.features)
        weights = check_weights(task.arrays.get("weights"), len(heads), held_out.shape[1])
        test, loss, n_classes = dataset.test, task.spec.loss.loss, len(self._asset_type.fault_classes)
        answer = {
            "risk": head_risks(weights, heads),
            "loss": held_out_loss(weights, held_out, test.outcomes(loss.task), loss, n_classes),
        }
        if loss.task == "regression":
            interval, quantile = check_interval(task.arrays.get("interval")), task.spec.loss.quantile or 0.5
            return answer | regression_sums(weights, held_out, test.targets, interval, quantile)
        counts = confusion_counts(weights, held_out, test.classes, n_classes, self._policy.min_class_samples)
        return answer | {"confusion": counts}

    def _refuse(self, refusal: Refusal, reply_to: dict[str, Any]) -> bytes:
        """Refusal with the fixed sentence of its code; the detail goes to the site's own log alone."""
        LOG.warning("refused %s of run %s: %s", reply_to["kind"], reply_to["run_id"][:8], refusal.reason)
        PRIVATE.warning("%s: %s", refusal.refusal_code, refusal)
        return self._egress.release(SiteRefusal(**reply_to, code=refusal.refusal_code, reason=refusal.reason))


def exposure_account(path: Path, policy: SitePolicy) -> tuple[dict[str, Any], list[str]]:
    """What the answers so far isolate, as figures and in plain words, for the plant's own screen.

    Raises
    ------
    ExposureRecordError
        The record at ``path`` cannot be read.
    """
    summary = exposure_summary(path, policy)
    return summary, exposure_lines(summary)


def data_summary(source: DataSource, asset_type: AssetType, policy: SitePolicy) -> list[str]:
    """What the data hold, for the plant's own screen.

    ``VaultError`` where something does not fit the contract, or the rows serve nothing that the asset type is for;
    ``Refusal`` where there are fewer rows than the policy asks for.
    """
    dataset = Vault(source, asset_type).current()
    lines = [f"asset type {asset_type.name}: {len(asset_type.features)} features, all that are required are there"]
    lines += [_part_line("training", dataset.train, asset_type), _part_line("held out", dataset.test, asset_type)]
    for name, count in dataset.clipped.items():
        which = "sensor range" if name in asset_type.feature_names else "range"
        lines.append(f"{name}: {count} values outside the {which} were clipped to it")
    if dataset.absent:
        lines.append(f"optional features that are not measured: {', '.join(dataset.absent)}")
    both: tuple[LearningTask, ...] = ("classification", "regression")
    tasks = [task for task in both if not asset_type.missing_for_task(task)]
    problems: list[VaultError | Refusal] = []
    for task in tasks:
        try:
            _check_task(dataset, task, policy)
        except (VaultError, Refusal) as error:
            problems.append(error)
            lines.append(f"no {task}: {error}")
    if len(problems) == len(tasks):
        raise problems[0]
    return lines


def _check_task(dataset: Dataset, task: LearningTask, policy: SitePolicy) -> None:
    rows = dataset.rows_for(task)
    if task == "classification":
        rows.refuse_one_class()
    policy.check_samples(len(rows.train), len(rows.test), "evaluate")


def own_risks(
    settings: SiteSettings, asset_type: AssetType, spec: TrainingSpec, weights: Sequence[FloatArray]
) -> FloatArray:
    """Worst-case risk (n, K) of the planes of n weights (K, P + 1) on the plant's own training rows, for its screen.

    Raises
    ------
    VaultError
        Something does not fit the contract of ``asset_type``.
    InvalidInputError
        The rows do not fit the problem of ``spec``.
    """
    dataset = Vault(settings.data, asset_type).current().rows_for(spec.loss.task)
    try:
        rows, outcomes = lifted(spec, dataset.train.features), dataset.train.outcomes(spec.loss.task)
        heads = site_problems(spec, rows, outcomes, asset_type)
        return np.stack([head_risks(each, heads) for each in weights])
    except (ProblemError, LiftMismatchError) as error:
        raise InvalidInputError(f"the plant's rows do not fit the version: {error}") from None


def scaled_measurements(source: CsvSource, asset_type: AssetType) -> FloatArray:
    """Features (N, P) in [0, 1] of measurements without labels, for diagnoses inside the plant.

    ``VaultError`` where something does not fit the contract.
    """
    return apply_contract(*read_measurements(source, asset_type), asset_type).features


def _part_line(name: str, part: Part, asset_type: AssetType) -> str:
    counts = Counter(part.classes.tolist())
    held = [f"{class_name} {counts[number]}" for number, class_name in enumerate(asset_type.class_names)]
    if asset_type.target is not None:
        held.append(f"values of the target {asset_type.target.name} {int(part.known('regression').sum())}")
    return f"{name}: {len(part)} rows ({', '.join(held)})"


def _salvage(data: bytes, site_id: str) -> tuple[dict[str, Any], Frame | FrameError]:
    """What an answer refers to, and the frame taken apart, or why it is none.

    Kind, run and round as the task names them, or a placeholder where it does not.
    """
    reply_to = {"kind": "join", "site_id": site_id, "run_id": NO_RUN, "round": 0, "task_sha256": digest(data)}
    try:
        frame = unpack(data)
    except FrameError as error:
        return reply_to, error
    named = reply_to | {key: frame.header.get(key) for key in ("kind", "run_id", "round")}
    try:
        SiteRefusal(**named, code="bad_task", reason="")
    except ValidationError:
        return reply_to, frame
    return named, frame
