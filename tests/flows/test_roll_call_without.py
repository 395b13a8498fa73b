"""The roll call without a plant link: whose hellos are heard, and that looking goes on while a store is away."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from flows import roll_call
from flows.roll_call import RollCall
from services.contracts.errors import NotFoundError, UnavailableError
from services.contracts.history.site import Site
from tests.waiting import PATIENCE

NOW = datetime(2031, 1, 1, tzinfo=UTC)


def calls(sites: Any) -> RollCall:
    context: Any = SimpleNamespace(store=SimpleNamespace(sites=sites))
    transport: Any = SimpleNamespace()
    return RollCall(context, transport)


@pytest.mark.parametrize(("status", "heard"), [("active", True), ("suspended", False), ("removed", False)])
def test_hellos_are_heard_of_active_plants_alone(status: str, heard: bool) -> None:
    site = Site.model_validate(
        {"site_id": "a", "public_key": "U", "enrolled_at": NOW, "updated_at": NOW, "status": status}
    )
    assert bool(calls(SimpleNamespace(get=lambda _: site))._key_of("a")) is heard


def test_a_plant_that_nobody_knows_has_no_key() -> None:
    def unknown(_: str) -> Site:
        raise NotFoundError("no such site")

    assert calls(SimpleNamespace(get=unknown))._key_of("a") is None


async def test_who_is_there_is_looked_at_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roll_call, "LOOK_SECONDS", 0.0)
    looks, again = list[int](), asyncio.Event()

    def away(**_: object) -> list[Site]:
        looks.append(1)
        if len(looks) == 3:
            again.set()
        raise UnavailableError("the database does not answer", code="database_away")

    watch = asyncio.create_task(calls(SimpleNamespace(list_sites=away)).watch())
    third = asyncio.create_task(again.wait())
    await asyncio.wait({watch, third}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
    assert third.done() and not watch.done()
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    assert "who is there is not known: the database does not answer" in caplog.text
