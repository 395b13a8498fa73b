"""Versions have the digest of what the OEM signed: the registry is held to it.

Revision: 0017
Follows: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model_versions", sa.Column("signed_sha256", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("model_versions", "signed_sha256")
