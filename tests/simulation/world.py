"""Clock, chance and record of a simulated works; the one place where the product's clocks and random bytes are taken.

Modules of the product look up ``datetime``, ``time``, ``secrets``, ``os`` and ``uuid`` by their own names; while a
world is :meth:`World.installed` these names lead here. So do the random bytes of the box library, and what Prefect
would say of a flow run. Nothing of the product is changed otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as real_datetime
import hashlib
import logging
import os
import random
import secrets
import sys
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import nacl.bindings
import nacl.public
import nacl.secret

import flows.doing
import flows.lease
import flows.live_keys
import flows.publish
import flows.retrain
import flows.runner
import models.cohorts.discrete_gaussian
import models.cohorts.noise
import models.methods.guard
import models.methods.site_answers
import services.coordinator.asking.nats_transport
import services.site_agent.connection.link
import services.site_agent.outgoing.ledger
from tests.simulation.loop import SimulationLoop
from tests.simulation.processes import CURRENT, THREADING, Process
from tests.simulation.solutions import remembering
from tests.steps import tried_again

BEGIN = 1_800_000_000.0
"""Wall clock, in seconds since 1970, at the beginning of every world."""
PRODUCT = ("services", "flows", "models")
_REAL = {"datetime": real_datetime.datetime, "time": time, "secrets": secrets, "os": os, "uuid": uuid}


class _LikeDatetime(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL["datetime"])  # type: ignore[arg-type]


@dataclass
class World:
    """What holds for the whole of one seed."""

    seed: int
    keep_trace: bool = False
    faults: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    clock_offset: float = 0.0
    clock_jumped: bool = False

    def __post_init__(self) -> None:
        self.loop = SimulationLoop(self.stream("loop"))
        self.bytes_drawn = self.stream("bytes")
        self._digest = hashlib.sha256(str(self.seed).encode())

    def stream(self, name: str) -> random.Random:
        """Numbers of one subject: what is drawn for another does not move them."""
        return random.Random(f"{self.seed}/{name}")

    def wall(self) -> float:
        """Seconds since 1970 by the machine's clock, which may jump."""
        return BEGIN + self.loop.time() + self.clock_offset

    def now(self) -> real_datetime.datetime:
        """The same as a moment."""
        return real_datetime.datetime.fromtimestamp(self.wall(), real_datetime.UTC)

    def note(self, what: str, data: bytes = b"") -> None:
        """Take an event, and the bytes that go with it, into the digest of the run."""
        line = f"{self.loop.time():.6f} {what}"
        self._digest.update(line.encode())
        self._digest.update(data)
        if self.keep_trace:
            self.trace.append(f"{line} {hashlib.sha256(data).hexdigest()[:12] if data else ''}".rstrip())

    def fault(self, kind: str, what: str = "") -> None:
        """Count a fault that happened."""
        self.faults[kind] += 1
        self.note(f"fault {kind} {what}".rstrip())

    def breach(self, what: str) -> None:
        """Note that something did not hold which always must."""
        if what not in self.broken:
            self.broken.append(what)
            self.note(f"BROKEN {what}")

    @property
    def digest(self) -> str:
        """SHA-256 of all that happened so far."""
        return self._digest.hexdigest()

    def owner(self) -> str:
        """Name of the present process as an owner of leases."""
        process = CURRENT.get()
        assert process is not None
        process.owner = f"{process.name}:{self.bytes_drawn.randbytes(4).hex()}"
        return process.owner

    @contextlib.contextmanager
    def installed(self, ledger_os: Any, client: Any, open_context: Any) -> Iterator[None]:
        """Lead the product's clocks, random bytes and connections here."""
        quiet = logging.getLogger("ballast.simulation.quiet")
        stand_ins = {
            "datetime": _LikeDatetime("datetime", (_REAL["datetime"],), {"now": lambda tz=None: self.now()}),
            "time": SimpleNamespace(
                monotonic=self.loop.time, perf_counter=self.loop.time, time=self.wall, sleep=lambda seconds: None
            ),
            "secrets": SimpleNamespace(
                randbelow=self._below, token_hex=lambda n=16: self._random(n).hex(),
                token_bytes=self._random,
            ),
            "os": _SeededOs(self._random),
            "uuid": SimpleNamespace(uuid4=lambda: uuid.UUID(bytes=self._random(16), version=4), UUID=uuid.UUID),
        }
        changed: list[tuple[Any, str, Any]] = []

        def put(owner: Any, name: str, value: Any) -> None:
            changed.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

        try:
            for module, name in _places():
                put(module, name, stand_ins[name])
            for module in (nacl.public, nacl.secret):
                put(module, "random", lambda size, encoder=None: self._random(size))
            put(nacl.bindings, "crypto_box_seal", self._sealed)
            put(flows.live_keys.LiveKeys.__init__, "__kwdefaults__", {"clock": self.loop.time})
            for drawn in (models.cohorts.noise.noisy_words, models.cohorts.discrete_gaussian.discrete_gaussian):
                put(drawn, "__defaults__", _leading(drawn.__defaults__, self._below))
            put(services.site_agent.outgoing.ledger, "os", ledger_os)
            put(services.site_agent.connection.link, "NatsClient", client)
            put(services.coordinator.asking.nats_transport, "NatsClient", client)
            for solve in ("robust_prox", "local_minorant"):
                solved = remembering(getattr(models.methods.site_answers, solve))
                for module in (models.methods.guard, models.methods.site_answers):
                    put(module, solve, solved)
            put(flows.lease, "threading", THREADING)
            put(flows.publish, "report_attachments", lambda *_: {})  # pages and charts: no logic of a run
            put(flows.publish, "version_figures", lambda *_: {})
            put(flows.retrain, "open_context", open_context)
            put(flows.retrain, "new_owner", self.owner)
            put(flows.retrain, "this_flow_run", _ThisFlowRun())
            # A seed may be run in a child of ours, which is no runner of flows.
            put(flows.retrain, "multiprocessing", SimpleNamespace(parent_process=lambda: None))
            put(flows.retrain, "get_run_logger", lambda: quiet)
            put(flows.retrain, "Progress", _Silent)
            put(flows.doing, "step", _step)
            put(flows.retrain, "tuning_flow", flows.retrain.tuning_flow.fn)
            for name in ("name_flow_run", "link_to_version"):
                put(flows.retrain, name, _unseen)
            yield
        finally:
            for owner, name, value in reversed(changed):
                setattr(owner, name, value)

    def _below(self, n: int) -> int:
        return self.bytes_drawn.randrange(n)

    def _random(self, size: int) -> bytes:
        return self.bytes_drawn.randbytes(size)

    def _sealed(self, message: bytes, to: bytes) -> bytes:
        """libsodium's sealed box, whose key of one message it draws by itself, with one from the seed."""
        public, secret = nacl.bindings.crypto_box_seed_keypair(self._random(32))
        nonce = hashlib.blake2b(public + to, digest_size=nacl.bindings.crypto_box_NONCEBYTES).digest()
        return bytes(public + nacl.bindings.crypto_box(message, nonce, to, secret))


