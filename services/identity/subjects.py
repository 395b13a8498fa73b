"""Who an issuer's token speaks of: a name for the audit trail, and a role."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from services.contracts.access.identity import Role
from services.contracts.access.oidc import OidcSettings
from services.identity.errors import ForbiddenError

PREFIX: Final = "oidc:"
LONGEST: Final = 60
"""Characters of a name at most; the audit trail and the list of tokens show it whole."""
LONGEST_SUBJECT: Final = 255
"""OpenID Connect Core 1.0, section 2."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._@|+=/:-]", re.ASCII)
_MARK_DIGITS: Final = 16  # 64 bits: two names of one issuer do not meet by chance
_SPACED: Final = frozenset({"scope", "scp"})
"""Claims that hold several values in one text, with spaces between them (RFC 8693, section 4.2)."""


def subject_name(issuer: str, subject: str) -> str:
    """Name ``oidc:<issuer's host>:<subject>`` of a subject.

    What has other characters, or is too long, is cut and gets ``~`` and a digest of the whole: no two subjects of an
    issuer have one name, and a hostile one writes no second line, no control character and no other's name.
    """
    plain = f"{urlsplit(issuer).hostname}:{subject}"
    safe, most = _UNSAFE.sub("?", plain), LONGEST - len(PREFIX)
    if safe == plain and len(safe) <= most:
        return PREFIX + safe
    mark = hashlib.sha256(f"{issuer}\n{subject}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_DIGITS]
    return f"{PREFIX}{safe[: most - _MARK_DIGITS - 1]}~{mark}"


def subject_id(name: str, subject: str) -> str:
    """Public id of a subject, 12 hexadecimal digits, as tokens have one; nothing is opened by it."""
    return hashlib.sha256(f"{name}\n{subject}".encode("utf-8", "surrogatepass")).hexdigest()[:12]


def role_of(settings: OidcSettings, claims: Mapping[str, Any]) -> Role:
    """Return the greatest role that the claims' values are mapped to; ``ForbiddenError`` where none is."""
    found = {settings.roles[value] for value in _values(claims, settings.roles_claim) if value in settings.roles}
    if not found:
        raise ForbiddenError("this identity has no role here; an administrator of the issuer gives one", code="no_role")
    return [role for role in Role if role in found][-1]


def _values(claims: Mapping[str, Any], path: str) -> list[str]:
    """Values of a claim by its name, which may have dots (an address, say), else by its path."""
    value: Any = claims.get(path)
    if path not in claims:
        value = claims
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return value.split() if path in _SPACED else [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
