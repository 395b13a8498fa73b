"""Promotion and rollback of model versions."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth import Operator
from api.dependencies import Office, PlainJSON, actor_of
from api.schemas import ChampionChange, Promotion, Rollback
from api.use_cases import models

router = APIRouter(prefix="/v1/admin/models", tags=["administration: models"], default_response_class=PlainJSON)


@router.post("/{name}/promote")
def promote_model(name: str, body: Promotion, caller: Operator, backend: Office) -> ChampionChange:
    """Make a version champion, if the gates of its plan hold or are set aside; a reason is needed."""
    return models.promote(
        backend, actor_of(caller), name, body.version, body.reason, ignore_gates=body.ignore_gates
    )  # fmt: skip


@router.post("/{name}/rollback")
def roll_back_model(name: str, body: Rollback, caller: Operator, backend: Office) -> ChampionChange:
    """Make the champion before this one champion again; a reason is needed."""
    return models.rollback(backend, actor_of(caller), name, body.reason)
