"""What the store keeps of an enrolment code."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime

from services.contracts.access.identity import Sha256, TokenId
from services.contracts.base import Contract, Slug

CodeState = Literal["open", "used", "revoked", "expired"]
"""What became of a code; an open one may still be used."""


class EnrolmentRecord(Contract):
    """A code as it may be shown: everything but its secret. ``used_key``: the key that was enrolled with it."""

    code_id: TokenId
    site_id: Slug
    asset_type: Slug
    description: str = ""
    replaces_key: bool = False
    created_by: str
    created_at: AwareDatetime
    expires_at: AwareDatetime
    used_at: AwareDatetime | None = None
    used_key: str | None = None
    revoked_at: AwareDatetime | None = None

    def state_at(self, now: datetime) -> CodeState:
        """What became of the code by ``now``."""
        if self.used_at is not None:
            return "used"
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if now >= self.expires_at else "open"


class StoredCode(Contract):
    """A code as it is stored: with the SHA-256 of its secret, never the secret."""

    record: EnrolmentRecord
    secret_sha256: Sha256
