"""The plant link over a real NATS server with TLS and nkeys."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import nats
import pytest
from nats.aio.client import Client

from services.bus.configuration import MOST_SUBSCRIPTIONS
from services.bus.server import rotate_coordinator, update_users
from services.contracts.errors import UnavailableError
from services.coordinator.asking import link_call, nats_transport
from services.coordinator.asking.nats_transport import NatsTransport
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address
from tests.services.process.test_ended_tasks import Stubborn
from tests.waiting import PATIENCE, wait_until

Handler = Callable[[Any], Awaitable[None]]


async def echo(message: Any) -> None:
    await message.respond(b"answer to " + message.data)


@asynccontextmanager
async def site(bus: Any, name: str, handler: Handler) -> AsyncIterator[Any]:
    context = ssl.create_default_context(cafile=str(bus.files.authority))

    async def ignore(_: Exception) -> None:
        """Reconnections are what these tests are about."""

    client = await nats.connect(
        bus.address, tls=context, nkeys_seed=str(bus.seeds[name]), max_reconnect_attempts=-1,
        reconnect_time_wait=0.1, error_cb=ignore,
    )
    await client.subscribe(f"site.{name}.task", cb=handler)
    await client.flush()
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def connected(bus: Any) -> AsyncIterator[NatsTransport]:
    transport = bus.transport()
    await transport.connect()
    try:
        yield transport
    finally:
        await transport.close()


async def test_answers_come_back_and_an_absent_site_is_known_at_once(bus: Any) -> None:
    async with site(bus, "plant-1", echo), connected(bus) as transport:
        answers = await transport.ask({"plant-1": b"a", "plant-2": b"b"}, PATIENCE)
    assert answers["plant-1"].frame == b"answer to a"
    assert answers["plant-2"].frame is None
    assert answers["plant-2"].failure == "absent"
    assert answers["plant-2"].seconds < PATIENCE / 2


async def test_a_site_that_subscribes_without_end_is_cut(bus: Any) -> None:
    """Each subscription costs the server 300 bytes: of millions, which take a plant a minute, it would die."""
    context = ssl.create_default_context(cafile=str(bus.files.authority))
    cut = asyncio.Event()

    async def ignore(_: Exception) -> None:
        """It is told why."""

    async def on_closed() -> None:
        cut.set()

    client = await nats.connect(
        bus.address, tls=context, nkeys_seed=str(bus.seeds["plant-1"]), allow_reconnect=False, error_cb=ignore,
        closed_cb=on_closed,
    )
    for _ in range(MOST_SUBSCRIPTIONS):
        await client.subscribe("site.plant-1.task")
    await client.flush()
    assert not cut.is_set()
    await client.subscribe("site.plant-1.task")
    async with asyncio.timeout(20.0):
        await cut.wait()


async def test_a_site_that_takes_too_long_is_late(bus: Any) -> None:
    async def sleep(_: Any) -> None:
        await asyncio.sleep(30)

    async with site(bus, "plant-1", sleep), connected(bus) as transport:
        answers = await transport.ask({"plant-1": b"a"}, 0.5)
    assert answers["plant-1"].failure == "late"


async def test_a_request_survives_the_server(bus: Any) -> None:
    asked: list[bytes] = []

    async def slow(message: Any) -> None:
        asked.append(message.data)
        await asyncio.sleep(0.5)
        if len(asked) > 1:
            await message.respond(b"at last")

    async with site(bus, "plant-1", slow), connected(bus) as transport:
        asking = asyncio.create_task(transport.ask({"plant-1": b"a"}, 20.0))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(bus.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(bus.start_again)
        answers = await asking
    assert answers["plant-1"].frame == b"at last"
    assert asked == [b"a", b"a"]


async def test_a_key_that_ends_at_once_costs_no_answer(bus: Any) -> None:
    """A stolen key of the coordinator ends in the middle of a question: it is asked again by the key of now."""
    asked, heard = list[bytes](), list[bytes]()

    async def slow(message: Any) -> None:
        asked.append(message.data)
        if len(asked) > 1:
            await message.respond(b"at last")

    async def hear(message: Any) -> None:
        heard.append(message.data)

    def end_the_key() -> None:
        rotate_coordinator(bus.files, datetime.now(UTC))
        update_users(bus.files, bus.keys)

    async with asyncio.timeout(60.0), site(bus, "plant-1", slow) as plant, connected(bus) as transport:
        await transport.subscribe("hello.*", hear)
        asking = asyncio.create_task(transport.ask({"plant-1": b"a"}, 20.0))
        while not asked:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(end_the_key)
        assert (await asking)["plant-1"].frame == b"at last"
        await plant.publish("hello.plant-1", b"still heard")
        while not heard:
            await asyncio.sleep(0.02)
    assert heard == [b"still heard"]


async def test_who_is_silent_is_heard_while_the_server_is_there_and_nobody_while_it_is_away(
    bus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent of before says nothing to what it does not know; the server would say at once that nobody is there."""
    monkeypatch.setattr(nats_transport, "HEARD_SECONDS", 0.3)

    async def silent(_: Any) -> None:
        """An agent that knows no roll call."""

    async with site(bus, "plant-1", silent), connected(bus) as transport:
        assert await transport.is_heard("plant-1") and not await transport.is_heard("plant-2")
        await asyncio.to_thread(bus.kill)
        async with asyncio.timeout(PATIENCE):
            while transport._client.is_connected:
                await asyncio.sleep(0.02)
        assert not await transport.is_heard("plant-1")


