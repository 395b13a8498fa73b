"""The connection of a flow to the plants, where the NATS server is away for a while."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from flows.retrain import drive
from flows.wiring import FlowContext
from services.bus.configuration import BusFiles
from services.bus.server import prepare
from services.contracts.errors import UnavailableError
from services.coordinator.asking.nats_transport import NatsTransport
from services.coordinator.run_state.run_errors import RunCancelledError
from services.process.settings import Settings
from tests.nats_server import start
from tests.ports import free_port
from tests.waiting import PATIENCE


class Server:
    """A NATS server that is away until it is started."""

    def __init__(self, files: BusFiles, port: int, ended: ExitStack) -> None:
        self._files, self._port, self._ended = files, port, ended

    def start(self) -> None:
        process: subprocess.Popen[bytes] = start(self._files, host="127.0.0.1", port=self._port)
        self._ended.callback(process.wait)
        self._ended.callback(process.kill)


@pytest.fixture
def away(works: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[FlowContext, Server]]:
    """The works' store behind a NATS server that is not there; a try to reach it takes a moment."""
    port = free_port()
    settings = Settings.load(tmp_path, {"BALLAST_NATS_PORT": str(port)})
    files = BusFiles(settings.bus_folder)
    prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys={})
    monkeypatch.setattr(NatsTransport, "connect", partialmethod(NatsTransport.connect, timeout_seconds=0.5))
    with ExitStack() as ended:
        yield replace(works.context, settings=settings), Server(files, port, ended)


def test_a_server_that_comes_back_within_the_patience_is_reached(away: tuple[FlowContext, Server]) -> None:
    context, server = away
    tries = []

    def still_wanted() -> None:
        tries.append(1)
        if len(tries) == 2:
            server.start()

    async def reached() -> bool:
        async with context.plant_link(PATIENCE, still_wanted) as transport:
            return await transport.is_heard("plant-1")

    assert asyncio.run(reached()) is False and len(tries) >= 2


def test_a_server_that_stays_away_is_waited_for_as_long_as_was_said(away: tuple[FlowContext, Server]) -> None:
    tries = iter(range(2))

    def still_wanted() -> None:
        assert next(tries) < 1, "half a second for a try, and a second between two"

    async def reached() -> None:
        async with away[0].plant_link(0.8, still_wanted):
            pass

    with pytest.raises(UnavailableError, match="no NATS server at"):
        asyncio.run(reached())


@pytest.mark.parametrize("ends", [True, False])
def test_the_link_is_let_go_of_however_the_run_ends(away: tuple[FlowContext, Server], ends: bool) -> None:
    context, server = away
    server.start()

    async def used() -> None:
        clients: list[Any] = []
        with suppress(RunCancelledError):
            async with context.plant_link(PATIENCE) as transport:
                clients.append(transport._client)
                assert clients[0].is_connected
                if not ends:
                    raise RunCancelledError("nobody wants it")
        assert clients[0].is_closed

    asyncio.run(used())


def test_without_patience_the_first_try_is_the_last(away: tuple[FlowContext, Server]) -> None:
    async def reached() -> None:
        async with away[0].plant_link(0.0, lambda: pytest.fail("tried again")):
            pass

    with pytest.raises(UnavailableError, match="no NATS server at"):
        asyncio.run(reached())


def test_a_run_that_waits_for_the_plant_link_can_be_cancelled(works: Any, away: tuple[FlowContext, Server]) -> None:
    store = works.context.store.runs
    run = store.create_run(works.plan("no-link", absence_patience_seconds=20))
    store.request_cancel(run.run_id)
    with pytest.raises(RunCancelledError, match="waited for the plant link"):
        asyncio.run(drive(away[0], run))
