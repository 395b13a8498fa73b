"""Versions of plans with who made them, archived plans, and what stands in a site's way.

Revision: 0005
Follows: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("plans", sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False))
    op.add_column("plans", sa.Column("archived", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("sites", sa.Column("notice", sa.String(), server_default=sa.text("''"), nullable=False))
    op.create_table(
        "plan_versions",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("document", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["name"], ["plans.name"], name=op.f("fk_plan_versions_name_plans")),
        sa.PrimaryKeyConstraint("name", "version", name=op.f("pk_plan_versions")),
    )
    # Who made the plans of before stands in the audit trail alone.
    op.execute(
        "INSERT INTO plan_versions (name, version, document, actor, reason, created_at) "
        "SELECT name, 1, document, '', '', created_at FROM plans"
    )


def downgrade() -> None:
    op.drop_table("plan_versions")
    op.drop_column("sites", "notice")
    op.drop_column("plans", "archived")
    op.drop_column("plans", "version")
