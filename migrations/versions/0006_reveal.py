"""What a run reveals of its sites' answers: plans and runs from before it was asked show each site's.

Revision: 0006
Follows: 0005
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

PLANS = sa.table("plans", sa.column("name", sa.String()), sa.column("document", sa.JSON()))
VERSIONS = sa.table(
    "plan_versions", sa.column("name", sa.String()), sa.column("version", sa.BigInteger()),
    sa.column("document", sa.JSON()),
)
RUNS = sa.table("runs", sa.column("run_id", sa.String()), sa.column("plan", sa.JSON()))
NEW = ("reveal", "min_cohort", "sum_threshold", "auditor", "noise", "largest_share", "sample_factor")


def upgrade() -> None:
    _change(lambda plan: {"reveal": "each site", **plan})


def downgrade() -> None:
    _change(lambda plan: {name: value for name, value in plan.items() if name not in NEW})


def _change(changed: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    connection = op.get_bind()
    for table, keys, column in (
        (PLANS, (PLANS.c.name,), PLANS.c.document),
        (VERSIONS, (VERSIONS.c.name, VERSIONS.c.version), VERSIONS.c.document),
        (RUNS, (RUNS.c.run_id,), RUNS.c.plan),
    ):
        for *found, plan in connection.execute(sa.select(*keys, column)).all():
            same = [key == value for key, value in zip(keys, found, strict=True)]
            connection.execute(sa.update(table).where(*same).values({column.name: changed(plan)}))
