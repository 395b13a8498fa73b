from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from services.bus import server
from services.bus.configuration import BusFiles
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file
from tests.nats_server import start
from tests.waiting import PATIENCE

PATH = "/v1/admin/sites"


def send(world: Any, method: str, path: str, body: Any = None) -> Any:
    return world.call(Role.ADMINISTRATOR, method, path, body)


def test_a_site_is_enrolled_suspended_activated_and_removed(any_world: Any, new_key: Callable[[], str]) -> None:
    key = new_key()
    body = {"site_id": "plant-9", "public_key": f" {key}\n", "asset_types": ["triplex-pump"], "description": "new hall"}
    made = send(any_world, "POST", PATH, body)
    assert made.status_code == 201
    assert (made.json()["public_key"], made.json()["status"]) == (key, "active")
    for action, status in (("suspend", "suspended"), ("suspend", "suspended"), ("activate", "active")):
        answer = send(any_world, "POST", f"{PATH}/plant-9/{action}", {"reason": "holidays"})
        assert (answer.status_code, answer.json()["status"]) == (200, status)
    gone = send(any_world, "DELETE", f"{PATH}/plant-9", {"reason": "sold"})
    assert gone.json()["status"] == "removed"
    listed = {each["site_id"]: each["status"] for each in send(any_world, "GET", PATH).json()["sites"]}
    assert listed == {"plant-9": "removed", "plant-east": "active", "plant-west": "active"}
    removed = send(any_world, "GET", f"{PATH}?status=removed").json()["sites"]
    assert [each["site_id"] for each in removed] == ["plant-9"]
    assert send(any_world, "POST", f"{PATH}/plant-9/activate").status_code == 409
    # What changed nothing left no entry.
    assert any_world.events() == ["site.remove", "site.activate", "site.suspend", "site.enrol"]
    event = any_world.backend.store.audit.list_events(action="site.suspend")[0]
    assert (event.target, event.reason, event.role) == ("site:plant-9", "holidays", Role.ADMINISTRATOR)
    assert event.before is not None and event.after is not None
    assert (event.before["status"], event.after["status"]) == ("active", "suspended")
    assert event.actor.endswith(" the administrator")
    told = {each.action: each.reason for each in any_world.backend.store.audit.list_events(target="site:plant-9")}
    assert (told["site.activate"], told["site.remove"]) == ("holidays", "sold")
    assert any_world.backend.store.audit.verify_chain().ok


def test_sites_are_listed_by_status_and_asset_type(shared_world: Any) -> None:
    def listed(query: str = "") -> list[str]:
        return [site["site_id"] for site in shared_world.call(Role.OPERATOR, "GET", PATH + query).json()["sites"]]

    assert listed() == listed("?asset_type=triplex-pump") == listed("?status=active") == ["plant-east", "plant-west"]
    assert listed("?status=removed") == listed("?asset_type=turbine") == []


def mistyped(key: str) -> str:
    return key[:20] + ("A" if key[20] != "A" else "B") + key[21:]


