"""Sessions: opened by a token alone, ended by all that ends them, never given to anybody, and of no use elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update
from starlette.requests import Request

from api.console.endpoints import sessions
from api.console.endpoints.sessions import _on_loopback as on_loopback
from api.web.sessions import COOKIE, IDLE, LIFETIME, Sessions, digest
from services.contracts.access.identity import Role
from services.contracts.errors import UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc import Identity
from services.identity.tokens import issue
from services.round_store.tables.access import ConsoleSessionRow
from tests.api.console.conftest import STRANGE, text_of
from tests.api.console.test_roles import CHANGING, address
from tests.oracles.store_walk import all_columns


def test_the_cookie_is_bound_to_this_host_and_no_script_reads_it(world: Any, somebody: Any) -> None:
    answer = somebody(world).sign_in(world.tokens[Role.VIEWER])
    name, *rest = answer.headers["Set-Cookie"].split("; ")
    assert name.startswith(f"{COOKIE}=") and COOKIE.startswith("__Host-")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(rest)
    assert not any(part.startswith("Domain") for part in rest)


@pytest.mark.parametrize("other", STRANGE)
def test_a_strange_cookie_of_another_program_at_this_host_signs_nobody_out(
    world: Any, signed_in: Callable[..., Any], other: str
) -> None:
    """Ports share their cookies: whoever has one from a neighbour could not sign in, and nothing said why."""
    person = signed_in(world)
    both = f"{other}; {COOKIE}={person.secret}".encode()
    assert person.call("GET", "/console", headers={"Cookie": both}).status_code == 200


def test_the_store_knows_no_secret(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    cells = [str(cell.value) for cell in all_columns(world.backend.store.engine)]
    assert not any(person.secret in cell for cell in cells)
    assert any(digest(person.secret) in cell for cell in cells)


@pytest.mark.parametrize("token", ["", "nothing", f"blst_{'0' * 12}_{'0' * 64}"])
def test_what_is_no_token_opens_nothing(world: Any, somebody: Any, token: str) -> None:
    answer = somebody(world).sign_in(token)
    assert answer.status_code == 401 and "Set-Cookie" not in answer.headers
    assert world.backend.store.sessions.list_sessions() == []


def test_after_ten_wrong_tokens_an_address_waits(world: Any, somebody: Any) -> None:
    person = somebody(world)
    answers = [person.sign_in(f"blst_{number:012x}_{'0' * 64}").status_code for number in range(12)]
    assert answers[:10] == [401] * 10 and answers[-1] == 429


def test_a_secret_from_before_is_not_taken_over(world: Any, somebody: Any) -> None:
    """Session fixation: who plants a cookie in another's browser does not share the session that is opened there."""
    planted = "ab" * 32
    victim = somebody(world, secret=planted)
    assert victim.sign_in(world.tokens[Role.ADMINISTRATOR]).status_code == 303
    assert victim.secret != planted
    assert somebody(world, secret=planted).get("/console").status_code == 303


def test_signing_in_again_ends_the_session_before(world: Any, signed_in: Callable[..., Any], somebody: Any) -> None:
    person = signed_in(world)
    before = person.secret
    person.sign_in(world.tokens[Role.VIEWER])
    assert somebody(world, secret=before).get("/console").status_code == 303
    assert person.get("/console").status_code == 200
    assert world.events()[:3] == ["session.begin", "session.end", "session.begin"]
    person.sign_in(world.tokens[Role.VIEWER])
    assert world.events()[:3] == ["session.begin", "session.end", "session.begin"]


