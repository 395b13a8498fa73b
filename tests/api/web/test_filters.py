"""Filters of lists: what they leave out, in the API, the client and the command alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.client import Client, InvalidRequestError
from services.contracts.access.identity import Role
from tests.api.conftest import a_plan

CODE = {"asset_type": "triplex-pump", "certificate_sha256": "0" * 64}


@pytest.fixture
def asked(world: Any) -> Callable[..., Any]:
    """Rows of a list by its address and filters."""

    def ask(path: str, member: str, **filters: Any) -> list[Any]:
        answer = world.call(Role.ADMINISTRATOR, "GET", path, params=filters)
        assert answer.status_code == 200, answer.text
        return list(answer.json()[member])

    return ask


@pytest.fixture
def a_client(world: Any, server: str) -> Iterator[Client]:
    yield Client(server, world.tokens[Role.ADMINISTRATOR])


def test_models_by_asset_type_prefix_and_champion(asked: Callable[..., Any], a_client: Client) -> None:
    whole = [each["name"] for each in asked("/v1/models", "models")]
    assert "pumps" in whole
    for filters, holds in (
        ({"asset_type": "triplex-pump"}, True), ({"asset_type": "triplex"}, False), ({"prefix": "pum"}, True),
        ({"prefix": "umps"}, False), ({"prefix": "Pum"}, False),
        ({"champion": True}, True), ({"champion": False}, False), ({"prefix": "pum", "asset_type": "turbine"}, False),
    ):
        found = [each["name"] for each in asked("/v1/models", "models", **filters)]
        assert ("pumps" in found) == holds, filters
        assert [each.name for each in a_client.models(**filters)] == found


def test_plans_of_the_client_are_narrowed_too(world: Any, a_client: Client) -> None:
    world.backend.store.plans.create(a_plan("held"), paused=True)
    assert [each.plan.name for each in a_client.plans(paused=True)] == ["held"]
    assert "held" not in [each.plan.name for each in a_client.plans(paused=False)]


def test_versions_of_a_plan_by_who_and_when(world: Any, asked: Callable[..., Any], a_client: Client) -> None:
    plans = world.backend.store.plans
    plans.create(a_plan("two-hands"), actor="anna")
    plans.update(a_plan("two-hands", max_rounds=7), actor="bert", reason="slow")
    first, second = plans.versions("two-hands")
    assert first.created_at < second.created_at
    instant = timedelta(microseconds=1)
    path = "/v1/admin/plans/two-hands/versions"
    for filters, wanted in (
        ({}, [1, 2]), ({"actor": "anna"}, [1]), ({"actor": "ann"}, []), ({"since": second.created_at}, [2]),
        ({"since": second.created_at + instant}, []), ({"until": second.created_at}, [1]),
        ({"until": second.created_at + instant}, [1, 2]), ({"since": first.created_at, "actor": "bert"}, [2]),
    ):
        sent = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in filters.items()}
        assert [each["version"] for each in asked(path, "versions", **sent)] == wanted, filters
        assert [each.version for each in a_client.plan_versions("two-hands", **filters)] == wanted, filters
    with pytest.raises(InvalidRequestError):
        next(a_client.plan_versions("two-hands", since=datetime(2027, 1, 1)))  # noqa: DTZ001  no zone, no moment


def test_codes_by_site_and_state(world: Any, asked: Callable[..., Any], a_client: Client) -> None:
    made = []
    for site in ("plant-7", "plant-7", "plant-8", "plant-9"):  # the second ends the first
        answer = world.call(Role.ADMINISTRATOR, "POST", f"/v1/admin/sites/{site}/enrolment-codes", CODE)
        made.append(answer.json()["code_id"])
    assert world.backend.store.enrolment_codes.use(made[2], "UA")
    for filters, wanted in (
        ({}, made), ({"state": "open"}, [made[1], made[3]]), ({"state": "revoked"}, made[:1]),
        ({"state": "used"}, made[2:3]), ({"state": "expired"}, []), ({"site": "plant-7"}, made[:2]),
        ({"site": "plant-7", "state": "open"}, made[1:2]),
    ):
        found = asked("/v1/admin/enrolment-codes", "codes", **filters)
        assert sorted(each["code_id"] for each in found) == sorted(wanted), filters
        assert [each.code_id for each in a_client.enrolment_codes(**filters)] == [each["code_id"] for each in found]
        assert "secret" not in str(found)
    of_site = asked("/v1/admin/sites/plant-7/enrolment-codes", "codes", state="revoked")
    assert [each["code_id"] for each in of_site] == made[:1]
    record = world.backend.store.enrolment_codes.find(made[3]).record
    assert record.state_at(record.expires_at) == "expired"
    assert record.state_at(record.expires_at - timedelta(seconds=1)) == "open"
    for wrong in ({"state": "lost"}, {"code": "x"}):
        path = "/v1/admin/enrolment-codes"
        assert world.call(Role.ADMINISTRATOR, "GET", path, params=wrong).status_code == 422


def test_an_expired_code_that_was_used_is_used(world: Any) -> None:
    answer = world.call(Role.ADMINISTRATOR, "POST", "/v1/admin/sites/plant-7/enrolment-codes", CODE)
    codes = world.backend.store.enrolment_codes
    assert codes.use(answer.json()["code_id"], "UA")
    assert codes.find(answer.json()["code_id"]).record.state_at(datetime.now(UTC) + timedelta(days=9)) == "used"
