"""Tokens of an OpenID Connect issuer: who is let in with which role, and what is refused."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc.jwk import RSAKey

from services.contracts.access.identity import Role
from services.contracts.access.oidc import OidcSettings
from services.identity.errors import ForbiddenError, UnauthenticatedError
from services.identity.oidc import LONGEST_TOKEN, OidcVerifier
from services.identity.subjects import LONGEST, role_of, subject_name
from tests.oidc_issuer import CLIENT, CONSOLE, LocalIssuer, an_rsa_key
from tests.services.identity.conftest import verifier

REFUSED = "this token does not hold"


@pytest.fixture(scope="module")
def checks(shared: LocalIssuer) -> OidcVerifier:
    return verifier(shared, client_id=CLIENT, console_url=CONSOLE)


def test_a_token_of_the_issuer_lets_in_with_its_role(shared: LocalIssuer, checks: OidcVerifier) -> None:
    found = checks.bearer(shared.token())
    assert (found.name, found.role) == ("oidc:127.0.0.1:ada", Role.OPERATOR)
    assert found.as_token().is_live(found.issued_at)
    several = ["x", "ballast-api"]
    service = checks.bearer(shared.token({"typ": "JWT"}, sub="cmms-gateway", roles=["watchers"], aud=several))
    assert (service.name, service.role) == ("oidc:127.0.0.1:cmms-gateway", Role.VIEWER)
    assert service.token_id != found.token_id


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({}, {"aud": "another"}),
        ({}, {"aud": ["another", "ballast"]}),
        ({}, {"aud": None}),
        ({}, {"aud": CLIENT}),
        ({}, {"iss": "https://evil.example.com"}),
        ({}, {"iss": None}),
        ({}, {"exp": None}),
        ({}, {"exp": "tomorrow"}),
        ({}, {"exp": True}),
        ({}, {"exp": float("inf")}),
        ({}, {"exp": 10**40}),
        ({}, {"exp": -1}),
        ({}, {"nbf": 4_000_000_000}),
        ({}, {"nbf": "now"}),
        ({}, {"iat": 4_000_000_000}),
        ({}, {"sub": None}),
        ({}, {"sub": ""}),
        ({}, {"sub": ["ada"]}),
        ({}, {"sub": "a" * 256}),
        ({}, {"cnf": {"jkt": "of its holder"}}),
        ({"typ": None}, {}),
        ({"typ": "logout+jwt"}, {}),
        ({"typ": "dpop+jwt"}, {}),
        ({"kid": "another"}, {}),
        ({"alg": "RS512"}, {}),
        ({"alg": "PS256"}, {}),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_and_told_no_reason(
    shared: LocalIssuer, checks: OidcVerifier, header: dict[str, Any], claims: dict[str, Any]
) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        checks.bearer(shared.token(header, **claims))
    assert (str(refused.value), refused.value.code) == (REFUSED, "unauthenticated")


def bare(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def test_signatures_that_nobody_made_or_everybody_could_are_none(shared: LocalIssuer, checks: OidcVerifier) -> None:
    kid, key = next(iter(shared.keys.items()))
    assert isinstance(key, RSAKey)
    claims = bare(shared.claims())
    signed = f"{bare({'alg': 'HS256', 'typ': 'at+jwt', 'kid': kid})}.{claims}"
    mac = hmac.new(key.as_pem(private=False), signed.encode(), "sha256").digest()  # the public key as a secret
    forged = f"{signed}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
    brought = an_rsa_key(9)
    other = shared.token({}, brought)
    with_key = shared.token({"jwk": brought.as_dict(private=False)}, brought)
    good = shared.token()
    head, body, signature = good.split(".")
    chief = bare(shared.claims(roles=["chiefs"]))
    for text in (
        f"{bare({'alg': 'none', 'typ': 'at+jwt', 'kid': kid})}.{claims}.", f"{bare({'alg': 'None'})}.{claims}.",
        forged, other, with_key, f"{head}.{chief}.{signature}", f"{head}.{body}.", f"{head}.{body}", "a.b.c", "..", "",
        f"{bare(['alg'])}.{claims}.x", f"{bare({'alg': ['RS256']})}.{claims}.x", "é.b.c", f"{good}.{good}", good * 40,
        f"{bare({'alg': 'RS256', 'typ': 'at+jwt', 'kid': [1]})}.{claims}.x", good + "=",
    ):
        with pytest.raises(UnauthenticatedError, match=REFUSED):
            checks.bearer(text)
    assert checks.bearer(good).role is Role.OPERATOR


@settings(max_examples=60)
@given(text=st.one_of(st.text(), st.lists(st.binary(max_size=40), min_size=3, max_size=3).map(
    lambda parts: ".".join(base64.urlsafe_b64encode(part).decode() for part in parts))))
def test_no_text_does_more_than_not_hold(checks: OidcVerifier, text: str) -> None:
    with pytest.raises(UnauthenticatedError):
        checks.bearer(text)


def test_who_has_a_token_that_was_signed_learns_that_it_has_expired(shared: LocalIssuer, checks: OidcVerifier) -> None:
    now = int(time.time())
    assert checks.bearer(shared.token(exp=now - 10)).role is Role.OPERATOR  # within the leeway of 30 s
    for ago in (31, 3600):
        with pytest.raises(UnauthenticatedError) as refused:
            checks.bearer(shared.token(exp=now - ago))
        assert refused.value.code == "token_expired"
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(shared.token({}, an_rsa_key(9), exp=now - 3600))


@pytest.mark.parametrize("change", [lambda url: url + "/", str.upper, lambda url: f" {url}", lambda url: [url]])
def test_an_issuer_is_the_one_of_the_settings_to_the_letter(
    shared: LocalIssuer, checks: OidcVerifier, change: Callable[[str], object]
) -> None:
    """As OpenID Connect has it: an address with a slash more may be another tenant's."""
    with pytest.raises(UnauthenticatedError):
        checks.bearer(shared.token(iss=change(shared.url)))