@pytest.mark.parametrize("way", ["sign out", "sign in anew"])
def test_no_session_ends_without_its_entry(
    world: Any, signed_in: Callable[..., Any], somebody: Any, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Both are one transaction: a process that dies between the two leaves the session as it was."""
    def away(*_: object, **__: object) -> None:
        raise UnavailableError("the database went away")

    person = signed_in(world)
    before = person.secret
    monkeypatch.setattr(sessions, "record", away)
    if way == "sign out":
        assert person.post("/console/sign-out").status_code == 503
    else:
        assert person.sign_in(world.tokens[Role.VIEWER]).status_code == 503
    assert somebody(world, secret=before).get("/console").status_code == 200


def test_signing_out_ends_the_session_for_good(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    answer = person.post("/console/sign-out")
    assert answer.status_code == 303 and "Max-Age=0" in answer.headers["Set-Cookie"]
    assert person.get("/console").status_code == 303
    assert world.events()[:2] == ["session.end", "session.begin"]
    assert answer.headers["Clear-Site-Data"] == '"cache"', "what the browser kept of the pages goes too"
    assert world.call(Role.ADMINISTRATOR, "GET", "/v1/models").status_code == 200, "the token itself holds"


def aged(world: Any, **columns: timedelta) -> None:
    now = datetime.now(UTC)
    with world.backend.store.database.write() as session:
        session.execute(update(ConsoleSessionRow).values({name: now + by for name, by in columns.items()}))


@pytest.mark.parametrize(
    "columns", [
        {"expires_at": timedelta(seconds=-1)}, {"last_used_at": -IDLE - timedelta(seconds=1)},
        {"last_used_at": timedelta(days=1), "expires_at": timedelta(days=1) + LIFETIME},  # the clock was put back
    ], ids=str
)
def test_a_session_ends_by_the_clock(world: Any, signed_in: Callable[..., Any], columns: dict[str, timedelta]) -> None:
    person = signed_in(world)
    assert person.get("/console").status_code == 200
    aged(world, **columns)
    assert person.get("/console").status_code == 303
    assert person.get("/v1/models").status_code == 401


def test_a_session_that_is_used_is_not_idle(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    aged(world, last_used_at=-IDLE + timedelta(minutes=5))
    person.get("/console")
    session = world.backend.store.sessions.list_sessions()[0]
    assert datetime.now(UTC) - session.last_used_at < timedelta(minutes=1)
    assert session.expires_at - session.created_at == LIFETIME


def test_two_sessions_of_one_token_are_each_kept_in_use(world: Any, signed_in: Callable[..., Any]) -> None:
    """Of one browser's use nothing follows for the other's; each is noted, the one within the other's minute too."""
    people = [signed_in(world, Role.VIEWER) for _ in range(2)]
    aged(world, last_used_at=-IDLE + timedelta(minutes=5))
    for person in people:
        assert person.get("/console").status_code == 200
    now = datetime.now(UTC)
    used = [now - session.last_used_at for session in world.backend.store.sessions.list_sessions()]
    assert len(used) == 2 and max(used) < timedelta(minutes=1)


def test_a_session_ends_with_its_token_and_by_an_administrator(world: Any, signed_in: Callable[..., Any]) -> None:
    ada, viewer, operator = (signed_in(world, role) for role in (Role.ADMINISTRATOR, Role.VIEWER, Role.OPERATOR))
    tokens = {token.role: token.token_id for token in world.backend.store.tokens.list_tokens()}
    assert ada.post(f"/console/admin/tokens/{tokens[Role.VIEWER]}/revoke").status_code == 303
    assert viewer.get("/console").status_code == 303
    theirs = digest(operator.secret)[:16]
    assert theirs[:8] in ada.get("/console/admin").text
    assert ada.post(f"/console/admin/sessions/{theirs}/end").status_code == 303
    assert operator.get("/console").status_code == 303
    assert ada.post("/console/admin/sessions/%25/end").status_code == 404, "no pattern ends them all"
    assert ada.get("/console").status_code == 200
    assert {"session.end", "token.revoke"} <= set(world.events())


def test_an_expired_token_opens_no_session(world: Any, somebody: Any) -> None:
    old = issue("old", Role.VIEWER, datetime.now(UTC) - timedelta(days=2), timedelta(days=1))
    world.backend.store.tokens.add(old.stored)
    assert somebody(world).sign_in(old.text).status_code == 401


@pytest.mark.parametrize(
    "to", [
        "https://evil.example", "//evil.example", "/console//evil.example", "/consolex", "javascript:alert(1)", "/",
        "/console/\\evil.example", "/console/\x7f", "/console/\u2028x",
    ]
)
def test_signing_in_leads_nowhere_else(world: Any, somebody: Any, to: str) -> None:
    assert somebody(world).sign_in(world.tokens[Role.VIEWER], to=to).headers["Location"] == "/console"


def test_signing_in_leads_back_to_the_page_that_was_asked_for(world: Any, somebody: Any) -> None:
    person = somebody(world)
    asked = person.get("/console/runs?plan=pumps")
    assert asked.headers["Location"] == "/console/sign-in?to=/console/runs%3Fplan%3Dpumps"
    assert 'value="/console/runs?plan=pumps"' in person.get(asked.headers["Location"]).text
    answer = person.sign_in(world.tokens[Role.VIEWER], to="/console/runs?plan=pumps")
    assert answer.headers["Location"] == "/console/runs?plan=pumps"


def test_signing_in_leads_to_no_form_that_was_sent_without_a_session(world: Any, somebody: Any) -> None:
    """An address that takes a form alone would answer a reader 405, and a form is not sent again."""
    origin = {"Origin": "https://ballast"}
    elsewhere = "https://evil.example/console/plans/pumps"
    for page in (
        None, "https://ballast/console/plans/pumps/check", elsewhere, "https://ballast/console//evil.example", "https://[",
    ):
        headers = origin if page is None else origin | {"Referer": page}
        asked = somebody(world).call("POST", "/console/plans/pumps/pause", headers=headers)
        assert (asked.status_code, asked.headers["Location"]) == (303, "/console/sign-in?to=/console&unsent=true"), page


def test_a_form_that_a_session_did_not_live_to_see_is_said_to_be_not_done(world: Any, somebody: Any) -> None:
    headers = {"Origin": "https://ballast", "Referer": "https://ballast/console/runs?plan=pumps"}
    before, person = world.snapshot(), somebody(world)
    asked = person.call("POST", "/console/plans/pumps/pause", headers=headers)
    assert asked.headers["Location"] == "/console/sign-in?to=/console/runs%3Fplan%3Dpumps&unsent=true"
    page = person.get(asked.headers["Location"])
    assert "nothing of what you sent was done" in text_of(page) and 'value="/console/runs?plan=pumps"' in page.text
    assert "was done" not in text_of(person.get("/console/sign-in")) and world.snapshot() == before


def test_a_part_of_a_page_that_is_sent_without_a_session_leaves_the_page(world: Any, somebody: Any) -> None:
    """A plan's text is checked by a script: sent off to sign in, its writer would have lost it."""
    headers = {"Origin": "https://ballast", "HX-Request": "true"}
    answer = somebody(world).call("POST", "/console/plans/pumps/check", data={"text": "name = 1"}, headers=headers)
    assert answer.status_code == 401 and "HX-Redirect" not in answer.headers
    assert "Your session has ended, and nothing was done" in text_of(answer)


def test_a_link_that_signs_in_by_itself_is_for_readers_at_this_host_alone() -> None:
    def asked(server: tuple[str, int] | None) -> Request:
        return Request({"type": "http", "server": server, "headers": []})

    assert on_loopback(asked(("127.0.0.1", 8000))) and on_loopback(asked(("::1", 8000)))
    assert not any(on_loopback(asked(server)) for server in (("192.168.0.7", 8000), ("oem.example", 443), None))


def test_part_of_a_page_sends_the_whole_browser_to_sign_in(world: Any, somebody: Any) -> None:
    """What a script asked for would else have the form of signing in put into the middle of the page."""
    answer = somebody(world).get("/console/plans/pumps", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (401, "/console/sign-in?to=/console/plans/pumps")
    assert "Location" not in answer.headers


def test_below_v1_a_session_reads_and_changes_nothing(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    assert person.get("/v1/models").status_code == 200
    assert person.get("/v1/models/pumps/versions/1/fairness.html").status_code == 200
    before = world.snapshot()
    answer = person.call("POST", "/v1/admin/plans/pumps/trigger", json={}, headers={"Origin": "https://ballast"})
    assert answer.status_code == 401 and world.snapshot() == before
    assert signed_in(world, Role.VIEWER).get("/v1/admin/audit").status_code == 403


@pytest.fixture(scope="module")
def another(shared_world: Any, signed_in: Callable[..., Any]) -> Any:
    return signed_in(shared_world)


@pytest.mark.parametrize("path", CHANGING)
def test_a_forged_form_changes_nothing(shared_world: Any, people: Any, another: Any, path: str) -> None:
    person, other = people[Role.ADMINISTRATOR], another
    before = shared_world.snapshot()
    for forged in (
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": None}, {"token": ""}, {"token": "0" * 64},
        {"token": other.form_token()},
    ):
        assert person.post(address(path), **forged).status_code == 403, forged
    headers = {"Origin": "https://ballast", "Sec-Fetch-Site": "cross-site"}
    data = {"form_token": person.form_token()}
    assert person.call("POST", address(path), data=data, headers=headers).status_code == 403
    assert shared_world.snapshot() == before
    assert person.get("/console").status_code == 200


def test_nobody_is_signed_in_from_elsewhere(world: Any, somebody: Any) -> None:
    """Or an attacker could have a victim work in the attacker's session."""
    for origin in ("https://evil.example", "null", None, "https://[", "https://[ballast]", ""):
        person = somebody(world)
        assert person.sign_in(world.tokens[Role.VIEWER], origin=origin).status_code == 403
        assert person.secret == ""


def test_a_proxy_that_names_another_host_is_told_apart_from_a_page_of_elsewhere(world: Any, somebody: Any) -> None:
    """Refused all the same; the line says what to set at the proxy."""
    data = {"token": world.tokens[Role.VIEWER], "to": "/console"}
    for origin, site, said in (
        ("https://ballast.example.com", "same-origin", "a proxy on the way must hand the Host of a request on"),
        ("https://evil.example", "cross-site", "was not sent from a page of this console"),
        ("null", "same-origin", "was not sent from a page of this console"),
    ):
        headers = {"Origin": origin, "Sec-Fetch-Site": site}
        answer = somebody(world).call("POST", "/console/sign-in", data=data, headers=headers)
        assert answer.status_code == 403 and said in text_of(answer), origin
        assert "set-cookie" not in answer.headers


def test_a_form_is_a_form(world: Any, signed_in: Callable[..., Any]) -> None:
    person = signed_in(world)
    told = {"form_token": person.form_token()}
    for content in ("application/json", "text/plain", "multipart/form-data"):
        headers = {"Origin": "https://ballast", "Content-Type": content}
        answer = person.call("POST", "/console/plans/pumps/pause", content=str(told), headers=headers)
        assert answer.status_code == 415, content


@pytest.mark.parametrize(("lifetime", "idle"), [(timedelta(hours=2), timedelta(days=1)), (timedelta(days=1), IDLE)])
def test_a_session_holds_until_its_end_and_not_at_it(
    world: Any, monkeypatch: pytest.MonkeyPatch, lifetime: timedelta, idle: timedelta
) -> None:
    store = world.backend.store
    sessions = Sessions(store, lifetime=lifetime, idle=idle)
    token = store.tokens.add(issue("ada", Role.VIEWER, datetime.now(UTC)).stored)
    secret = sessions.begin(token)
    session, _ = store.sessions.find(digest(secret))
    end = min(session.expires_at, session.last_used_at + idle)

    def at(moment: datetime) -> None:
        clock = type("Clock", (datetime,), {"now": classmethod(lambda cls, zone=None: moment)})
        monkeypatch.setattr("api.web.sessions.datetime", clock)

    at(end - timedelta(microseconds=1))
    assert sessions.token(secret) == token
    at(end)
    with pytest.raises(UnauthenticatedError, match="has ended"):
        sessions.token(secret)


def test_what_stands_behind_a_sign_in_ends_with_its_session(world: Any) -> None:
    """No session is left of a token that holds for ever: it would stay in the list of tokens."""
    now, store = datetime.now(UTC), world.backend.store
    who = Identity("oidc:id.example:ada", "oidc-1", Role.VIEWER, now, now + timedelta(minutes=5))
    secret, token = Sessions(store).begin_signed_in(who)
    session, stored = store.sessions.find(digest(secret))
    assert stored == token and token.expires_at is not None
    assert abs(token.expires_at - session.expires_at) < timedelta(minutes=1) < LIFETIME


def test_a_session_and_its_entry_in_the_trail_are_made_together(
    world: Any, somebody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two, a process left a session that ``ballast doctor`` takes for a stranger's."""
    def full(*_: Any, **__: Any) -> None:
        raise UnavailableError("the database has no room left")

    monkeypatch.setattr("api.console.endpoints.sessions.record", full)
    answer = somebody(world).sign_in(world.tokens[Role.VIEWER])
    assert answer.status_code == 503 and "Set-Cookie" not in answer.headers
    assert world.backend.store.sessions.list_sessions() == []
