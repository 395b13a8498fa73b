"""Forgets what the settings say is old, with an entry in the audit trail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.contracts.access.identity import Role
from services.process.settings import RetentionSettings
from services.round_store.operation.retention import Forgettable
from services.round_store.store import RoundStore

TIDIED = "retention.run"
"""Action in the audit trail: old rounds and events were dropped."""


def tidy(
    store: RoundStore, settings: RetentionSettings, *, actor: str, role: Role | None, dry_run: bool = False,
    now: datetime | None = None,
) -> Forgettable:
    """Drop what is old, a run at a time so that nobody waits long; what that is. ``dry_run`` drops nothing."""
    now = now or datetime.now(UTC)
    rounds_before = None if settings.rounds_days is None else now - timedelta(days=settings.rounds_days)
    events_before = now - timedelta(days=settings.events_days)
    found = store.retention.forgettable(rounds_before, events_before, settings.keep_versions)
    if dry_run or not (found.runs or found.events):
        return found
    dropped = {run_id: count for run_id in found.runs if (count := store.retention.drop_rounds(run_id))}
    rounds, events = sum(dropped.values()), store.retention.drop_events(events_before)
    done = found.model_copy(update={"runs": tuple(dropped), "rounds": rounds, "events": events})
    store.audit.append(
        actor=actor, role=role, action=TIDIED, target="store",
        after={"runs": len(done.runs), "rounds": rounds, "events": events},
    )
    return done
