"""A store that was in use at every revision: typical rows in all tables of each, upgraded step by step to the newest.

What earlier programs wrote is not at hand for each revision, so the rows are inserted into the tables as a migration
left them, found by reflection. Each revision has rows of its own; all of them go through all later steps.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from migrations import run
from services.contracts.history.audit import AuditEvent
from services.contracts.wire.codec import pack_arrays
from services.plant_simulator.assets import builtin_asset_type
from services.round_store.database.documents import document
from services.round_store.database.session import make_engine
from services.round_store.store import RoundStore
from tests.versions import a_version

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
BASE = Path(run.__file__).parent
REVISIONS = [each.revision for each in ScriptDirectory(str(BASE)).walk_revisions()][::-1]
ASSET_TYPE = builtin_asset_type("triplex-pump")
CHANGED = {"plans": "document", "plan_versions": "document", "runs": "plan"}
"""Documents that a migration may add a word to, which earlier ones had not."""
LEFT = ("alembic_version", "audit_head")
"""Tables whose one row is the migrations' own."""


def key_of(revision: str, digits: int) -> str:
    """An id that the rows of one revision share: they refer to one another by it."""
    return f"{int(revision):0{digits}x}"


def typical(revision: str) -> dict[str, Any]:
    """Value of each column by its name, or by table and name where the name means several things."""
    key, plan = f"plan-{revision}", {"name": f"plan-{revision}", "asset_type": ASSET_TYPE.name, "max_rounds": 7}
    run_id = key_of(revision, 32)
    state = pack_arrays({"run_id": run_id, "round": 2}, {"weights": np.arange(3.0)})
    draft = a_version(ASSET_TYPE, np.zeros((1, len(ASSET_TYPE.features) + 1)), run_id=run_id)
    times = ("created_at", "updated_at", "enrolled_at", "started_at", "committed_at", "last_used_at", "last_seen", "at",
             "due_at", "delivered_at")
    return {
        **dict.fromkeys(times, NOW), "expires_at": NOW + timedelta(days=36500), "name": key, "plan_name": key,
        "run_id": run_id, "site_id": f"plant-{revision}", "version": "1",
        "plans.updated_at": NOW + timedelta(days=1),
        "plans.version": 1, "plan_versions.version": 1, "asset_types.version": ASSET_TYPE.version,
        "asset_types.document": document(ASSET_TYPE),
        "asset_types.name": f"{ASSET_TYPE.name}", "fingerprint": ASSET_TYPE.fingerprint, "document": plan, "plan": plan,
        "asset_types": [ASSET_TYPE.name], "asset_type": ASSET_TYPE.name, "public_key": f"U{revision}",
        "sites.status": "active", "runs.status": "completed", "site_updates.status": "accepted",
        "model_versions.status": "registered", "agent_version": "0.1.0", "round": 2, "rounds": 2,
        "sites": [{"site_id": f"plant-{revision}", "weight": 1.0, "radius": 0.1, "n_samples": 30}],
        "absentees": [], "excluded": [], "upper": 0.5, "lower": 0.25, "gap": 0.5,
        "fresh_weight": 1.0, "seconds": 0.5, "overhead_seconds": 0.25, "bytes_in": 10, "bytes_out": 20, "code": "",
        "run_drafts.frame": pack_arrays({"run_id": run_id, "version": draft.to_document(), "stopped": "why"}, {}),
        "certificate": b"proof",
        "payload_sha256": key_of(revision, 64), "frame": state, "task": b"task", "answer": b"answer",
        "evidence.document": b"evidence", "metrics": {"gap": 0.5}, "alias": "champion", "actor": "ada", "reason": "why",
        "api_tokens.name": f"token-{revision}", "token_id": key_of(revision, 12), "role": "viewer",
        "secret_sha256": key_of(revision, 64), "code_id": key_of(revision, 12), "description": "a plant",
        "created_by": "ada", "key_sha256": key_of(revision, 64), "request_sha256": key_of(revision, 64),
        "events.document": {"run_id": run_id}, "kind": "run.completed", "webhook_id": key_of(revision, 12),
        "url": f"https://hooks.example/{revision}", "kinds": ["run.failed"], "last_number": 0, "failures": 0,
        "last_failure": "", "notice": "", "question": 2, "paused": False, "archived": False, "replaces_key": False,
        "cancel_requested": False, "home": "here:/srv/ballast/webhooks.key",
        "service_keys.fingerprint": key_of(revision, 64),
        "alias_changes.number": int(revision), "events.number": int(revision),
    }


def fill(connection: sa.Connection, revision: str) -> dict[str, dict[str, Any]]:
    """One row in each table as it is now; the audit trail's next entry, and the head that says so."""
    tables, values, made = sa.MetaData(), typical(revision), {}
    tables.reflect(connection, resolve_fks=True)
    for table in tables.sorted_tables:
        if table.name in LEFT or (table.name == "asset_types" and revision != REVISIONS[0]):
            continue
        row = {column.name: values.get(f"{table.name}.{column.name}", values.get(column.name)) for column in table.c}
        if table.name == "run_state_parts":
            row |= {"frame": pack_arrays({"run_id": row["run_id"], "round": 2, "starts": {}}, {})}
        if table.name == "audit_events":
            row = audit_entry(connection, tables.tables["audit_head"])
        # One not given is left to the column's default, as by a program that does not know it yet.
        row = {name: value for name, value in row.items() if value is not None}
        connection.execute(sa.insert(table).values(row))
        made[table.name] = row
    return made


