"""The audit trail."""

from __future__ import annotations

from fastapi import APIRouter

from api.web.auth import Administrator
from api.web.dependencies import BackendDep, Limit, Offset, PlainJSON
from services.contracts.audit import AuditEvent, ChainReport
from services.contracts.base import Contract

router = APIRouter(prefix="/v1/admin/audit", tags=["administration: audit trail"], default_response_class=PlainJSON)
ROUTERS = (router,)


class AuditEvents(Contract):
    """Audit events, newest first."""

    events: tuple[AuditEvent, ...]


@router.get("")
def list_audit_events(
    _: Administrator,
    backend: BackendDep,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> AuditEvents:
    """Events, newest first; of one actor, action or target where asked."""
    found = backend.store.audit.list_events(actor=actor, action=action, target=target, limit=limit, offset=offset)
    return AuditEvents(events=tuple(found))


@router.get("/verify")
def verify_audit_trail(_: Administrator, backend: BackendDep) -> ChainReport:
    """Check every event against its hash and its predecessor. Keep ``head`` elsewhere to compare with later."""
    return backend.store.audit.verify_chain()