async def test_an_answer_that_the_server_does_not_take_is_asked_for_again(bus: Any) -> None:
    """A plant leaves while another is at work: the server's users change, and it forgets who was asked."""
    asked, loop, stop = list[bytes](), asyncio.get_running_loop(), asyncio.Event()
    at_work = asyncio.Event()

    def answer(frame: bytes, headers: Mapping[str, str] | None) -> bytes:
        asked.append(frame)
        loop.call_soon_threadsafe(at_work.set)
        if len(asked) == 1:
            wait_until(lambda: "Reloaded server configuration" in bus.files.log.read_text(), "other users")
        return b"answer to " + frame

    address = Address("plant-1", (bus.address,), bus.seeds["plant-1"], bus.keys["plant-1"], bus.files.authority, True)
    link = PlantLink(address, answer, lambda: b"hello")
    running = asyncio.create_task(link.run(stop))
    async with connected(bus) as transport:
        while not await transport.is_heard("plant-1"):
            await asyncio.sleep(0.05)
        asking = asyncio.create_task(transport.ask({"plant-1": b"a"}, PATIENCE))
        await at_work.wait()
        await asyncio.to_thread(update_users, bus.files, {"plant-1": bus.keys["plant-1"]})
        answers = await asking
    stop.set()
    await running
    assert answers["plant-1"].frame == b"answer to a" and answers["plant-1"].seconds < PATIENCE / 2
    assert asked == [b"a", b"a"]


async def test_a_hello_of_one_site_asks_no_other_again(bus: Any) -> None:
    asked: list[str] = []

    async def slow(message: Any) -> None:
        asked.append(message.subject)
        await asyncio.sleep(0.5)
        await message.respond(b"done")

    async with site(bus, "plant-1", slow) as one, site(bus, "plant-2", slow), connected(bus) as transport:
        asking = asyncio.create_task(transport.ask({"plant-1": b"a", "plant-2": b"b"}, PATIENCE))
        await asyncio.sleep(0.2)
        await one.publish("hello.plant-1", b"hello")
        answers = await asking
    assert [answers[name].frame for name in ("plant-1", "plant-2")] == [b"done", b"done"]
    assert sorted(asked) == ["site.plant-1.task", "site.plant-1.task", "site.plant-2.task"]


