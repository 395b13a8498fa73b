"""The page of the administrator: plants, tokens, codes."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from api.console.endpoints.admin import PAGE
from services.plant_simulator.assets import builtin_asset_type
from tests.api.conftest import open_world


def test_a_console_of_nothing_yet_says_what_comes_first(
    tmp_path: Path, new_sqlite: Callable[[], str], signed_in: Callable[..., Any], reading: Callable[..., str]
) -> None:
    home = tmp_path / "mlflow.db"
    with open_world(tmp_path, new_sqlite(), {"tracking_uri": f"sqlite:///{home}"}, filled=False) as nothing:
        person = signed_in(nothing)
        fleet = reading(person.get("/console"))
        assert "there is no plant" in fleet and "Every plant answers" not in fleet and "one-time code" in fleet
        assert "ballast asset-type add FILE" in reading(person.get("/console/admin"))
        nothing.backend.store.asset_types.add(builtin_asset_type("triplex-pump-severity"))
        assert "ballast asset-type add FILE" not in reading(person.get("/console/admin"))
        assert 'asset_type = "triplex-pump-severity"' in unescape(person.get("/console/plans").text)


def test_an_administrator_enrols_plants_and_makes_tokens(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str], reading: Callable[..., str]
) -> None:
    person, store, key = signed_in(world), world.backend.store, new_key()
    told = {"site_id": "plant-9", "public_key": key, "asset_types": "triplex-pump", "description": "by the sea"}
    assert person.post("/console/admin/sites", **told).status_code == 303
    assert store.sites.get("plant-9").description == "by the sea"
    assert "already" in person.post("/console/admin/sites", **told).text
    seed = person.post("/console/admin/sites", site_id="plant-8", public_key="SUAXXX")
    assert seed.status_code == 422 and "must not leave the plant" in reading(seed) and "SUAXXX" not in seed.text
    person.post("/console/admin/sites/plant-9/suspend", reason="storm")
    assert store.sites.get("plant-9").status == "suspended"
    person.post("/console/admin/sites/plant-9/activate")
    assert person.post("/console/admin/sites/plant-9/remove").status_code == 422, "a reason is needed"
    person.post("/console/admin/sites/plant-9/remove", reason="sold")
    assert store.sites.get("plant-9").status == "removed"
    made = person.post("/console/admin/tokens", name="line 4", role="viewer", days="2")
    token = re.search(r"blst_[0-9a-f]{12}_[0-9a-f]{64}", made.text)[0]
    assert world.call(None, "GET", "/v1/models", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert token not in person.get("/console/admin").text, "it is shown once"
    assert person.post("/console/admin/tokens", name="x", role="god").status_code == 422
    for days in ("soon", "nan", "inf"):  # a token without days has no end
        vague = person.post("/console/admin/tokens", name="x", role="viewer", days=days)
        assert vague.status_code == 422 and "days: a number is needed" in reading(vague)
    assert "line 4" in reading(vague), "what does not fit is said on the page itself, with its tables"


def test_an_administrator_makes_a_code_that_is_shown_once_and_may_be_revoked(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str], reading: Callable[..., str]
) -> None:
    person, store = signed_in(world), world.backend.store
    made = person.post("/console/admin/codes", site_id="plant-8", asset_type="triplex-pump", hours="2")
    code = re.search(r"blse_plant-8_[0-9a-zA-Z_\-]+", made.text)[0]
    assert made.status_code == 200 and "ballast-site enrol --url" in reading(made)
    again = person.get("/console/admin")
    assert code not in again.text and "Revoke the code for plant-8" in reading(again)
    (record,) = store.enrolment_codes.list_codes("plant-8")
    assert (record.expires_at - record.created_at).total_seconds() == pytest.approx(7200)
    revoked = person.post(f"/console/admin/sites/plant-8/codes/{record.code_id}/revoke", reason="went astray")
    assert revoked.status_code == 303 and "No code waits to be used" in reading(person.get("/console/admin"))
    assert store.enrolment_codes.find(record.code_id).record.revoked_at is not None
    for told, status, why in (
        ({"site_id": "Plant 8"}, 422, "site_id"), ({"site_id": "plant-8", "hours": "0"}, 422, "expires_hours"),
        ({"site_id": "plant-8", "hours": "x"}, 422, "hours"),
        ({"site_id": "plant-8", "asset_type": "none"}, 422, "name the asset type of the site's machines"),
        ({"site_id": "plant-8", "asset_type": "triplex-pump", "replace_key": "on"}, 409, "no key to replace"),
    ):
        answer = person.post("/console/admin/codes", **told)
        assert answer.status_code == status and why in reading(answer), told
    assert len(store.enrolment_codes.list_codes("plant-8")) == 1, "nothing was made"


def test_hundreds_of_plants_are_shown_page_by_page_and_are_looked_for(
    world: Any, signed_in: Callable[..., Any], new_key: Callable[[], str], reading: Callable[..., str]
) -> None:
    person, store = signed_in(world), world.backend.store

    def shown(address: str) -> list[str]:
        return re.findall(r'<tr><th scope="row" class="wrap">([a-z0-9-]+)(?:<br>|</th>)', person.get(address).text)

    def plants(address: str) -> list[str]:
        return [name for name in shown(address) if name in known]

    known = {site.site_id for site in store.sites.list_sites()}
    assert plants("/console/admin") == sorted(known) and "Id or description" not in person.get("/console/admin").text
    for number in range(2 * PAGE + 1 - len(known)):
        store.sites.enrol(f"mill-{number:03}", new_key(), ("triplex-pump",), "by the SEA" if number == 7 else "")
    known = {site.site_id for site in store.sites.list_sites()}
    pages = [plants(f"/console/admin?offset={offset}") for offset in (0, PAGE, 2 * PAGE)]
    assert [len(names) for names in pages] == [PAGE, PAGE, 1] and sum(pages, []) == sorted(known)
    first, last = (person.get(f"/console/admin?offset={offset}").text for offset in (0, 2 * PAGE))
    assert 'rel="next"' in first and 'rel="prev"' not in first and 'rel="next"' not in last and 'rel="prev"' in last
    assert plants("/console/admin?plant=mill-00") == [f"mill-{number:03}" for number in range(10)]
    assert plants("/console/admin?plant=%20by+the+sea") == ["mill-007"]
    assert "No plant like this" in reading(person.get("/console/admin?plant=nowhere"))
    changed = person.post("/console/admin/sites/mill-042/suspend", reason="storm")
    assert changed.headers["location"] == "/console/admin?plant=mill-042#plants"
