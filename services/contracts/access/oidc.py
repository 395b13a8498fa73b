"""Settings of an issuer of identities (OpenID Connect): whom its tokens let in, and as what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from services.contracts.access.identity import Role
from services.contracts.access.loopback import is_loopback
from services.contracts.true_numbers import TrueNumbers

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"]
"""Signatures by a private key (RFC 7518). With a shared secret whoever can check a token could make one."""


def check_address(text: str) -> str:
    """Address that secrets may be sent to: ``https``, or ``http`` on the loopback; ``ValueError`` for another."""
    parts = urlsplit(text)
    host = parts.hostname or ""
    fits = "@" not in parts.netloc and not parts.fragment and text.isprintable() and " " not in text
    if not (host and fits and _has_port(parts)):
        raise ValueError("this is no address such as https://id.example.com")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ValueError("this address must begin with https:// (http:// is for the loopback alone)")
    return text


def _has_port(parts: SplitResult) -> bool:
    """Whether the port is one, or left out."""
    try:
        return parts.port != 0
    except ValueError:
        return False


def check_base(text: str) -> str:
    """Address that paths are put behind: as :func:`check_address`, and without a query."""
    if "?" in check_address(text):
        raise ValueError("this address must end before its query (what begins with ?)")
    return text


Address = Annotated[str, AfterValidator(check_address)]
Base = Annotated[str, AfterValidator(check_base)]


class OidcSettings(TrueNumbers):
    """An issuer whose tokens are believed. What it does not map to a role is let in nowhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    issuer: Base = Field(description="as the claim iss has it, to the letter")
    audience: str = Field(min_length=1, description="what the claim aud of a bearer token must name")
    roles: dict[str, Role] = Field(min_length=1, description="role by value of the roles claim; the greatest counts")
    roles_claim: str = Field(default="roles", min_length=1, description="name, or path such as realm_access.roles")
    jwks_url: Address | None = Field(default=None, description="where its keys are; None: as its discovery says")
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    leeway_seconds: int = Field(default=30, ge=0, le=300, description="how far its clock may be from ours")
    ca_file: Path | None = Field(default=None, description="PEM of its authority; None: the system's authorities")
    client_id: str = Field(default="", description="the console as the issuer knows it; empty: no signing in by it")
    client_secret_file: Path | None = Field(default=None, description="None: a public client, by PKCE alone")
    console_url: Base | None = Field(default=None, description="where browsers reach this host")
    scopes: tuple[str, ...] = Field(default=("openid",), min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.client_id) != (self.console_url is not None):
            raise ValueError("client_id and console_url belong together: give both, or neither")
        if self.client_id == self.audience:
            raise ValueError(
                "audience and client_id must differ: else what tells the console who signed in would open the API too"
            )
        if "openid" not in self.scopes:
            raise ValueError("scopes must have openid")
        return self

    @property
    def signs_in(self) -> bool:
        """Whether people can sign in to the console by this issuer."""
        return self.console_url is not None

    @property
    def redirect_uri(self) -> str:
        """Where the issuer sends browsers back to; it is to be registered there."""
        return f"{(self.console_url or '').rstrip('/')}/console/sign-in/oidc/callback"
