"""A connection is closed where the library leaves it open, and where the server says no farewell."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
from asyncio import constants
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from services.bus import server
from services.bus.configuration import COORDINATOR_INBOX, BusFiles
from services.process.ended_connections import end_connection
from services.process.ended_tasks import give_up
from tests.nats_server import start
from tests.ports import free_port
from tests.standstill import stand_still
from tests.waiting import PATIENCE

HOST = "127.0.0.1"


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[tuple[BusFiles, int, int]]:
    """Files, port and process of a server."""
    port = free_port()
    files = BusFiles(tmp_path / "bus")
    server.prepare(files, host=HOST, port=port, host_names=[HOST], site_keys={})
    process = start(files, host=HOST, port=port)
    yield files, port, process.pid
    process.kill()
    process.wait()


async def connected(files: BusFiles, port: int) -> tuple[Client, Any]:
    """A client, and the socket below its TLS."""
    client = Client()
    await client.connect(
        f"tls://{HOST}:{port}", tls=ssl.create_default_context(cafile=str(files.authority)),
        nkeys_seed=str(files.coordinator_seed), inbox_prefix=COORDINATOR_INBOX.encode(),
    )
    return client, client._transport._bare_io_writer.transport


def test_a_close_that_was_given_up_is_finished(bus: tuple[BusFiles, int, int]) -> None:
    files, port, process = bus

    async def close_twice() -> None:
        client, below = await connected(files, port)
        stand_still(process)  # it says no farewell
        closing = asyncio.ensure_future(client.close())
        while not client.is_closed:
            await asyncio.sleep(0)
        await give_up(closing)
        await asyncio.wait_for(client.close(), 1.0)
        assert not below.is_closing(), "the library closes by itself now: end_connection is not needed"
        await end_connection(client, 0.2)
        assert below.is_closing()

    asyncio.run(close_twice())


def test_a_server_that_does_not_answer_is_left_soon(
    bus: tuple[BusFiles, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, port, process = bus
    monkeypatch.setattr(constants, "SSL_SHUTDOWN_TIMEOUT", 10 * PATIENCE)  # TLS waits for thirty seconds

    async def close() -> None:
        client, below = await connected(files, port)
        stand_still(process)
        await asyncio.wait_for(end_connection(client, 0.2), PATIENCE)
        assert below.is_closing()

    asyncio.run(close())


@pytest.mark.parametrize("away", [0.0, 1.5])
def test_what_is_still_to_be_sent_to_a_server_that_is_gone_is_let_go(
    bus: tuple[BusFiles, int, int], away: float
) -> None:
    """An agent that was stopped then, with an answer under way, ended with a traceback."""
    files, port, process = bus

    async def close() -> None:
        client, below = await connected(files, port)
        os.kill(process, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            while client.is_connected:
                await asyncio.sleep(0.02)
        await client.publish("site.plant-1.task", b"a task")
        await asyncio.sleep(away)  # the client tries to be back, in vain
        await end_connection(client)
        assert client.is_closed and below.is_closing()

    asyncio.run(close())
