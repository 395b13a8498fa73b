"""Plants of a simulated works: the real door, vault, policy, ledger and link, in a process that dies and comes again.

Only what a plant says may be false: a liar changes its answers after its own door. Its folder outlives its process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import nkeys

from models.methods.catalogue import METHODS
from services.contracts.errors import BallastError
from services.contracts.keys.signing import public_key, signer
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.wire.codec import COMPACT, READS, digest, encode, read_by_asker, unpack
from services.contracts.wire.messages import Hello, Kind, SiteUpdate, Task
from services.site_agent.connection.link import Answer, PlantLink
from services.site_agent.connection.link_address import Address
from services.site_agent.door.local_round import LocalRound
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.door.oem_tasks import OemTasks
from services.site_agent.outgoing.egress import Egress
from services.site_agent.outgoing.ledger import Ledger
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.settings import CsvSource
from services.site_agent.vault.dataset import Dataset, build_dataset
from services.site_agent.vault.records.exposure_record import ExposureRecord
from services.site_agent.vault.records.row_batches import RowBatches
from services.site_agent.vault.sources.csv_source import read
from tests.simulation.disk import LedgerOs
from tests.simulation.modes import AUDITOR
from tests.simulation.processes import Process
from tests.simulation.world import World

RIG = AssetType(
    name="rig",
    features=tuple(Feature(name=name, unit="1", low=-5.0, high=5.0) for name in ("flow", "pressure")),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=3)),
)
GRADED = RIG.model_copy(update={"fault_classes": (*RIG.fault_classes, FaultClass(name="burst", severity=5))})
"""The same with a third class, for all classes as one problem."""
ROWS = 32
POLICY = SitePolicy(
    methods=tuple(METHODS), asset_types=(RIG.name,), exposure_limit=1.0, max_runs_per_day=None,
    max_answers_per_run=None, messages=get_args(Kind),
    reveal=("sums", "each site"), min_samples=5, min_test_samples=1, min_class_samples=1,
    auditors=(AUDITOR,), audit_every_round=True,
)
OF_BEFORE = 0.25
"""Share of the plants whose agents are of an earlier version."""
GROUPS_FROM, GROUPED = 60_000, 0.25
"""The first seed of which some plants' rows come and go by groups (``min_new_rows``), and their share."""
AGAIN_SECONDS = 1.5
"""A process that ended is started again so much later."""


