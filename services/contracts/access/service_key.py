"""Keys that every API process of a service shares, as the store knows them: by their fingerprints."""

from __future__ import annotations

from pydantic import AwareDatetime

from services.contracts.access.identity import Sha256
from services.contracts.base import Contract

KEY_REPLACED = "key.replace"
"""Action of an entry in the audit trail: a key was replaced by another one."""


class ServiceKey(Contract):
    """A key of the home folder that is in use. ``home`` is where it was used first, ``host:/path/of/the/file``."""

    name: str
    fingerprint: Sha256
    home: str
    created_at: AwareDatetime
