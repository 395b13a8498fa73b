"""From what a run began, what its sites said of their rows, and whether a plant leaves with it.

Revision: 0010
Follows: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
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
STATES = ("run_state_parts", "run_states")
NEW = "warm_start"


def upgrade() -> None:
    for name in ("start", "digests", "leaving"):
        op.add_column("runs", sa.Column(name, sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Without the states of ended runs, and without the word in plans."""
    connection = op.get_bind()
    for name in STATES:
        states = sa.table(name, sa.column("run_id", sa.String()))
        ended = sa.select(RUNS.c.run_id).where(RUNS.c.status.not_in(("pending", "running")))
        connection.execute(sa.delete(states).where(states.c.run_id.in_(ended)))
    for table, keys, column in (
        (PLANS, (PLANS.c.name,), PLANS.c.document),
        (VERSIONS, (VERSIONS.c.name, VERSIONS.c.version), VERSIONS.c.document),
        (RUNS, (RUNS.c.run_id,), RUNS.c.plan),
    ):
        for *found, plan in connection.execute(sa.select(*keys, column)).all():
            same = [key == value for key, value in zip(keys, found, strict=True)]
            plan.pop(NEW, None)
            connection.execute(sa.update(table).where(*same).values({column.name: plan}))
    with op.batch_alter_table("runs") as runs:
        for name in ("start", "digests", "leaving"):
            runs.drop_column(name)
