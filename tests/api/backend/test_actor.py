"""Who is named in the trail for a command of the host, and what an entry keeps of a change."""

from __future__ import annotations

import getpass
from types import SimpleNamespace
from typing import Any

import pytest

from api.backend.actor import Actor, local_administrator, record
from services.contracts.access.identity import Role
from services.contracts.plans.waiting import Waiting


@pytest.mark.parametrize(("error", "name"), [
    (None, "cli:ada"), (KeyError("uid 1000"), "cli:unknown"), (OSError("No username"), "cli:unknown"),
])
def test_a_command_is_its_users_also_where_the_user_has_no_name(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, name: str
) -> None:
    """As in a container that runs under a number."""
    def user() -> str:
        if error is not None:
            raise error
        return "ada"

    monkeypatch.setattr(getpass, "getuser", user)
    assert local_administrator() == Actor(name, Role.ADMINISTRATOR)


def test_an_entry_has_what_was_and_what_is_who_and_why() -> None:
    kept: list[dict[str, Any]] = []
    store: Any = SimpleNamespace(audit=SimpleNamespace(append=lambda **entry: kept.append(entry)))
    record(store, Actor("cli:ada", Role.OPERATOR), "x.change", "x:1", before={"a": 1}, after=Waiting(enough=1.0),
           reason="slow")
    record(store, Actor("cli:ada", Role.VIEWER), "x.end", "x:1")
    assert kept[0] == {
        "actor": "cli:ada", "role": Role.OPERATOR, "action": "x.change", "target": "x:1", "reason": "slow",
        "before": {"a": 1}, "after": Waiting(enough=1.0).model_dump(mode="json"),
    }
    assert (kept[1]["before"], kept[1]["after"], kept[1]["reason"]) == (None, None, "")
