"""Administration of webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from api.web.auth import Administrator
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from api.web.paging import Cursor, WholeList, page_of
from api.webhooks import service
from api.webhooks.schemas import Delivery, NewWebhook, WebhookRequest, Webhooks
from services.contracts.history.events import Webhook
from services.round_store.database.queries import MAX_PAGE

router = APIRouter(prefix="/v1/admin/webhooks", tags=["administration: webhooks"], default_response_class=PlainJSON)
ROUTERS = (router,)


@router.get("")
def list_webhooks(
    _: Administrator, backend: BackendDep, request: Request, response: Response, enabled: bool | None = None,
    limit: WholeList = MAX_PAGE, cursor: Cursor = None,
) -> Webhooks:
    """Webhooks without their secrets, with how far each has come; enabled ones or disabled ones where asked."""
    found = [
        each for each in backend.store.webhooks.list_webhooks() if enabled in (None, each.disabled_at is None)
    ]
    return Webhooks(
        webhooks=page_of(found, lambda each: (each.webhook_id,), (str,), request, response, limit, cursor)
    )


@router.post("", status_code=201)
def add_webhook(body: WebhookRequest, caller: Administrator, backend: BackendDep) -> NewWebhook:
    """Send events to an address from now on. The secret that signs them is in this answer and nowhere else.

    The sites in them have their real names. Whether an address of your own network may be named is yours to say.
    """
    return service.add(backend, caller.actor, body)


@router.delete("/{webhook_id}")
def remove_webhook(webhook_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> Webhook:
    """Send nothing there any more."""
    return service.remove(backend, caller.actor, webhook_id, reason)


@router.post("/{webhook_id}/enable")
def enable_webhook(webhook_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> Webhook:
    """Send there again after repeated failures, from the event on that did not arrive."""
    return service.enable(backend, caller.actor, webhook_id, reason)


@router.post("/{webhook_id}/test")
def test_webhook(webhook_id: str, _: Administrator, backend: BackendDep) -> Delivery:
    """Send a message of the kind `webhook.test` now, and say how it was taken."""
    return service.test(backend, webhook_id)
