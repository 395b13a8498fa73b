"""Predictions by the Open Inference Protocol: health, metadata, inference. Its errors are ``{"error": "..."}``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from api.inference import service
from api.inference.schemas import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from api.web.auth import Diagnoser
from api.web.dependencies import BackendDep
from api.web.repeated_keys import may_repeat, members_of, refuse_repeated
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.evaluation.diagnosis import VersionName
from services.process.command_line import product_version
from services.registry.labels import CHAMPION

BINARY = "Inference-Header-Content-Length"
"""Header of a request whose tensors follow its JSON as bytes: an extension of the protocol that is not taken."""


class ProtocolRoute(APIRoute):
    """Route that refuses a body in which a key is there twice, and one of binary tensors."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Handler that looks at the body first; one that is no JSON is left to the usual one."""
        whole = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if request.method != "POST":
                return await whole(request)
            if BINARY in request.headers:
                raise InvalidInputError(f"binary tensors are not taken: send numbers in data, without {BINARY}")
            try:
                body, found = await request.body(), await request.json()
            except (ValueError, RecursionError, ClientDisconnect):
                return await whole(request)
            if may_repeat(body, members_of(found)):
                await run_in_threadpool(refuse_repeated, body)
            return await whole(request)

        return handle


router = APIRouter(prefix="/v2", tags=["open inference protocol"], route_class=ProtocolRoute)
ROUTERS = (router,)
MODEL, VERSION = "/models/{name}", "/models/{name}/versions/{version}"
Version = Annotated[VersionName, Path()]


@router.get("/health/live")
async def server_live() -> ServerLive:
    """Whether the process answers."""
    return ServerLive(live=True)


@router.get("/health/ready")
def server_ready(backend: BackendDep, response: Response) -> ServerReady:
    """Whether the database answers, without which nobody is known; 503 where it does not. `/readyz` says more."""
    try:
        backend.check_store()
    except BallastError:
        response.status_code = 503
    return ServerReady(ready=response.status_code != 503)


@router.get("")
async def server_metadata(_: Diagnoser) -> ServerMetadata:
    """Name and version of the server."""
    return ServerMetadata(version=product_version())


@router.get(VERSION)
def version_metadata(name: str, version: Version, _: Diagnoser, backend: BackendDep) -> ModelMetadata:
    """Tensors of a version, by number or alias."""
    served = backend.predictors.get(name, version)
    return ModelMetadata(
        name=name, versions=(served.version.version,), inputs=service.inputs(served), outputs=service.outputs(served)
    )


@router.get(MODEL)
def model_metadata(name: str, caller: Diagnoser, backend: BackendDep) -> ModelMetadata:
    """Tensors of a model's champion; `versions` are those that may be asked for by number, the newest first."""
    found = version_metadata(name, CHAMPION, caller, backend)
    there = backend.store.model_versions.numbers(name)
    return found.model_copy(update={"versions": there or found.versions})


@router.get(f"{VERSION}/ready")
def version_ready(name: str, version: Version, _: Diagnoser, backend: BackendDep) -> ModelReady:
    """Whether a version, by number or alias, can answer; 404 where there is none."""
    backend.predictors.get(name, version)
    return ModelReady(name=name, ready=True)


@router.get(f"{MODEL}/ready")
def model_ready(name: str, caller: Diagnoser, backend: BackendDep) -> ModelReady:
    """Whether a model's champion can answer; 404 where there is none."""
    return version_ready(name, CHAMPION, caller, backend)


@router.post(f"{VERSION}/infer", response_model_exclude_none=True)
def version_infer(
    name: str, version: Version, body: InferRequest, _: Diagnoser, backend: BackendDep
) -> InferResponse:
    """Classes and scores, or estimates, of samples as tensors, by a version's number or alias.

    Either one tensor `features` (n, P) of FP64 or FP32 in the contract's order and units, or a tensor (n,) for each
    feature by its name, where optional ones may be left out. Outputs are `class` (BYTES) and `scores`, or `estimate`.
    Nothing of a measurement is kept.
    """
    return service.infer(backend.predictors.get(name, version), name, body)


@router.post(f"{MODEL}/infer", response_model_exclude_none=True)
def model_infer(name: str, body: InferRequest, caller: Diagnoser, backend: BackendDep) -> InferResponse:
    """Classes and scores, or estimates, of samples as tensors, by a model's champion."""
    return version_infer(name, CHAMPION, body, caller, backend)
