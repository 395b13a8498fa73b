"""Runs say what they do besides their rounds: a tuning over slow links takes its time.

Revision: 0018
Follows: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("doing", sa.String(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("runs", "doing")
