"""``ballast token``: made, listed and revoked; when a token, or a code, ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.cli.commands.token import read_end
from services.contracts.access.identity import Role
from services.identity.tokens import check, token_id_of
from tests.api.cli.changes import actions

NOW = datetime(2031, 1, 1, 12, tzinfo=UTC)


def test_a_token_is_made_listed_and_revoked(shell: Any, behind: Any) -> None:
    code, out, err = shell.run("token", "create", "--role", "operator", "--name", "shift lead", "--days", "7")
    secret = out.strip()
    assert (code, out.count("\n")) == (0, 1)
    assert "shift lead" in err and secret not in err
    token = check(secret, behind.store.tokens.find(token_id_of(secret)), datetime.now(UTC))
    assert token.role is Role.OPERATOR
    made = shell.read("token", "create", "--role", "viewer", "--name", "other")
    assert token_id_of(made["token"]) == made["token_id"]
    assert [item["name"] for item in shell.read("token", "list")] == ["other", "shift lead"]
    assert secret not in shell.good("token", "list")
    shell.good("token", "revoke", token.token_id, "--reason", "left")
    assert shell.read("token", "list")[1]["revoked_at"] is not None
    assert [(action, reason) for action, _, reason in actions(behind)] == [
        ("token.revoke", "left"), ("token.create", ""), ("token.create", ""),
    ]
    assert "other" in shell.refused("token", "create", "--role", "viewer", "--name", "other")
    assert "no token" in shell.refused("token", "revoke", "0" * 12)


@pytest.mark.parametrize(("text", "end"), [
    ("12h", NOW + timedelta(hours=12)), ("90d", NOW + timedelta(days=90)),
    ("2031-02-03", datetime(2031, 2, 3, tzinfo=UTC)), ("2031-02-03T04:00+02:00", datetime(2031, 2, 3, 2, tzinfo=UTC)),
])
def test_ends_of_tokens_are_read(text: str, end: datetime) -> None:
    assert read_end(text, NOW) == end


def test_a_token_with_an_end_and_scopes(shell: Any) -> None:
    made = shell.read("token", "create", "--role", "viewer", "--name", "x", "--expires", "12h", "--scope", "diagnose")
    lifetime = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert abs(lifetime - timedelta(hours=12)) < timedelta(minutes=1)
    assert made["scopes"] == ["diagnose"]
    for text in ("soon", "12", "2020-01-01", "1.5d"):
        refused = shell.refused("token", "create", "--role", "viewer", "--name", "y", "--expires", text)
        assert "no end" in refused or "lies in the future" in refused


@pytest.mark.parametrize(("text", "why"), [
    ("400d", "is too far away"), ("31d", "is too far away"), ("721h", "is too far away"),
    ("2099-01-01", "is too far away"), ("0h", "is over already"), ("2020-01-01", "is over already"),
    ("999999999d", "is later than any date"),
])
def test_a_code_that_may_not_hold_so_long_is_told_how_long_it_may(shell: Any, text: str, why: str) -> None:
    said = shell.refused("site", "enrol-code", "plant-7", "--expires", text)
    assert f"{text} {why}" in said and "7d" in said or "90d" in said
    assert "expires_hours" not in said and len(said.splitlines()) == 1
