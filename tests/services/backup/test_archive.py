"""The manifest of a backup: the first of its members, under its own name, and one that this version can read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from services.backup.archive import MANIFEST, Manifest, read_manifest
from services.contracts.errors import ConflictError

WHOLE = Manifest(
    ballast="0.1.0", created_at=datetime(2031, 5, 6, tzinfo=UTC), schema_revision="0042", audit_events=3,
    audit_head="ab" * 32, registry_revision=None, artifact_root=None,
)


def test_a_manifest_reads_back_as_it_was_written() -> None:
    assert read_manifest(MANIFEST, WHOLE.model_dump_json().encode()) == WHOLE


@pytest.mark.parametrize("name", ["", "home/manifest.json", "./manifest.json", "manifest.JSON", "store/audit_events.0"])
def test_a_member_of_another_name_is_none_whatever_it_holds(name: str) -> None:
    """A file of the home folder may hold anything, and what comes first says what is restored."""
    with pytest.raises(ConflictError, match="has no manifest that this version of Ballast can read"):
        read_manifest(name, WHOLE.model_dump_json().encode())


@pytest.mark.parametrize("field", [name for name, field in Manifest.model_fields.items() if field.is_required()])
def test_a_manifest_that_lacks_a_field_or_knows_another_is_none(field: str) -> None:
    document = json.loads(WHOLE.model_dump_json())
    for changed in (
        {name: value for name, value in document.items() if name != field}, document | {"of_a_later_version": 1},
    ):
        with pytest.raises(ConflictError, match="has no manifest"):
            read_manifest(MANIFEST, json.dumps(changed).encode())
    for data in (b"", b"[]", b"\xff"):
        with pytest.raises(ConflictError, match="has no manifest"):
            read_manifest(MANIFEST, data)
