"""To which round's question a site's answer was, where that is an earlier one.

Revision: 0011
Follows: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

PLANS = sa.table("plans", sa.column("name", sa.String()), sa.column("document", sa.JSON()))
VERSIONS = sa.table(
    "plan_versions", sa.column("name", sa.String()), sa.column("version", sa.BigInteger()),
    sa.column("document", sa.JSON()),
)
RUNS = sa.table(
    "runs", sa.column("run_id", sa.String()), sa.column("plan", sa.JSON()), sa.column("status", sa.String())
)
ANSWERS = sa.table("site_updates", sa.column("status", sa.String()))
NEW = "waiting"


def upgrade() -> None:
    op.add_column("site_updates", sa.Column("question", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Without the word in plans, and without what says that a site was still at work."""
    connection = op.get_bind()
    connection.execute(sa.delete(ANSWERS).where(ANSWERS.c.status == "open"))
    for table, keys, column in (
        (PLANS, (PLANS.c.name,), PLANS.c.document),
        (VERSIONS, (VERSIONS.c.name, VERSIONS.c.version), VERSIONS.c.document),
        (RUNS, (RUNS.c.run_id,), RUNS.c.plan),
    ):
        for *found, plan in connection.execute(sa.select(*keys, column)).all():
            same = [key == value for key, value in zip(keys, found, strict=True)]
            plan.pop(NEW, None)
            connection.execute(sa.update(table).where(*same).values({column.name: plan}))
    with op.batch_alter_table("site_updates") as answers:
        answers.drop_column("question")
