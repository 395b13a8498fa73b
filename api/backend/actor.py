"""Who does something, and the entry that it leaves in the audit trail."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from services.contracts.access.identity import Role
from services.round_store.store import Repositories


@dataclass(frozen=True)
class Actor:
    """Who does something. ``name`` is ``token:<id> <name>`` for a caller of the API, ``cli:<user>`` for a command."""

    name: str
    role: Role


def local_administrator() -> Actor:
    """Whoever runs a command on the service's own host: the operating system has let him in."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        user = "unknown"
    return Actor(f"cli:{user}", Role.ADMINISTRATOR)


def record(
    store: Repositories,
    actor: Actor,
    action: str,
    target: str,
    *,
    before: BaseModel | dict[str, Any] | None = None,
    after: BaseModel | dict[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Append to the audit trail, in the transaction of the change."""
    store.audit.append(
        actor=actor.name,
        role=actor.role,
        action=action,
        target=target,
        reason=reason,
        before=_plain(before),
        after=_plain(after),
    )


def _plain(value: BaseModel | dict[str, Any] | None) -> dict[str, Any] | None:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
