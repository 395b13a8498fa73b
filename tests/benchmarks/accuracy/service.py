"""Ballast as the service runs a plan: the coordinator over a real store, and plants behind their doors, in one process.

Each plant has a folder of its own with key, ledger, policy and table; masks, guards, signatures and budgets are those
of a run over a network, which alone is missing. Sensor ranges and scales of the contract are those of the training
rows. Policies are the usual ones, but for two things that a plant may allow by its own choice: it has no fault, or
fewer rows than usual (:data:`LEAST_SAMPLES`). All training rows of a plant are for training: the rows that its vault
holds out are the benchmark's test rows of the plant, which no part of join, tuning and training looks at. Sets and
intervals: ``covered``.
"""

from __future__ import annotations

import asyncio
import csv
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from migrations.run import upgrade
from models.methods.catalogue import METHODS
from models.multiclass import predict_class, predict_scores
from services.contracts.history.run import Run
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.value_range import Ranges
from services.contracts.plans.plan import Plan
from services.contracts.problems.lift import draw_lift
from services.contracts.wire.codec import COMPACT, OWN_SCORES, READS
from services.contracts.wire.messages import Kind, Reveal
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.run_state.training_state import TrainedModel
from services.coordinator.training import Coordinator
from services.round_store.store import RoundStore
from services.site_agent.door.local_round import LocalRound
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource
from tests.benchmarks.accuracy.contract import TYPE, contract_of, in_shares
from tests.benchmarks.accuracy.covered import coverage_and_width
from tests.benchmarks.accuracy.deal import PLANTS, Part, class_numbers
from tests.benchmarks.accuracy.tables import MACHINE

LEAST_SAMPLES = 5
"""Training rows that a plant asks for where the table is too small for the policy's own number."""


@dataclass(frozen=True)
class Planned:
    """What a plan came to: answers to the test rows, rounds, and bytes of whole frames that a plant sent.

    Of the tuning before it and the coupling after it rounds and bytes, of the former why; 0 and empty where there was
    none. ``coverage`` and ``width`` as
    :func:`tests.benchmarks.accuracy.covered.coverage_and_width` has them.
    """

    predicted: NDArray[Any]
    rounds: int
    bytes_per_site: int
    tuning_rounds: int = 0
    tuning_bytes_per_site: int = 0
    why: str = ""
    coverage: float | None = None
    width: float | None = None


def planned(train: Part, test: Part, reveal: Reveal, **terms: Any) -> Planned:
    """Join, tune and train a plan that says nothing but what it reveals and ``terms``, and answer the test rows."""
    classification = train.outcomes.dtype.kind != "f"
    asset_type, words = contract_of(train), np.unique(train.outcomes)
    plan = Plan.model_validate({
        "name": "plan", "asset_type": TYPE, "reveal": reveal,
        **({} if classification else {"spec": {"loss": {"name": "pinball"}}}), **terms,
    })
    with _works(train, test, asset_type) as works:
        run, trained, sent = asyncio.run(works.trained(plan))
    scaled = in_shares(test.features, asset_type)
    lift = draw_lift(run.plan.spec.lift, scaled.shape[1])
    features = scaled if lift is None else lift.apply(scaled)
    if classification:
        predicted = words[predict_class(trained.weights, features)]
    else:
        assert asset_type.target is not None
        predicted = asset_type.target.unscale(predict_scores(trained.weights, features)[:, 0])
    curve, tuning = run.plan.tuned, sent.get("tune", 0) + sent.get("couple", 0)
    exchanges = (curve.rounds if curve else 0) + (trained.coupling.rounds if trained.coupling else 0)
    coverage, width = coverage_and_width(
        run, trained.weights, _as_a_vault(train, asset_type, words), _as_a_vault(test, asset_type, words), asset_type
    )
    return Planned(
        predicted, trained.rounds, sent["round"], exchanges, tuning, curve.why if curve else "",
        coverage, width,
    )


def _as_a_vault(part: Part, asset_type: AssetType, words: NDArray[Any]) -> Part:
    """Rows with features and outcomes as a vault makes them: scaled, cut to their ranges, classes by number."""
    features = in_shares(part.features, asset_type)
    if asset_type.target is None:
        return Part(features, class_numbers(words, part.outcomes), part.plants)
    ranges = Ranges([asset_type.target])
    return Part(features, ranges.scale(ranges.clip(part.outcomes[:, None]))[:, 0], part.plants)


