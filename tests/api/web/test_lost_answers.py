"""PostgreSQL commits, and its answer is lost: a change is made once, and told as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.contracts.access.identity import Role
from services.round_store.database import lost_answers
from tests.api.conftest import MODEL, World, open_world
from tests.lost_answers import LossyServer, answers_lost

TOKENS, TRIGGER = "/v1/admin/tokens", f"/v1/admin/plans/{MODEL}/trigger"
BODY = {"name": "gateway", "role": "viewer"}


@pytest.fixture
def lossy(new_postgresql: Callable[[], str]) -> Iterator[LossyServer]:
    with answers_lost(new_postgresql()) as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, lossy: LossyServer, mlflow_settings: dict[str, str]) -> Iterator[World]:
    with open_world(tmp_path, lossy.url, mlflow_settings) as opened:
        yield opened


def ask(world: World, path: str, body: Any) -> Any:
    return world.call(Role.ADMINISTRATOR, "POST", path, body, headers={"Idempotency-Key": "mine"})


def made(world: World) -> int:
    return sum(token.name == "gateway" for token in world.backend.store.tokens.list_tokens())


@pytest.mark.parametrize("sign", [b"INSERT INTO api_tokens", b"INSERT INTO outcomes", b"UPDATE outcomes"])
def test_a_change_that_stands_is_answered(world: World, lossy: LossyServer, sign: bytes) -> None:
    """Also where the answer is lost by which the key is taken, or the outcome kept."""
    lossy.lose(sign)
    first, again = ask(world, TOKENS, BODY), ask(world, TOKENS, BODY)
    assert (first.status_code, again.status_code, lossy.lost) == (201, 201, 1), first.text
    assert first.json() == again.json() and made(world) == 1


def test_a_run_that_was_asked_for_is_told(world: World, lossy: LossyServer) -> None:
    lossy.lose(b"INSERT INTO runs")
    answer = ask(world, TRIGGER, {})
    assert (answer.status_code, lossy.lost) == (202, 1), answer.text
    assert [run.run_id for run in world.backend.store.runs.unfinished_runs(MODEL)] == [answer.json()["run_id"]]


def test_a_change_that_was_not_made_is_made_when_it_is_asked_for_again(world: World, lossy: LossyServer) -> None:
    lossy.lose(b"INSERT INTO api_tokens", carried=False)
    first, again = ask(world, TOKENS, BODY), ask(world, TOKENS, BODY)
    assert (first.json()["code"], again.status_code, made(world)) == ("database_cannot_open", 201, 1)


def test_a_key_whose_change_was_not_made_is_free_when_the_database_is_back(world: World, lossy: LossyServer) -> None:
    """It could not be given back while the database was away."""
    lossy.goes_away(b"INSERT INTO api_tokens")
    first, second = ask(world, TOKENS, BODY), ask(world, TOKENS, BODY)
    assert (first.status_code, second.status_code) == (503, 503)
    assert first.json()["code"] == "database_cannot_open"
    lossy.goes_on()
    assert (ask(world, TOKENS, BODY).status_code, made(world)) == (201, 1)


def test_a_change_of_which_nobody_knows_is_not_made_again(
    world: World, lossy: LossyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost_answers, "ASKING_SECONDS", 0.3)
    lossy.lose(b"INSERT INTO api_tokens", ends=True)
    first = ask(world, TOKENS, BODY)
    assert (first.status_code, first.json()["code"]) == (503, "database_commit_unknown")
    assert "look before you ask for it again" in first.json()["detail"] and "retry-after" not in first.headers
    lossy.goes_on()
    again = ask(world, TOKENS, BODY)
    assert (again.status_code, again.json()["code"], made(world)) == (409, "idempotency_unfinished", 1)
