"""Audit trail: who did what to what, in a chain of hashes that shows any later change."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC
from typing import Any, Self

from pydantic import AwareDatetime, Field

from services.contracts.access.identity import Role, Sha256
from services.contracts.base import Contract

GENESIS = "0" * 64
"""What stands in the place of the previous hash in the first event."""
BACKUP_MADE = "backup.made"
"""Action of an entry: a backup was made; ``after`` has its file's name."""
BACKUP_RESTORED = "backup.restored"
"""Action of an entry: the store is what a backup held."""
OEM_KEY_CHANGED = "coordinator.rotate_key"
"""Action of an entry: the OEM's key was changed; ``after`` has the next one as ``public_key``."""


class AuditEvent(Contract):
    """One entry. ``role`` is None where the service itself acted. ``before`` and ``after`` hold metadata only.

    ``hash`` is the SHA-256 of the canonical JSON of all other fields, ``previous_hash`` that of the entry before.
    """

    number: int = Field(ge=1)
    at: AwareDatetime
    actor: str
    role: Role | None
    action: str
    target: str
    reason: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    previous_hash: Sha256
    hash: Sha256

    def expected_hash(self) -> str:
        """Hash of what the entry says."""
        essence = self.model_dump(mode="json", exclude={"hash", "at"})
        essence["at"] = self.at.astimezone(UTC).isoformat(timespec="microseconds")
        text = json.dumps(essence, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def sealed(cls, **fields: Any) -> Self:
        """Entry of all fields but ``hash``, with its hash."""
        draft = cls(hash=GENESIS, **fields)
        return draft.model_copy(update={"hash": draft.expected_hash()})


class ChainReport(Contract):
    """Outcome of checking the whole trail. ``head``, the hash of the last entry, fixes the past when kept elsewhere."""

    ok: bool
    events: int
    head: str
    problem: str = ""
