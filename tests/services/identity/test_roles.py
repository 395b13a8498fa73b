"""Roles and what each may do."""

from __future__ import annotations

import pytest

from services.contracts.identity import Role
from services.identity.errors import ForbiddenError
from services.identity.roles import PERMISSIONS, Permission, allows, least_role, require

TABLE = {
    Permission.READ: (True, True, True),
    Permission.DIAGNOSE: (True, True, True),
    Permission.OPERATE: (False, True, True),
    Permission.ADMINISTER: (False, False, True),
}


def test_the_table_is_what_it_should_be() -> None:
    assert set(TABLE) == set(Permission)
    for permission, row in TABLE.items():
        for role, allowed in zip(Role, row, strict=True):
            assert allows(role, permission) is allowed


def test_each_role_may_do_more_than_the_one_before() -> None:
    assert [*Role] == [Role.VIEWER, Role.OPERATOR, Role.ADMINISTRATOR]
    assert PERMISSIONS[Role.VIEWER] < PERMISSIONS[Role.OPERATOR] < PERMISSIONS[Role.ADMINISTRATOR]


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PERMISSIONS[Role.VIEWER] = frozenset(Permission)  # type: ignore[index]  # what must fail


def test_require_says_which_role_is_needed() -> None:
    require(Role.OPERATOR, Permission.OPERATE)
    with pytest.raises(ForbiddenError, match="this needs the role administrator; your token has operator") as failure:
        require(Role.OPERATOR, Permission.ADMINISTER)
    assert failure.value.code == "forbidden"
    assert [least_role(permission) for permission in Permission] == [
        Role.VIEWER, Role.VIEWER, Role.OPERATOR, Role.ADMINISTRATOR,
    ]
