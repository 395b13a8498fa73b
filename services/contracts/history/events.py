"""What happened, for whoever wants to be told: one entry each, numbered in the order in which they were committed."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import AwareDatetime, Field

from services.contracts.base import Contract, RunId, Slug

EventKind = Literal[
    "run.begun", "run.round", "run.completed", "run.failed", "run.cancelled", "gate.refused", "model.promoted",
    "site.silent", "site.back", "site.convicted", "site.left_out", "site.drifted", "exposure.refused",
]
"""``site.convicted``: a run goes on without a site whose answers cannot be true, or an auditor's verdict names it (code
``verdict``); ``site.left_out``: a run on sums goes on without one that is away for too long, or tells no more (``code``
and ``reason``); ``gate.refused``: also of a version whose run failed after it was registered; ``exposure.refused``: a
site refused, for its answer would isolate rows; ``site.drifted``: a site that joined tells that its readings have
moved, by :data:`DRIFTED` or more."""
NEVER_TRUE = frozenset({"contradiction", "copied", "false_shares", "implausible", "not_finite"})
"""Codes of sites that a run goes on without because their answers cannot be true."""
DRIFTED = 0.2
"""Drift, from 0 to 1, from which on somebody should look."""
LOST = "events.lost"
"""What a stream, and a webhook, is told first where events that it has not had are kept no more; no event is of it."""
KINDS: tuple[EventKind, ...] = get_args(EventKind)


class Event(Contract):
    """One thing that happened. ``plan`` is the model's name too; bounds are of a round's certificate."""

    number: int = Field(ge=1)
    at: AwareDatetime
    kind: EventKind
    plan: Slug | None = None
    run_id: RunId | None = None
    round: int | None = None
    site_id: Slug | None = None
    version: str | None = None
    code: str = ""
    reason: str = ""
    upper: float | None = None
    lower: float | None = None
    gap: float | None = None
    drift: float | None = None


class Webhook(Contract):
    """An address that events are sent to. ``kinds`` empty: all of them.

    ``last_number``: it goes on after this event. All up to it arrived, concern nobody there, or are from before it was
    added; ``delivered_at`` is when the last one arrived.
    """

    webhook_id: str = Field(pattern=r"^[0-9a-f]{12}$")
    url: str
    kinds: tuple[EventKind, ...] = ()
    created_by: str
    created_at: AwareDatetime
    last_number: int
    failures: int = Field(default=0, description="in a row; enough of them, and it is disabled")
    last_failure: str = ""
    delivered_at: AwareDatetime | None = None
    due_at: AwareDatetime
    disabled_at: AwareDatetime | None = None
