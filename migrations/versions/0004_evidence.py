"""The signed answers of a run while it lasts, and what proves that a site contradicted itself.

Revision: 0004
Follows: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_exchanges",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("round", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("site_id", sa.String(), nullable=False),
        sa.Column("task", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_run_exchanges_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "round", "site_id", name=op.f("pk_run_exchanges")),
    )
    op.create_table(
        "evidence",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("site_id", sa.String(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_evidence_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "site_id", name=op.f("pk_evidence")),
    )


def downgrade() -> None:
    op.drop_table("evidence")
    op.drop_table("run_exchanges")