REFUSED: dict[str, tuple[Callable[[str], dict[str, Any]], int, str, str]] = {
    "a site id twice": (lambda key: {"site_id": "plant-east", "public_key": key}, 409, "conflict", "plant-east"),
    "a mistyped key": (lambda key: {"site_id": "new", "public_key": mistyped(key)}, 422, "invalid_input", "key"),
    "a word for a key": (lambda _: {"site_id": "new", "public_key": "secret"}, 422, "invalid_input", "56 characters"),
    "a secret seed": (lambda key: {"site_id": "new", "public_key": "S" + key}, 422, "secret_seed", "must not leave"),
    "an asset type that is not there": (
        lambda key: {"site_id": "new", "public_key": key, "asset_types": ["turbine"]},
        422, "unknown_asset_type", "turbine",
    ),
    "an id that is none": (lambda key: {"site_id": "Plant 9", "public_key": key}, 422, "invalid_input", "body.site_id"),
    "no key": (lambda _: {"site_id": "new"}, 422, "invalid_input", "body.public_key"),
    "an unknown field": (
        lambda key: {"site_id": "new", "public_key": key, "seed": "S"}, 422, "invalid_input", "body.seed",
    ),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_an_enrolment_that_does_not_fit_changes_nothing(
    lasting_world: Any, new_key: Callable[[], str], case: str
) -> None:
    make, status, code, said = REFUSED[case]
    key = new_key()
    before = lasting_world.snapshot()
    answer = send(lasting_world, "POST", PATH, make(key))
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert said in answer.json()["detail"]
    assert key[1:] not in answer.text
    assert lasting_world.snapshot() == before


def test_the_key_of_another_site_is_refused(lasting_world: Any) -> None:
    key = lasting_world.backend.store.sites.get("plant-east").public_key
    answer = send(lasting_world, "POST", PATH, {"site_id": "plant-9", "public_key": key})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert lasting_world.events() == []


def test_two_enrolments_of_one_id_at_the_same_time_leave_one(any_world: Any, new_key: Callable[[], str]) -> None:
    async def both() -> list[int]:
        loop = asyncio.get_running_loop()
        bodies = [{"site_id": "plant-9", "public_key": new_key()} for _ in range(4)]
        answers = [loop.run_in_executor(None, send, any_world, "POST", PATH, body) for body in bodies]
        return sorted(answer.status_code for answer in await asyncio.gather(*answers))

    assert asyncio.run(both()) == [201, 409, 409, 409]
    assert any_world.events() == ["site.enrol"]


def test_the_embedded_nats_server_learns_of_sites_at_once(world: Any, tmp_path: Any) -> None:
    """A site that is enrolled can connect, one that is suspended is cut and cannot come back."""
    import socket
    import ssl

    import nats
    from nats.errors import NoServersError

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    files = BusFiles(world.settings.bus_folder)
    server.prepare(files, host="127.0.0.1", port=port, host_names=["localhost", "127.0.0.1"], site_keys={})
    process = start(files, host="127.0.0.1", port=port)
    seed = tmp_path / "plant.nk"
    key = new_seed_file(seed)

    async def can_connect() -> bool:
        refused: list[Exception] = []

        async def note(error: Exception) -> None:
            refused.append(error)

        context = ssl.create_default_context(cafile=str(files.authority))
        client = nats.NATS()
        try:
            await client.connect(
                f"tls://127.0.0.1:{port}", tls=context, nkeys_seed=str(seed), allow_reconnect=False, error_cb=note
            )
        except (NoServersError, nats.errors.Error, OSError):  # cut off in the middle of its hello, too
            return False
        finally:
            # A connection that was refused holds its socket until it is closed.
            await client.close()
        return True

    def seen(wanted: bool) -> bool:
        """The server reads its users on a signal, so give it a moment."""

        async def look() -> bool:
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:
                if await can_connect() is wanted:
                    return True
                await asyncio.sleep(0.05)
            return False

        return asyncio.run(look())

    try:
        assert seen(False)
        send(world, "POST", PATH, {"site_id": "plant-9", "public_key": key})
        assert seen(True)
        send(world, "POST", f"{PATH}/plant-9/suspend")
        assert seen(False)
        send(world, "POST", f"{PATH}/plant-9/activate")
        assert seen(True)
        send(world, "DELETE", f"{PATH}/plant-9")
        assert seen(False)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def test_users_that_cannot_be_written_are_told_of(world: Any, new_key: Callable[[], str]) -> None:
    files = BusFiles(world.settings.bus_folder)
    files.folder.mkdir(parents=True)
    new_seed_file(files.coordinator_seed)
    (files.folder / "users.lock").mkdir()
    answer = send(world, "POST", PATH, {"site_id": "plant-9", "public_key": new_key()})
    assert (answer.status_code, answer.json()["code"]) == (503, "change_stored")
    assert "the change is stored" in answer.json()["detail"]
    assert world.backend.store.sites.get("plant-9").status == "active"
