"""The next key is tried at the OEM's server before it takes the present one's place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import nats
import pytest

from services.bus import server
from services.bus.configuration import COORDINATOR_INBOX
from services.contracts.keys.signing import public_key
from services.contracts.wire.codec import decode
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.cli import main
from services.site_agent.connection import trial
from services.site_agent.setup.key_change import make_next_key, next_seed, use_next_key
from tests.ledgers import verified
from tests.services.site_agent.connection.conftest import Bus, Oem, Plant


@pytest.fixture
def following(plant: Plant) -> str:
    """The key that waits."""
    return make_next_key(plant.folder / "site.nk")


def use(plant: Plant, *more: str) -> int:
    return main(["key", "use", "--config", str(plant.folder / "site.toml"), *more])


def heard_while(bus: Bus, action: Callable[[], int]) -> list[bytes]:
    """Hellos that reach the coordinator while something is done that goes well."""
    async def listen() -> list[bytes]:
        client = await nats.connect(
            bus.url, tls=ssl.create_default_context(cafile=str(bus.files.authority)),
            nkeys_seed=str(bus.files.coordinator_seed), inbox_prefix=COORDINATOR_INBOX.encode(),
        )
        heard: list[bytes] = []

        async def on_hello(message: Any) -> None:
            heard.append(message.data)

        await client.subscribe("hello.*", cb=on_hello)
        await client.flush()
        assert await asyncio.to_thread(action) == 0
        await client.drain()  # what was said before is heard
        return heard

    return asyncio.run(listen())


def stays(plant: Plant, following: str) -> bool:
    seed = plant.folder / "site.nk"
    return public_key(seed) == plant.key and public_key(next_seed(seed)) == following


def test_a_key_that_the_oem_does_not_have_is_not_used(bus: Bus, plant: Plant, following: str, capsys: Any) -> None:
    server.update_users(bus.files, {"plant-1": plant.key})
    bus.start()
    assert use(plant) == 1
    said = capsys.readouterr()
    assert said.out == "" and "the present one stays in use" in said.err
    assert f"ballast site rotate-key plant-1 --key {following}" in said.err and said.err.count("\n") == 1
    assert stays(plant, following)


def test_a_key_that_the_oem_has_for_another_plant_is_not_used(
    bus: Bus, plant: Plant, following: str, capsys: Any
) -> None:
    server.update_users(bus.files, {"plant-1": plant.key, "plant-2": following})
    bus.start()
    for _ in range(12):  # the server's word on it may come a moment after its welcome
        assert use(plant) == 1 and "not as site plant-1" in capsys.readouterr().err
    assert stays(plant, following)


def test_a_key_is_not_used_where_no_server_says_whether_the_oem_has_it(
    plant: Plant, following: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial.try_key, "__defaults__", (1.0,))
    assert use(plant) == 1
    said = capsys.readouterr().err
    assert "no NATS server answered" in said.splitlines()[-1] and "--untried" in said
    assert stays(plant, following)
    assert use(plant, "--untried") == 0 and public_key(plant.folder / "site.nk") == following


def test_a_key_is_used_while_the_agent_runs_with_the_present_one(
    bus: Bus, plant: Plant, oem: Oem, following: str, capsys: Any
) -> None:
    server.update_users(bus.files, {"plant-1": f"{plant.key} {following}"})
    bus.start()
    plant.start()
    plant.wait_for("connected")
    before = verified(plant.folder / "ledger.jsonl")
    assert heard_while(bus, lambda: use(plant)) == []
    assert capsys.readouterr().out.startswith(f"the key is {following} now")
    assert public_key(plant.folder / "site.nk") == following and not next_seed(plant.folder / "site.nk").exists()
    assert verified(plant.folder / "ledger.jsonl") == before, "the trial said something"
    (answer,), _ = oem.ask(oem.join())
    assert isinstance(decode(answer, 1 << 20), SiteUpdate)
    assert "connection lost" not in (plant.folder / "site.log").read_text()


def test_a_key_that_was_made_while_another_was_tried_is_not_used(
    bus: Bus, plant: Plant, following: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else uses the one that is tried, and makes the next: nobody asked the OEM about that one."""
    server.update_users(bus.files, {"plant-1": f"{plant.key} {following}"})
    bus.start()
    seed, made, try_key = plant.folder / "site.nk", [], trial.try_key

    async def tried(address: Any) -> None:
        await try_key(address)
        use_next_key(seed)
        made.append(make_next_key(seed))

    monkeypatch.setattr(trial, "try_key", tried)
    assert use(plant) == 1
    assert "another than the one that was tried" in capsys.readouterr().err
    assert (public_key(seed), public_key(next_seed(seed))) == (following, made[0])
