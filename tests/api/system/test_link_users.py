"""Whom the NATS server lets in: no plant by a key of the OEM's, and nobody by what it read before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from api.system import link_users
from services.contracts.errors import UnavailableError
from services.contracts.history.site import Site

NOW = datetime(2031, 1, 2, tzinfo=UTC)
OURS = "UOEM"


def site(number: int, key: str, **changes: Any) -> Site:
    return Site.model_validate({
        "site_id": f"plant-{number}", "public_key": key, "enrolled_at": NOW, "updated_at": NOW,
    } | changes)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """What is found: (state, words) for each finding."""
    def find(
        *sites: Site, keys: Any = frozenset({OURS}), runs: bool = True, refused: str = "", servers: Any = ()
    ) -> list[tuple[str, str]]:
        def oem_keys(_: Any) -> Any:
            if isinstance(keys, Exception):
                raise keys
            return keys

        monkeypatch.setattr(link_users, "oem_keys", oem_keys)
        monkeypatch.setattr(link_users, "running_pid", lambda _: 7 if runs else None)
        monkeypatch.setattr(link_users, "refused_reload", lambda _: refused)
        backend: Any = SimpleNamespace(
            settings=SimpleNamespace(bus_folder=tmp_path, nats=SimpleNamespace(servers=servers)),
            store=SimpleNamespace(sites=SimpleNamespace(list_sites=lambda: list(sites))),
        )
        return [(each.state, f"{each.said}; {each.todo}") for each in link_users.link_users(backend, NOW)]

    return find


def test_plants_with_keys_of_their_own_are_well(told: Any) -> None:
    ((state, said),) = told(site(1, "UA"), site(2, "UB"), site(3, OURS, status="removed"))
    assert state == "ok" and said.startswith("2 plants enrolled, none with a key of the OEM's")


def test_a_plant_that_bears_a_key_of_the_oems_now_is_named_with_what_to_do(told: Any) -> None:
    """The former key of a plant counts as long as it holds."""
    former = {"former_key": OURS, "former_key_until": NOW + timedelta(hours=1)}
    ((state, said),) = told(site(1, "UA"), site(2, OURS), site(3, "UC", **former))
    assert state == "fail" and said.startswith("plant-2, plant-3 bears a key of the OEM's own")
    assert "`ballast site remove plant-2`, `ballast site remove plant-3`" in said
    ((state, _),) = told(site(3, "UC", **former | {"former_key_until": NOW - timedelta(hours=1)}))
    assert state == "ok"


def test_users_that_a_running_server_refused_are_said_of_a_server_that_is_ours(told: Any) -> None:
    ((state, said),) = told(site(1, "UA"), refused="line 7: no such user")
    assert state == "fail" and "it refused the last: line 7: no such user" in said
    assert [each[0] for each in told(site(1, "UA"), refused="line 7", runs=False)] == ["ok"]
    assert told(site(1, "UA"), refused="line 7", servers=("tls://elsewhere:4222",)) == []


@pytest.mark.parametrize("keys", [frozenset(), OSError("x"), ValueError("x"), UnavailableError("x")])
def test_what_is_wrong_with_our_own_key_is_found_elsewhere(told: Any, keys: Any) -> None:
    assert told(site(1, "UA"), keys=keys) == []
