"""Codes by which plants enrol themselves, on SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from sqlalchemy import event, update

from api.backend.actor import local_administrator
from api.sites import service
from api.sites.enrolment import redeem
from services.bus import server
from services.bus.configuration import BusFiles
from services.contracts.access.enrolment import EnrolmentRequest, proof, read_code
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file, public_key, signer
from services.round_store.tables.operation import EnrolmentCodeRow
from tests.oracles.store_walk import all_columns

SITES = "/v1/admin/sites"
CODES = f"{SITES}/plant-9/enrolment-codes"


@pytest.fixture
def oem(any_world: Any) -> Any:
    """A world whose plant link has its files, though it does not run."""
    files = BusFiles(any_world.settings.bus_folder)
    server.prepare(files, host="127.0.0.1", port=4222, host_names=["127.0.0.1"], site_keys={})
    return any_world


@pytest.fixture
def new_seed(tmp_path: Path) -> Callable[[], Path]:
    count = iter(range(100))

    def make() -> Path:
        path = tmp_path / f"{next(count)}.nk"
        new_seed_file(path)
        return path

    return make


def send(world: Any, method: str, path: str, body: Any = None, role: Role | None = Role.ADMINISTRATOR) -> Any:
    return world.call(role, method, path, body)


def a_code(world: Any, path: str = CODES, **wanted: Any) -> str:
    answer = send(world, "POST", path, {"asset_type": "triplex-pump"} | wanted)
    assert answer.status_code == 201, answer.text
    assert answer.json()["code"] in answer.json()["command"]
    return str(answer.json()["code"])


def shown(text: str, seed: Path, **changes: Any) -> dict[str, Any]:
    """What a plant sends that shows a code."""
    code, key = read_code(text), public_key(seed)
    return {
        "site_id": code.site_id, "code_id": code.code_id, "secret": code.secret, "public_key": key,
        "signature": signer(seed)(proof(code.code_id, code.site_id, key)).hex(),
    } | changes


def enrol(world: Any, body: dict[str, Any]) -> Any:
    return send(world, "POST", "/enrol", body, role=None)


def refused(world: Any, body: dict[str, Any]) -> str:
    """Code of a refusal, after which no site is other than before."""
    before = world.backend.store.sites.list_sites()
    answer = enrol(world, body)
    assert answer.status_code in (403, 409, 422), answer.text
    assert body["secret"] not in answer.text
    assert world.backend.store.sites.list_sites() == before
    return str(answer.json()["code"])


def test_a_plant_enrols_once_with_what_it_needs(oem: Any, new_seed: Callable[[], Path]) -> None:
    code, seed = a_code(oem, description="new hall"), new_seed()
    answer = enrol(oem, shown(code, seed))
    assert answer.status_code == 200, answer.text
    package, files = answer.json(), BusFiles(oem.settings.bus_folder)
    assert package["site_id"] == "plant-9" and package["asset_type"]["name"] == "triplex-pump"
    assert package["authority"] == files.authority.read_text()
    assert package["oem_key"] == public_key(files.coordinator_seed)
    assert package["servers"] == ["tls://127.0.0.1:4222"]
    site = oem.backend.store.sites.get("plant-9")
    assert (site.public_key, site.asset_types, site.status) == (public_key(seed), ("triplex-pump",), "active")
    assert public_key(seed) in files.users.read_text()
    assert oem.events() == ["site.enrol", "site.enrol_code"]
    event = oem.backend.store.audit.list_events(action="site.enrol")[0]
    assert event.actor == f"code:{read_code(code).code_id}" and "the administrator" in event.reason
    assert oem.backend.store.audit.verify_chain().ok
    cells = [cell.value for cell in all_columns(oem.backend.store.engine)]
    assert not any(read_code(code).secret in str(cell) for cell in cells), "the secret is stored"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_words_beside_the_authoritys_certificate_hinder_no_plant(
    oem: Any, new_seed: Callable[[], Path], encoding: str
) -> None:
    """Bundles of authorities and exports of other programs name each certificate above it, in any language."""
    authority = BusFiles(oem.settings.bus_folder).authority
    plain = authority.read_text()
    authority.write_text(f"friendlyName: Prüfstand\n{plain}", encoding=encoding)
    answer = enrol(oem, shown(a_code(oem), new_seed()))
    assert answer.status_code == 200 and plain in answer.json()["authority"], answer.text


def test_a_code_lets_no_key_of_the_oems_in(oem: Any, new_seed: Callable[[], Path]) -> None:
    code, own = a_code(oem), BusFiles(oem.settings.bus_folder).coordinator_seed
    assert refused(oem, shown(code, own)) == "conflict"
    assert enrol(oem, shown(code, new_seed())).status_code == 200, "the code was not used up"


def test_a_code_is_used_once(oem: Any, new_seed: Callable[[], Path]) -> None:
    code, first = a_code(oem), new_seed()
    assert enrol(oem, shown(code, first)).status_code == 200
    assert refused(oem, shown(code, new_seed())) == "code_used"
    assert oem.events()[0] == "site.enrol_refused", "somebody else had the code: the trail says so"
    # The plant whose answer was lost asks again with the key that it made: nothing is changed.
    before = oem.events()
    assert enrol(oem, shown(code, first)).status_code == 200
    assert oem.events() == before


def test_of_several_at_the_same_time_one_is_enrolled(oem: Any, new_seed: Callable[[], Path]) -> None:
    bodies = [shown(a_code(oem), new_seed())]
    bodies += [shown(f"blse_plant-9_{bodies[0]['code_id']}_{bodies[0]['secret']}_system", new_seed()) for _ in range(3)]

    async def all_at_once() -> list[int]:
        loop = asyncio.get_running_loop()
        asked = [loop.run_in_executor(None, enrol, oem, body) for body in bodies]
        return sorted(answer.status_code for answer in await asyncio.gather(*asked))

    assert asyncio.run(all_at_once()) == [200, 403, 403, 403]
    assert oem.events().count("site.enrol") == 1
    assert oem.events().count("site.enrol_refused") == 3, "each of the others had the right secret"


def test_expired_revoked_replaced_and_forged_codes_are_refused(oem: Any, new_seed: Callable[[], Path]) -> None:
    seed = new_seed()
    first = a_code(oem)
    second = a_code(oem)
    assert refused(oem, shown(first, seed)) == "code_revoked", "a newer code takes the place of the one before"
    third = shown(second, seed)
    assert refused(oem, third | {"secret": "0" * 64}) == "code_unknown"
    assert refused(oem, third | {"code_id": "0" * 12}) == "code_unknown"
    assert refused(oem, third | {"signature": "0" * 128}) == "invalid_input", "nobody enrols a key that he has not"
    assert refused(oem, shown(second, seed, signature=shown(second, new_seed())["signature"])) == "invalid_input"
    with oem.backend.store.database.write() as session:
        gone = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(EnrolmentCodeRow).values(expires_at=gone))
    assert refused(oem, third) == "code_expired"
    assert oem.events()[:2] == ["site.enrol_refused", "site.enrol_refused"]


def test_a_code_is_of_its_site_alone(oem: Any, new_seed: Callable[[], Path]) -> None:
    code, seed = a_code(oem), new_seed()
    code_id, key = read_code(code).code_id, public_key(seed)
    signature = signer(seed)(proof(code_id, "plant-8", key)).hex()
    assert refused(oem, shown(code, seed, site_id="plant-8", signature=signature)) == "code_unknown"
    assert enrol(oem, shown(code, seed)).status_code == 200, "it was not used up"


def test_the_key_of_another_plant_is_refused(oem: Any, new_seed: Callable[[], Path]) -> None:
    seed = new_seed()
    assert enrol(oem, shown(a_code(oem), seed)).status_code == 200
    other = a_code(oem, f"{SITES}/plant-10/enrolment-codes")
    assert refused(oem, shown(other, seed)) == "conflict"
    assert enrol(oem, shown(other, new_seed())).status_code == 200, "it was not used up"


def test_a_plant_that_lost_its_key_gets_another_and_stays_what_it_was(oem: Any, new_seed: Callable[[], Path]) -> None:
    old, new = new_seed(), new_seed()
    assert enrol(oem, shown(a_code(oem), old)).status_code == 200
    answer = send(oem, "POST", CODES, {})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "--replace-key" in answer.json()["detail"]
    code = a_code(oem, replace_key=True, asset_type=None)
    assert send(oem, "POST", f"{SITES}/plant-9/suspend").status_code == 200
    assert enrol(oem, shown(code, new)).status_code == 200
    site = oem.backend.store.sites.get("plant-9")
    assert (site.public_key, site.status) == (public_key(new), "suspended")
    assert site.keys_at(datetime.now(UTC)) == public_key(new), "the lost key ends at once"


def test_a_site_that_was_removed_or_enrolled_by_hand_needs_another_code(
    oem: Any, new_seed: Callable[[], Path], new_key: Callable[[], str]
) -> None:
    code = a_code(oem)
    assert send(oem, "POST", SITES, {"site_id": "plant-9", "public_key": new_key()}).status_code == 201
    assert refused(oem, shown(code, new_seed())) == "conflict"
    code = a_code(oem, replace_key=True)
    assert send(oem, "DELETE", f"{SITES}/plant-9").status_code == 200
    assert refused(oem, shown(code, new_seed())) == "code_revoked"
    assert enrol(oem, shown(a_code(oem), new_seed())).status_code == 200


def test_codes_are_listed_without_secrets_and_revoked_once(oem: Any, new_seed: Callable[[], Path]) -> None:
    code = read_code(a_code(oem))
    listed = send(oem, "GET", CODES)
    assert [each["code_id"] for each in listed.json()["codes"]] == [code.code_id]
    assert code.secret not in listed.text
    gone = f"{CODES}/{code.code_id}"
    assert send(oem, "DELETE", f"{SITES}/plant-8/enrolment-codes/{code.code_id}").status_code == 404
    revoked = [send(oem, "DELETE", gone, {"reason": "typed wrongly"}).json()["revoked_at"] for _ in range(2)]
    assert revoked[0] == revoked[1] is not None
    assert oem.events() == ["site.revoke_code", "site.enrol_code"]
    assert oem.backend.store.audit.list_events(action="site.revoke_code")[0].reason == "typed wrongly"
    assert refused(oem, shown(code.text, new_seed())) == "code_revoked"
    used = a_code(oem)
    assert enrol(oem, shown(used, new_seed())).status_code == 200
    assert send(oem, "DELETE", f"{CODES}/{read_code(used).code_id}").status_code == 409


@pytest.mark.parametrize(("path", "body", "status", "said"), [
    (CODES, {"asset_type": "turbine"}, 422, "triplex-pump"), (CODES, {}, 422, "name the asset type"),
    (CODES, {"expires_hours": 0}, 422, "expires_hours"), (CODES, {"expires_hours": 721}, 422, "expires_hours"),
    (f"{SITES}/Plant 9/enrolment-codes", {}, 422, "site_id"), (CODES, {"replace_key": True}, 409, "not enrolled"),
    (CODES, {"certificate_sha256": "ab"}, 422, "certificate_sha256"),
    (CODES, {"replace_key": True, "description": "by the sea"}, 422, "leaves a site's description as it is"),
])
def test_a_code_that_cannot_be_made_changes_nothing(
    lasting_world: Any, path: str, body: dict[str, Any], status: int, said: str
) -> None:
    before = lasting_world.snapshot()
    answer = send(lasting_world, "POST", path, body)
    assert (answer.status_code, said in answer.json()["detail"]) == (status, True), answer.text
    assert lasting_world.snapshot() == before


def test_before_the_link_was_ever_started_a_code_is_not_used_up(world: Any, new_seed: Callable[[], Path]) -> None:
    code = a_code(world)
    answer = enrol(world, shown(code, new_seed()))
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert world.backend.store.enrolment_codes.list_codes("plant-9")[0].used_at is None


def test_who_tries_codes_waits_and_others_do_not(world: Any, new_seed: Callable[[], Path]) -> None:
    body = shown("blse_plant-9_" + "0" * 12 + "_" + "0" * 64 + "_system", new_seed())
    assert [enrol(world, body).status_code for _ in range(11)] == [403] * 10 + [429]
    assert int(enrol(world, body).headers["Retry-After"]) > 0
    assert send(world, "GET", SITES).status_code == 200
    other = world.portal.call(from_elsewhere, world, body)
    assert other.status_code == 403, "who tries from elsewhere has tries of his own"


async def from_elsewhere(world: Any, body: dict[str, Any]) -> Any:
    transport = ASGITransport(world.app, client=("192.0.2.7", 4000))
    async with AsyncClient(transport=transport, base_url="http://ballast") as client:
        return await client.post("/enrol", json=body)


def test_a_code_that_holds_is_no_try_where_the_link_is_not_there_yet(world: Any, new_seed: Callable[[], Path]) -> None:
    body = shown(a_code(world), new_seed())
    assert [enrol(world, body).status_code for _ in range(12)] == [503] * 12


def test_codes_come_newest_first_page_by_page_each_once_and_of_a_site_its_own_alone(world: Any) -> None:
    made = [read_code(a_code(world, f"{SITES}/plant-{number}/enrolment-codes")).code_id for number in (9, 8, 7, 9, 6)]
    address, found = "/v1/admin/enrolment-codes?limit=2", []
    while address:
        answer = send(world, "GET", address)
        found += [each["code_id"] for each in answer.json()["codes"]]
        address = answer.links.get("next", {}).get("url", "")
    assert found == made[::-1]
    assert [each["code_id"] for each in send(world, "GET", CODES).json()["codes"]] == [made[3], made[0]]


def test_a_plant_that_is_removed_while_it_enrols_waits_for_nobody_who_waits_for_it(
    oem: Any, new_seed: Callable[[], Path]
) -> None:
    """Codes are locked before their site by all who lock both: else each may hold what the other wants."""
    assert enrol(oem, shown(a_code(oem), new_seed())).status_code == 200
    locked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        table = re.search(r"UPDATE (enrolment_codes|sites)\b|FROM (sites)\b.*FOR UPDATE", statement, re.DOTALL)
        if table is not None:
            locked.append(table[1] or table[2])

    engine = oem.backend.store.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        code = a_code(oem, replace_key=True)
        locked.clear()
        redeem(oem.backend, EnrolmentRequest.model_validate(shown(code, new_seed())))
        used = [*locked]
        locked.clear()
        service.remove(oem.backend, local_administrator(), "plant-9")
    finally:
        event.remove(engine, "before_cursor_execute", note)
    for order in (used, locked):
        assert order[0] == "enrolment_codes" and set(order[1:]) == {"sites"}, order