@dataclass
class _Doors:
    """Hands each task to its plant; counts the bytes that the plant with most of them sent, by kind of task."""

    doors: Mapping[str, LocalRound]
    sent: dict[str, dict[str, int]]
    phase: str = ""

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        found = {}
        for site, frame in frames.items():
            began = time.perf_counter()
            answer = self.doors[site].answer(frame, {READS: f"{COMPACT} {OWN_SCORES}"})
            self.sent.setdefault(self.phase, {}).setdefault(site, 0)
            self.sent[self.phase][site] += len(answer)
            found[site] = RawAnswer(site, answer, "", time.perf_counter() - began)
        return found


@dataclass(frozen=True)
class _Works:
    store: RoundStore
    doors: _Doors
    keys: Mapping[str, str]
    asset_type: AssetType

    async def trained(self, plan: Plan) -> tuple[Run, TrainedModel, dict[str, int]]:
        """The run with its terms, the model, and the bytes of tuning (``tune``) and training (``round``) a plant."""
        self.store.plans.create(plan)
        run = self.store.runs.create_run(plan)
        coordinator = Coordinator(self.store.runs, self.doors, self.keys, self.asset_type)
        self.doors.phase = "join"
        run = await coordinator.join(run)
        self.doors.phase = "tune"
        run = await coordinator.tune(run)
        self.doors.phase = "round"
        trained = await coordinator.train(run)
        self.doors.phase = "couple"
        trained = await coordinator.couple(run, trained)
        return run, trained, {phase: max(by_site.values()) for phase, by_site in self.doors.sent.items()}


@contextmanager
def _works(train: Part, test: Part, asset_type: AssetType) -> Iterator[_Works]:
    smallest = min(int((train.plants == plant).sum()) for plant in range(PLANTS))
    policy = SitePolicy(
        methods=tuple(METHODS), asset_types=(TYPE,), messages=get_args(Kind), reveal=get_args(Reveal),
        one_class=True,  # a table may be dealt so that a plant has no fault
        min_samples=max(LEAST_SAMPLES, min(SitePolicy().min_samples, smallest)),  # public rows may be few
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = f"sqlite:///{folder / 'store.db'}"
        upgrade(url)
        store = RoundStore.open(url)
        stack.callback(store.close)
        store.asset_types.add(asset_type)
        doors, keys = {}, {}
        for number in range(PLANTS):
            site = f"plant-{number + 1}"
            home = folder / site
            home.mkdir()
            new_seed_file(home / "site.nk")
            keys[site], sign = public_key(home / "site.nk"), signer(home / "site.nk")
            _write(home / "rows.csv", train.of(number), test.of(number), asset_type, np.unique(train.outcomes))
            source = CsvSource(
                kind="csv", path=home / "rows.csv", split_column="split",
                machine_column=None if train.machines is None else MACHINE,
            )
            ledger = stack.enter_context(Ledger(home / "ledger.jsonl"))
            egress = Egress(ledger, sign, policy.max_message_bytes)
            masks = MaskedRuns(site, keys[site], sign, policy)
            doors[site] = LocalRound(site, source, asset_type, policy, egress, None, masks)
            stack.callback(doors[site].close)
            store.sites.enrol(site, keys[site], [TYPE])
        yield _Works(store, _Doors(doors, {}), keys, asset_type)


def _write(path: Path, train: Part, test: Part, asset_type: AssetType, words: NDArray[Any]) -> None:
    """A plant's table, its classes by their names in the contract; ``split`` says which rows are the test."""
    outcome = "label" if asset_type.fault_classes else "target"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        machine = () if train.machines is None else (MACHINE,)
        out.writerow([*asset_type.feature_names, outcome, "split", *machine])
        for part, split in ((train, "train"), (test, "test")):
            said = (
                [f"c{k}" for k in class_numbers(words, part.outcomes)] if asset_type.fault_classes
                else [repr(float(value)) for value in part.outcomes]
            )
            machines = [()] * len(said) if part.machines is None else [(str(each),) for each in part.machines]
            for row, label, own in zip(part.features.tolist(), said, machines, strict=True):
                out.writerow([*map(repr, row), label, split, *own])

