"""Whether the process lives, and whether everything that it needs is there. Neither needs a token."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api.health.schemas import Health, Readiness
from api.health.service import missing_parts, notices, product_version
from api.web.dependencies import BackendDep

router = APIRouter(tags=["health"])
ROUTERS = (router,)


@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers; asks nobody else."""
    return Health(version=product_version())


@router.get("/readyz", responses={503: {"model": Readiness, "description": "what is missing"}})
def readyz(backend: BackendDep, response: Response) -> Readiness:
    """Whether the database and the registry answer; 503 with what is missing when one does not."""
    missing = missing_parts(backend)
    response.status_code = 503 if missing else 200
    return Readiness(ready=not missing, missing=missing, notices={} if missing else notices(backend))
