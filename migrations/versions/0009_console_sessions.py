"""Sessions of the console.

Revision: 0009
Follows: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "console_sessions",
        sa.Column("secret_sha256", sa.String(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("secret_sha256", name="pk_console_sessions"),
        sa.ForeignKeyConstraint(["token_id"], ["api_tokens.token_id"], name="fk_console_sessions_token_id"),
    )


def downgrade() -> None:
    op.drop_table("console_sessions")
