"""What the endpoints of the audit trail give."""

from __future__ import annotations

from services.contracts.audit import AuditEvent
from services.contracts.base import Contract


class AuditEvents(Contract):
    """Audit events, newest first."""

    events: tuple[AuditEvent, ...]
