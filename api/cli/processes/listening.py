"""Where the OEM's processes listen: whether a port is free, the addresses of pages, whether somebody answers."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator

from sqlalchemy import make_url

from api.backend import answering
from api.backend.addresses import without_secrets
from services.bus.server import check_port_free
from services.contracts.errors import ConflictError
from services.process.listeners import other_home
from services.process.settings import Settings


def check_ports(settings: Settings) -> None:
    """Raise ``ConflictError`` for the first port that is taken, before anything is started or written."""
    for host, port, purpose in _wanted(settings):
        try:
            check_port_free(host, port, purpose)
        except ConflictError as error:
            other = other_home(port, settings.home)
            held = "" if other is None else f"; what holds it serves the home folder {other}"
            raise ConflictError(f"{error}{held}", code=error.code) from None


def _wanted(settings: Settings) -> Iterator[tuple[str, int, str]]:
    """Host, port and purpose of all that is started here."""
    yield settings.api.host, settings.api.port, "the API"
    if not settings.nats.servers:
        yield settings.nats.host, settings.nats.port, "the NATS server"
        if settings.nats.websocket_port:
            yield settings.nats.host, settings.nats.websocket_port, "the NATS server's WebSocket"
    if not settings.prefect.api_url:
        yield settings.prefect.host, settings.prefect.port, "the Prefect server"
    if not settings.mlflow.tracking_uri:
        yield settings.mlflow.host, settings.mlflow.port, "the MLflow server"


def api_url(settings: Settings) -> str:
    """Address of the REST API, as this host reaches it."""
    return settings.api.url


def mlflow_url(settings: Settings) -> str:
    """Address of the registry's pages, or where the registry is; a password in the settings is not shown."""
    named = settings.mlflow.tracking_uri
    if not named:
        return settings.mlflow.own_url
    if named.startswith(("http:", "https:")):
        return without_secrets(named)
    database = make_url(named).set(query={}).render_as_string(hide_password=True)
    return f"no pages here (ballast up --only mlflow); the registry is {database}"


def prefect_url(settings: Settings) -> str:
    """Address of Prefect's pages; a password in the settings is not shown."""
    return without_secrets(settings.prefect_api_url).removesuffix("/api")


def free_port(wanted: int) -> int:
    """Return the wanted port if it is free on this machine, else one that is."""
    try:
        check_port_free("127.0.0.1", wanted, "the demo")
    except ConflictError:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])
    return wanted


def listens(host: str, port: int) -> Callable[[], bool]:
    """Look whether anything listens on a port."""
    def ready() -> bool:
        try:
            with socket.create_connection((host, port), timeout=0.5):
                return True
        except OSError:
            return False

    return ready


def greets(host: str, port: int) -> Callable[[], bool]:
    """Look whether a NATS server is at work behind a port; one that hangs still listens."""
    return lambda: answering.greets(host, port)


def answers(url: str) -> Callable[[], bool]:
    """Look whether an address answers with 200."""
    # Only whether it lives: a certificate may name other addresses than the one that is asked here.
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    direct = urllib.request.build_opener(  # this host's own servers: no proxy knows them
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=unverified)
    )

    def ready() -> bool:
        try:
            with direct.open(url, timeout=2.0) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException):  # also where what answers speaks no HTTP
            return False

    return ready


def of_home(settings: Settings, port: int, ready: Callable[[], bool]) -> Callable[[], bool]:
    """Look whether it is ready, and is this home's: that of another home on the same port is not it."""
    return lambda: ready() and other_home(port, settings.home) is None
