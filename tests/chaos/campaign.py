"""A campaign: faults one after another while runs are on their way, a look after each, and peace at the end."""

from __future__ import annotations

import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from api.client.errors import ApiError
from services.contracts.errors import BallastError
from services.contracts.machines.asset_type import AssetType
from services.registry.labels import CHAMPION
from services.registry.mlflow_registry import ModelRegistry
from tests.chaos.processes import marked
from tests.chaos.schedule import PLANTS, Fault, schedule
from tests.chaos.strikes import strike
from tests.chaos.watch import Watch
from tests.chaos.works import PLANS, Works

PEACE_SECONDS = 300.0
"""Within this every run ends once nothing befalls it any more."""
LOOK_SECONDS = 60.0
"""So long the store may be away before it cannot be looked at."""


@dataclass
class Account:
    """What happened."""

    seed: int
    database: str
    faults: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    recounted: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """All as JSON has it."""
        return vars(self) | {"outcomes": {name: dict(said) for name, said in sorted(self.outcomes.items())}}


def campaign(
    seed: int, count: int, database: str, say: Callable[[str], None] = print, keep: bool = False
) -> Account:
    """Faults of a seed on real processes over a database, ``sqlite`` or ``postgresql``."""
    account, started = Account(seed, database), time.monotonic()
    works = Works(database, random.Random(f"frames {seed}"))
    try:
        works.start()
        watch = Watch(works.store, {site: works.plants / site / "ledger.jsonl" for site in PLANTS})
        say(f"the works are up in {works.base} after {time.monotonic() - started:.0f} s")
        for fault in schedule(seed, count, database):
            _befall(works, watch, fault, account, say)
        _make_peace(works, watch, say)
        asset_type = AssetType.from_toml(works.plants / "rig.toml")
        watch.at_the_end(works.ear.frames, asset_type, _champions(works))
        works.stop()
        for line in marked(works.mark).values():
            watch.breach(f"orphans: after the end there is still: {line[-120:]}")
        account.ends, account.rounds, account.recounted = watch.ends, watch.rounds, watch.recounted
        account.failures = watch.failures
        account.broken = [*watch.broken, *works.broken]
    finally:
        account.seconds = time.monotonic() - started
        works.close(keep=keep or bool(account.broken) or sys.exc_info()[0] is not None)
    return account


def _befall(works: Works, watch: Watch, fault: Fault, account: Account, say: Callable[[str], None]) -> None:
    _order(works)
    deadline = time.monotonic() + fault.pause
    while time.monotonic() < deadline:
        time.sleep(0.05)
        works.tend()
    known = len(watch.broken), len(works.broken)
    outcome = strike(works, fault)
    works.tend()
    account.faults += 1
    account.outcomes.setdefault(fault.name, Counter())[outcome.rstrip("0123456789. s")] += 1
    _look(works, watch)
    found = [*watch.broken[known[0] :], *works.broken[known[1] :]]
    say(f"{fault.number:4d} {fault.name}: {outcome}" + "".join(f"\n     BROKEN {what}" for what in found))


def _look(works: Works, watch: Watch) -> None:
    """Look at everything, as soon as the store answers."""
    deadline = time.monotonic() + LOOK_SECONDS
    while True:
        try:
            watch.look()
            return
        except BallastError as error:
            if time.monotonic() > deadline:
                watch.breach(f"the store does not come back: {error}")
                return
            works.tend()
            time.sleep(0.2)


def _order(works: Works) -> None:
    """See to it that each plan has a run on its way, ordered as an operator does, once though the answer be lost."""
    with suppress(BallastError, ApiError):
        busy = {run.plan.name for run in works.store.runs.unfinished_runs()}
        for plan in PLANS:
            if plan not in busy:
                works.client.trigger(plan, "chaos", key=uuid.uuid4().hex)


def _make_peace(works: Works, watch: Watch, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + PEACE_SECONDS
    while time.monotonic() < deadline:
        works.tend()
        with suppress(BallastError):
            if not works.store.runs.unfinished_runs():
                break
        time.sleep(0.5)
    say(f"peace: every run had {PEACE_SECONDS:g} s at most to end")
    _look(works, watch)
    time.sleep(1.0)


def _champions(works: Works) -> dict[str, str | None]:
    registry = ModelRegistry(works.settings.tracking_uri, works.settings.artifact_root)
    found: dict[str, str | None] = {}
    for plan in PLANS:
        with suppress(BallastError):
            found[plan] = registry.aliases(plan).get(CHAMPION)
    return found
