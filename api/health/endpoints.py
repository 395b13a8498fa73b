"""Whether the process lives, and whether everything that it needs is there. Neither needs a token."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import Field

from api.health.service import missing_parts, notices
from api.web.dependencies import BackendDep
from services.contracts.base import Contract
from services.process.command_line import product_version

router = APIRouter(tags=["health"])
ROUTERS = (router,)


class Health(Contract):
    """The process answers."""

    status: str = "ok"
    version: str


class Readiness(Contract):
    """Whether what is needed answers and the disk has room; ``missing`` says what does not, and what to do."""

    ready: bool
    missing: dict[str, str] = Field(default_factory=dict)
    notices: dict[str, str] = Field(default_factory=dict, description="what works, and somebody should look at")


@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers; asks nobody else."""
    return Health(version=product_version())


@router.get("/readyz", responses={503: {"model": Readiness, "description": "what is missing"}})
def readyz(backend: BackendDep, response: Response) -> Readiness:
    """Whether database and registry answer and the disk has room; 503 with what is missing, and why, where not."""
    missing = missing_parts(backend)
    response.status_code = 503 if missing else 200
    return Readiness(ready=not missing, missing=missing, notices={} if missing else notices(backend))
