"""Administration of API tokens."""

from __future__ import annotations

from fastapi import APIRouter

from api.tokens import service
from api.tokens.schemas import NewToken, TokenRequest, Tokens
from api.web.auth import Administrator
from api.web.dependencies import BackendDep, PlainJSON, ReasonDep
from services.contracts.identity import ApiToken

router = APIRouter(prefix="/v1/admin/tokens", tags=["administration: tokens"], default_response_class=PlainJSON)
ROUTERS = (router,)


@router.get("")
def list_tokens(_: Administrator, backend: BackendDep) -> Tokens:
    """Tokens without their secrets, also expired and revoked ones."""
    return Tokens(tokens=tuple(backend.store.tokens.list_tokens()))


@router.post("", status_code=201)
def create_token(body: TokenRequest, caller: Administrator, backend: BackendDep) -> NewToken:
    """Make a token. Its secret is in this answer and can never be shown again."""
    return service.create(backend, caller.actor, body)


@router.post("/{token_id}/revoke")
def revoke_token(token_id: str, caller: Administrator, backend: BackendDep, reason: ReasonDep) -> ApiToken:
    """Revoke a token for good, from the next request on."""
    return service.revoke(backend, caller.actor, token_id, reason)
