"""The REST API: ``uvicorn --factory api.app:create_app``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from prometheus_client import ProcessCollector
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from api.asset_types import endpoints as asset_types
from api.audit import endpoints as audit
from api.backend.first_keys import begin_with_keys
from api.backend.wiring import open_backend
from api.console import routes as console
from api.console.errors import as_page
from api.console.sign_ins import SignIns, sign_in_key
from api.events import endpoints as events
from api.events.feed import Feed
from api.health import endpoints as health
from api.inference import endpoints as inference
from api.models import endpoints as models
from api.pages import endpoints as pages
from api.plans import endpoints as plans
from api.runs import endpoints as runs
from api.sites import endpoints as sites
from api.system import endpoints as system
from api.system.store_metrics import StoreMetrics
from api.tokens import endpoints as tokens
from api.web import errors, openapi
from api.web.addresses import Addresses
from api.web.attempts import FailedAttempts
from api.web.auth import Authentication
from api.web.authenticator import TokenAuthenticator
from api.web.idempotency import Idempotency
from api.web.limits import OnlyTls, RequestLimits, SafeHeaders
from api.web.metering import Metering, Meters
from api.web.protocol_errors import ProtocolErrors
from api.web.sessions import Sessions
from api.web.slow_readers import SlowReaders
from api.webhooks import endpoints as webhooks
from api.webhooks.delivery import Deliverer
from services.contracts.errors import BallastError
from services.process.command_line import product_version
from services.process.log_lines import set_up_logs
from services.process.past_proxies import reach_this_host_directly
from services.process.private_files import keep_private
from services.process.settings import Settings

SUBJECTS = (
    pages, health, models, inference, runs, sites, asset_types, plans, tokens, audit, events, webhooks, system, console
)


def routes() -> list[BaseRoute]:
    """Every route of every subject, in the order in which a request meets them."""
    return [route for subject in SUBJECTS for router in subject.ROUTERS for route in router.routes]


def api_routes() -> list[APIRoute]:
    """Every route that is ours, the console's pages among them."""
    return [route for route in routes() if isinstance(route, APIRoute)]


class Api(FastAPI):
    """Application whose OpenAPI document is ours, and that lets go of clients that take nothing."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._slow_readers = SlowReaders()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. No middleware has the server's own ``send``, and so the connection."""
        if scope["type"] == "http":
            await self._slow_readers.answer(super().__call__, scope, receive, send)
        else:
            await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """OpenAPI document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self, api_routes())
        return self.openapi_schema


def create_app(settings: Settings | None = None) -> FastAPI:
    """Application on the settings' stores (default: :meth:`Settings.load`).

    It starts also while a store is away: ``/readyz`` says what is missing, and what needs it answers 503. As a process
    of its own it ends with one line where a key of the home folder is not the service's.
    """
    if settings is None:  # uvicorn calls: the process is the API's own
        keep_private()
        reach_this_host_directly()
        settings = Settings.load()
        set_up_logs(settings.logging)
        try:
            begin_with_keys(settings)
        except BallastError as error:
            sys.exit(f"ballast: {error}")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with open_backend(settings) as backend:
            _ = backend.predictors  # made once, before the threads of requests ask for it
            app.state.backend = backend
            app.state.enrolment_attempts = FailedAttempts("enrolment codes")
            app.state.authenticator = TokenAuthenticator(
                backend.store.tokens, Sessions(backend.store), backend.oidc, mark=backend.store.changes.read
            )
            app.state.sign_ins = SignIns(partial(sign_in_key, backend))
            app.state.feed = Feed(backend)
            app.state.meters.registry.register(StoreMetrics(backend))
            reader, deliverer = asyncio.create_task(app.state.feed.run()), Deliverer(backend)
            deliverer.start()
            try:
                yield
            finally:
                deliverer.stop()
                reader.cancel()
                await asyncio.gather(reader, return_exceptions=True)

    # The routes as they are: a router that is included makes its routes once more at the first request that meets it.
    app = Api(
        title="Ballast", version=product_version(), lifespan=lifespan, docs_url=None, redoc_url=None, routes=routes()
    )
    app.state.meters = Meters()
    ProcessCollector(registry=app.state.meters.registry)
    # The last one added is the first that a request meets.
    app.add_middleware(Idempotency)
    app.add_middleware(Authentication)
    app.add_middleware(RequestLimits)
    app.add_middleware(OnlyTls)
    app.add_middleware(ProtocolErrors)
    app.add_middleware(SafeHeaders)
    app.add_middleware(Metering)
    app.add_middleware(Addresses)
    errors.install(app, api_routes(), as_page)
    return app
