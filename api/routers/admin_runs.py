"""Administration of runs."""

from __future__ import annotations

from fastapi import APIRouter

from api.auth import Operator
from api.dependencies import Office, PlainJSON, actor_of
from api.schemas import Because
from api.use_cases import runs
from services.contracts.run import Run

router = APIRouter(prefix="/v1/admin/runs", tags=["administration: runs"], default_response_class=PlainJSON)


@router.post("/{run_id}/cancel", status_code=202)
def cancel_run(run_id: str, caller: Operator, backend: Office, body: Because | None = None) -> Run:
    """Ask a run to stop after its present round."""
    return runs.cancel(backend, actor_of(caller), run_id, body.reason if body else "")
