"""PostgreSQL stores the frames of rounds as they are, and no longer tries to compress what is numbers.

The tries took more of a commit than all else of it, and made the frames smaller by little or nothing. SQLite never did.

Revision: 0015
Follows: 0014
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

FRAMES = {"run_exchanges": ("task", "answer"), "run_states": ("frame",), "run_state_parts": ("frame",)}


def upgrade() -> None:
    _store("EXTERNAL")


def downgrade() -> None:
    _store("EXTENDED")


def _store(how: str) -> None:
    """What is there stays as it was written; both are read alike."""
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, columns in FRAMES.items():
        for column in columns:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE {how}")
