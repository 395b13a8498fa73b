"""The first tables.

Revision: 0001
Follows: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UNFINISHED = sa.text("status IN ('pending', 'running')")
NOT_REVOKED = sa.text("revoked_at IS NULL")
TABLES = (
    "site_updates", "rounds", "run_states", "alias_changes", "model_versions", "runs", "plans", "asset_types", "sites",
    "api_tokens", "audit_events", "audit_head",
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
        sa.Column("site_id", sa.String(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("asset_types", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("enrolled_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("last_seen", MOMENT, nullable=True),
        sa.Column("agent_version", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("site_id", name="pk_sites"),
        sa.UniqueConstraint("public_key", name="uq_sites_public_key"),
    )
    op.create_table(
        "asset_types",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name="pk_asset_types"),
    )
    op.create_table(
        "plans",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_plans"),
    )


def runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("plan_name", sa.String(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("rounds", sa.BigInteger(), nullable=False),
        sa.Column("sites", sa.JSON(), nullable=False),
        sa.Column("absentees", sa.JSON(), nullable=False),
        sa.Column("upper", sa.Double(), nullable=True),
        sa.Column("lower", sa.Double(), nullable=True),
        sa.Column("gap", sa.Double(), nullable=True),
        sa.Column("fresh_weight", sa.Double(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("flow_run_id", sa.String(), nullable=True),
        sa.Column("mlflow_run_id", sa.String(), nullable=True),
        sa.Column("model_version", sa.String(), nullable=True),
        sa.Column("lease_owner", sa.String(), nullable=True),
        sa.Column("lease_until", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_created_at", "runs", ["created_at"])
    op.create_index("ix_runs_plan_name_created_at", "runs", ["plan_name", "created_at"])
    op.create_index(
        "uq_runs_plan_name",
        "runs",
        ["plan_name"],
        unique=True,
        sqlite_where=UNFINISHED,
        postgresql_where=UNFINISHED,
    )


def rounds() -> None:
    op.create_table(
        "rounds",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("round", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("overhead_seconds", sa.Double(), nullable=False),
        sa.Column("upper", sa.Double(), nullable=False),
        sa.Column("lower", sa.Double(), nullable=False),
        sa.Column("gap", sa.Double(), nullable=False),
        sa.Column("fresh_weight", sa.Double(), nullable=False),
        sa.Column("committed_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_rounds_run_id"),
        sa.PrimaryKeyConstraint("run_id", "round", name="pk_rounds"),
    )
    op.create_table(
        "site_updates",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("round", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("site_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("bytes_in", sa.BigInteger(), nullable=False),
        sa.Column("bytes_out", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("payload_sha256", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "round"], ["rounds.run_id", "rounds.round"], name="fk_site_updates_run_id_round"
        ),
        sa.PrimaryKeyConstraint("run_id", "round", "site_id", name="pk_site_updates"),
    )
    op.create_table(
        "run_states",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("round", sa.BigInteger(), nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_run_states_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_states"),
    )


def versions() -> None:
    op.create_table(
        "model_versions",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_model_versions_run_id"),
        sa.PrimaryKeyConstraint("name", "version", name="pk_model_versions"),
    )
    op.create_index("ix_model_versions_run_id", "model_versions", ["run_id"])
    op.create_table(
        "alias_changes",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("alias", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=True),
        sa.Column("previous_version", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(
            ["name", "version"],
            ["model_versions.name", "model_versions.version"],
            name="fk_alias_changes_name_version",
        ),
        sa.PrimaryKeyConstraint("number", name="pk_alias_changes"),
    )
    op.create_index("ix_alias_changes_name_alias_number", "alias_changes", ["name", "alias", "number"], unique=True)


def callers() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("secret_sha256", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("token_id", name="pk_api_tokens"),
    )
    op.create_index(
        "uq_api_tokens_name",
        "api_tokens",
        ["name"],
        unique=True,
        sqlite_where=NOT_REVOKED,
        postgresql_where=NOT_REVOKED,
    )


def audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("role", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.Column("previous_hash", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit_events"),
        sa.UniqueConstraint("previous_hash", name="uq_audit_events_previous_hash"),
    )
    op.create_index("ix_audit_events_target", "audit_events", ["target"])
    head = op.create_table(
        "audit_head",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
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
