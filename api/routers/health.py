"""Whether the process lives, and whether everything that it needs is there. Neither needs a token."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, Response

from api.dependencies import Office
from api.schemas import Health, Readiness
from api.wiring import Backend
from services.contracts.errors import BallastError

router = APIRouter(tags=["health"])


def product_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("ballast-diagnosis")
    except PackageNotFoundError:  # a source tree on the path, not installed
        return "0+source"


@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers; asks nobody else."""
    return Health(version=product_version())


@router.get("/readyz", responses={503: {"model": Readiness, "description": "what is missing"}})
def readyz(backend: Office, response: Response) -> Readiness:
    """Whether the database and the registry answer; 503 with what is missing when one does not."""
    missing = missing_parts(backend)
    response.status_code = 503 if missing else 200
    return Readiness(ready=not missing, missing=missing)


def missing_parts(backend: Backend) -> dict[str, str]:
    """What is needed and does not answer, with the reason."""
    missing = {}
    for part, ask in (("database", backend.check_store), ("registry", backend.registry.models)):
        try:
            ask()
        except BallastError as error:
            missing[part] = str(error)
    return missing
