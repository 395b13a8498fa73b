"""Roles and what each may do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.contracts.access.identity import ApiToken, Role, Scope
from services.identity.errors import ForbiddenError
from services.identity.roles import PERMISSIONS, Permission, allows, least_role, permits, require


def a_token(role: Role, *scopes: Scope) -> ApiToken:
    return ApiToken(token_id="0" * 12, name="x", role=role, created_at=datetime.now(UTC), scopes=scopes or None)


TABLE = {
    Permission.READ: (True, True, True, True),
    Permission.DIAGNOSE: (True, True, True, True),
    Permission.INSPECT: (False, True, True, True),
    Permission.OPERATE: (False, False, True, True),
    Permission.ADMINISTER: (False, False, False, True),
}


def test_the_table_is_what_it_should_be() -> None:
    assert set(TABLE) == set(Permission)
    for permission, row in TABLE.items():
        for role, allowed in zip(Role, row, strict=True):
            assert allows(role, permission) is allowed


def test_each_role_may_do_more_than_the_one_before() -> None:
    assert [*Role] == [Role.VIEWER, Role.ENGINEER, Role.OPERATOR, Role.ADMINISTRATOR]
    assert PERMISSIONS[Role.VIEWER] < PERMISSIONS[Role.ENGINEER] < PERMISSIONS[Role.OPERATOR]
    assert PERMISSIONS[Role.OPERATOR] < PERMISSIONS[Role.ADMINISTRATOR]


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PERMISSIONS[Role.VIEWER] = frozenset(Permission)  # type: ignore[index]  # what must fail


def test_require_says_which_role_is_needed() -> None:
    require(a_token(Role.OPERATOR), Permission.OPERATE)
    with pytest.raises(ForbiddenError, match="this needs the role administrator; your token has operator") as failure:
        require(a_token(Role.OPERATOR), Permission.ADMINISTER)
    assert failure.value.code == "forbidden"
    assert [least_role(permission) for permission in Permission] == [
        Role.VIEWER, Role.VIEWER, Role.ENGINEER, Role.OPERATOR, Role.ADMINISTRATOR,
    ]


def test_scopes_narrow_a_role_and_never_widen_it() -> None:
    for role in Role:
        for permission in Permission:
            only = a_token(role, permission.value)
            within = {permission} | ({Permission.INSPECT} if permission is Permission.OPERATE else set())
            found = {each for each in Permission if permits(only, each)}
            assert found == {each for each in within if allows(role, each)}
            assert permits(a_token(role), permission) is allows(role, permission)
    with pytest.raises(ForbiddenError, match="this needs the scope read; your token is narrowed to diagnose"):
        require(a_token(Role.ADMINISTRATOR, "diagnose"), Permission.READ)
