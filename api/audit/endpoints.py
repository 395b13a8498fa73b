"""The audit trail."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.web.auth import Administrator
from api.web.dependencies import BackendDep, Limit, Offset, PlainJSON
from api.web.paging import Cursor, read_cursor, say_next, write_cursor
from services.contracts.base import Contract, Moment
from services.contracts.history.audit import AuditEvent, ChainReport

router = APIRouter(prefix="/v1/admin/audit", tags=["administration: audit trail"], default_response_class=PlainJSON)
ROUTERS = (router,)


class AuditEvents(Contract):
    """Audit events, newest first."""

    events: tuple[AuditEvent, ...]


@router.get("")
def list_audit_events(
    _: Administrator,
    backend: BackendDep,
    request: Request,
    response: Response,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: Limit = 100,
    offset: Offset = 0,
    cursor: Cursor = None,
) -> AuditEvents:
    """Events, newest first; of one actor, action, target or time where asked."""
    after = read_cursor(request.url.path, cursor, int)
    found = backend.store.audit.list_events(
        actor=actor, action=action, target=target, since=since, until=until, limit=limit + 1, offset=offset,
        before=None if after is None else after[0],
    )
    shown = tuple(found[:limit])
    if len(found) > limit:
        say_next(request, response, limit, write_cursor(request.url.path, [shown[-1].number]))
    return AuditEvents(events=shown)


@router.get("/verify")
def verify_audit_trail(_: Administrator, backend: BackendDep) -> ChainReport:
    """Check every event against its hash and its predecessor. Keep ``head`` elsewhere to compare with later."""
    return backend.store.audit.verify_chain()
