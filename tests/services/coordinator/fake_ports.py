"""The coordinator's ports without a server: a store in memory, and plants that answer as a test says."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.methods.growth import Added
from services.contracts.history.run import (
    Exchange,
    ExcludedSite,
    RoundRecord,
    Run,
    RunStart,
    SiteAnswer,
    SiteTermsRecord,
)
from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.problems.coupling import CouplingTask
from services.contracts.wire.codec import decode, digest, encode
from services.contracts.wire.masking import Delivery, MaskingAnswer
from services.contracts.wire.messages import RefusalCode, SiteRefusal, SiteUpdate, Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.training import Coordinator
from services.site_agent.answers.local_coupling import coupling_answer
from services.site_agent.answers.local_scores import confusion_counts, held_out_loss
from services.site_agent.answers.local_solve import head_risks, join_answer, lifted, site_problems, solve_round
from services.site_agent.answers.local_tuning import tuning_answer
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.door.noisy_round import NoisyAnswers
from services.site_agent.rules.policy import REASONS, Refusal, SitePolicy
from services.site_agent.vault.dataset import Part
from services.site_agent.vault.records.noise_account import NoiseRecord
from services.site_agent.vault.records.version_rows import VersionRows

RIG = AssetType(
    name="rig", features=tuple(Feature(name=name, unit="1", low=0, high=1) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)
Arrays = Mapping[str, FloatArray]
Falsify = Callable[[Task, dict[str, FloatArray]], dict[str, FloatArray]]
Behave = Callable[[Task], "bytes | RawAnswer | None"]


class Unguarded:
    """Lets every exact answer leave."""

    def choose(self, question: bytes, candidate: Any, vectors: Any) -> Any:
        return candidate(0, np.random.default_rng(0))

    def choose_cut(self, question: bytes, near: Any, exact: Any, other: Any) -> Any:
        return exact


def joined(known: Arrays, added: Mapping[str, Added]) -> dict[str, FloatArray]:
    """Arrays that grow, with what a round added."""
    found = {}
    for name, each in added.items():
        before = [np.take(known[name], np.arange(each.start), each.axis)] if each.start else []
        found[name] = np.concatenate([*before, each.rows], axis=each.axis)
    return found


@dataclass
class FakePlant:
    """An honest plant over drawn rows; ``falsify`` changes what it says, ``behave`` what it sends (None: honestly)."""

    site_id: str
    seed_file: Path
    number: int
    count: int = 40
    falsify: Falsify = lambda task, arrays: arrays
    behave: Behave = lambda task: None
    policy: SitePolicy = SitePolicy()
    asked: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.public_key = new_seed_file(self.seed_file)
        self.record = NoiseRecord(None)
        self.restart()
        self.draw_rows()

    def draw_rows(self) -> None:
        """``count`` rows, every second one of the second class."""
        draw = np.random.default_rng([5, self.number])
        self.classes = np.arange(self.count) % 2
        centres = np.where(self.classes[:, None] == 1, 0.62, 0.38) + 0.05 * self.number * np.array([1.0, -1.0])
        self.features = np.clip(centres + 0.17 * draw.standard_normal((self.count, 2)), 0.0, 1.0)

    def restart(self) -> None:
        """Lose what is in memory alone."""
        self.masks = MaskedRuns(self.site_id, self.public_key, signer(self.seed_file), self.policy)
        self.noise = NoisyAnswers(self.record, VersionRows(None, b""), self.policy)

    @property
    def rows(self) -> Part:
        """All of them, for training."""
        return Part(self.features, self.classes, np.full(self.count, np.nan))

    def masked(self, task: Task) -> MaskingAnswer:
        """Its answer to a task of a run on sums."""
        assert task.masking is not None
        if not isinstance(task.masking, Delivery):
            return self.masks.answer(task.masking)
        cohort = self.masks.cohort(task.run_id)
        if task.kind == "round" and cohort.noise is not None:
            heads = site_problems(task.spec, self.features, self.classes, RIG)
            return self.masks.mask(task.masking, self.noise.words(task, cohort, heads, "digest", self.rows))
        found = self.falsify(task, self.honest(task))
        question = self.masks.question(task, found) if task.kind == "round" else None
        return self.masks.mask(task.masking, self.masks.words(task, found), question)

    def honest(self, task: Task) -> dict[str, FloatArray]:
        if task.kind == "tune":
            rows = self.rows
            rules = SitePolicy(min_samples=5, min_test_samples=1, min_class_samples=1)
            if isinstance(task.tuning, CouplingTask):
                return dict(coupling_answer(task, rows, RIG, Unguarded(), lambda *given: None).arrays)
            check, draw = (lambda *given: None), (lambda question: np.zeros(2))
            return dict(tuning_answer(task, rows, RIG, rules, Unguarded(), check, draw).arrays)
        heads = site_problems(task.spec, lifted(task.spec, self.features), self.classes, RIG)
        if task.kind == "join":
            return join_answer(task.spec, self.features, self.classes)
        if task.kind == "round":
            memory = None if task.masking is None else self.masks.memory(task.run_id)
            found, kept = solve_round(task.method, task.parameters, task.arrays, heads, 1, memory)
            if memory is not None:
                self.masks.remember(task.run_id, kept)
            return dict(found.arrays)
        weights = task.arrays["weights"]
        return {
            "risk": head_risks(weights, heads),
            "loss": held_out_loss(weights, self.features, self.classes, task.spec.loss.loss, len(RIG.fault_classes)),
            "confusion": confusion_counts(weights, self.features, self.classes, len(RIG.fault_classes), 5),
        }

    def update(self, frame: bytes, task: Task, **changes: Any) -> bytes:
        said = {
            "kind": task.kind, "site_id": self.site_id, "run_id": task.run_id, "round": task.round,
            "task_sha256": digest(frame),
        }
        said |= {"arrays": self.falsify(task, self.honest(task))} if task.masking is None else {
            "masking": self.masked(task)
        }
        return encode(SiteUpdate.model_validate(said | changes), signer(self.seed_file), reads_compact=True)

    def refusal(self, frame: bytes, task: Task, code: RefusalCode = "too_few_samples") -> bytes:
        refused = SiteRefusal(
            kind=task.kind, site_id=self.site_id, run_id=task.run_id, round=task.round, task_sha256=digest(frame),
            code=code, reason=REASONS[code],
        )
        return encode(refused, signer(self.seed_file))

    def refusal_of(self, task: Task, code: RefusalCode) -> bytes:
        """Refusal of the task that came last."""
        return self.refusal(self.frame, task, code)

    def answer(self, frame: bytes) -> RawAnswer:
        task = decode(frame, 1 << 20)
        assert isinstance(task, Task)
        self.asked.append(task)
        self.frame = frame
        sent = self.behave(task)
        if isinstance(sent, RawAnswer):
            return sent
        if sent is None:
            try:
                sent = self.update(frame, task)
            except Refusal as refusal:
                sent = self.refusal(frame, task, refusal.refusal_code)
        return RawAnswer(self.site_id, sent, "", 0.001)


@dataclass
class FakeTransport:
    """Asks the fake plants; ``deadlines`` are those that it was given."""

    plants: dict[str, FakePlant]
    deadlines: list[float] = field(default_factory=list)

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        self.deadlines.append(deadline_seconds)
        return {site: self.plants[site].answer(frame) for site, frame in frames.items()}


@dataclass
class FakeStore:
    """Runs in memory; ``lose_after`` says after which round the process dies before it commits."""

    runs: dict[str, Run] = field(default_factory=dict)
    records: list[RoundRecord] = field(default_factory=list)
    states: dict[str, tuple[int, dict[str, FloatArray]]] = field(default_factory=dict)
    lose_after: int | None = None
    exchanges: dict[tuple[str, int, str], Exchange] = field(default_factory=dict)
    evidence: dict[str, bytes] = field(default_factory=dict)

    def create(self, plan: Plan) -> Run:
        moment = datetime.now(UTC)
        run = Run(run_id=uuid.uuid4().hex, plan=plan, status="pending", created_at=moment, updated_at=moment)
        self.runs[run.run_id] = run
        return run

    def get_run(self, run_id: str) -> Run:
        return self.runs[run_id]

    def is_cancelled(self, run_id: str) -> bool:
        return self.runs[run_id].cancel_requested

    def change(self, run_id: str, **values: Any) -> Run:
        self.runs[run_id] = self.runs[run_id].model_copy(update=values)
        return self.runs[run_id]

    def begin_run(
        self, run_id: str, sites: Sequence[SiteTermsRecord], absentees: Sequence[SiteAnswer] = (),
        start: RunStart | None = None, digests: Mapping[str, str] | None = None,
    ) -> Run:
        return self.change(run_id, status="running", sites=tuple(sites), absentees=tuple(absentees), start=start)

    def get_digests(self, run_id: str) -> dict[str, str]:
        return {}

    def load_end(self, run_id: str) -> dict[str, FloatArray] | None:
        return None

    def samples_before(self, run_id: str) -> dict[str, int]:
        runs = [each for each in self.runs.values() if each.status == "completed" and each.run_id != run_id]
        return {site.site_id: site.n_samples for site in runs[-1].sites} if runs else {}

    def completed_before(self, run_id: str, limit: int = 1, *, tunings: bool = False) -> list[Run]:
        runs = [each for each in self.runs.values() if each.status == "completed" and each.run_id != run_id]
        return [each for each in runs[::-1] if tunings or not each.plan.tunes_only][:limit]

    def set_doing(self, run_id: str, doing: str) -> None:
        self.change(run_id, doing=doing)

    def set_tuned(self, run_id: str, plan: Plan, sites: Sequence[SiteTermsRecord]) -> Run:
        assert self.runs[run_id].rounds == 0
        return self.change(run_id, plan=plan, sites=tuple(sites))

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        return self.states.get(run_id)

    def get_exchange(self, run_id: str, round_: int, site_id: str) -> Exchange | None:
        return self.exchanges.get((run_id, round_, site_id))

    def commit_round(
        self, record: RoundRecord, state: Mapping[str, FloatArray], exchanges: Mapping[str, Exchange] | None = None,
        evidence: Mapping[str, bytes] | None = None, added: Mapping[str, Added] | None = None,
    ) -> None:
        if record.round == self.lose_after:
            raise KeyboardInterrupt
        run = self.runs[record.run_id]
        assert record.round == run.rounds + 1
        found = tuple(
            ExcludedSite(site_id=each.site_id, round=record.round, code=each.code, reason=each.reason)
            for each in record.answers
            if each.status == "excluded"
        )
        self.records.append(record)
        self.exchanges |= {(record.run_id, record.round, site): each for site, each in (exchanges or {}).items()}
        self.evidence |= evidence or {}
        known = self.states[record.run_id][1] if record.run_id in self.states else {}
        whole = {name: np.array(array) for name, array in state.items()} | joined(known, added or {})
        self.states[record.run_id] = (record.round, whole)
        self.change(record.run_id, rounds=record.round, excluded=run.excluded + found)

    def keep_case(self, run_id: str, cohort: str, case: bytes) -> None:
        self.evidence[cohort] = case

    def finish_run(self, run_id: str, status: str, reason: str, owner: str | None = None) -> Run:
        return self.change(run_id, status=status, reason=reason)

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        return True

    def prolong_lease(self, run_id: str, owner: str, seconds: float) -> bool:
        return True

    def release_lease(self, run_id: str, owner: str) -> None:
        pass


@dataclass
class FakeWorks:
    """A coordinator between a store and plants that are none."""

    plants: dict[str, FakePlant]
    store: FakeStore = field(default_factory=FakeStore)

    def __post_init__(self) -> None:
        self.transport = FakeTransport(self.plants)

    def run(self, **changes: Any) -> Run:
        values = {
            "name": "nightly", "asset_type": "rig", "max_rounds": 60, "gap": 1e-3, "absence_patience_seconds": 0.0,
            "reveal": "each site", "spec": {"radius": {"rule": "fixed", "value": 0.02}},
        }
        return self.store.create(Plan.model_validate(values | changes))

    def coordinator(self) -> Coordinator:
        keys = {site: plant.public_key for site, plant in self.plants.items()}
        return Coordinator(self.store, self.transport, keys, RIG)

    def join(self, run: Run) -> Run:
        return asyncio.run(self.coordinator().join(run))

    def train(self, run: Run) -> Any:
        """Join and train; the run as it is then stands in the store."""
        async def whole() -> Any:
            coordinator = self.coordinator()
            return await coordinator.train(await coordinator.join(run))

        return asyncio.run(whole())
