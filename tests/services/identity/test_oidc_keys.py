"""An issuer's keys: new ones, withdrawn ones, an issuer that is away or answers nonsense; its settings."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, RSAKey
from pydantic import ValidationError

from services.contracts.access.identity import Role
from services.contracts.access.oidc import OidcSettings
from services.contracts.errors import BallastError, UnavailableError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc_issuer import DISCOVERY, METADATA_SECONDS
from services.identity.oidc_keys import GRACE_SECONDS, KEYS_SECONDS, REFRESH_SECONDS, RETRY_SECONDS
from tests.oidc_issuer import CLIENT, CONSOLE, LocalIssuer, an_rsa_key
from tests.services.identity.conftest import Clock, verifier

REFUSED = "this token does not hold"


def test_a_new_key_is_fetched_when_a_token_names_it_and_not_for_every_made_up_name(issuer: LocalIssuer) -> None:
    clock = Clock()
    checks = verifier(issuer, clock, algorithms=["RS256", "ES256"])
    former = issuer.token()
    checks.bearer(former)
    clock.now += REFRESH_SECONDS
    issuer.rotate("EC")
    assert checks.bearer(issuer.token()).role is Role.OPERATOR
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(former)  # its key was withdrawn
    asked = issuer.asked.count("/keys")
    for number in range(20):
        with pytest.raises(UnauthenticatedError, match=REFUSED):
            checks.bearer(issuer.token({"kid": f"made-up-{number}"}))
    clock.now += REFRESH_SECONDS - 1
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(issuer.token({"kid": "made-up"}))
    assert issuer.asked.count("/keys") == asked
    clock.now += 1
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(issuer.token({"kid": "made-up"}))
    assert issuer.asked.count("/keys") == asked + 1


def test_a_withdrawn_key_ends_within_the_hour(issuer: LocalIssuer) -> None:
    clock = Clock()
    checks = verifier(issuer, clock)
    former = issuer.token()
    checks.bearer(former)
    issuer.rotate()
    clock.now += KEYS_SECONDS - 1
    checks.bearer(former)
    clock.now += 1
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(former)


def test_known_keys_hold_for_a_day_while_the_issuer_is_away(issuer: LocalIssuer) -> None:
    clock = Clock()
    checks = verifier(issuer, clock)
    text = issuer.token()
    issuer.is_down = True
    for _ in range(5):
        with pytest.raises(UnavailableError, match="the issuer 127.0.0.1 cannot be asked") as away:
            checks.bearer(text)
    assert away.value.code == "issuer_unavailable" and "\n" not in str(away.value)
    assert len(issuer.asked) == 1  # not once for each
    issuer.is_down, clock.now = False, clock.now + RETRY_SECONDS
    checks.bearer(text)
    issuer.is_down, clock.now = True, clock.now + GRACE_SECONDS - 1
    checks.bearer(text)
    with pytest.raises(UnavailableError):
        checks.bearer(issuer.token({"kid": "not seen yet"}))
    clock.now += 1
    with pytest.raises(UnavailableError):
        checks.bearer(text)


def test_where_an_issuer_has_its_keys_is_asked_again_after_an_hour(issuer: LocalIssuer) -> None:
    clock = Clock()
    checks = verifier(issuer, clock)
    checks.bearer(issuer.token())
    for seconds, asked in ((METADATA_SECONDS - REFRESH_SECONDS, 1), (REFRESH_SECONDS, 2)):
        clock.now += seconds
        with pytest.raises(UnauthenticatedError, match=REFUSED):
            checks.bearer(issuer.token({"kid": f"unknown after {seconds}"}))
        assert issuer.asked.count(DISCOVERY) == asked


def test_an_issuer_that_was_away_is_asked_sooner_for_a_key_that_is_not_known(issuer: LocalIssuer) -> None:
    clock = Clock()
    checks = verifier(issuer, clock)
    checks.bearer(issuer.token())
    issuer.rotate()
    issuer.is_down, clock.now = True, clock.now + REFRESH_SECONDS
    with pytest.raises(UnavailableError):
        checks.bearer(issuer.token())
    issuer.is_down, clock.now = False, clock.now + RETRY_SECONDS
    assert checks.bearer(issuer.token()).role is Role.OPERATOR


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("/.well-known/openid-configuration", {"issuer": "https://evil.example.com"}),
        ("/.well-known/openid-configuration", {"jwks_uri": "http://evil.example.com/keys"}),
        ("/.well-known/openid-configuration", {"jwks_uri": None}),
        ("/keys", {"keys": "none"}),
        ("/keys", {"filler": "x" * 600_000}),
    ],
    ids=str,
)
def test_an_issuer_that_answers_nonsense_is_away(issuer: LocalIssuer, path: str, document: dict[str, Any]) -> None:
    issuer.documents[path] = document
    with pytest.raises(UnavailableError):
        verifier(issuer).bearer(issuer.token())


def test_keys_that_are_not_for_this_are_left_out(issuer: LocalIssuer) -> None:
    kid, key = next(iter(issuer.keys.items()))
    public = key.as_dict(private=False) | {"kid": kid}
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(b"s" * 32).decode(), "kid": kid}
    with pytest.warns(SecurityWarning):
        short = RSAKey.import_key(_short_key())
    for entries in (
        [public | {"use": "enc"}], [public | {"alg": "RS512"}], [key.as_dict(private=True) | {"kid": kid}],
        [secret], [{"kty": "RSA"}, 3], [public] * 2,
    ):
        issuer.documents["/keys"] = {"keys": entries}
        with pytest.raises(BallastError):
            verifier(issuer).bearer(issuer.token())
    issuer.documents["/keys"] = {"keys": [short.as_dict(private=False) | {"kid": kid}]}
    with pytest.raises(UnauthenticatedError):
        verifier(issuer).bearer(issuer.token({}, short))
    curve = ECKey.generate_key("P-256").as_dict(private=False) | {"kid": "b"}
    others = [an_rsa_key(9).as_dict(private=False) | each for each in ({"use": "enc"}, {"alg": "RS512"})]
    issuer.documents["/keys"] = {"keys": [public, secret | {"kid": "a"}, curve, *others]}
    assert verifier(issuer).bearer(issuer.token({"kid": None})).role is Role.OPERATOR  # the only one that fits


def test_of_keys_of_two_curves_that_of_the_algorithm_is_taken(issuer: LocalIssuer) -> None:
    issuer.keys = {"a": ECKey.generate_key("P-384"), "b": ECKey.generate_key("P-256")}
    checks = verifier(issuer, algorithms=["ES256", "ES384"])
    assert checks.bearer(issuer.token({"kid": None})).role is Role.OPERATOR


def test_nobody_is_asked_whom_an_issuer_sends_us_to(issuer: LocalIssuer, shared: LocalIssuer) -> None:
    class Sends(issuer.server.RequestHandlerClass):  # type: ignore[name-defined,misc]
        def do_GET(self) -> None:
            if self.path != "/keys":
                super().do_GET()
                return
            self.send_response(302)
            self.send_header("Location", f"{shared.url}/keys")
            self.send_header("Content-Length", "0")
            self.end_headers()

    issuer.server.RequestHandlerClass = Sends
    shared.asked.clear()
    with pytest.raises(UnavailableError, match="its answer, of status 302, is no JSON object"):
        verifier(issuer).bearer(shared.token(iss=issuer.url))
    assert shared.asked == []


def _short_key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    made = generate_private_key(65537, 1024)
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": []}, "algorithms"),
        ({"issuer": "http://id.example.com"}, "must begin with https"),
        ({"issuer": "id.example.com"}, "no address"),
        ({"jwks_url": "ftp://id.example.com"}, "must begin with https"),
        ({"roles": {}}, "roles"),
        ({"roles": {"crew": "root"}}, "roles"),
        ({"client_id": CLIENT}, "belong together"),
        ({"client_id": "ballast-api", "console_url": CONSOLE}, "must differ"),
        ({"leeway_seconds": 3600}, "leeway_seconds"),
        ({"client_secret": "in the file"}, "client_secret"),
    ],
)
def test_settings_that_would_let_in_too_many_are_refused(
    shared: LocalIssuer, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        OidcSettings.model_validate(shared.settings(**changes))
