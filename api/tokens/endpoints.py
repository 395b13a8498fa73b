"""Administration of API tokens."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth import Administrator
from api.dependencies import Office, PlainJSON, actor_of
from api.schemas import Because, NewToken, TokenRequest, Tokens
from api.use_cases import tokens
from services.contracts.identity import ApiToken

router = APIRouter(prefix="/v1/admin/tokens", tags=["administration: tokens"], default_response_class=PlainJSON)


@router.get("")
def list_tokens(_: Administrator, backend: Office) -> Tokens:
    """Tokens without their secrets, also expired and revoked ones."""
    return Tokens(tokens=tuple(backend.store.tokens.list_tokens()))


@router.post("", status_code=201)
def create_token(body: TokenRequest, caller: Administrator, backend: Office) -> NewToken:
    """Make a token. Its secret is in this answer and can never be shown again."""
    return tokens.create(backend, actor_of(caller), body)


@router.post("/{token_id}/revoke")
def revoke_token(token_id: str, caller: Administrator, backend: Office, body: Because | None = None) -> ApiToken:
    """Revoke a token for good, from the next request on."""
    return tokens.revoke(backend, actor_of(caller), token_id, body.reason if body else "")
