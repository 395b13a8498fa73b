"""The API of the works, asked as a viewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyio.from_thread import start_blocking_portal
from httpx import ASGITransport, AsyncClient

from api.app import create_app
from api.backend.actor import Actor
from api.backend.wiring import open_backend
from api.tokens import service as tokens
from api.tokens.schemas import TokenRequest
from services.contracts.access.identity import Role
from services.process.settings import Settings

Ask = Callable[..., tuple[int, Any]]


@contextmanager
def asked_as_viewer(settings: Settings) -> Iterator[Ask]:
    """``ask(method, path, body=None)`` gives status and JSON."""
    with open_backend(settings) as backend:
        token = tokens.create(backend, Actor("test", Role.ADMINISTRATOR), TokenRequest(name="view", role=Role.VIEWER))
    app = create_app(settings)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):

        def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
            async def send() -> tuple[int, Any]:
                async with AsyncClient(transport=ASGITransport(app), base_url="http://ballast") as client:
                    headers = {"Authorization": f"Bearer {token.token}"}
                    answer = await client.request(method, path, json=body, headers=headers)
                    return answer.status_code, answer.json()

            return portal.call(send)

        yield ask
