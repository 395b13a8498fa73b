"""Method states in parts, one a round. A state of before stands whole where it stood, and is read so.

Revision: 0007
Follows: 0006
"""

import json
import struct
from typing import Any

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATES = sa.table("run_states", sa.column("run_id", sa.String()), sa.column("frame", sa.LargeBinary()))
PARTS = sa.table(
    "run_state_parts", sa.column("run_id", sa.String()), sa.column("round", sa.BigInteger()),
    sa.column("frame", sa.LargeBinary()),
)
FRAMES = (
    ("run_states", "frame"), ("run_state_parts", "frame"), ("run_exchanges", "task"), ("run_exchanges", "answer"),
)
MAGIC = b"BLS1"


def upgrade() -> None:
    op.create_table(
        "run_state_parts",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("round", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("frame", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name=op.f("fk_run_state_parts_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "round", name=op.f("pk_run_state_parts")),
    )
    _store("EXTERNAL")


def downgrade() -> None:
    """Put the parts of each state into its frame again."""
    connection = op.get_bind()
    for run_id, frame in connection.execute(sa.select(STATES.c.run_id, STATES.c.frame)).all():
        header, arrays = _unpacked(frame)
        grown = header.pop("grown", {})
        joined: dict[str, Any] = {}
        parts = sa.select(PARTS.c.frame).where(PARTS.c.run_id == run_id).order_by(PARTS.c.round)
        for (part,) in connection.execute(parts).all():
            of_round, rows = _unpacked(part)
            for name, (axis, start) in of_round["starts"].items():
                before = joined[name] if start else rows[name].take([], axis=axis)
                joined[name] = np.concatenate([before, rows[name]], axis=axis)
        whole = _packed(header, {**{name: joined[name] for name in grown}, **arrays})
        connection.execute(sa.update(STATES).where(STATES.c.run_id == run_id).values(frame=whole))
    _store("EXTENDED")
    op.drop_table("run_state_parts")


def _store(how: str) -> None:
    """Whether PostgreSQL tries to compress frames: random digits do not shrink, and trying takes most of a commit."""
    if op.get_bind().dialect.name == "postgresql":
        for table, column in FRAMES:
            op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE {how}")


def _unpacked(frame: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of an unsigned frame, as the codec of this revision packs them."""
    (length,) = struct.unpack("<I", frame[4:8])
    header, at, arrays = json.loads(frame[8 : 8 + length]), 8 + length, {}
    for name, shape in header.pop("arrays"):
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(frame, "<f8", count, at).reshape(shape)
        at += 8 * count
    return header, arrays


def _packed(header: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    full = header | {"arrays": [[name, list(array.shape)] for name, array in arrays.items()]}
    text = json.dumps(full, sort_keys=True, separators=(",", ":")).encode()
    return MAGIC + struct.pack("<I", len(text)) + text + b"".join(array.tobytes() for array in arrays.values())
