"""The hash of an audit event must never come out otherwise: stored trails rely on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.access.identity import Role
from services.contracts.history.audit import GENESIS, AuditEvent

FIELDS: dict[str, Any] = {
    "number": 1,
    "at": datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    "actor": "ada",
    "role": Role.ADMINISTRATOR,
    "action": "site.enrol",
    "target": "site/nörd",
    "reason": "a new contract",
    "before": None,
    "after": {"b": [1, 0.1], "a": None},
    "previous_hash": GENESIS,
}


def test_the_hash_is_pinned() -> None:
    event = AuditEvent.sealed(**FIELDS)
    assert event.hash == event.expected_hash() == "e12db3d574d0b5de2b000e316096156598b5a79b9df288fb4586a0e9b92d0e2e"


def test_the_hash_does_not_depend_on_how_a_time_or_a_mapping_is_written() -> None:
    elsewhere = FIELDS["at"].astimezone(timezone(timedelta(hours=9)))
    same = AuditEvent.sealed(**(FIELDS | {"at": elsewhere, "after": {"a": None, "b": [1, 0.1]}}))
    assert same.hash == AuditEvent.sealed(**FIELDS).hash


@pytest.mark.parametrize(
    "change",
    [
        {"number": 2}, {"at": datetime(2030, 1, 2, 3, 4, 5, 678902, tzinfo=UTC)}, {"actor": "eve"}, {"role": None},
        {"action": "x"}, {"target": "x"}, {"reason": ""}, {"before": {}}, {"after": {}}, {"previous_hash": "1" * 64},
    ],
)
def test_the_hash_depends_on_every_field(change: dict[str, object]) -> None:
    assert AuditEvent.sealed(**(FIELDS | change)).hash != AuditEvent.sealed(**FIELDS).hash


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        AuditEvent.sealed(**(FIELDS | {"at": datetime(2030, 1, 2)}))
