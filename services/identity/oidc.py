"""Tokens of an issuer (OpenID Connect): whether they hold, and whom they let in as what.

A token is a JWT (RFC 7519) that the issuer has signed with a private key. Its header is not believed further than to
find the key: algorithms are those of the settings, keys those that the issuer publishes, each for its own algorithms
(RFC 8725). Whoever shows one that does not hold learns only that; why is in the log.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import JoseError

from services.contracts.access.identity import ApiToken, Role
from services.contracts.access.oidc import OidcSettings
from services.contracts.errors import BallastError
from services.identity.errors import UnauthenticatedError
from services.identity.oidc_issuer import Issuer
from services.identity.oidc_keys import NOT_KNOWN
from services.identity.subjects import LONGEST_SUBJECT, role_of, subject_id, subject_name

LOG = logging.getLogger("ballast.identity")
LONGEST_TOKEN: Final = 16 * 1024  # characters; nothing longer is parsed
BEARER_TYPES: Final = frozenset({"at+jwt", "application/at+jwt", "jwt"})
"""Header ``typ`` of access tokens: of RFC 9068, and of issuers from before it. Others (logout tokens, ...) are not."""
ID_TOKEN_TYPES: Final = frozenset({"jwt", ""})
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Identity:
    """Whom a token speaks of. ``name`` is for the audit trail; ``token_id`` stands for it where tokens have an id."""

    name: str
    token_id: str
    role: Role
    issued_at: datetime
    expires_at: datetime

    def as_token(self) -> ApiToken:
        """Stand in the place of an API token. It is in no store."""
        return ApiToken(
            token_id=self.token_id, name=self.name, role=self.role, created_at=self.issued_at,
            expires_at=self.expires_at,
        )


class OidcVerifier:
    """Checks the tokens of one issuer."""

    def __init__(
        self, settings: OidcSettings, issuer: Issuer | None = None, *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.settings = settings
        self.issuer = issuer or Issuer(settings)
        self._now = now

    def bearer(self, text: str) -> Identity:
        """Whoever a bearer token speaks of: a person, or a service account by its client's credentials.

        Raises
        ------
        UnauthenticatedError
            When it does not hold, without the reason; ``token_expired`` for one that the issuer did sign.
        ForbiddenError
            When it holds, and is mapped to no role.
        UnavailableError
            When the issuer's keys cannot be had.
        """
        claims = self._signed(text, BEARER_TYPES)
        if "cnf" in claims:
            raise _refused("it is bound to a key of its holder, which a bearer does not show")
        return self._identity(claims, self.settings.audience)

    def signed_in(self, text: str, nonce: str) -> Identity:
        """Whoever an ID token speaks of, which is the answer to the sign-in of ``nonce``; errors as of a bearer."""
        claims = self._signed(text, ID_TOKEN_TYPES)
        given = claims.get("nonce")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode("utf-8", "replace"), nonce.encode()):
            raise _refused("its nonce is of another sign-in")
        ours, named = self.settings.client_id, claims.get("aud")
        if claims.get("azp", ours if named in (ours, [ours]) else None) != ours:
            raise _refused("it was made for another client")
        return self._identity(claims, ours)

    def _signed(self, text: str, types: frozenset[str]) -> Mapping[str, Any]:
        """Claims of a token that the issuer has signed."""
        if len(text) > LONGEST_TOKEN or not text.isascii():
            raise _refused("it is too long, or no JWT")
        try:
            header = jws.extract_compact(text.encode()).headers()
            algorithm, kid = header.get("alg"), header.get("kid")
            if algorithm not in self.settings.algorithms:
                raise _refused("its algorithm is not among those of the settings")
            if str(header.get("typ", "")).lower() not in types or not isinstance(kid, str | None):
                raise _refused("its header does not fit")
            key = self.issuer.keys.find(kid, algorithm)
            return jwt.decode(text, key, algorithms=[algorithm]).claims
        except BallastError:
            raise
        except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _refused(type(error).__name__) from None

    def _identity(self, claims: Mapping[str, Any], audience: str) -> Identity:
        """Whom claims speak of, if they are of the issuer, for this audience, and hold now."""
        now, leeway = self._now().timestamp(), self.settings.leeway_seconds
        if claims.get("iss") != self.settings.issuer:
            raise _refused("it is of another issuer")
        named = claims.get("aud")
        if audience not in (named if isinstance(named, list) else [named]):
            raise _refused("it is for another audience")
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_SUBJECT:
            raise _refused("it has no subject, or one that is too long")
        expires, begins, issued = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
        if expires is None:
            raise _refused("it has no end")
        if max(begins or 0.0, issued or 0.0) > now + leeway:
            raise _refused("it does not hold yet")
        if now >= expires + leeway:
            raise UnauthenticatedError("this token has expired", code="token_expired")
        name = subject_name(self.settings.issuer, subject)
        return Identity(
            name, subject_id(self.settings.issuer, subject), role_of(self.settings, claims),
            datetime.fromtimestamp(issued if issued is not None else now, UTC),
            datetime.fromtimestamp(expires + leeway, UTC),
        )


def _moment(claims: Mapping[str, Any], name: str) -> float | None:
    """Moment of a claim, in seconds; None where it is missing."""
    value = claims.get(name)
    if name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        raise _refused(f"its claim {name} is no moment")
    return float(value)


def _refused(why: str) -> UnauthenticatedError:
    """Return the one answer to every token that does not hold; the reason, which quotes nothing, goes to the log."""
    LOG.info("a token of the issuer does not hold: %s", why)
    return UnauthenticatedError(NOT_KNOWN)
