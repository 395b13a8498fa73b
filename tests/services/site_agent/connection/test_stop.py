"""A link that is told to stop stops, whatever its client is at."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from services.contracts.keys.signing import new_seed_file
from services.site_agent.connection.link import PlantLink
from services.site_agent.connection.link_address import Address
from tests.services.process.test_ended_tasks import Stubborn


async def test_a_client_that_swallows_the_first_cancel_is_given_up_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stubborn, stop = Stubborn(1), asyncio.Event()

    async def connect(_: Client, **__: Any) -> None:
        asyncio.get_running_loop().call_later(0.05, stop.set)
        await stubborn.work()

    async def close(_: Client) -> None:
        """Nothing was opened."""

    monkeypatch.setattr(Client, "connect", connect)
    monkeypatch.setattr(Client, "close", close)
    key = new_seed_file(tmp_path / "plant-1.nk")
    address = Address("plant-1", ("nats://127.0.0.1:4222",), tmp_path / "plant-1.nk", key, None, needs_tls=False)
    await PlantLink(address, lambda frame, headers: b"", lambda: b"hello").run(stop)
    assert stubborn.end == "cancelled"
