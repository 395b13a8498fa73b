"""What an issuer is asked, and what is made of its answers: the way to sign in, the code, the keys."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from services.contracts.access.oidc import OidcSettings
from services.contracts.errors import BallastError, UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc_issuer import DISCOVERY, Issuer
from tests.oidc_issuer import CLIENT, CONSOLE, LocalIssuer

BACK = f"{CONSOLE}/console/sign-in/oidc/callback"


def asked_of(issuer: LocalIssuer, **changes: Any) -> Issuer:
    stated = issuer.settings(client_id=CLIENT, console_url=CONSOLE, **changes)
    return Issuer(OidcSettings.model_validate(stated))


@pytest.mark.parametrize(("more", "kept"), [("", {}), ("?tenant=7", {"tenant": ["7"]})])
def test_the_way_to_sign_in_says_all_that_the_answer_is_held_to(
    issuer: LocalIssuer, more: str, kept: dict[str, list[str]]
) -> None:
    issuer.documents[DISCOVERY] = {"authorization_endpoint": f"{issuer.url}/authorize{more}"}
    address = urlsplit(asked_of(issuer).sign_in_address("the state", "the nonce", "the challenge"))
    assert address.path == "/authorize"
    said = parse_qs(address.query)
    assert said.pop("scope")[0].split()[0] == "openid"
    assert said == kept | {
        "response_type": ["code"], "client_id": [CLIENT], "redirect_uri": [BACK], "state": ["the state"],
        "nonce": ["the nonce"], "code_challenge": ["the challenge"], "code_challenge_method": ["S256"],
    }


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
@pytest.mark.parametrize("address", ["http://id.example.com", "ftp://id.example.com", "https://me@id.example.com", ""])
def test_no_address_is_taken_that_a_secret_must_not_be_sent_to(issuer: LocalIssuer, name: str, address: str) -> None:
    issuer.documents[DISCOVERY] = {name: address}
    with pytest.raises(UnavailableError, match="lacks addresses, or has some without https"):
        asked_of(issuer).metadata()


def test_a_secret_is_encoded_before_it_is_put_behind_the_clients_name(
    issuer: LocalIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[dict[str, str], str]] = []

    def redeem(form: dict[str, str], login: str) -> tuple[int, dict[str, Any]]:
        told.append((form, login))
        return 200, {"id_token": "the token"}

    monkeypatch.setattr(issuer, "redeem", redeem)
    (tmp_path / "secret").write_text("a:b c/é\n", encoding="utf-8")
    asked = asked_of(issuer, client_secret_file=tmp_path / "secret")
    assert asked.id_token("the code", "the verifier") == "the token"
    ((form, login),) = told
    assert form == {
        "grant_type": "authorization_code", "code": "the code", "redirect_uri": BACK, "client_id": CLIENT,
        "code_verifier": "the verifier",
    }
    assert base64.b64decode(login.removeprefix("Basic ")).decode() == f"{CLIENT}:a%3Ab%20c%2F%C3%A9"
    (tmp_path / "secret").unlink()
    with pytest.raises(UnavailableError, match="the client's secret .* cannot be read"):
        asked.id_token("the code", "the verifier")


@pytest.mark.parametrize(("status", "answer", "error"), [
    (400, {}, UnauthenticatedError), (401, {}, UnauthenticatedError), (403, {}, UnauthenticatedError),
    (200, {"id_token": 7}, UnauthenticatedError), (200, {}, UnauthenticatedError),
    (404, {}, UnavailableError), (500, {}, UnavailableError),
])
def test_a_code_that_is_not_taken_is_the_persons_matter_and_a_broken_issuer_is_not(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch, status: int, answer: dict[str, Any],
    error: type[BallastError],
) -> None:
    monkeypatch.setattr(issuer, "redeem", lambda form, login: (status, answer))
    with pytest.raises(error) as said:
        asked_of(issuer).id_token("the code", "the verifier")
    assert type(said.value) is error


def test_keys_are_asked_for_where_the_settings_say(issuer: LocalIssuer) -> None:
    with pytest.raises(UnavailableError):
        asked_of(issuer, jwks_url=f"{issuer.url}/keys-of-our-own")._fetch_keys()
    assert issuer.asked == ["/keys-of-our-own"], "its discovery document is not asked for"


def test_the_issuers_authority_is_the_one_of_the_settings(
    issuer: LocalIssuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted: list[str | None] = []
    made = ssl.create_default_context

    def context(*, cafile: str | None) -> ssl.SSLContext:
        trusted.append(cafile)
        return made()

    monkeypatch.setattr(ssl, "create_default_context", context)
    (tmp_path / "ca.pem").write_text("the authority")
    asked_of(issuer, ca_file=tmp_path / "ca.pem").metadata()
    asked_of(issuer).metadata()
    assert trusted == [str(tmp_path / "ca.pem"), None]


def test_an_answer_that_is_nested_without_end_is_none(issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.identity.oidc_issuer.json.loads", deep)
    with pytest.raises(UnavailableError, match="of status 200, is no JSON object"):
        asked_of(issuer).metadata()


@pytest.mark.parametrize("proxy", ["socks5://ada:word@127.0.0.1:1", "ftp://ada:word@127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_keeps_the_issuer_away(
    issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("all_proxy", proxy)
    with pytest.raises(UnavailableError, match="^the issuer .* cannot be asked: (ImportError|ValueError)$"):
        asked_of(issuer).metadata()


def deep(_: bytes) -> None:
    raise RecursionError
