"""The REST API: ``uvicorn --factory api.app:create_app``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from api.asset_types import endpoints as asset_types
from api.audit import endpoints as audit
from api.backend.wiring import open_backend
from api.health import endpoints as health
from api.health.service import product_version
from api.models import endpoints as models
from api.pages import endpoints as pages
from api.plans import endpoints as plans
from api.runs import endpoints as runs
from api.sites import endpoints as sites
from api.tokens import endpoints as tokens
from api.web import errors, openapi
from api.web.auth import Authentication, TokenAuthenticator
from api.web.limits import OnlyTls, RequestLimits, SafeHeaders
from services.contracts.private_files import keep_private
from services.contracts.settings import Settings

SUBJECTS = (pages, health, models, runs, sites, asset_types, plans, tokens, audit)


def api_routes() -> list[APIRoute]:
    """Every route that is ours."""
    routers = (router for subject in SUBJECTS for router in subject.ROUTERS)
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


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
    if settings is None:  # uvicorn calls: the process is the API's own
        keep_private()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_backend(settings) as backend:
            app.state.backend = backend
            app.state.authenticator = TokenAuthenticator(backend.store.tokens)
            yield

    app = Api(title="Ballast", version=product_version(), lifespan=lifespan, docs_url=None, redoc_url=None)
    # The last one added is the first that a request meets.
    app.add_middleware(Authentication)
    app.add_middleware(RequestLimits)
    app.add_middleware(OnlyTls)
    app.add_middleware(SafeHeaders)
    errors.install(app, api_routes())
    for subject in SUBJECTS:
        for router in subject.ROUTERS:
            app.include_router(router)
    return app
