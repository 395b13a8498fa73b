"""Whom the settings of an issuer believe: no address that secrets leak to, no token that is for the console."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.access.loopback import is_loopback
from services.contracts.access.oidc import OidcSettings, check_address

BASE: dict[str, Any] = {"issuer": "https://id.example.com", "audience": "ballast-api", "roles": {"ops": "operator"}}
CONSOLE = {"client_id": "ballast-console", "console_url": "https://oem.example.com/"}


@pytest.mark.parametrize("text", [
    "https://id.example.com", "https://id.example.com:8443/realms/x", "http://localhost:9000", "http://127.0.0.1:1",
    "http://[::1]:1/x",
])
def test_secrets_go_over_tls_or_nowhere_but_here(text: str) -> None:
    assert check_address(text) == text


@pytest.mark.parametrize("text", [
    "http://id.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com", "ftp://localhost",
    "http://10.0.0.1", "http://0.0.0.0", "//id.example.com", "https://", "https://user@id.example.com",
    "https://user:word@id.example.com", "https://id.example.com/#x", "https://id.example.com/a b",
    "https://id.example.com/\u200b", "id.example.com", "", "https://:word@id.example.com", "https://@id.example.com",
    "https://id.example.com:99999", "https://id.example.com:0", "https://id.example.com:x", "http://localhost:-1",
])
def test_another_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="this (is no address|address must begin with https)"):
        check_address(text)
    with pytest.raises(ValidationError):
        OidcSettings.model_validate(BASE | {"issuer": text})


@pytest.mark.parametrize(("changes", "said"), [
    ({"client_id": "console"}, "belong together"), ({"console_url": "https://oem.example.com"}, "belong together"),
    ({**CONSOLE, "client_id": "ballast-api"}, "audience and client_id must differ"),
    ({"scopes": ("profile",)}, "scopes must have openid"), ({"scopes": ()}, "scopes"), ({"roles": {}}, "roles"),
    ({"algorithms": ("HS256",)}, "algorithms"), ({"algorithms": ("none",)}, "algorithms"), ({"algorithms": ()}, "algo"),
    ({"leeway_seconds": 301}, "leeway_seconds"), ({"leeway_seconds": -1}, "leeway_seconds"),
    ({"roles": {"ops": "root"}}, "roles"), ({"audience": ""}, "audience"),
    ({"jwks_url": "http://id.example.com"}, "jwks"),
])
def test_settings_that_let_in_too_many_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        OidcSettings.model_validate(BASE | changes)


@pytest.mark.parametrize("changes", [
    {"issuer": "https://id.example.com/?p=sign-in"}, {**CONSOLE, "console_url": "https://oem.example.com?tenant=1"},
])
def test_an_address_that_paths_are_put_behind_has_no_query(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="this address must end before its query"):
        OidcSettings.model_validate(BASE | changes)
    asked = "https://id.example.com/keys?p=sign-in"
    assert OidcSettings.model_validate(BASE | {"jwks_url": asked}).jwks_url == asked


def test_people_sign_in_where_the_console_has_an_address() -> None:
    assert not OidcSettings.model_validate(BASE).signs_in
    found = OidcSettings.model_validate(BASE | CONSOLE)
    assert found.signs_in and found.redirect_uri == "https://oem.example.com/console/sign-in/oidc/callback"
    assert (found.leeway_seconds, found.algorithms, found.scopes) == (30, ("RS256", "ES256"), ("openid",))


def test_the_loopback_is_this_machine_alone() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    others = ("", "0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "localhost.", "local", "127.1.example")
    assert not any(map(is_loopback, others))
