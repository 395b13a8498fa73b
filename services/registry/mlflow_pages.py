"""MLflow's own pages behind its basic auth: ``uvicorn --factory services.registry.mlflow_pages:create_app``.

A browser adds the password that it knows to every request, whichever page makes it. MLflow turns away what pages of
other hosts ask, but not what pages of this host do, on whatever port and from whichever user's server. Here no page but
its own may ask.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from services.registry.mlflow_environment import silence_mlflow
from services.registry.mlflow_users import ARTIFACTS, ORIGIN, SECRETS, STORE
from services.registry.served_artifacts import ServedArtifacts

_FORBIDDEN: Final = "requests of other pages are not taken\n"


def create_app(environment: Mapping[str, str] | None = None) -> ASGIApp:
    """MLflow's application with basic auth, on the store and the folder that the environment names."""
    given = os.environ if environment is None else environment
    silence_mlflow()
    # Here, for this process: what it was started with can be listed, what it sets itself cannot.
    for file, name in SECRETS.items():
        os.environ[name] = Path(given[file]).read_text(encoding="ascii").strip()
    from mlflow import server

    # What `mlflow server` tells its workers, without the second process that would only wait for them.
    os.environ[server.BACKEND_STORE_URI_ENV_VAR] = Path(given[STORE]).read_text(encoding="utf-8").strip()
    os.environ[server.ARTIFACT_ROOT_ENV_VAR] = given[ARTIFACTS]
    os.environ["_MLFLOW_SGI_NAME"] = "uvicorn"
    is_here = given[ARTIFACTS].startswith("file:")
    if is_here:
        os.environ[server.SERVE_ARTIFACTS_ENV_VAR] = "true"
        os.environ[server.ARTIFACTS_DESTINATION_ENV_VAR] = given[ARTIFACTS]
    from mlflow.server import auth

    app: Any = auth.create_app()
    return OwnPagesOnly(ServedArtifacts(app, given[ARTIFACTS]) if is_here else app, given[ORIGIN])


class OwnPagesOnly:
    """Refuses with 403 what a page of another origin asks for, and every order that does not say that it is of ours."""

    def __init__(self, app: ASGIApp, origin: str) -> None:
        self._app = app
        self._origin = origin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on what is no browser's, or of our own pages."""
        if scope["type"] in ("http", "websocket") and self._is_foreign(scope):
            await PlainTextResponse(_FORBIDDEN, status_code=403)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_foreign(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != self._origin:
            return True
        is_order = scope.get("method") not in ("GET", "HEAD")
        return is_order and site is not None and site not in ("same-origin", "none")
