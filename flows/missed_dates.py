"""Dates of schedules that came and that no flow run took: the store is asked for a run of each.

Prefect starts a date once. Where its flow run is lost before the store knows of a run (the flows process was killed
while it started, or the plan changed just before the date, which takes Prefect's scheduled flow runs away), nobody
would say so, and the plan would train at its next date, which may be a week away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from flows.orders import LATE, missed_date, order, utc_now
from services.contracts.history.records import PlanRecord
from services.round_store.store import RoundStore

LOG = logging.getLogger("ballast.flows")
PATIENCE = timedelta(minutes=3)
"""So long a date is Prefect's to start: its flow run loads packages, and is one of many where many plans share it."""


@dataclass
class MissedDates:
    """Looks at the plans as they are, and asks for what was missed while this process is there, or just before."""

    store: RoundStore
    now: Callable[[], datetime] = utc_now
    _next: dict[str, tuple[PlanRecord, datetime]] = field(default_factory=dict)
    _began: datetime | None = None
    _looked: datetime | None = None

    async def order(self, records: Iterable[PlanRecord]) -> list[str]:
        """Make a pending run of each date that is missed, and name their plans.

        Of a date more than an hour before this process began none is made: that may be of before a backup was restored.
        The store is asked when a date has come, not at every look.
        """
        now, ordered = self.now(), list[str]()
        if self._looked is not None and now < self._looked:  # the clock was put back: what was due by it is not now
            self._began = None
            self._next.clear()
        self._looked, self._began = now, self._began or now
        began = self._began
        for record in records:
            name = record.plan.name
            known, due = self._next.get(name, (None, now))
            if record.plan.cron is None or record.paused or (known == record and now < max(due, began) + PATIENCE):
                continue
            due = await missed_date(self.store, record, now, began - LATE)
            self._next[name] = record, due
            if now < max(due, began) + PATIENCE:
                continue
            if (run := order(self.store, record, due, missed_at=now)) is not None:
                LOG.warning("plan %s: nothing started its date %s; run %s does", name, f"{due:%F %H:%M}", run.run_id)
                ordered.append(name)
        return ordered
