"""A change that the store has and the NATS server has not taken: it is made once, and says so whenever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from services.bus.configuration import BusFiles
from services.contracts.access.identity import Role
from services.contracts.keys.signing import new_seed_file

PATH = "/v1/admin/sites"


@pytest.fixture
def stuck(any_world: Any) -> Any:
    """A world whose NATS server's users cannot be written."""
    files = BusFiles(any_world.settings.bus_folder)
    files.folder.mkdir(parents=True)
    new_seed_file(files.coordinator_seed)
    (files.folder / "users.lock").mkdir()
    return any_world


def send(world: Any, method: str, path: str, body: Any = None, key: str = "k1") -> Any:
    return world.call(Role.ADMINISTRATOR, method, path, body, headers={"Idempotency-Key": key})


def test_what_is_stored_is_answered_alike_under_its_key(stuck: Any, new_key: Callable[[], str]) -> None:
    body = {"site_id": "plant-9", "public_key": new_key()}
    first, again = send(stuck, "POST", PATH, body), send(stuck, "POST", PATH, body)
    assert (first.status_code, first.json()["code"]) == (503, "change_stored")
    assert "Retry-After" not in first.headers
    assert again.content == first.content and again.headers["Idempotent-Replayed"] == "true"
    assert stuck.events() == ["site.enrol"]
    assert send(stuck, "POST", PATH, body, key="k2").status_code == 409, "without the key it is another change"


def test_codes_of_a_removed_plant_end_with_it(stuck: Any, new_key: Callable[[], str]) -> None:
    body = {"site_id": "plant-9", "public_key": new_key(), "asset_types": ["triplex-pump"]}
    send(stuck, "POST", PATH, body)
    code = {"replace_key": True, "certificate_sha256": "0" * 64}
    made = send(stuck, "POST", f"{PATH}/plant-9/enrolment-codes", code, key="k2")
    assert made.status_code == 201, made.text
    assert send(stuck, "DELETE", f"{PATH}/plant-9", key="k3").json()["code"] == "change_stored"
    assert stuck.backend.store.sites.get("plant-9").status == "removed"
    assert stuck.backend.store.enrolment_codes.list_open() == []
