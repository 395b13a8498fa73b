"""What each role may do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from services.contracts.access.identity import ApiToken, Role
from services.identity.errors import ForbiddenError


class Permission(StrEnum):
    """One kind of action; every route asks for exactly one."""

    READ = "read"
    """See models, runs, rounds and reports, the plants in them under pseudonyms."""
    DIAGNOSE = "diagnose"
    """Have measurements diagnosed; nothing of them is kept."""
    INSPECT = "inspect"
    """See which plants take part: by name in all that is read, in lists of sites and plans, and in certificates.

    A certificate has the model's weights too, without which nobody proves its bounds.
    """
    OPERATE = "operate"
    """Trigger, pause and resume plans, cancel runs, promote and roll back models, export them to run elsewhere."""
    ADMINISTER = "administer"
    """Enrol, suspend and remove sites; create, change and remove plans and asset types; tokens; the audit trail."""


_VIEWER = frozenset({Permission.READ, Permission.DIAGNOSE})
_ENGINEER = _VIEWER | {Permission.INSPECT}
_OPERATOR = _ENGINEER | {Permission.OPERATE}
_ADMINISTRATOR = _OPERATOR | {Permission.ADMINISTER}

PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.VIEWER: _VIEWER, Role.ENGINEER: _ENGINEER, Role.OPERATOR: _OPERATOR, Role.ADMINISTRATOR: _ADMINISTRATOR,
    }
)
"""The table of permissions: viewer < engineer < operator < administrator."""


def allows(role: Role, permission: Permission) -> bool:
    """Whether a role has a permission."""
    return permission in PERMISSIONS[role]


def least_role(permission: Permission) -> Role:
    """First role, from viewer up, that has a permission."""
    return next(role for role in Role if allows(role, permission))


def permits(token: ApiToken, permission: Permission) -> bool:
    """Whether a token's role has a permission, and its scopes, where it has some, name it."""
    if token.scopes is None or not allows(token.role, permission):
        return allows(token.role, permission)
    # Tokens were narrowed to operate before there was inspect, and saw what they operate.
    return permission.value in token.scopes or (permission is Permission.INSPECT and "operate" in token.scopes)


def require(token: ApiToken, permission: Permission) -> None:
    """Raise :class:`ForbiddenError` when a token does not have a permission."""
    if not allows(token.role, permission):
        raise ForbiddenError(f"this needs the role {least_role(permission).value}; your token has {token.role.value}")
    if not permits(token, permission):
        scopes = ", ".join(token.scopes or ())
        raise ForbiddenError(f"this needs the scope {permission.value}; your token is narrowed to {scopes}")
