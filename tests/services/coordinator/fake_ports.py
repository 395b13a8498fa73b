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
from services.contracts.asset_type import AssetType, FaultClass, Feature
from services.contracts.codec import decode, digest, encode
from services.contracts.messages import SiteRefusal, SiteUpdate, Task
from services.contracts.plan import Plan
from services.contracts.run import Exchange, ExcludedSite, RoundRecord, Run, SiteAnswer, SiteTermsRecord
from services.contracts.signing import new_seed_file, signer
from services.coordinator.ports import RawAnswer
from services.coordinator.training import Coordinator
from services.site_agent.local_solve import (
    confusion_counts,
    head_risks,
    held_out_loss,
    join_answer,
    site_problems,
    solve_round,
)

RIG = AssetType(
    name="rig", features=tuple(Feature(name=name, unit="1", low=0, high=1) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)
Arrays = Mapping[str, FloatArray]
Falsify = Callable[[Task, dict[str, FloatArray]], dict[str, FloatArray]]
Behave = Callable[[Task], "bytes | RawAnswer | None"]


@dataclass
class FakePlant:
    """An honest plant over drawn rows; ``falsify`` changes what it says, ``behave`` what it sends (None: honestly)."""

    site_id: str
    seed_file: Path
    number: int
    falsify: Falsify = lambda task, arrays: arrays
    behave: Behave = lambda task: None
    asked: list[Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.public_key = new_seed_file(self.seed_file)
        draw = np.random.default_rng([5, self.number])
        self.classes = np.arange(40) % 2
        centres = np.where(self.classes[:, None] == 1, 0.62, 0.38) + 0.05 * self.number * np.array([1.0, -1.0])
        self.features = np.clip(centres + 0.17 * draw.standard_normal((40, 2)), 0.0, 1.0)

    def honest(self, task: Task) -> dict[str, FloatArray]:
        heads = site_problems(task.spec, self.features, self.classes, RIG)
        if task.kind == "join":
            return join_answer(task.spec, self.features, self.classes)
        if task.kind == "round":
            return dict(solve_round(task.method, task.parameters, task.arrays, heads, 1).arrays)
        weights = task.arrays["weights"]
        return {
            "risk": head_risks(weights, heads),
            "loss": held_out_loss(weights, self.features, self.classes, task.spec.loss.loss, 2),
            "confusion": confusion_counts(weights, self.features, self.classes, 2, 5),
        }

    def update(self, frame: bytes, task: Task, **changes: Any) -> bytes:
        said = {
            "kind": task.kind, "site_id": self.site_id, "run_id": task.run_id, "round": task.round,
            "task_sha256": digest(frame), "arrays": self.falsify(task, self.honest(task)),
        }
        return encode(SiteUpdate.model_validate(said | changes), signer(self.seed_file))

    def refusal(self, frame: bytes, task: Task) -> bytes:
        refused = SiteRefusal(
            kind=task.kind, site_id=self.site_id, run_id=task.run_id, round=task.round, task_sha256=digest(frame),
            code="too_few_samples", reason="the site has fewer samples than its policy asks for",
        )
        return encode(refused, signer(self.seed_file))

    def answer(self, frame: bytes) -> RawAnswer:
        task = decode(frame, 1 << 20)
        assert isinstance(task, Task)
        self.asked.append(task)
        sent = self.behave(task)
        if isinstance(sent, RawAnswer):
            return sent
        return RawAnswer(self.site_id, self.update(frame, task) if sent is None else sent, "", 0.001)


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

    def change(self, run_id: str, **values: Any) -> Run:
        self.runs[run_id] = self.runs[run_id].model_copy(update=values)
        return self.runs[run_id]

    def begin_run(
        self, run_id: str, sites: Sequence[SiteTermsRecord], absentees: Sequence[SiteAnswer] = ()
    ) -> Run:
        return self.change(run_id, status="running", sites=tuple(sites), absentees=tuple(absentees))

    def load_state(self, run_id: str) -> tuple[int, dict[str, FloatArray]] | None:
        return self.states.get(run_id)

    def get_exchange(self, run_id: str, round_: int, site_id: str) -> Exchange | None:
        return self.exchanges.get((run_id, round_, site_id))

    def commit_round(
        self, record: RoundRecord, state: Mapping[str, FloatArray], exchanges: Mapping[str, Exchange] | None = None,
        evidence: Mapping[str, bytes] | None = None,
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
        self.states[record.run_id] = (record.round, {name: np.array(array) for name, array in state.items()})
        self.change(record.run_id, rounds=record.round, excluded=run.excluded + found)

    def finish_run(self, run_id: str, status: str, reason: str) -> Run:
        return self.change(run_id, status=status, reason=reason)

    def renew_lease(self, run_id: str, owner: str, seconds: float) -> bool:
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
            "spec": {"radius": {"rule": "fixed", "value": 0.02}},
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
