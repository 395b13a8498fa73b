"""A simulated NATS: request and reply between the real coordinator's transport and the real plant links.

It loses, doubles, reorders, delays and corrupts messages, replays old ones, and cuts sites or the coordinator off. It
checks nobody's key: what a revoked or false site says arrives, and the product has to refuse it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from tests.simulation.processes import CURRENT, Process
from tests.simulation.world import World

Handler = Callable[[Any], Awaitable[None]]
REMEMBERED = 12
"""Old answers of a site that may come again."""


@dataclass
class Weather:
    """How likely what happens to a message, by kind, until the faults are over; delays are in seconds."""

    lost: float = 0.0
    doubled: float = 0.0
    corrupted: float = 0.0
    replayed: float = 0.0
    delayed: float = 0.0
    longest_delay: float = 3.0
    until: float = 0.0


@dataclass
class Message:
    """What a plant link is handed."""

    bus: Bus
    data: bytes
    reply: str
    site: str
    headers: Mapping[str, str] | None = None

    async def respond(self, frame: bytes) -> None:
        """Answer the request."""
        process = CURRENT.get()
        if process is not None:
            process.check()
        if self.bus.sent is not None:
            self.bus.sent(self.site, frame)
        self.bus.answer(self, frame)


class Bus:
    """The server. ``sent`` is told of every frame that leaves a plant, ``arrived`` of every answer."""

    def __init__(self, world: World, weather: Weather) -> None:
        self.world, self.weather = world, weather
        self.draw = world.stream("network")
        self.slow: dict[str, float] = {}
        self.sent: Callable[[str, bytes], None] | None = None
        self.arrived: Callable[[bytes], None] | None = None
        self._heard: dict[str, list[SimulatedClient]] = {}
        self._waiting: dict[str, asyncio.Future[bytes]] = {}
        self._count = 0
        self._old: dict[str, list[bytes]] = {}
        self._cut: set[str] = set()
        self._clients: list[SimulatedClient] = []

    def client(self, *, name: str = "") -> SimulatedClient:
        """A client that is not connected yet."""
        client = SimulatedClient(self, name)
        self._clients.append(client)
        return client

    def cut(self, name: str, seconds: float) -> None:
        """Cut a site, or "coordinator", off for a while."""
        if name in self._cut:
            return
        self.world.fault("partition", name)
        self._cut.add(name)
        for client in self._of(name):
            client.lose()
        self.world.loop.call_later(seconds, self._mend, name)

    def is_cut(self, name: str) -> bool:
        """Whether nothing comes through to it."""
        return name in self._cut

    def hear(self, subject: str, client: SimulatedClient) -> None:
        """A client hears a subject from now on."""
        self._heard.setdefault(subject, []).append(client)

    def forget(self, client: SimulatedClient) -> None:
        """A client is gone."""
        for heard in self._heard.values():
            if client in heard:
                heard.remove(client)
        if client in self._clients:
            self._clients.remove(client)

    async def request(
        self, subject: str, data: bytes, timeout: float, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Ask who hears the subject; ``NoRespondersError`` or a time-out where nobody answers."""
        heard = [each for each in self._heard.get(subject, ()) if each.is_connected and each.process.alive]
        await asyncio.sleep(self._travel(subject))
        if not heard:
            raise NoRespondersError
        self._count += 1
        inbox = f"_COORD.{self._count}"
        self._waiting[inbox] = answered = self.world.loop.create_future()
        for copy in self._weathered(data, "task"):
            for client in heard:
                self._later(self._travel(subject), client.receive, subject, copy, inbox, headers)
        try:
            return Message(self, await asyncio.wait_for(answered, timeout), "", subject)
        except TimeoutError:
            raise NatsTimeoutError from None
        finally:
            self._waiting.pop(inbox, None)

    def answer(self, asked: Message, frame: bytes) -> None:
        """Carry an answer back to who asked."""
        old = self._old.setdefault(asked.site, [])
        if self._happens("replayed") and old:
            self.world.fault("message replayed", asked.site)
            frame = self.draw.choice(old)
        else:
            old.append(frame)
            del old[:-REMEMBERED]
        if self.is_cut(asked.site):
            return
        for copy in self._weathered(frame, "answer"):
            self._later(self._travel(asked.site), self._arrive, asked.reply, copy)

    def _arrive(self, inbox: str, frame: bytes) -> None:
        waiting = self._waiting.get(inbox)
        if waiting is not None and not waiting.done() and not self.is_cut("coordinator"):
            self.world.note(f"arrived {inbox}", frame)
            if self.arrived is not None:
                self.arrived(frame)
            waiting.set_result(frame)

    def _weathered(self, data: bytes, what: str) -> list[bytes]:
        """Copies of a message that get through."""
        if self._happens("lost"):
            self.world.fault("message lost", what)
            return []
        if self._happens("corrupted"):
            self.world.fault("message corrupted", what)
            changed = bytearray(data)
            for _ in range(self.draw.randint(1, 3)):
                changed[self.draw.randrange(len(changed))] ^= 1 << self.draw.randrange(8)
            data = bytes(changed)
        if self._happens("doubled"):
            self.world.fault("message doubled", what)
            return [data, data]
        return [data]

    def _happens(self, kind: str) -> bool:
        return self.world.loop.time() < self.weather.until and self.draw.random() < getattr(self.weather, kind)

    def _travel(self, subject: str) -> float:
        """Seconds on the way; who is overtaken is told later, so messages change their order."""
        seconds = 0.002 + 0.02 * self.draw.random() + self.slow.get(subject.removeprefix("site.").split(".")[0], 0.0)
        if self._happens("delayed"):
            self.world.fault("message delayed")
            seconds += self.weather.longest_delay * self.draw.random()
        return seconds

    def _later(self, seconds: float, callback: Callable[..., None], *arguments: Any) -> None:
        """In the network's own name: what is on its way outlives who sent it."""
        token = CURRENT.set(None)
        try:
            self.world.loop.call_later(seconds, callback, *arguments)
        finally:
            CURRENT.reset(token)

    def _mend(self, name: str) -> None:
        self._cut.discard(name)
        for client in self._of(name):
            client.regain()

    def _of(self, name: str) -> list[SimulatedClient]:
        return [each for each in self._clients if each.name == name]


