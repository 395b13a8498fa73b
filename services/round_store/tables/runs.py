"""The tables of runs: their state, rounds, exchanges and evidence; no column holds data of a plant."""


from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from services.round_store.tables.columns import Base, unique_where

UNFINISHED_STATUSES = ("pending", "running")
_UNFINISHED = text("status IN ('pending', 'running')")


class RunRow(Base):
    """A run, with the bounds of its last round and the lease of the process that drives it.

    ``plan`` is the document as it was when the run began: a run outlives changes of its plan. The partial unique index
    is what keeps a plan at one unfinished run, whoever asks at the same time.
    """

    __tablename__ = "runs"
    __table_args__ = (
        unique_where(_UNFINISHED, "uq_runs_plan_name", "plan_name"),
        Index(None, "plan_name", "created_at"),
        Index(None, "created_at"),
    )

    run_id: Mapped[str] = mapped_column(primary_key=True)
    plan_name: Mapped[str]
    plan: Mapped[dict[str, Any]]
    status: Mapped[str]
    reason: Mapped[str]
    doing: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    rounds: Mapped[int]
    sites: Mapped[list[Any]]
    absentees: Mapped[list[Any]]
    excluded: Mapped[list[Any]]
    upper: Mapped[float | None]
    lower: Mapped[float | None]
    gap: Mapped[float | None]
    fresh_weight: Mapped[float | None]
    cancel_requested: Mapped[bool]
    flow_run_id: Mapped[str | None]
    mlflow_run_id: Mapped[str | None]
    model_version: Mapped[str | None]
    lease_owner: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    start: Mapped[dict[str, Any] | None]
    digests: Mapped[dict[str, Any] | None]
    leaving: Mapped[dict[str, Any] | None]


class RunStateRow(Base):
    """The method state after a run's last committed round, as one frame of float64 arrays.

    Gone when the run ends, but for a plan's last completed one where the next goes on from it.

    What grows by the round stands in ``run_state_parts``; the header's ``grown`` says how many rows there are of each.
    """

    __tablename__ = "run_states"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    round: Mapped[int]
    frame: Mapped[bytes]


class RunStatePartRow(Base):
    """Rows that a round added to the arrays of the method state that grow; gone with the state."""

    __tablename__ = "run_state_parts"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    frame: Mapped[bytes]


class RunDraftRow(Base):
    """The version that a run's training and evaluation made, before the registry has it; gone when the run ends."""

    __tablename__ = "run_drafts"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    frame: Mapped[bytes]
    certificate: Mapped[bytes | None]


class RunExchangeRow(Base):
    """A task and a site's signed answer to it, as frames; gone when the run ends."""

    __tablename__ = "run_exchanges"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    site_id: Mapped[str] = mapped_column(primary_key=True)
    task: Mapped[bytes]
    answer: Mapped[bytes]


class EvidenceRow(Base):
    """The signed answers by which a site contradicted itself, as a file; of a cohort, a case for an auditor."""

    __tablename__ = "evidence"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    site_id: Mapped[str] = mapped_column(primary_key=True)
    document: Mapped[bytes]


class RoundRow(Base):
    """One committed round."""

    __tablename__ = "rounds"

    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    started_at: Mapped[datetime]
    seconds: Mapped[float]
    overhead_seconds: Mapped[float]
    upper: Mapped[float]
    lower: Mapped[float]
    gap: Mapped[float]
    fresh_weight: Mapped[float]
    committed_at: Mapped[datetime]


class SiteUpdateRow(Base):
    """Metadata of what one site answered in one round."""

    __tablename__ = "site_updates"
    __table_args__ = (ForeignKeyConstraint(["run_id", "round"], ["rounds.run_id", "rounds.round"]),)

    run_id: Mapped[str] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    site_id: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    code: Mapped[str]
    reason: Mapped[str]
    bytes_in: Mapped[int]
    bytes_out: Mapped[int]
    seconds: Mapped[float]
    payload_sha256: Mapped[str]
    question: Mapped[int] = mapped_column(server_default="0")
