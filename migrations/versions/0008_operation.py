"""Enrolment codes, outcomes of repeated requests, events and webhooks.

Revision: 0008
Follows: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
COUNTER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.add_column("sites", sa.Column("silent_at", MOMENT, nullable=True))
    op.create_table(
        "enrolment_codes",
        sa.Column("code_id", sa.String(), nullable=False),
        sa.Column("site_id", sa.String(), nullable=False),
        sa.Column("secret_sha256", sa.String(), nullable=False),
        sa.Column("asset_type", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("replaces_key", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("used_at", MOMENT, nullable=True),
        sa.Column("used_key", sa.String(), nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("code_id", name=op.f("pk_enrolment_codes")),
    )
    op.create_index(op.f("ix_enrolment_codes_site_id"), "enrolment_codes", ["site_id"])
    op.create_table(
        "outcomes",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("key_sha256", sa.String(), nullable=False),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("token_id", "key_sha256", name=op.f("pk_outcomes")),
    )
    op.create_index(op.f("ix_outcomes_created_at"), "outcomes", ["created_at"])
    op.create_table(
        "events",
        sa.Column("number", COUNTER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_events")),
    )
    op.create_index(op.f("ix_events_at"), "events", ["at"])
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("kinds", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_number", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("last_failure", sa.String(), nullable=False),
        sa.Column("delivered_at", MOMENT, nullable=True),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("disabled_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
        sa.UniqueConstraint("url", name=op.f("uq_webhooks_url")),
    )


def downgrade() -> None:
    op.drop_column("sites", "silent_at")
    op.drop_table("webhooks")
    op.drop_index(op.f("ix_events_at"), table_name="events")
    op.drop_table("events")
    op.drop_index(op.f("ix_outcomes_created_at"), table_name="outcomes")
    op.drop_table("outcomes")
    op.drop_index(op.f("ix_enrolment_codes_site_id"), table_name="enrolment_codes")
    op.drop_table("enrolment_codes")
