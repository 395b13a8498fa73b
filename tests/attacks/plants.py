"""A coordinator on ports without a server, before four plants of which one may lie."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from models.basics import FloatArray
from models.losses.catalogue import LOSS_NAMES, get_loss
from services.contracts.history.run import Run
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.plans.plan import Plan
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.wire.codec import decode, digest, encode
from services.contracts.wire.messages import SiteUpdate, Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.run_state.evaluation import Evaluation
from services.coordinator.run_state.training_state import TrainedModel
from services.coordinator.training import Coordinator
from services.site_agent.answers.local_scores import confusion_counts, held_out_loss, regression_sums
from services.site_agent.answers.local_solve import head_risks, join_answer, site_problems, solve_round
from tests.services.coordinator.fake_ports import FakeStore

PLANTS = tuple(f"plant-{k}" for k in range(1, 5))
Lying = Callable[[int, dict[str, FloatArray], "Federation"], dict[str, FloatArray]]


@dataclass(frozen=True)
class Deal:
    """Rows of four plants, scaled features (N, P) and outcomes (N,), and the problem that they are asked."""

    rows: tuple[tuple[FloatArray, Any], ...]
    asset_type: AssetType
    spec: TrainingSpec

    @staticmethod
    def of_table(features: FloatArray, labels: FloatArray, seed: int) -> Deal:
        """Rows of a table dealt at random, with the radius that a plan has by default."""
        order = np.random.default_rng([3, seed]).permutation(len(labels))
        classes = (labels > 0).astype(np.intp)
        rows = tuple((features[part], classes[part]) for part in np.array_split(order, len(PLANTS)))
        return Deal(rows, rig(features.shape[1]), TrainingSpec())


def rig(n_features: int, regression: bool = False) -> AssetType:
    """An asset type with features in [0, 1], and two classes or a target in [0, 1]."""
    return AssetType(
        name="rig", features=tuple(Feature(name=f"x{k}", unit="1", low=0, high=1) for k in range(n_features)),
        fault_classes=() if regression else (FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
        target=Target(name="life", unit="1", low=0, high=1) if regression else None,
    )


def drawn_deal(seed: int) -> Deal:
    """A problem by chance: table, loss, support, norm, radius and flip cost."""
    draw = np.random.default_rng([17, seed])
    loss = get_loss(str(draw.choice([name for name in LOSS_NAMES if np.isfinite(get_loss(name).lipschitz)])))
    n_features, regression = int(draw.integers(1, 6)), loss.task == "regression"
    truth, rows = draw.standard_normal(n_features), []
    for g in range(len(PLANTS)):
        count = int(draw.integers(6, 40))
        features = np.clip(draw.uniform(size=(count, n_features)) + 0.1 * g * draw.standard_normal(n_features), 0, 1)
        if draw.random() < 0.3:
            features = np.round(features)
        score = (features - 0.5) @ truth + draw.choice([0.0, 0.1, 0.5]) * draw.standard_normal(count)
        classes = (score > 0).astype(np.intp)
        classes[:2] = 0, 1
        rows.append((features, np.clip(0.5 + 0.3 * score, 0, 1) if regression else classes))
    support = "sensor_ranges" if loss.lines is not None and draw.random() < 0.4 else "unbounded"
    spec = TrainingSpec.model_validate({
        "loss": loss.name, "support": support, "transport_norm": str(draw.choice(["l1", "l2", "linf"])),
        "radius": {"rule": "fixed", "value": float(draw.choice([0.0, 1e-4, 0.01, 0.1, 0.5]))},
        "label_flip_cost": float(draw.choice([0.1, 1.0, 10.0])), "fit_intercept": bool(draw.random() < 0.7),
    })
    return Deal(tuple(rows), rig(n_features, regression), spec)


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    run: Run
    trained: TrainedModel
    evaluation: Evaluation


@dataclass
class Federation:
    """Four plants over a deal; ``lie`` changes what ``liar`` answers to a round: number, honest answer, the plants.

    ``before`` holds what each plant told honestly in the round before.
    """

    deal: Deal
    folder: Path
    liar: str = ""
    lie: Lying = lambda number, said, plants: said
    before: dict[str, dict[str, FloatArray]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keys are made once a folder."""
        self.seeds = {name: self.folder / f"{name}.nk" for name in PLANTS}
        for path in self.seeds.values():
            if not path.exists():
                new_seed_file(path)
        self.keys = {name: public_key(path) for name, path in self.seeds.items()}
        self.store, self._task = FakeStore(), dict[str, Task]()

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        """The transport that the coordinator needs."""
        self._task = {name: _task(frame) for name, frame in frames.items()}
        answers, told = {}, dict[str, dict[str, FloatArray]]()
        for name, frame in frames.items():
            task = self._task[name]
            arrays = told[name] = self.honest(name, task)
            if task.kind == "round" and name == self.liar:
                arrays = self.lie(task.round, arrays, self)
            said = SiteUpdate(
                kind=task.kind, site_id=name, run_id=task.run_id, round=task.round, task_sha256=digest(frame),
                arrays=arrays,
            )
            answers[name] = RawAnswer(name, encode(said, signer(self.seeds[name])), "", 0.0)
        self.before = told
        return answers

    def now_of(self, other: str, said: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """What another plant answers to the question that is asked now; ``said`` where it is not asked any more."""
        return self.honest(other, self._task[other]) if other in self._task else said

    def honest(self, name: str, task: Task) -> dict[str, FloatArray]:
        """What a plant would say, its training rows standing in for held-out ones."""
        features, outcomes = self.deal.rows[PLANTS.index(name)]
        if task.kind == "join":
            return join_answer(task.spec, features, outcomes)
        heads = site_problems(task.spec, features, outcomes, self.deal.asset_type)
        if task.kind == "round":
            return dict(solve_round(task.method, task.parameters, task.arrays, heads, 1)[0].arrays)
        weights, loss = task.arrays["weights"], task.spec.loss.loss
        found = {
            "risk": head_risks(weights, heads), "loss": held_out_loss(weights, features, outcomes, loss, 2),
        }
        if loss.task == "regression":
            sums = regression_sums(weights, features, outcomes, task.arrays["interval"], 0.5)
            return {name: np.asarray(each) for name, each in (found | sums).items()}
        return found | {"confusion": confusion_counts(weights, features, outcomes, 2, 0)}

    def run(self, *, gap: float, rounds: int) -> Outcome:
        """Join, train, evaluate; and train on where the evaluation convicted somebody."""
        plan = Plan(
            name="nightly", asset_type="rig", reveal="each site", spec=self.deal.spec, gap=gap, max_rounds=rounds,
            min_sites=2,
            absence_patience_seconds=0.0,
        )
        return asyncio.run(self._whole(self.store.create(plan)))

    async def _whole(self, run: Run) -> Outcome:
        coordinator = Coordinator(self.store, self, self.keys, self.deal.asset_type)
        trained = await coordinator.train(await coordinator.join(run))
        run = self.store.get_run(run.run_id)
        found = await coordinator.evaluate(run, trained.weights, trained.risk_bound)
        while found.convicted:
            trained = await coordinator.train(run, None, found)
            run = self.store.get_run(run.run_id)
            found = await coordinator.evaluate(run, trained.weights, trained.risk_bound)
        return Outcome(run, trained, found)


def _task(frame: bytes) -> Task:
    task = decode(frame, 1 << 24)
    assert isinstance(task, Task)
    return task
