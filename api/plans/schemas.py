"""What the endpoints of plans give."""

from __future__ import annotations

from services.contracts.base import Contract
from services.contracts.records import PlanRecord


class Plans(Contract):
    """Plans by name."""

    plans: tuple[PlanRecord, ...]