class _SeededOs:
    """``os`` with random bytes from the seed."""

    def __init__(self, random_bytes: Any) -> None:
        self.urandom = random_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


class _ThisFlowRun:
    @property
    def id(self) -> Any:
        process: Process | None = CURRENT.get()
        return None if process is None else process.flow_run_id


class _Silent:
    """Progress that nobody watches."""

    def __init__(self, run: Any, earlier: Any = ()) -> None:
        """Nothing is kept of the run."""

    async def __call__(self, record: Any) -> None:
        """Nothing is told."""

    async def finish(self, rounds: int, gap: float) -> None:
        """Nothing is told."""

    async def show(self) -> None:
        """Nobody looks."""


async def _step(name: str, work: Callable[[], Awaitable[Any]], waits: tuple[float, ...] = ()) -> Any:
    """A step as Prefect does it: tried again after each wait where that may help."""
    return await tried_again(work, waits, asyncio.sleep)


async def _unseen(*_: Any) -> None:
    """Prefect's pages show nothing here."""


def _leading(defaults: Any, randbelow: Any) -> Any:
    """Defaults of a function with the seed's numbers in place of the system's."""
    return tuple(randbelow if each is secrets.randbelow else each for each in defaults or ())


_FOUND: list[tuple[Any, str]] = []


def _places() -> list[tuple[Any, str]]:
    """Modules of the product and the names by which they reach clocks and chance."""
    if not _FOUND:
        for module_name, module in sorted(sys.modules.items()):
            if module_name.partition(".")[0] in PRODUCT:
                _FOUND.extend((module, name) for name, real in _REAL.items() if vars(module).get(name) is real)
    return _FOUND
