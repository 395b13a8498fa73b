"""An OpenID Connect issuer, what verifies its tokens, and a clock that a test sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from services.contracts.access.oidc import OidcSettings
from services.identity.oidc import OidcVerifier
from services.identity.oidc_issuer import Issuer
from tests.oidc_issuer import LocalIssuer, local_issuer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalIssuer]:
    with local_issuer() as issuer:
        yield issuer


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as opened:
        yield opened


def verifier(issuer: LocalIssuer, clock: Clock | None = None, **changes: Any) -> OidcVerifier:
    stated = OidcSettings.model_validate(issuer.settings(**changes))
    return OidcVerifier(stated, Issuer(stated, clock=clock or Clock()))