async def test_a_site_at_work_may_say_hello_and_its_first_answer_does(bus: Any) -> None:
    """Its connection came and went: where only the last question counted, no long answer would ever."""
    asked: asyncio.Queue[Any] = asyncio.Queue()
    async with site(bus, "plant-1", asked.put) as one, connected(bus) as transport:
        asking = asyncio.create_task(transport.ask({"plant-1": b"a"}, PATIENCE))
        first = await asyncio.wait_for(asked.get(), PATIENCE)
        for _ in range(3):
            await one.publish("hello.plant-1", b"hello")
            await asyncio.wait_for(asked.get(), PATIENCE)
        await first.respond(b"done")
        answer = (await asking)["plant-1"]
    assert answer.frame == b"done" and answer.seconds < PATIENCE / 2


async def test_a_site_that_says_hello_for_ever_holds_nobody_up_beyond_the_deadline(
    bus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_call, "LONGEST_PAUSE", 0.05)  # shorter than the deadline, as it is in a round

    async def silent(_: Any) -> None:
        """Says hello alone."""

    async with site(bus, "plant-1", silent) as one, connected(bus) as transport, asyncio.timeout(PATIENCE / 6):
        asking = asyncio.create_task(transport.ask({"plant-1": b"a"}, 1.0))
        while not asking.done():
            await one.publish("hello.plant-1", b"hello")
            await asyncio.sleep(0.05)
    assert asking.result()["plant-1"].failure == "late"


async def test_no_server_is_one_clear_line(bus: Any) -> None:
    bus.kill()
    with pytest.raises(UnavailableError, match="no NATS server at tls://127.0.0.1") as failure:
        await bus.transport().connect(timeout_seconds=1.0)
    assert "\n" not in str(failure.value)


async def test_after_another_client_took_the_place_of_one_sites_get_their_time_to_come_back(
    bus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, ended = bus.transport(), SimpleNamespace(is_closed=True)

    async def opened(_: float) -> Any:
        return SimpleNamespace(is_closed=False)

    async def end(_: Any) -> None:
        """It is closed already."""

    monkeypatch.setattr(nats_transport, "end_connection", end)
    monkeypatch.setattr(transport, "_opened", opened)
    began = time.monotonic()
    await transport._begin_again(ended)
    assert transport._reconnected_at >= began and not transport._client.is_closed
    transport._client = None


async def test_a_key_that_cannot_be_read_is_no_fault_of_the_certificate(tmp_path: Any) -> None:
    transport = NatsTransport(["tls://127.0.0.1:1"], tmp_path, None)
    with pytest.raises(UnavailableError, match=f"^no task can be signed: {tmp_path} cannot be read: Is a directory$"):
        await transport.connect(timeout_seconds=1.0)


async def test_a_stranger_is_not_let_in(bus: Any, tmp_path: Any) -> None:
    from services.contracts.keys.signing import new_seed_file

    new_seed_file(tmp_path / "stranger.nk")
    stranger = NatsTransport([bus.address], tmp_path / "stranger.nk", bus.files.authority)
    with pytest.raises(UnavailableError):
        await stranger.connect(timeout_seconds=3.0)


async def test_a_client_that_goes_on_though_it_was_given_up_holds_nobody_up(
    bus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that is cancelled while it closes the connection of which its key was refused."""
    stubborn = Stubborn(1)
    monkeypatch.setattr(Client, "connect", lambda *_, **__: stubborn.work())
    with pytest.raises(UnavailableError, match="no NATS server"):
        await bus.transport().connect(timeout_seconds=0.05)
    assert stubborn.end == "cancelled"


async def test_a_site_may_not_listen_to_another_sites_tasks(bus: Any) -> None:
    violations: list[str] = []

    async def note(error: Exception) -> None:
        violations.append(str(error))

    context = ssl.create_default_context(cafile=str(bus.files.authority))
    client = await nats.connect(
        bus.address, tls=context, nkeys_seed=str(bus.seeds["plant-1"]), error_cb=note, allow_reconnect=False
    )
    await client.subscribe("site.plant-2.task", cb=echo)
    await client.publish("site.plant-2.task", b"forged")
    await client.flush()
    await asyncio.sleep(0.2)
    await client.close()
    assert any("subscription" in text.lower() for text in violations)
    assert any("publish" in text.lower() for text in violations)
