"""The version of a run that is trained and evaluated, until the run ends.

Revision: 0012
Follows: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_drafts",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.Column("certificate", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_run_drafts_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_drafts")),
    )


def downgrade() -> None:
    """A run that has one asks its plants for the evaluation once more."""
    op.drop_table("run_drafts")
