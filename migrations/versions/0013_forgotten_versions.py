"""Versions that were deleted with a plant that left say so, as the audit trail has them.

Revision: 0013
Follows: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

VERSIONS = sa.table(
    "model_versions", sa.column("name", sa.String()), sa.column("version", sa.String()),
    sa.column("status", sa.String()), sa.column("reason", sa.String()),
)
EVENTS = sa.table(
    "audit_events", sa.column("action", sa.String()), sa.column("target", sa.String()), sa.column("after", sa.JSON())
)
TARGET = "model:"


def upgrade() -> None:
    connection = op.get_bind()
    unlearned = sa.select(EVENTS.c.target, EVENTS.c.after).where(EVENTS.c.action == "model.unlearned")
    for target, after in connection.execute(unlearned).all():
        ours = VERSIONS.c.name == target.removeprefix(TARGET)
        deleted = VERSIONS.c.version.in_((after or {}).get("versions_deleted", []))
        connection.execute(
            sa.update(VERSIONS).where(ours, deleted)
            .values(status="forgotten", reason="forgotten with a plant that left")
        )


def downgrade() -> None:
    """What they were is not kept; an older program takes them for versions that may not be promoted."""
    forgotten = VERSIONS.c.status == "forgotten"
    op.get_bind().execute(sa.update(VERSIONS).where(forgotten).values(status="gates_failed"))
