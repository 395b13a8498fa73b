"""The REST API: ``uvicorn --factory api.app:create_app``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from api import errors, openapi
from api.auth import Authentication, Gatekeeper
from api.limits import RequestLimits, SafeHeaders
from api.routers import (
    admin_asset_types,
    admin_audit,
    admin_models,
    admin_plans,
    admin_runs,
    admin_sites,
    admin_tokens,
    diagnose,
    estimate,
    fairness,
    health,
    home,
    models,
    runs,
)
from api.wiring import open_backend
from services.contracts.settings import Settings

ROUTERS = (
    home, health, diagnose, estimate, models, fairness, runs,
    admin_sites, admin_asset_types, admin_plans, admin_runs, admin_models, admin_tokens, admin_audit,
)  # fmt: skip


def api_routes() -> list[APIRoute]:
    """Every route that is ours."""
    return [route for module in ROUTERS for route in module.router.routes if isinstance(route, APIRoute)]


class Api(FastAPI):
    """Application whose OpenAPI document is ours."""

    def openapi(self) -> dict[str, Any]:
        """OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self, api_routes())
        return self.openapi_schema


def create_app(settings: Settings | None = None) -> FastAPI:
    """Application on the settings' stores (default: :meth:`Settings.load`).

    It starts also while a store is away: ``/readyz`` says what is missing, and what needs it answers 503.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_backend(settings) as backend:
            app.state.backend = backend
            app.state.gatekeeper = Gatekeeper(backend.store.tokens)
            yield

    app = Api(title="Ballast", version=health.product_version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    # The last one added is the first that a request meets.
    app.add_middleware(Authentication)
    app.add_middleware(RequestLimits)
    app.add_middleware(SafeHeaders)
    app.add_exception_handler(Exception, _unexpected)
    errors.install(app)
    for module in ROUTERS:
        app.include_router(module.router)
    return app


def _unexpected(_: Request, error: Exception) -> Response:
    return errors.of_unexpected(error)
