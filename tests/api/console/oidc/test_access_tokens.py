"""The issuer's access tokens at the API, beside our own."""

from __future__ import annotations

import re
from typing import Any

from api.web.sessions import digest, subject_of_sign_in
from services.contracts.access.identity import Role
from tests.api.console.oidc.conftest import Browser, bearer
from tests.oidc_issuer import LocalIssuer


def test_access_tokens_stand_beside_our_own(world: Any, issuer: LocalIssuer) -> None:
    for role, status in (("watchers", 403), ("crew", 200)):
        mine = bearer(issuer.token(sub="a-gateway", roles=[role]))
        assert world.call(None, "GET", "/v1/models", headers=mine).status_code == 200
        assert world.call(None, "POST", "/v1/admin/plans/pumps/pause", headers=mine).status_code == status
    assert world.backend.store.audit.list_events(limit=1)[0].actor == "oidc:127.0.0.1:a-gateway"
    nobody = world.call(None, "GET", "/v1/models", headers=bearer(issuer.token(roles=["visitors"])))
    assert (nobody.status_code, nobody.json()["code"]) == (403, "no_role")
    expired = world.call(None, "GET", "/v1/models", headers=bearer(issuer.token(exp=1)))
    assert (expired.status_code, expired.json()["code"]) == (401, "token_expired")
    for text in (issuer.token(aud="another"), "a.b.c", "nothing"):
        refused = world.call(None, "GET", "/v1/models", headers=bearer(text))
        assert (refused.status_code, refused.json()["detail"]) == (401, "this token does not hold")


def test_an_access_token_that_held_is_not_kept_waiting_by_others_that_do_not(world: Any, issuer: LocalIssuer) -> None:
    mine = bearer(issuer.token(sub="a-gateway", roles=["watchers"]))
    assert world.call(None, "GET", "/v1/models", headers=mine).status_code == 200
    wrong = [world.call(None, "GET", "/v1/models", headers=bearer("a.b.c")).status_code for _ in range(11)]
    assert wrong == [401] * 10 + [429]
    assert world.call(None, "GET", "/v1/models", headers=mine).status_code == 200


def test_a_hostile_subject_writes_one_line_into_the_trail(world: Any, issuer: LocalIssuer) -> None:
    mine = bearer(issuer.token(sub="x\n\x00\u202e<script>token:aaaa root" + "é" * 100))
    assert world.call(None, "POST", "/v1/admin/plans/pumps/pause", headers=mine).status_code == 200
    actor = world.backend.store.audit.list_events(limit=1)[0].actor
    assert re.fullmatch(r"oidc:127\.0\.0\.1:[\x21-\x7e]+~[0-9a-f]{16}", actor) and "<" not in actor
    assert world.call(Role.ADMINISTRATOR, "GET", "/v1/admin/audit/verify").status_code == 200


def test_no_token_of_ours_can_be_named_like_a_subject(world: Any, browser: Browser) -> None:
    from api.backend.actor import Actor
    from api.tokens import service
    from api.tokens.schemas import TokenRequest

    wanted = TokenRequest(name="oidc:127.0.0.1:ada #0123456789ab", role=Role.ADMINISTRATOR)
    made = service.create(world.backend, Actor("test", Role.ADMINISTRATOR), wanted)
    person = browser.person
    person.sign_in(made.token)
    assert world.backend.store.audit.list_events(limit=1)[0].actor.startswith(f"token:{made.token_id} ")
    token = world.backend.store.sessions.find(digest(person.secret))[1]
    assert token.name == wanted.name and subject_of_sign_in(token) == "", "nor is its session somebody's"


def test_the_same_change_twice_by_a_service_account(world: Any, issuer: LocalIssuer) -> None:
    key = {"Idempotency-Key": "once"}
    text = issuer.token()
    first = world.call(None, "POST", "/v1/admin/plans/pumps/trigger", headers=bearer(text) | key)
    again = world.call(None, "POST", "/v1/admin/plans/pumps/trigger", headers=bearer(text) | key)
    assert first.status_code == again.status_code == 202 and first.json() == again.json()
    renewed = world.call(None, "POST", "/v1/admin/plans/pumps/trigger", headers=bearer(issuer.token(jti="2")) | key)
    assert renewed.status_code == 409  # not made again; the first answer is sealed with the former token
    assert renewed.json()["code"] == "idempotency_other_token" and "look what was done" in renewed.json()["detail"]
    assert world.events().count("plan.trigger") == 1