def audit_entry(connection: sa.Connection, head: sa.Table) -> dict[str, Any]:
    number, before = connection.execute(sa.select(head.c.number, head.c.hash)).one()
    event = AuditEvent(number=number + 1, at=NOW, actor="ada", role=None, action="plan.create", target="plan:x",
                       after={"a": 1}, previous_hash=before, hash="0" * 64)
    event = event.model_copy(update={"hash": event.expected_hash()})
    connection.execute(sa.update(head).values(number=event.number, hash=event.hash))
    return event.model_dump()


@pytest.fixture
def filled(empty_database_url: str) -> tuple[str, dict[str, dict[str, dict[str, Any]]]]:
    """A store at the newest schema that was in use at every one, and what was written at each."""
    written = {}
    for revision in REVISIONS:
        assert run.upgrade(empty_database_url, revision) == revision
        engine = make_engine(empty_database_url)
        with engine.execution_options(ballast_writes=True).begin() as connection:
            written[revision] = fill(connection, revision)
        engine.dispose()
    return empty_database_url, written


def test_every_row_of_every_revision_is_there_and_is_read(filled: Any) -> None:
    url, written = filled
    engine, tables = make_engine(url), sa.MetaData()
    with engine.connect() as connection:
        tables.reflect(connection)
        for made in written.values():
            for name, row in made.items():
                check_row(connection, tables.tables[name], row)
        counts = {name: connection.scalar(sa.select(sa.func.count()).select_from(table))
                  for name, table in tables.tables.items()}
    engine.dispose()
    assert set(written[REVISIONS[-1]]) == set(tables.tables) - {*LEFT, "asset_types"}
    assert counts["runs"] == counts["sites"] == counts["plans"] == len(REVISIONS)
    store = RoundStore.open(url)
    for revision in REVISIONS:
        read_through_the_store(store, revision)
    assert store.audit.verify_chain().ok and store.audit.verify_chain().events == len(REVISIONS)
    assert store.asset_types.get(ASSET_TYPE.name).asset_type == ASSET_TYPE
    store.close()


def check_row(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> None:
    same = [table.c[column.name] == row[column.name] for column in table.primary_key.columns]
    found = connection.execute(sa.select(table).where(*same)).mappings().one()
    for name, value in row.items():
        is_now = found[name].replace(tzinfo=UTC) if isinstance(value, datetime) else found[name]
        if name == CHANGED.get(table.name):
            assert is_now.items() >= value.items()
        else:
            assert is_now == value, f"{table.name}.{name}"


def read_through_the_store(store: RoundStore, revision: str) -> None:
    """What the repositories say of the rows of one revision; contracts of today read the documents of then."""
    plan, run_id, site = f"plan-{revision}", key_of(revision, 32), f"plant-{revision}"
    found = store.runs.get_run(run_id)
    assert (found.plan.name, found.status, found.rounds, found.upper) == (plan, "completed", 2, 0.5)
    shown = "each site" if revision < "0006" else "sums"
    assert found.plan.reveal == store.plans.get(plan).plan.reveal == shown
    (given,) = store.plans.versions(plan)
    assert store.plans.get(plan).plan.max_rounds == 7 and (given.version, given.created_at) == (1, NOW)
    (of_round,) = store.runs.get_rounds(run_id)
    (answer,) = of_round.answers
    assert of_round.round == 2 and (answer.site_id, answer.question) == (site, 2 if revision >= "0011" else 0)
    assert store.sites.get(site).public_key == f"U{revision}" and store.sites.get(site).last_seen == NOW
    version = store.model_versions.get(plan, "1")
    assert (version.run_id, version.metrics) == (run_id, {"gap": 0.5})
    champion = store.model_versions.alias(plan, "champion")
    assert champion is not None and champion.version == "1"
    token = store.tokens.find(key_of(revision, 12))
    assert token is not None and token.token.name == f"token-{revision}" and token.token.scopes is None
    if revision >= "0004":
        assert store.runs.get_evidence(run_id, site) == b"evidence"
    if revision >= "0008":
        assert store.webhooks.get(key_of(revision, 12)).url.endswith(revision)
        assert store.enrolment_codes.find(key_of(revision, 12)) is not None
    if revision >= "0009":
        assert store.sessions.find(key_of(revision, 64)) is not None
    if revision >= "0014":
        key = store.service_keys.find(f"plan-{revision}")
        assert key is not None and key.fingerprint == key_of(revision, 64)
    draft = store.runs.get_draft(run_id)
    assert (None if draft is None else (draft.version.run_id, draft.certificate)) == (
        (run_id, b"proof") if revision >= "0012" else None
    )