class _Transport:
    """What a client leaves open: nothing."""

    def close(self) -> None:
        """It is closed."""

    async def wait_closed(self) -> None:
        """At once."""


@dataclass(eq=False)
class SimulatedClient:
    """A NATS client, as far as the product uses one."""

    bus: Bus
    name: str = ""
    is_connected: bool = False
    last_error: Exception | None = None
    connected_url: Any = None
    _handlers: dict[str, Handler] = field(default_factory=dict)
    _queues: dict[str, asyncio.Queue[Message]] = field(default_factory=dict)
    _options: dict[str, Any] = field(default_factory=dict)
    _transport: _Transport | None = None

    async def connect(self, name: str = "coordinator", **options: Any) -> None:
        """Connect as soon as the network lets it; plants say who they are."""
        self._transport = _Transport()
        found = CURRENT.get()
        assert found is not None
        self.process: Process = found
        self.name, self._options = name.removeprefix("ballast-site "), options
        await asyncio.sleep(0.01)
        while self.bus.is_cut(self.name):
            await asyncio.sleep(0.2)
        self.is_connected = True

    async def subscribe(self, subject: str, cb: Handler, **_: Any) -> None:
        """Hand over messages of a subject one after the other."""
        self._handlers[subject], self._queues[subject] = cb, asyncio.Queue()
        self.bus.hear(subject, self)
        self.process.start(self._serve(subject))

    async def _serve(self, subject: str) -> None:
        while True:
            await self._handlers[subject](await self._queues[subject].get())

    def receive(self, subject: str, data: bytes, inbox: str, headers: Mapping[str, str] | None) -> None:
        """A message has arrived."""
        if self.is_connected and self.process.alive and subject in self._queues:
            self.bus.world.note(f"asked {subject}", data)
            self._queues[subject].put_nowait(Message(self.bus, data, inbox, subject.split(".")[1], headers))

    async def request(
        self, subject: str, data: bytes, timeout: float, headers: Mapping[str, str] | None = None
    ) -> Any:
        """Ask, and wait for the answer."""
        self.process.check()
        if not self.is_connected:
            raise ConnectionClosedError
        return await self.bus.request(subject, data, timeout, headers)

    async def publish(self, subject: str, data: bytes) -> None:
        """Say something; a hello is a frame that leaves the plant."""
        self.process.check()
        if self.bus.sent is not None and subject.startswith("hello."):
            self.bus.sent(subject.split(".")[1], data)

    async def flush(self) -> None:
        """All is sent."""

    async def close(self) -> None:
        """Leave."""
        self.is_connected = False
        self.bus.forget(self)

    def lose(self) -> None:
        """The connection is gone."""
        if self.is_connected:
            self.is_connected = False
            self._call("disconnected_cb")

    def regain(self) -> None:
        """The connection is back."""
        if self.process.alive and not self.is_connected and self._options:
            self.is_connected = True
            self._call("reconnected_cb")

    def _call(self, name: str) -> None:
        if self.process.alive and (callback := self._options.get(name)) is not None:
            self.process.start(_said(callback))


async def _said(callback: Callable[[], Awaitable[None]]) -> None:
    await callback()
