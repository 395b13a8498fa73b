"""Scopes of tokens; the key that a site had before the one of now, while both hold.

Revision: 0003
Follows: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_tokens", sa.Column("scopes", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("sites", sa.Column("former_key", sa.String(), nullable=True))
    op.add_column("sites", sa.Column("former_key_until", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("sites", "former_key_until")
    op.drop_column("sites", "former_key")
    op.drop_column("api_tokens", "scopes")
