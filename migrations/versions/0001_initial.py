"""The first tables.

Revision: 0001
Follows: nothing
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT, DOCUMENT, BYTES, TRUTH = sa.String(), sa.JSON(), sa.LargeBinary(), sa.Boolean()
WHOLE = sa.BigInteger()
NUMBER: sa.Double[float] = sa.Double()
MOMENT = sa.DateTime(timezone=True)
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UNFINISHED = sa.text("status IN ('pending', 'running')")
NOT_REVOKED = sa.text("revoked_at IS NULL")
TABLES = (
    "site_updates", "rounds", "run_states", "alias_changes", "model_versions", "runs", "plans", "asset_types", "sites",
    "api_tokens", "audit_events", "audit_head",
)


def required(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def optional(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=True) for name in names]


def unique_where(condition: sa.TextClause, table: str, column: str) -> None:
    op.create_index(
        f"uq_{table}_{column}", table, [column], unique=True, sqlite_where=condition, postgresql_where=condition
    )


def upgrade() -> None:
    sites_and_plans()
    runs()
    rounds()
    versions()
    callers()
    audit()


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_audit_change()")


def sites_and_plans() -> None:
    op.create_table(
        "sites",
        *required(TEXT, "site_id", "public_key"),
        *required(DOCUMENT, "asset_types"),
        *required(TEXT, "status", "description"),
        *required(MOMENT, "enrolled_at", "updated_at"),
        *optional(MOMENT, "last_seen"),
        *required(TEXT, "agent_version"),
        sa.PrimaryKeyConstraint("site_id", name="pk_sites"),
        sa.UniqueConstraint("public_key", name="uq_sites_public_key"),
    )
    op.create_table(
        "asset_types",
        *required(TEXT, "name"),
        sa.Column("version", WHOLE, autoincrement=False, nullable=False),
        *required(DOCUMENT, "document"),
        *required(TEXT, "fingerprint"),
        *required(MOMENT, "created_at"),
        sa.PrimaryKeyConstraint("name", "version", name="pk_asset_types"),
    )
    op.create_table(
        "plans",
        *required(TEXT, "name"),
        *required(DOCUMENT, "document"),
        *required(TRUTH, "paused"),
        *required(MOMENT, "created_at", "updated_at"),
        sa.PrimaryKeyConstraint("name", name="pk_plans"),
    )


def runs() -> None:
    op.create_table(
        "runs",
        *required(TEXT, "run_id", "plan_name"),
        *required(DOCUMENT, "plan"),
        *required(TEXT, "status", "reason"),
        *required(MOMENT, "created_at", "updated_at"),
        *required(WHOLE, "rounds"),
        *required(DOCUMENT, "sites", "absentees"),
        *optional(NUMBER, "upper", "lower", "gap", "fresh_weight"),
        *required(TRUTH, "cancel_requested"),
        *optional(TEXT, "flow_run_id", "mlflow_run_id", "model_version", "lease_owner"),
        *optional(MOMENT, "lease_until"),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    op.create_index("ix_runs_plan_name_created_at", "runs", ["plan_name", "created_at"])
    unique_where(UNFINISHED, "runs", "plan_name")


def rounds() -> None:
    op.create_table(
        "rounds",
        *required(TEXT, "run_id"),
        sa.Column("round", WHOLE, autoincrement=False, nullable=False),
        *required(MOMENT, "started_at"),
        *required(NUMBER, "seconds", "overhead_seconds", "upper", "lower", "gap", "fresh_weight"),
        *required(MOMENT, "committed_at"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_rounds_run_id"),
        sa.PrimaryKeyConstraint("run_id", "round", name="pk_rounds"),
    )
    op.create_table(
        "site_updates",
        *required(TEXT, "run_id"),
        sa.Column("round", WHOLE, autoincrement=False, nullable=False),
        *required(TEXT, "site_id", "status", "code", "reason"),
        *required(WHOLE, "bytes_in", "bytes_out"),
        *required(NUMBER, "seconds"),
        *required(TEXT, "payload_sha256"),
        sa.ForeignKeyConstraint(
            ["run_id", "round"], ["rounds.run_id", "rounds.round"], name="fk_site_updates_run_id_round"
        ),
        sa.PrimaryKeyConstraint("run_id", "round", "site_id", name="pk_site_updates"),
    )
    op.create_table(
        "run_states",
        *required(TEXT, "run_id"),
        *required(WHOLE, "round"),
        *required(BYTES, "frame"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_run_states_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_states"),
    )


def versions() -> None:
    op.create_table(
        "model_versions",
        *required(TEXT, "name", "version", "run_id", "status", "reason"),
        *required(DOCUMENT, "metrics"),
        *required(MOMENT, "created_at"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_model_versions_run_id"),
        sa.PrimaryKeyConstraint("name", "version", name="pk_model_versions"),
    )
    op.create_index("ix_model_versions_run_id", "model_versions", ["run_id"])
    op.create_table(
        "alias_changes",
        sa.Column("number", COUNTER, nullable=False),
        *required(TEXT, "name", "alias"),
        *optional(TEXT, "version", "previous_version"),
        *required(TEXT, "actor", "reason"),
        *required(MOMENT, "at"),
        sa.ForeignKeyConstraint(
            ["name", "version"], ["model_versions.name", "model_versions.version"], name="fk_alias_changes_name_version"
        ),
        sa.PrimaryKeyConstraint("number", name="pk_alias_changes"),
    )
    op.create_index("ix_alias_changes_name_alias_number", "alias_changes", ["name", "alias", "number"], unique=True)


def callers() -> None:
    op.create_table(
        "api_tokens",
        *required(TEXT, "token_id", "name", "role", "secret_sha256"),
        *required(MOMENT, "created_at"),
        *optional(MOMENT, "expires_at", "revoked_at", "last_used_at"),
        sa.PrimaryKeyConstraint("token_id", name="pk_api_tokens"),
    )
    unique_where(NOT_REVOKED, "api_tokens", "name")


def audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column("number", WHOLE, autoincrement=False, nullable=False),
        *required(MOMENT, "at"),
        *required(TEXT, "actor"),
        *optional(TEXT, "role"),
        *required(TEXT, "action", "target", "reason"),
        *optional(DOCUMENT, "before", "after"),
        *required(TEXT, "previous_hash", "hash"),
        sa.PrimaryKeyConstraint("number", name="pk_audit_events"),
        sa.UniqueConstraint("previous_hash", name="uq_audit_events_previous_hash"),
    )
    op.create_index("ix_audit_events_target", "audit_events", ["target"])
    head = op.create_table(
        "audit_head",
        sa.Column("id", WHOLE, autoincrement=False, nullable=False),
        *required(WHOLE, "number"),
        *required(TEXT, "hash"),
        sa.PrimaryKeyConstraint("id", name="pk_audit_head"),
    )
    op.bulk_insert(head, [{"id": 1, "number": 0, "hash": "0" * 64}])
    if op.get_bind().dialect.name == "postgresql":
        audit_triggers_postgresql()
    else:
        audit_triggers_sqlite()


def audit_triggers_sqlite() -> None:
    for event in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER audit_events_no_{event.lower()} BEFORE {event} ON audit_events "
            "BEGIN SELECT RAISE(ABORT, 'audit events are never changed or deleted'); END"
        )


def audit_triggers_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$ "
        "BEGIN RAISE EXCEPTION 'audit events are never changed or deleted'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_events_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()"
    )
