"""Keys that a site had before its former one, which keep their own ends where its key is changed twice in a row.

Revision: 0016
Follows: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sites", sa.Column("earlier_keys", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    op.drop_column("sites", "earlier_keys")
