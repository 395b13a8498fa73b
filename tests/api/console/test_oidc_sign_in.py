"""Signing in by a real issuer, in a browser's steps, and its access tokens at the API beside our own."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from api.backend.wiring import open_backend
from api.console.sign_ins import COOKIE as SIGN_IN_COOKIE
from api.console.sign_ins import SECONDS, SignIns, sign_in_key
from api.web.sessions import COOKIE, digest, subject_of_sign_in
from services.contracts.access.identity import Role
from services.identity.errors import UnauthenticatedError
from services.identity.service_keys import PSEUDONYMS
from tests.oidc_issuer import CLIENT, CONSOLE, SECRET, LocalIssuer, local_issuer
from tests.oracles.store_walk import all_columns

START = "/console/sign-in/oidc"
BACK = f"{START}/callback"


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as opened:
        yield opened


@pytest.fixture
def world(
    tmp_path: Path, new_sqlite: Callable[[], str], mlflow_settings: dict[str, str], opening: Callable[..., Any],
    issuer: LocalIssuer,
) -> Iterator[Any]:
    (tmp_path / "client-secret").write_text(f"{SECRET}\n", encoding="utf-8")
    stated = issuer.settings(client_id=CLIENT, console_url=CONSOLE, client_secret_file=str(tmp_path / "client-secret"))
    with opening(tmp_path, new_sqlite(), mlflow_settings, oidc=stated) as opened:
        yield opened


def cookie_of(answer: httpx.Response, name: str) -> str:
    found = re.search(rf"{name}=([^;]*);", answer.headers.get("set-cookie", ""))
    return found[1] if found else ""


class Browser:
    """Follows the redirects between the console and the issuer, and keeps the cookies of the console."""

    def __init__(self, person: Any) -> None:
        self.person = person
        self.kept = ""

    def begin(self, to: str = "/console") -> httpx.Response:
        answer = self.person.call("GET", f"{START}?{urlencode({'to': to})}")
        self.kept = cookie_of(answer, SIGN_IN_COOKIE)
        return answer

    def agree(self, address: str) -> str:
        """Go to the issuer; where it sends the browser back to, without the host."""
        back = urlsplit(httpx.get(address, follow_redirects=False).headers["Location"])
        return f"{back.path}?{back.query}"

    def back(self, address: str, kept: str | None = None) -> httpx.Response:
        held = self.kept if kept is None else kept
        cookies = f"{SIGN_IN_COOKIE}={held}" + (f"; {COOKIE}={self.person.secret}" if self.person.secret else "")
        answer = self.person.call("GET", address, headers={"Cookie": cookies})
        self.person.secret = cookie_of(answer, COOKIE) or self.person.secret
        return answer

    def sign_in(self, to: str = "/console") -> httpx.Response:
        return self.back(self.agree(self.begin(to).headers["Location"]))


@pytest.fixture
def browser(world: Any, somebody: Any) -> Browser:
    return Browser(somebody(world))


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


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


def test_after_ten_wrong_answers_an_address_waits(browser: Browser) -> None:
    codes = [browser.back(f"{BACK}?state=x&code=y", "").status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2


def test_without_an_issuer_there_is_no_button_and_no_address(shared_world: Any, somebody: Any) -> None:
    person = somebody(shared_world)
    assert "sign-in/oidc" not in person.get("/console/sign-in").text
    assert person.get(START).status_code == person.get(BACK).status_code == 404


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


KEY = bytes(32)


def test_a_sign_in_ends_once() -> None:
    """Whatever code comes with it: a second time the issuer is not even asked."""
    held = SignIns(lambda: KEY)
    made, header = held.begin("/console")
    cookie = header.partition(";")[0]
    assert held.end(cookie, made.state) == made
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)


def test_of_ended_sign_ins_no_more_are_remembered_than_may_come_back(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those whose cookie has ended anyway go, and of more than so many the first ones."""
    monkeypatch.setattr("api.console.sign_ins.MOST_USED", 3)
    now = [1000.0]
    held = SignIns(lambda: KEY, clock=lambda: now[0])
    for number in range(5):
        made, header = held.begin("/console")
        held.end(header.partition(";")[0], made.state)
        assert len(held._used) == min(number + 1, 3)
    now[0] += SECONDS
    made, header = held.begin("/console")
    held.end(header.partition(";")[0], made.state)
    assert list(held._used) == [made.state]


def test_a_cookie_ends_by_the_clock_and_with_its_key() -> None:
    now, keys = [1000.0], [KEY]
    held = SignIns(lambda: keys[0], clock=lambda: now[0])
    made, header = held.begin("/console")
    cookie = header.partition(";")[0]
    assert SignIns(lambda: KEY, clock=lambda: now[0]).end(cookie, made.state) == made
    now[0] += SECONDS
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)
    now[0] -= 1
    keys[0] = bytes.fromhex("cd" * 32)
    with pytest.raises(UnauthenticatedError):
        held.end(cookie, made.state)


def test_a_sign_in_that_one_process_began_ends_at_another(world: Any, tmp_path: Path) -> None:
    """Behind a balancer the issuer sends the browser back to either; their home folders have one key."""
    one = SignIns(partial(sign_in_key, world.backend))
    made, header = one.begin("/console")
    settings = world.settings.model_copy(update={"home": tmp_path / "there"})
    settings.home.mkdir()
    shutil.copy(world.settings.home / PSEUDONYMS, settings.home)
    with open_backend(settings) as there:
        other = SignIns(partial(sign_in_key, there))
        assert other.end(header.partition(";")[0], made.state) == made
    assert sign_in_key(world.backend) != world.backend.service_keys.get(PSEUDONYMS), "a key for one purpose"
