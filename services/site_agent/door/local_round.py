"""The one door between the plant's data and the world: a task's bytes in, an answer's bytes out.

Task -> policy -> vault -> models -> update or refusal -> ledger -> bytes. What is computed on rows stays in here; what
goes out has the shape of the model, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from models.basics import FloatArray
from models.cohorts.fixed_point import Words
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.lift import ProductLiftSpec
from services.contracts.wire.codec import COMPACT, OWN_SCORES, Frame, FrameError, read_by_asker
from services.contracts.wire.masking import Delivery, MaskingCohort
from services.contracts.wire.messages import SiteRefusal, SiteUpdate, Task
from services.process.log_lines import about
from services.process.tracing import span
from services.site_agent.answers.local_join import ToldBeside
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.door.noisy_round import NoisyAnswers
from services.site_agent.door.oem_tasks import OemTasks
from services.site_agent.door.own_draws import DRAW, with_own_draws, with_own_seed
from services.site_agent.door.refusals import as_refusals
from services.site_agent.door.row_answers import RowAnswers
from services.site_agent.door.task_frame import read_task, salvage
from services.site_agent.limits.kinds import kind_of_task
from services.site_agent.limits.questions import check_steepness
from services.site_agent.limits.told_lifts import ToldLifts, asked_lifts
from services.site_agent.limits.work import check_work
from services.site_agent.logs import LOG, PRIVATE
from services.site_agent.outgoing.egress import Egress, TooLargeError
from services.site_agent.rules.policy import Refusal, SitePolicy
from services.site_agent.settings import DataSource
from services.site_agent.vault.dataset import Dataset, Part, all_clipped_lines
from services.site_agent.vault.drift import DriftRecord
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.isolation.few_rows import OF_PRODUCTS
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.records.exposure_gate import NOTHING, ExposureGate
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.lift_record import LiftRecord
from services.site_agent.vault.records.noise_account import NoiseRecord
from services.site_agent.vault.records.row_batches import RowBatches
from services.site_agent.vault.records.told_models import (
    OF_THE_ROWS,
    CountModels,
    check_problem_count,
    check_told,
    question_digest,
)
from services.site_agent.vault.records.version_rows import VersionRows


class LocalRound:
    """Answers tasks for one site. Not thread-safe: one task at a time."""

    def __init__(
        self, site_id: str, source: DataSource, asset_type: AssetType, policy: SitePolicy, egress: Egress,
        exposure: Path | None = None, masks: MaskedRuns | None = None, tasks: OemTasks | None = None,
    ) -> None:
        """``exposure`` is the file with the record of what was answered; without one it lasts as long as this.

        ``masks`` are those of the runs on sums; without them none is taken part in. ``tasks`` tells the OEM's from
        those of others; without it all are answered.

        Raises
        ------
        ExposureRecordError
            The record cannot be read: without it nothing may be answered.
        """
        self._site_id = site_id
        self._asset_type = asset_type
        self._policy = policy
        self._egress = egress
        self._record = ExposureRecord(exposure)
        self._batches = RowBatches(exposure, self._record.secret(), policy.min_new_rows)
        self._vault = Vault(source, asset_type, self._batches.seen)
        self._gate = ExposureGate(self._record, policy)
        self._noise_record = NoiseRecord(exposure)
        self._rows = VersionRows(exposure, self._record.secret())
        self._noise = NoisyAnswers(self._noise_record, self._rows, policy)
        self._lifts = ToldLifts(LiftRecord(exposure), self._rows, policy)
        sensors = asset_type.sensors_fingerprint
        self._beside = ToldBeside(site_id, policy, self._record, self._gate, DriftRecord(exposure), sensors)
        self._answers = RowAnswers(asset_type, policy, masks)
        self._masks = masks
        self._tasks = tasks

    def answer(self, task_frame: bytes, headers: Mapping[str, str] | None = None) -> bytes:
        """Signed frame of a ``SiteUpdate`` or ``SiteRefusal``; it stands in the ledger when this returns.

        The same task over the same data gets the same bytes again. ``headers`` stood beside it: the OEM's signature,
        and what who asks reads.
        ``LedgerError`` where the ledger could not take the answer's line: nothing may be sent.
        """
        reply_to, parsed = salvage(task_frame, self._site_id)
        with about(run_id=reply_to["run_id"], round=reply_to["round"]):
            return self._answered(task_frame, reply_to, parsed, headers)

    def _answered(
        self, task_frame: bytes, reply_to: dict[str, Any], parsed: Frame | FrameError,
        headers: Mapping[str, str] | None,
    ) -> bytes:
        reads = read_by_asker(headers)
        try:
            if self._tasks is not None:
                self._tasks.check(task_frame, headers)
            task = read_task(
                parsed, len(task_frame), self._site_id, self._asset_type, self._policy, self._egress.rounds_answered
            )
            task = task.model_copy(update={"spec": with_own_seed(task.spec, self._record.secret())})
            with span("local solve", run_id=task.run_id, round=task.round, kind_of_task=task.kind):
                content, exposure = self._content(task)
            if task.kind == "join" and task.reveal == "sums" and OWN_SCORES in reads:
                content["own_scores"] = self._policy.own_scores
            peers = task.masking.keys if isinstance(task.masking, MaskingCohort) else None
            update = SiteUpdate(**reply_to, **content)
            frame = self._egress.release(update, exposure, peers, reads_compact=COMPACT in reads)
        except TooLargeError as error:
            return self._refuse(Refusal("message_too_large", str(error)), reply_to)
        except Refusal as refusal:
            return self._refuse(refusal, reply_to)
        LOG.info("answered %s of run %s, round %d: %d bytes", task.kind, task.run_id[:8], task.round, len(frame))
        return frame

    def close(self) -> None:
        """Let go of the records."""
        self._record.close()
        self._noise_record.close()
        self._lifts.close()
        self._beside.close()
        self._batches.close()
        self._rows.close()

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
        for line in (*all_clipped_lines(dataset, self._asset_type), *dataset.unread):
            PRIVATE.warning("%s", line)

    def _content(self, task: Task) -> tuple[dict[str, Any], dict[str, float] | None]:
        """What the answer holds: its arrays, or on sums what goes under masks; and what the answers isolate with it."""
        if task.masking is None:
            found, exposure = self._compute(task)
            return {"arrays": found, **(self._told(task, found) if task.kind == "join" else {})}, exposure
        if self._masks is None:
            raise Refusal("mode_not_allowed", "no masks are made here")
        if not isinstance(task.masking, Delivery):
            return {"masking": self._masks.answer(task.masking)}, None
        cohort = self._masks.summed(task.masking)
        if task.kind == "round" and cohort.noise is not None:
            noisy, exposure = self._noisy(task, cohort)
            return {"masking": self._masks.mask(task.masking, noisy)}, exposure
        found, exposure = self._compute(task)
        with self._few_refused(task), as_refusals(task):
            words = self._masks.words(task, found)
        question = self._masks.question(task, found) if task.kind == "round" else None
        return {"masking": self._masks.mask(task.masking, words, question)}, exposure

    def _told(self, task: Task, arrays: Mapping[str, FloatArray]) -> dict[str, Any]:
        with as_refusals(task):
            return self._beside.told(task, *self._data(task), arrays)

    @contextmanager
    def _few_refused(self, task: Task) -> Iterator[None]:
        """Writes down refusals that may depend on the rows: halving would make numbers of them, under no mask."""
        try:
            yield
        except Refusal as refusal:
            with as_refusals(task):
                if refusal.isolating:
                    rows, question = self._data(task)[0].train, question_digest(task)
                    self._gate.note_isolating(rows, task.run_id, task.method, question)
                elif refusal.refusal_code in OF_THE_ROWS:
                    self._gate.note_refused(self._data(task)[0].train, task.run_id, question_digest(task))
            raise

    def _noisy(self, task: Task, cohort: MaskingCohort) -> tuple[Words, dict[str, float]]:
        """Words with noise in them: they isolate nothing, and stand in the account of noise."""
        with self._few_refused(task), as_refusals(task):
            whole, dataset = self._data(task)
            check_work(task, len(dataset.train), self._asset_type, self._policy)
            check_problem_count(task, self._counting(task, whole))
            self._check_lifts(task, whole.train, len(dataset.train))
            heads = self._answers.heads(task, dataset)
            if "point" in task.arrays:
                check_steepness(task.arrays["point"], heads, self._policy.steepness_limit)
            digest = self._gate.digest(whole.train)
            words = self._noise.words(task, cohort, heads.problems, digest, whole.train)
            known = whole.train.known(task.spec.loss.task)
            return words, dict(vars(self._gate.admit(whole.train, known, task.run_id, NOTHING)))

    def _compute(self, task: Task) -> tuple[dict[str, FloatArray], dict[str, float]]:
        """Arrays of the answer, and what the answers isolate with it, which stands in the record then."""
        with self._few_refused(task), as_refusals(task):
            whole, dataset = self._data(task)
            check_work(task, len(dataset.train), self._asset_type, self._policy)
            known = whole.train.known(task.spec.loss.task)
            kind = kind_of_task(task)
            few = OF_PRODUCTS if any(isinstance(lift, ProductLiftSpec) for lift in asked_lifts(task)) else 1
            guard = self._gate.guard(whole.train, known, kind=kind, few=few, on_sums=task.masking is not None)
            check_told(task, self._counting(task, whole))
            if task.kind in ("round", "tune"):
                self._gate.check_isolating(whole.train, task.run_id, task.method)
            self._check_lifts(task, whole.train, len(dataset.train))
            found = self._answers.found(self._with_own_draws(task, whole), dataset, guard)
            figures = self._gate.admit(whole.train, known, task.run_id, found.account, guard.choices, kind)
            self._answers.note(task, found.arrays)
            return found.arrays, dict(vars(figures))

    def _check_lifts(self, task: Task, train: Part, n_rows: int) -> None:
        self._lifts.check(task, self._gate.digest(train), len(self._asset_type.features), n_rows, train)

    def _data(self, task: Task) -> tuple[Dataset, Dataset]:
        """All rows and those that the task learns from, where the policy allows an answer over them."""
        whole = self._vault.dataset(task.run_id)
        dataset = whole.rows_for(task.spec.loss.task)
        self._policy.check_samples(len(dataset.train), len(dataset.test), task.kind)
        if task.spec.loss.task == "classification" and not self._policy.one_class:
            dataset.refuse_one_class()
        self._gate.check_budget(whole.train, task.run_id)
        return whole, dataset

    def _with_own_draws(self, task: Task, whole: Dataset) -> Task:
        """The task with numbers of the vault's own where it names any to draw by."""
        if DRAW not in task.arrays:
            return task
        own = with_own_draws(task.arrays, self._gate.secret(whole.train), question_digest(task))
        return task.model_copy(update={"arrays": own})

    def _counting(self, task: Task, whole: Dataset) -> CountModels:
        """What writes down of which problems and models the task's run is told."""
        return partial(self._gate.count_models, whole.train, task.run_id)

    def _refuse(self, refusal: Refusal, reply_to: dict[str, Any]) -> bytes:
        """Refusal with the fixed sentence of its code; the detail goes to the site's own log alone."""
        LOG.warning("refused %s of run %s: %s", reply_to["kind"], reply_to["run_id"][:8], refusal.reason)
        PRIVATE.warning("%s: %s", refusal.refusal_code, refusal)
        return self._egress.release(SiteRefusal(**reply_to, code=refusal.refusal_code, reason=refusal.reason))
