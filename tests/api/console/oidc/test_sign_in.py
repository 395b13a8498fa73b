"""Signing in by a real issuer, in a browser's steps."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from api.console.sign_ins import COOKIE as SIGN_IN_COOKIE
from api.console.sign_ins import SECONDS
from api.web.sessions import IDLE
from services.contracts.access.identity import Role
from tests.api.console.oidc.conftest import BACK, START, Browser, bearer
from tests.api.console.test_sessions import aged
from tests.oidc_issuer import LocalIssuer
from tests.oracles.store_walk import all_columns


def test_signing_in_opens_a_session_like_every_other(world: Any, browser: Browser, issuer: LocalIssuer) -> None:
    page = browser.person.get("/console/sign-in?to=/console/runs")
    assert 'href="/console/sign-in/oidc?to=/console/runs"' in page.text and "Sign in by 127.0.0.1" in page.text
    answer = browser.sign_in("/console/runs?status=a b&x=é")
    assert answer.status_code == 200 and answer.headers["Refresh"].startswith("0; url=/console/runs?")
    assert "form-action 'self'" in answer.headers["Content-Security-Policy"]
    assert "SameSite=Strict" in answer.headers["set-cookie"] and browser.person.secret
    assert browser.person.get("/console/plans").status_code == 200
    assert browser.person.get("/console/admin").status_code == 403  # the crew operates
    event = world.backend.store.audit.list_events(limit=1)[0]
    assert (event.actor, event.role, event.action) == ("oidc:127.0.0.1:ada", Role.OPERATOR, "session.begin")
    assert browser.person.post("/console/plans/pumps/pause", reason="a look").status_code == 303
    assert world.backend.store.audit.list_events(limit=1)[0].actor == "oidc:127.0.0.1:ada"
    assert browser.person.post("/console/sign-out").status_code == 303
    assert browser.person.get("/console").status_code == 303


def test_a_session_by_the_issuer_that_is_used_is_not_idle(world: Any, browser: Browser) -> None:
    browser.sign_in()
    aged(world, last_used_at=-IDLE + timedelta(minutes=5))
    assert browser.person.get("/console").status_code == 200
    (session,) = world.backend.store.sessions.list_sessions()
    assert datetime.now(UTC) - session.last_used_at < timedelta(minutes=1)


def test_the_way_to_the_issuer_shows_it_no_more_than_a_digest_of_the_verifier(browser: Browser) -> None:
    answer = browser.begin()
    assert answer.status_code == 303
    asked = parse_qs(urlsplit(answer.headers["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and "code_verifier" not in asked
    assert {"Secure", "HttpOnly", "SameSite=Lax", "Path=/", f"Max-Age={SECONDS}"} <= set(
        answer.headers["set-cookie"].split("; "))
    assert SIGN_IN_COOKIE.startswith("__Host-")
    sealed = base64.urlsafe_b64decode(browser.kept)
    assert asked["state"][0].encode() not in sealed and asked["nonce"][0].encode() not in sealed


def test_the_store_keeps_no_token_of_the_issuer_and_sweeps_what_has_ended(
    world: Any, browser: Browser, issuer: LocalIssuer
) -> None:
    def rows() -> list[str]:
        return [token.name for token in world.backend.store.tokens.list_tokens() if token.name.startswith("oidc:")]

    for _ in range(3):
        browser.sign_in()
        assert len(rows()) == 1 and re.fullmatch(r"oidc:127\.0\.0\.1:ada #[0-9a-f]{12}", rows()[0])
        assert not any("eyJ" in str(cell.value) for cell in all_columns(world.backend.store.engine))
        browser.person.post("/console/sign-out")
    browser.sign_in()
    token = world.backend.store.tokens.list_tokens()[0]
    assert world.call(Role.ADMINISTRATOR, "POST", f"/v1/admin/tokens/{token.token_id}/revoke").status_code == 200
    assert browser.person.get("/console").status_code == 303


def test_an_answer_counts_once_and_in_the_browser_that_asked(
    world: Any, browser: Browser, somebody: Any, issuer: LocalIssuer
) -> None:
    back = browser.agree(browser.begin().headers["Location"])
    other = Browser(somebody(world))
    other.begin()
    for kept in ("", other.kept, browser.kept[:-8] + "AAAAAAA=", "no base64!"):
        assert Browser(somebody(world)).back(back, kept).status_code == 401
    state = parse_qs(urlsplit(back).query)["state"][0]
    assert browser.back(back.replace(state, "another")).status_code == 401
    assert browser.back(back).status_code == 200
    kept, fresh = browser.kept, Browser(somebody(world))
    assert fresh.back(back, kept).status_code == 401 and not fresh.person.secret
    # A new code of the issuer under the old state is no better.
    code = parse_qs(urlsplit(browser.agree(browser.begin().headers["Location"])).query)["code"][0]
    assert fresh.back(f"{BACK}?{urlencode({'code': code, 'state': state})}", kept).status_code == 401


def test_an_id_token_that_does_not_fit_opens_nothing(world: Any, browser: Browser, issuer: LocalIssuer) -> None:
    for claims, status in (
        ({"nonce": "of another sign-in"}, 401), ({"aud": "another"}, 401), ({"exp": 1}, 401), ({"roles": []}, 403),
        ({"iss": "https://evil.example.com"}, 401), ({"nonce": None}, 401),
    ):
        issuer.id_claims = claims
        answer = browser.sign_in()
        assert answer.status_code == status and not browser.person.secret, claims
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert world.backend.store.sessions.list_sessions() == [] and world.events() == []


def test_an_answer_that_is_not_of_this_sign_in_opens_nothing(browser: Browser) -> None:
    for changes in ({"code": "made-up"}, {"code": ""}, {"error": "access_denied"}, {"iss": "https://evil.example.com"}):
        back = urlsplit(browser.agree(browser.begin().headers["Location"]))
        asked = {name: values[0] for name, values in parse_qs(back.query).items()} | changes
        answer = browser.back(f"{BACK}?{urlencode(asked)}")
        assert answer.status_code == 401 and not browser.person.secret, changes
        assert "access_denied" not in answer.text


def test_a_session_from_before_is_not_taken_over(world: Any, somebody: Any, issuer: LocalIssuer) -> None:
    planted = "ab" * 32
    victim = Browser(somebody(world, secret=planted))
    assert victim.sign_in().status_code == 200 and victim.person.secret != planted
    assert somebody(world, secret=planted).get("/console").status_code == 303


def test_signing_in_again_ends_the_session_before_and_the_way_there_is_forgotten(
    world: Any, browser: Browser, somebody: Any
) -> None:
    first = browser.sign_in()
    dropped = [each for each in first.headers.get_list("set-cookie") if each.startswith(f"{SIGN_IN_COOKIE}=;")]
    assert len(dropped) == 1 and "Max-Age=0" in dropped[0], "the cookie that was sealed for the way is of no more use"
    assert {"Path=/", "Secure"} <= set(dropped[0].split("; ")), "of this prefix browsers take no other, and keep theirs"
    former = browser.person.secret
    browser.sign_in()
    assert somebody(world, secret=former).get("/console").status_code == 303
    assert browser.person.secret != former and browser.person.get("/console").status_code == 200


def test_an_issuer_that_is_away_leaves_the_tokens(world: Any, browser: Browser, issuer: LocalIssuer) -> None:
    back = browser.agree(browser.begin().headers["Location"])
    issuer.is_down = True
    answer = browser.back(back)
    assert answer.status_code == 503 and "sign in with a token" in answer.text and issuer.url not in answer.text
    refused = world.call(None, "GET", "/v1/models", headers=bearer(issuer.token()))
    assert (refused.status_code, refused.json()["code"]) == (503, "issuer_unavailable")
    assert "127.0.0.1" not in refused.text and refused.headers["Retry-After"]
    assert world.call(Role.VIEWER, "GET", "/v1/models").status_code == 200
    assert browser.person.sign_in(world.tokens[Role.VIEWER]).status_code == 303


def test_a_browser_is_sent_to_no_other_site(browser: Browser) -> None:
    answer = browser.sign_in("https://evil.example.com/console")
    assert answer.headers["Refresh"] == "0; url=/console"


@pytest.mark.parametrize(("length", "kept"), [(500, True), (3000, False), (20_000, False)])
def test_a_page_whose_address_no_cookie_holds_is_not_gone_back_to(browser: Browser, length: int, kept: bool) -> None:
    """A browser drops a cookie of more than 4096 characters, and the issuer's answer would be nobody's."""
    page = f"/console/audit?target={'é' * (length // 6)}"
    begun = browser.begin(page)
    assert len(begun.headers["Set-Cookie"]) <= 4096
    answer = browser.back(browser.agree(begun.headers["Location"]))
    assert answer.status_code == 200 and answer.headers["Refresh"].startswith("0; url=/console")
    assert ("/console/audit?target=" in answer.headers["Refresh"]) is kept


def test_after_ten_wrong_answers_an_address_waits(browser: Browser) -> None:
    codes = [browser.back(f"{BACK}?state=x&code=y", "").status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2


def test_without_an_issuer_there_is_no_button_and_no_address(shared_world: Any, somebody: Any) -> None:
    person = somebody(shared_world)
    assert "sign-in/oidc" not in person.get("/console/sign-in").text
    assert person.get(START).status_code == person.get(BACK).status_code == 404


def test_an_issuer_of_access_tokens_alone_signs_nobody_in(
    tmp_path: Path, filled_sqlite: Any, mlflow_settings: dict[str, str], opening: Callable[..., Any], somebody: Any,
    issuer: LocalIssuer,
) -> None:
    with opening(
        tmp_path, filled_sqlite.new(), mlflow_settings, known=filled_sqlite.tokens, oidc=issuer.settings()
    ) as world:
        person = somebody(world)
        assert "Sign in by" not in person.get("/console/sign-in").text
        for path in (START, f"{BACK}?code=a&state=b"):
            assert person.get(path).status_code == 404
        assert world.call(None, "GET", "/v1/models", headers=bearer(issuer.token(roles=["crew"]))).status_code == 200
