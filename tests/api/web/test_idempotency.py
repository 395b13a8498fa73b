"""The same change with the same key is made once and answered twice."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from nacl.exceptions import CryptoError
from sqlalchemy import update

from api.app import api_routes
from api.web.idempotency import CHANGES, METHODS, _box
from api.web.openapi import permission_of
from services.contracts.access.identity import Role
from services.contracts.errors import UnavailableError
from services.identity import tokens
from services.identity.roles import Permission
from services.round_store.database.failures import COMMIT_UNKNOWN
from services.round_store.tables.operation import OutcomeRow
from tests.oracles.store_walk import all_columns
from tests.waiting import PATIENCE, wait_until

TOKENS = "/v1/admin/tokens"
BODY = {"name": "gateway", "role": "viewer"}


def ask(world: Any, key: str | None, body: Any = BODY, role: Role = Role.ADMINISTRATOR, **more: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    path, method = more.pop("path", TOKENS), more.pop("method", "POST")
    return world.call(role, method, path, body, headers=headers | more.pop("headers", {}), **more)


def test_every_change_of_the_api_is_below_the_address_that_takes_keys() -> None:
    changes = [route for route in api_routes() if METHODS & route.methods and route.path.startswith("/v1")]
    assert changes
    for route in changes:
        assert route.path.startswith(CHANGES) or permission_of(route) is Permission.DIAGNOSE, route.path


def test_a_change_is_made_once_and_answered_alike(any_world: Any) -> None:
    first, again = ask(any_world, "k1"), ask(any_world, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content and first.headers["content-type"] == again.headers["content-type"]
    assert "Idempotent-Replayed" not in first.headers and again.headers["Idempotent-Replayed"] == "true"
    assert any_world.events() == ["token.create"]
    cells = [cell.value for cell in all_columns(any_world.backend.store.engine)]
    secret = first.json()["token"].rpartition("_")[2].encode()
    assert not any(secret in (cell if isinstance(cell, bytes) else str(cell).encode()) for cell in cells)


def test_a_refusal_is_kept_too_and_a_key_is_for_one_request(world: Any) -> None:
    assert ask(world, None).status_code == 201
    taken = ask(world, "k1")
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    other = ask(world, "k1", BODY | {"name": "other"})
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    for more in (
        {"path": f"{TOKENS}?x=1"}, {"headers": {"If-Match": "*"}}, {"path": "/v1/admin/plans"}, {"method": "PUT"},
    ):
        assert ask(world, "k1", **more).json()["code"] == "idempotency_mismatch", more
    again = ask(world, "k1")
    assert again.content == taken.content and again.headers["content-type"] == "application/problem+json"


def test_what_was_answered_is_answered_with_its_entity_tag(world: Any) -> None:
    """Who asks again because an answer was lost needs the tag for the next change."""
    plan = {"name": "nightly", "asset_type": "triplex-pump", "reveal": "each site"}
    assert ask(world, None, plan, path="/v1/admin/plans").status_code == 201
    asked = {"path": "/v1/admin/plans/nightly", "method": "PUT"}
    first, again = (ask(world, "k1", plan | {"gap": 0.5}, headers={"If-Match": "*"}, **asked) for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200), again.text
    now = world.call(Role.ADMINISTRATOR, "GET", "/v1/admin/plans/nightly").headers["ETag"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["ETag"] == first.headers["ETag"] == now


def test_what_is_taken_away_is_taken_away_once(world: Any) -> None:
    """The second one would find nothing."""
    plan = {"name": "nightly", "asset_type": "triplex-pump"}
    assert ask(world, None, plan, path="/v1/admin/plans").status_code == 201
    asked = {"path": "/v1/admin/plans/nightly", "method": "DELETE", "headers": {"If-Match": "*"}}
    gone, again = (ask(world, "k1", None, **asked | {"headers": {"If-Match": "*"}}) for _ in range(2))
    assert (gone.status_code, again.status_code) == (200, 200), again.text
    assert again.content == gone.content and again.headers["Idempotent-Replayed"] == "true"
    assert ask(world, "k2", None, **asked).status_code == 404


def test_what_stands_in_another_part_of_a_request_makes_it_another(world: Any) -> None:
    """All parts after one another are the same text: header and body, address and header."""
    body, path = json.dumps(BODY), "/v1/admin/plans/nightly"
    assert ask(world, "k1", None, content=body, headers={"If-Match": "*"}).status_code == 415
    assert ask(world, "k1", None, path=path, method="DELETE", headers={"If-Match": "*"}).status_code == 404
    for more in ({"content": "*", "headers": {}}, {"path": f"{path}*", "headers": {}}):
        other = ask(world, "k1", None, **{"path": path, "method": "DELETE"} | more)
        assert other.json()["code"] == "idempotency_mismatch", other.text


def test_a_body_of_another_kind_may_be_sent_again_as_what_it_is(world: Any) -> None:
    body = json.dumps(BODY)
    assert ask(world, "k1", None, content=body, headers={"Content-Type": "text/plain"}).status_code == 415
    assert ask(world, "k1", None, content=body, headers={"Content-Type": "application/json"}).status_code == 201


def test_a_key_belongs_to_the_token_that_sent_it(world: Any) -> None:
    plan = {"name": "nightly", "asset_type": "triplex-pump"}
    assert ask(world, "k1", plan, path="/v1/admin/plans").status_code == 201
    paused = ask(world, "k1", {}, Role.OPERATOR, path="/v1/admin/plans/nightly/pause")
    assert (paused.status_code, paused.json()["paused"]) == (200, True)


def test_what_was_not_let_in_is_not_kept(world: Any) -> None:
    assert ask(world, "k1", BODY, Role.VIEWER).status_code == 403
    assert ask(world, "k1", None, Role.VIEWER, content=b"x").status_code == 403, "not of another request"
    before = world.snapshot()
    for key in ("", "x" * 256, "a\tb"):
        answer = ask(world, key)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert world.snapshot() == before


def test_a_failure_of_the_server_may_be_tried_again(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for error, status in ((RuntimeError("broken"), 500), (UnavailableError("a server is away"), 503)):

        def fail(*_: Any, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as broken:
            broken.setattr("api.tokens.service.issue", fail)
            assert ask(world, "k1").status_code == status
    assert ask(world, "k1").status_code == 201


@pytest.mark.parametrize(("code", "status"), [("database_cannot_open", 201), (COMMIT_UNKNOWN, 409)])
def test_a_key_that_could_not_be_given_back_is_so_later_unless_somebody_may_have_it_by_then(
    world: Any, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    """Of the second nobody knows whether it is free: another request may have taken it, and be on its way."""
    def away(*_: Any, **__: Any) -> None:
        raise UnavailableError("the store is away", code=code)

    with monkeypatch.context() as broken:
        broken.setattr("api.tokens.service.issue", lambda *_: (_ for _ in ()).throw(UnavailableError("away")))
        broken.setattr("api.web.idempotency._forget", away)
        assert ask(world, "k1").status_code == 503
    assert ask(world, "k1").status_code == status


def test_what_is_kept_is_opened_by_the_same_token_and_key_alone() -> None:
    sealed = _box("Bearer one", "k1").encrypt(b"shown once")
    assert _box("bearer  one ", "k1").decrypt(sealed) == b"shown once"
    for token, key in (("Bearer two", "k1"), ("Bearer one", "k2"), ("", "k1")):
        with pytest.raises(CryptoError):
            _box(token, key).decrypt(sealed)


def test_a_request_that_was_cut_short_takes_no_key(world: Any, server: str) -> None:
    address, body = urlsplit(server), json.dumps(BODY).encode()
    headers = {"Authorization": f"Bearer {world.tokens[Role.ADMINISTRATOR]}", "Idempotency-Key": "k1",
               "Content-Type": "application/json", "Host": address.netloc, "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((address.hostname, address.port)) as cut:
        cut.sendall(f"POST {TOKENS} HTTP/1.1\r\n{head}\r\n".encode() + body[:10])
        cut.shutdown(socket.SHUT_WR)
        assert cut.recv(1000) == b"", "the server has seen that nothing more comes"
    again = httpx.post(server + TOKENS, content=body, headers=headers)
    assert again.status_code == 201, again.text
    assert world.events() == ["token.create"]


def test_a_change_in_whose_midst_the_server_stops_is_not_made_again(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that stops cancels the request, not the thread in it, which may make the change yet."""
    begun, stopped, issue = threading.Event(), threading.Event(), tokens.issue

    def slowly(*arguments: Any) -> Any:
        begun.set()
        stopped.wait(PATIENCE)
        return issue(*arguments)

    async def stop() -> None:
        headers = {"Authorization": f"Bearer {world.tokens[Role.ADMINISTRATOR]}", "Idempotency-Key": "k1"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://ballast") as client:
            request = asyncio.create_task(client.post(TOKENS, json=BODY, headers=headers))
            await asyncio.to_thread(begun.wait, PATIENCE)
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
        stopped.set()

    with monkeypatch.context() as slow:
        slow.setattr("api.tokens.service.issue", slowly)
        world.portal.call(stop)
        wait_until(lambda: world.events() == ["token.create"], "the change")
    again = ask(world, "k1")
    assert (again.status_code, again.json()["code"]) == (409, "idempotency_unfinished"), again.text
    assert world.events() == ["token.create"]


def test_of_several_at_the_same_time_one_makes_the_change(any_world: Any) -> None:
    async def all_at_once() -> list[Any]:
        loop = asyncio.get_running_loop()
        return list(await asyncio.gather(*[loop.run_in_executor(None, ask, any_world, "k1") for _ in range(4)]))

    answers = asyncio.run(all_at_once())
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.content for answer in answers if answer.status_code == 201}) == 1
    assert any_world.events() == ["token.create"]


def test_one_that_never_ended_is_not_done_again_and_after_a_day_a_key_is_free(world: Any) -> None:
    assert ask(world, "k1").status_code == 201

    def change(**values: Any) -> None:
        with world.backend.store.database.write() as session:
            session.execute(update(OutcomeRow).values(**values))

    change(sealed=None)
    unfinished = ask(world, "k1")
    assert (unfinished.status_code, unfinished.json()["code"]) == (409, "idempotency_unfinished")
    change(created_at=datetime.now(UTC) - timedelta(hours=25))
    assert ask(world, "k1", BODY | {"name": "next day"}).status_code == 201