def test_the_issuer_s_clock_may_be_ahead_by_the_leeway_and_a_token_holds_as_much_longer(
    shared: LocalIssuer, checks: OidcVerifier
) -> None:
    now = int(time.time())
    found = checks.bearer(shared.token(iat=now + 25, nbf=now + 25, exp=now + 600))
    assert found.expires_at == found.as_token().expires_at == datetime.fromtimestamp(now + 630, UTC)
    for ahead in ({"iat": now + 40}, {"nbf": now + 40}, {"iat": now + 600}, {"nbf": now + 600}):
        with pytest.raises(UnauthenticatedError, match=REFUSED):
            checks.bearer(shared.token(exp=now + 3600, **ahead))


def test_a_token_that_is_too_long_is_refused_whoever_signed_it(shared: LocalIssuer, checks: OidcVerifier) -> None:
    assert checks.bearer(shared.token(more="a" * (LONGEST_TOKEN // 2))).role is Role.OPERATOR
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(shared.token(more="a" * LONGEST_TOKEN))


def test_an_id_token_is_no_bearer_and_a_bearer_no_id_token(shared: LocalIssuer, checks: OidcVerifier) -> None:
    told = shared.token({"typ": "JWT"}, aud=CLIENT, nonce="n")
    assert checks.signed_in(told, "n").name == "oidc:127.0.0.1:ada"
    for text, nonce in (
        (told, "another"), (told, ""), (shared.token({"typ": "JWT"}, aud=CLIENT), "n"),
        (shared.token({"typ": "at+jwt"}, aud=CLIENT, nonce="n"), "n"), (shared.token({"typ": "JWT"}, nonce="n"), "n"),
        (shared.token({"typ": "JWT"}, aud=[CLIENT, "another"], nonce="n"), "n"),
        (shared.token({"typ": "JWT"}, aud=CLIENT, azp="another", nonce="n"), "n"),
        (shared.token({"typ": "JWT"}, aud=CLIENT, nonce=["n"]), "n"),
    ):
        with pytest.raises(UnauthenticatedError, match=REFUSED):
            checks.signed_in(text, nonce)
    with pytest.raises(UnauthenticatedError, match=REFUSED):
        checks.bearer(told)


@pytest.mark.parametrize(
    ("path", "claims", "role"),
    [
        ("roles", {"roles": ["watchers", "crew", "unheard of"]}, Role.OPERATOR),
        ("roles", {"roles": "chiefs"}, Role.ADMINISTRATOR),
        ("roles", {"roles": "crew chiefs"}, None),
        ("scope", {"scope": "openid crew"}, Role.OPERATOR),
        ("realm_access.roles", {"realm_access": {"roles": ["watchers"]}}, Role.VIEWER),
        ("https://x.example.com/roles", {"https://x.example.com/roles": ["crew"]}, Role.OPERATOR),
        ("roles", {"roles": ["administrator", "Chiefs", "chiefs "]}, None),
        ("roles", {"roles": {"chiefs": True}}, None),
        ("roles", {"roles": [["chiefs"], 1, None]}, None),
        ("realm_access.roles", {"realm_access": "chiefs"}, None),
        ("roles", {}, None),
    ],
)
def test_the_greatest_mapped_role_counts_and_none_is_none(
    shared: LocalIssuer, path: str, claims: dict[str, Any], role: Role | None
) -> None:
    stated = OidcSettings.model_validate(shared.settings(roles_claim=path))
    if role is None:
        with pytest.raises(ForbiddenError) as refused:
            role_of(stated, claims)
        assert refused.value.code == "no_role"
    else:
        assert role_of(stated, claims) is role


@given(first=st.text(min_size=1, max_size=255), second=st.text(min_size=1, max_size=255))
def test_names_of_subjects_are_one_line_and_each_of_one_subject(first: str, second: str) -> None:
    names = [subject_name("https://id.example.com/realms/a", sub) for sub in (first, second)]
    assert all(name.isascii() and name.isprintable() and " " not in name and len(name) <= LONGEST for name in names)
    assert (names[0] == names[1]) == (first == second)
    assert names[0].startswith("oidc:id.example.com:")


def test_a_name_cannot_be_made_up_to_be_another_s() -> None:
    hostile = subject_name("https://id.example.com", "ada\n2031-05-06 cli:root")
    assert "\n" not in hostile and "~" in hostile
    copied = subject_name("https://id.example.com", hostile.partition("oidc:id.example.com:")[2])
    assert copied != hostile
