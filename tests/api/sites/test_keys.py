"""Keys are changed with an overlap and taken away at once, on a real NATS server, on every connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nats
import pytest
from sqlalchemy import update

from api.system.link_users import link_users
from services.bus import server
from services.bus.configuration import BusFiles, users_text
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file, public_key
from services.round_store.tables.sites import SiteRow
from tests import nats_server
from tests.ports import free_port
from tests.waiting import PATIENCE

PATH = "/v1/admin/sites"


@dataclass(frozen=True)
class Link:
    """The plant link of a world: its server, and seeds of plants."""

    world: Any
    files: BusFiles
    port: int
    folder: Path

    def new_key(self, name: str) -> tuple[Path, str]:
        return self.folder / name, new_seed_file(self.folder / name)

    def send(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.world.call(Role.ADMINISTRATOR, method, f"{PATH}{path}", body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def connect(self, seed: Path) -> nats.NATS:
        client = nats.NATS()

        async def note(_: Exception) -> None:
            pass

        context = ssl.create_default_context(cafile=str(self.files.authority))
        try:
            await client.connect(
                f"tls://127.0.0.1:{self.port}", tls=context, nkeys_seed=str(seed), allow_reconnect=False, error_cb=note
            )
        except Exception:
            await client.close()
            raise
        return client

    async def connects(self, seed: Path) -> bool:
        try:
            await (await self.connect(seed)).close()
        except (nats.errors.Error, nats.errors.NoServersError, ConnectionError):  # refused, or cut while it asks
            return False
        return True


@pytest.fixture
def link(world: Any, tmp_path: Path) -> Iterator[Link]:
    files, port = BusFiles(world.settings.bus_folder), free_port()
    server.prepare(files, host="127.0.0.1", port=port, host_names=["127.0.0.1"], site_keys={})
    process = nats_server.start(files, host="127.0.0.1", port=port)
    try:
        yield Link(world, files, port, tmp_path)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


async def becomes(what: Callable[[], Awaitable[bool]], wanted: bool) -> None:
    """The server reads its users on a signal: wait until it has."""
    async with asyncio.timeout(PATIENCE):
        while await what() is not wanted:
            await asyncio.sleep(0.02)


async def cut(*clients: nats.NATS) -> None:
    """Wait until the server has cut every connection."""

    async def all_closed() -> bool:
        return all(client.is_closed for client in clients)

    await becomes(all_closed, True)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE))  # type: ignore[arg-type]  # a coroutine function's awaitable


def test_a_site_changes_its_key_with_an_overlap(link: Link) -> None:
    (old, key), (new, next_key) = link.new_key("old"), link.new_key("new")
    link.send("POST", "", {"site_id": "plant-9", "public_key": key})

    async def test() -> None:
        await becomes(lambda: link.connects(old), True)
        working = [await link.connect(old) for _ in range(2)]
        changed = await asyncio.to_thread(link.send, "POST", "/plant-9/key", {"public_key": next_key})
        assert (changed["public_key"], changed["former_key"]) == (next_key, key)
        await becomes(lambda: link.connects(new), True)
        assert await link.connects(old) and all(client.is_connected for client in working)
        store = link.world.backend.store
        with store.database.write() as session:  # the overlap is over
            session.execute(update(SiteRow).where(SiteRow.site_id == "plant-9").values(
                former_key_until=datetime.now(UTC) - timedelta(seconds=1)))
        await asyncio.to_thread(link.world.backend.nats_users.refresh, only_if_due=True)
        await cut(*working)
        assert not await link.connects(old)
        assert await link.connects(new)

    run(test)
    assert link.world.events()[0] == "site.rotate_key"


@pytest.mark.parametrize(("method", "path", "body"), [
    ("POST", "/plant-9/suspend", None), ("DELETE", "/plant-9", None), ("POST", "/plant-9/key", {"overlap_hours": 0}),
])
def test_a_key_is_taken_away_on_all_connections(link: Link, method: str, path: str, body: dict[str, Any]) -> None:
    """Suspended, removed, or lost and replaced without an overlap."""
    (old, key), (new, next_key) = link.new_key("old"), link.new_key("new")
    link.send("POST", "", {"site_id": "plant-9", "public_key": key})
    if body is not None:
        body = body | {"public_key": next_key}

    async def test() -> None:
        await becomes(lambda: link.connects(old), True)
        working = [await link.connect(old) for _ in range(5)]
        await asyncio.to_thread(link.send, method, path, body)
        await cut(*working)
        assert not await link.connects(old)
        assert await link.connects(new) is (body is not None)

    run(test)


def test_a_lost_site_is_enrolled_again_with_a_new_key(link: Link) -> None:
    (old, key), (new, next_key) = link.new_key("old"), link.new_key("new")
    link.send("POST", "", {"site_id": "plant-9", "public_key": key})
    link.send("DELETE", "/plant-9")
    link.send("POST", "", {"site_id": "plant-9", "public_key": next_key})

    async def test() -> None:
        await becomes(lambda: link.connects(new), True)
        assert not await link.connects(old)

    run(test)


def test_the_coordinator_changes_its_key_with_an_overlap(link: Link) -> None:
    from api.sites.service import rotate_coordinator
    from tests.api.conftest import FOUNDER

    backend = link.world.backend
    former_seed = link.folder / "former.nk"
    former_seed.write_bytes(link.files.coordinator_seed.read_bytes())

    async def test() -> None:
        working = await link.connect(former_seed)
        key, former = await asyncio.to_thread(rotate_coordinator, backend, FOUNDER, timedelta(hours=1))
        assert public_key(link.files.coordinator_seed) == key and public_key(former_seed) == former
        assert link.files.coordinator_seed.stat().st_mode & 0o077 == 0
        await becomes(lambda: link.connects(link.files.coordinator_seed), True)
        assert working.is_connected and await link.connects(former_seed)
        second_seed = link.folder / "second.nk"
        second_seed.write_bytes(link.files.coordinator_seed.read_bytes())
        also = await link.connect(second_seed)
        await asyncio.to_thread(rotate_coordinator, backend, FOUNDER, timedelta(0))
        await cut(working, also)
        assert not await link.connects(former_seed) and not await link.connects(second_seed)
        await becomes(lambda: link.connects(link.files.coordinator_seed), True)

    run(test)
    assert "coordinator.rotate_key" in [event.action for event in backend.store.audit.list_events()]


def test_a_second_change_of_the_coordinators_key_leaves_the_first_one_its_overlap(link: Link) -> None:
    """A run is on its way by the key with which it began, however often that is changed within its overlap."""
    from api.sites.service import rotate_coordinator
    from tests.api.conftest import FOUNDER

    seeds = [link.folder / f"{number}.nk" for number in range(3)]

    def change(seed: Path, overlap: timedelta) -> str:
        seed.write_bytes(link.files.coordinator_seed.read_bytes())
        return rotate_coordinator(link.world.backend, FOUNDER, overlap)[1]

    async def test() -> None:
        working = await link.connect(link.files.coordinator_seed)
        formers = [
            await asyncio.to_thread(change, seed, timedelta(hours=hours))
            for seed, hours in zip(seeds, (1, 3, 2), strict=True)
        ]
        await becomes(lambda: link.connects(link.files.coordinator_seed), True)
        assert working.is_connected and [await link.connects(seed) for seed in seeds] == [True] * 3
        now, own = datetime.now(UTC), public_key(link.files.coordinator_seed)
        for minutes, hold in ((59, formers[::-1]), (61, formers[:0:-1]), (121, formers[1:2]), (181, [])):
            assert server.coordinator_keys(link.files, now + timedelta(minutes=minutes)).split() == [own, *hold]
        await asyncio.to_thread(change, link.folder / "last.nk", timedelta(0))
        await cut(working)
        assert server.coordinator_keys(link.files, now).split()[1:] == [public_key(link.folder / "last.nk")]
        assert server.coordinator_keys(link.files, datetime.now(UTC)) == public_key(link.files.coordinator_seed)

    run(test)


def test_users_that_somebody_changed_are_put_right(link: Link) -> None:
    stranger, key = link.new_key("stranger")
    link.files.users.write_text(users_text(f"{public_key(link.files.coordinator_seed)} {key}", {}))
    link.world.backend.nats_users.refresh(only_if_due=True)
    assert key not in link.files.users.read_text()
    with contextlib.suppress(FileNotFoundError):
        before = link.files.users.stat().st_ino
        link.world.backend.nats_users.refresh(only_if_due=True)
        assert link.files.users.stat().st_ino == before  # nothing to do: not written


def test_no_site_bears_a_key_of_the_oems(link: Link) -> None:
    from api.sites.service import rotate_coordinator
    from tests.api.conftest import FOUNDER

    world, (_, key) = link.world, link.new_key("own")
    link.send("POST", "", {"site_id": "plant-9", "public_key": key})
    keys = [public_key(link.files.coordinator_seed)]
    for overlap in (timedelta(0), timedelta(hours=1)):
        keys.append(rotate_coordinator(world.backend, FOUNDER, overlap)[0])
    before = world.snapshot()
    for of_oem in keys:  # of one that ended, of one that still holds, and the present one
        for path, body in (("", {"site_id": "plant-8"}), ("/plant-9/key", {})):
            answer = world.call(Role.ADMINISTRATOR, "POST", f"{PATH}{path}", body | {"public_key": of_oem})
            assert answer.status_code == 409 and "the OEM's own" in answer.json()["detail"], answer.text
    assert world.snapshot() == before


def test_a_change_that_the_server_does_not_take_is_said(link: Link) -> None:
    (old, key), configuration = link.new_key("old"), link.files.configuration.read_text()
    link.send("POST", "", {"site_id": "plant-9", "public_key": key})

    def found() -> list[str]:
        return [each.state for each in link_users(link.world.backend, datetime.now(UTC))]

    assert found() == ["ok"]
    link.files.configuration.write_text(configuration + "authorization { users = 7 }\n")
    answer = link.world.call(Role.ADMINISTRATOR, "POST", f"{PATH}/plant-9/suspend")
    assert answer.status_code == 503 and "did not take its users: " in answer.json()["detail"], answer.text
    assert link.world.backend.store.sites.get("plant-9").status == "suspended" and found() == ["fail"]
    assert asyncio.run(link.connects(old)), "the server goes by the users of before"
    link.files.configuration.write_text(configuration)
    link.world.backend.nats_users.refresh(only_if_due=True)
    assert not asyncio.run(link.connects(old)) and found() == ["ok"]


@pytest.mark.parametrize(("body", "status", "said"), [
    ({"public_key": "SU" + "A" * 56}, 422, "secret seed"),
    ({"public_key": "U" + "A" * 55}, 422, "public key"),
    ({"public_key": "same"}, 409, "already"),
    ({"public_key": "other"}, 409, "belongs to site"),
    ({"public_key": "new", "overlap_hours": -1}, 422, "overlap_hours"),
    ({"public_key": "new", "overlap_hours": 721}, 422, "overlap_hours"),
])
def test_a_key_that_does_not_fit_changes_nothing(
    world: Any, new_key: Callable[[], str], body: dict[str, Any], status: int, said: str
) -> None:
    key, other = new_key(), new_key()
    for site, its in (("plant-8", other), ("plant-9", key)):
        world.call(Role.ADMINISTRATOR, "POST", PATH, {"site_id": site, "public_key": its})
    named = {"same": key, "other": other, "new": new_key()}
    body = body | {"public_key": named.get(body["public_key"], body["public_key"])}
    before = world.snapshot()
    answer = world.call(Role.ADMINISTRATOR, "POST", f"{PATH}/plant-9/key", body)
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
    assert world.snapshot() == before
