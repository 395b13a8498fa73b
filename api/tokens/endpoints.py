"""Administration of API tokens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from api.tokens import service
from api.tokens.schemas import NewToken, TokenRequest, Tokens
from api.web.auth import Administrator
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from api.web.paging import Cursor, WholeList, page_of
from services.contracts.access.identity import ApiToken, Role
from services.round_store.database.queries import MAX_PAGE

router = APIRouter(prefix="/v1/admin/tokens", tags=["administration: tokens"], default_response_class=PlainJSON)
ROUTERS = (router,)


@router.get("")
def list_tokens(
    _: Administrator,
    backend: BackendDep,
    request: Request,
    response: Response,
    role: Role | None = None,
    live: Annotated[bool | None, Query(description="whether they hold now; null: all")] = None,
    limit: WholeList = MAX_PAGE,
    cursor: Cursor = None,
) -> Tokens:
    """Tokens without their secrets, also expired and revoked ones; of one role where asked."""
    now = datetime.now(UTC)
    found = [
        token for token in backend.store.tokens.list_tokens()
        if (role is None or token.role == role) and (live is None or token.is_live(now) == live)
    ]

    def key(token: ApiToken) -> tuple[float, str]:
        return -token.created_at.timestamp(), token.token_id

    return Tokens(tokens=page_of(found, key, (float, str), request, response, limit, cursor))


@router.post("", status_code=201)
def create_token(body: TokenRequest, caller: Administrator, backend: BackendDep) -> NewToken:
    """Make a token. Its secret is in this answer and can never be shown again."""
    return service.create(backend, caller.actor, body)


@router.post("/{token_id}/revoke")
def revoke_token(token_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> ApiToken:
    """Revoke a token for good, from the next request on."""
    return service.revoke(backend, caller.actor, token_id, reason)