@dataclass(eq=False)
class Plant:
    """One plant; ``lie`` changes what it says (None: it is honest).

    ``of_before``: it knows neither compact frames nor signed tasks.
    """

    site_id: str
    folder: Path
    world: World
    ledger_os: LedgerOs
    oem_key: str
    lie: Callable[[Task, dict[str, Any]], dict[str, Any]] | None = None
    process: Process | None = None
    stopped: bool = False
    keys: list[str] = field(default_factory=list)
    asset_type: AssetType = RIG
    revisions: list[str] = field(default_factory=list)
    _seen: dict[int, Dataset] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._draw = self.world.stream(f"rows of {self.site_id}")
        self.of_before = self.world.stream(f"version of {self.site_id}").random() < OF_BEFORE
        self._groups = self.world.stream(f"groups of {self.site_id}")
        grouped = self.world.seed >= GROUPS_FROM and self._groups.random() < GROUPED
        self.policy = POLICY.model_copy(update={"min_new_rows": self._groups.choice((2, 3, 5)) if grouped else 1})
        self.folder.mkdir(parents=True)
        self.measure()
        self.key = self.new_key()

    def measure(self) -> None:
        """Have other rows than before; ``revisions`` keeps them all, as CSV.

        Where rows come and go by groups, half of the times a few rows are others, and all else stays.
        """
        if self.revisions and self.policy.min_new_rows > 1 and self.exposure.exists():
            newest = len(self.revisions) - 1
            self._seen[newest] = self.seen(newest)
        if self.revisions and self.policy.min_new_rows > 1 and self._groups.random() < 0.5:
            draw, lines = self._groups, self.revisions[-1].splitlines()
            numbers = draw.sample(range(ROWS), draw.randint(1, 5))
        else:
            draw, lines, numbers = self._draw, ["flow,pressure,label", *[""] * ROWS], list(range(ROWS))
        classes, shift = self.asset_type.class_names, 0.6 * draw.random()
        for number in numbers:
            centre = 3.0 * (number % len(classes)) / (len(classes) - 1) - 1.5
            values = [round(max(-4.9, min(4.9, centre * scale + shift + draw.gauss(0, 1.2))), 4) for scale in (1, 0.4)]
            lines[1 + number] = f"{values[0]},{values[1]},{classes[number % len(classes)]}"
        self.revisions.append("\n".join(lines) + "\n")
        (self.folder / "rows.csv").write_text(self.revisions[-1])

    def seen(self, revision: int) -> Dataset:
        """Rows of a revision that a run sees, or saw when it was the newest.

        Rows that waited then, in parts of their own, may since be in one group, and be seen if they came back alone.
        """
        if revision in self._seen:
            return self._seen[revision]
        path = self.folder / "looked-at.csv"
        path.write_text(self.revisions[revision])
        dataset = build_dataset(read(CsvSource(kind="csv", path=path), self.asset_type), self.asset_type)
        if self.policy.min_new_rows == 1:
            return dataset
        record = ExposureRecord(self.exposure, looking=True)
        batches = RowBatches(self.exposure, record.secret(), self.policy.min_new_rows, looking=True)
        try:
            return batches.seen(dataset)
        finally:
            batches.close()
            record.close()

    @property
    def exposure(self) -> Path:
        """The file of the vault's records."""
        return self.folder / "exposure.sqlite"

    @property
    def ledger(self) -> Path:
        """The file of its ledger."""
        return self.folder / "ledger.jsonl"

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.alive

    def new_key(self) -> str:
        """Make a key, and use it from the next start on."""
        self.key = new_key(self.folder / "site.nk", self.world.bytes_drawn)
        self.keys.append(self.key)
        return self.key

    def start(self) -> None:
        """Start its process, unless it runs."""
        if self.running or self.stopped:
            return
        self.process = Process(self.site_id)
        self.process.start(self._run(self.process))

    def kill(self, *, power: bool = False) -> None:
        """Kill its process; with the power goes what was not forced to the disk. It is started again."""
        if self.process is None or not self.process.alive:
            return
        self.process.kill()
        if power:
            self.ledger_os.power_cut(str(self.ledger), self._draw)
        self.world.loop.call_later(AGAIN_SECONDS, self.start)

    async def _run(self, process: Process) -> None:
        try:
            await self._serve()
        except BallastError as error:
            self.world.note(f"{self.site_id} ended: {error.code}")
            if error.code == "bad_ledger" and "not what was written" in str(error):
                self.world.breach(f"ledger: {self.site_id} cannot start again: {error}")
                self.stopped = True
        finally:
            process.alive = False
            self.world.loop.call_later(AGAIN_SECONDS, self.start)

    async def _serve(self) -> None:
        seed = self.folder / "site.nk"
        sign, key = signer(seed), public_key(seed)
        source = CsvSource(kind="csv", path=self.folder / "rows.csv")
        with Ledger(self.ledger) as ledger:
            egress = Egress(ledger, sign, self.policy.max_message_bytes)
            masks = MaskedRuns(self.site_id, key, sign, self.policy)
            tasks = None if self.of_before else OemTasks(self.oem_key, self.folder / "heard-keys.json")
            door = LocalRound(self.site_id, source, self.asset_type, self.policy, egress, self.exposure, masks, tasks)
            try:
                hello = Hello(site_id=self.site_id, version="simulated")
                address = Address(self.site_id, ("sim",), seed, key, None, needs_tls=False)
                at_the_door = _of_before(door.answer) if self.of_before else door.answer
                answer = at_the_door if self.lie is None else _lying(at_the_door, self.lie, sign)
                await PlantLink(address, answer, lambda: egress.release(hello)).run(asyncio.Event())
            finally:
                door.close()


def new_key(path: Path, draw: random.Random) -> str:
    """Write a seed that is drawn; its public key."""
    path.write_bytes(bytes(nkeys.encode_seed(draw.randbytes(32), nkeys.PREFIX_BYTE_USER)) + b"\n")
    return public_key(path)


def _of_before(answer: Answer) -> Answer:
    """An agent of before compact frames and signed tasks does not look at what the headers say."""
    return lambda frame, headers: answer(frame, {k: v for k, v in (headers or {}).items() if k != READS})


def _lying(
    answer: Answer, lie: Callable[[Task, dict[str, Any]], dict[str, Any]],
    sign: Callable[[bytes], bytes],
) -> Answer:
    def falsified(frame: bytes, headers: Mapping[str, str] | None) -> bytes:
        said = answer(frame, headers)
        task, update = unpack(frame), unpack(said).message()
        if not isinstance(update, SiteUpdate) or update.kind != "round" or not update.arrays:
            return said
        message = task.message()
        assert isinstance(message, Task) and digest(frame) == update.task_sha256
        lied = update.model_copy(update={"arrays": lie(message, dict(update.arrays))})
        return encode(lied, sign, reads_compact=COMPACT in read_by_asker(headers))

    return falsified
