"""The processes of the OEM's side, as children of a supervisor."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import make_url

from api.backend.nats_users import active_keys
from api.cli.prefect_profiles import client_profile, server_profile
from api.cli.supervisor import Child, Supervisor
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles, TlsFiles
from services.bus.server import check_port_free, command, prepare
from services.contracts.errors import ConflictError, UnavailableError
from services.identity.server_secrets import USER, ServerSecrets
from services.process.private_files import private_folder
from services.process.settings import Settings
from services.registry.mlflow_environment import QUIET
from services.registry.mlflow_users import forget_users, pages_environment
from services.round_store.store import RoundStore

PACKAGES = Path(__file__).parents[2]
"""Folder that holds the packages ``api``, ``flows``, ``models`` and ``services``."""

PREFECT_GUARDS = {
    # A form of another page cannot have the token that every order must carry.
    "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    "PREFECT_CLIENT_CSRF_SUPPORT_ENABLED": "true",
}
QUIET_PREFECT = {
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_LOGGING_SERVER_LEVEL": "WARNING",
    "PREFECT_CLIENT_METRICS_ENABLED": "false",
}


def environment(settings: Settings) -> dict[str, str]:
    """Environment of every child: where home and the servers are, no phone-home, no code from the present folder."""
    return {
        **QUIET, **QUIET_PREFECT, **PREFECT_GUARDS,
        # ``python -m`` and uvicorn would both import an api.py or models.py that happens to lie where we were started.
        "PYTHONSAFEPATH": "1",
        "UVICORN_APP_DIR": str(PACKAGES),
        "BALLAST_HOME": str(settings.home),
        "PREFECT_HOME": str(settings.home / "prefect"),
        "PREFECT_API_URL": settings.prefect_api_url,
        "BALLAST_LOG_FORMAT": settings.logging.format,
        "BALLAST_LOG_LEVEL": settings.logging.level,
        # The arrays are small: threads would only get in one another's way.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def prefect_environment(settings: Settings) -> dict[str, str]:
    """Environment of the Prefect server: where its secrets are, and which pages may read what it answers."""
    return {
        **environment(settings), **server_profile(settings),
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": prefect_url(settings),
        # It copies its pages on starting, into its own package where nothing is said, which is not its user's to write.
        "PREFECT_SERVER_UI_STATIC_DIRECTORY": str(settings.home / "prefect" / "pages"),
    }


def flows_environment(settings: Settings) -> dict[str, str]:
    """Environment of the flows: where the Prefect server's secret is, and a temporary folder of their own."""
    # Prefect's runner keeps its files below the temporary folder, by a name that is the same for all users of a host.
    temporary = private_folder(private_folder(settings.home) / "prefect" / "tmp").resolve()
    return {**environment(settings), **client_profile(settings), "TMPDIR": str(temporary)}


def mlflow_environment(settings: Settings) -> dict[str, str]:
    """Environment of MLflow's pages: their secrets, their users' file and the stores that they show."""
    secrets = ServerSecrets(settings.secrets_folder)
    secrets.check()
    pages = pages_environment(
        settings.home, user=USER, password=secrets.mlflow_file, form_key=secrets.mlflow_form_file,
        host=settings.mlflow.host, port=settings.mlflow.port, tracking_uri=settings.tracking_uri,
        artifact_root=settings.artifact_root,
    )
    return {**environment(settings), **pages}


def make_secrets(settings: Settings) -> None:
    """Make the home folder, private, and the secrets of the embedded servers where they are missing."""
    private_folder(settings.home)
    secrets = ServerSecrets(settings.secrets_folder)
    if secrets.mlflow_file in secrets.make():
        forget_users(settings.home)


def inherited() -> dict[str, str]:
    """Return this process's own environment."""
    return dict(os.environ)


def check_ports(settings: Settings) -> None:
    """Raise ``ConflictError`` for the first port that is taken, before anything is started or written."""
    check_port_free(settings.api.host, settings.api.port, "the API")
    if not settings.nats.servers:
        check_port_free(settings.nats.host, settings.nats.port, "the NATS server")
        if settings.nats.websocket_port:
            check_port_free(settings.nats.host, settings.nats.websocket_port, "the NATS server's WebSocket")
    if not settings.prefect.api_url:
        check_port_free(settings.prefect.host, settings.prefect.port, "the Prefect server")
    if not settings.mlflow.tracking_uri:
        check_port_free(settings.mlflow.host, settings.mlflow.port, "the MLflow server")


def start_bus(supervisor: Supervisor, settings: Settings) -> None:
    """Start the embedded NATS server, unless the settings name another."""
    if settings.nats.servers:
        return
    files = BusFiles(settings.bus_folder)
    store = RoundStore.open(settings.database)
    try:
        keys = active_keys(store.sites)
        known_to = sum(site.last_seen is not None for site in store.sites.list_sites() if site.status != "removed")
    finally:
        store.close()
    prepare(
        files, host=settings.nats.host, port=settings.nats.port, host_names=settings.nats.host_names, site_keys=keys,
        websocket_port=settings.nats.websocket_port, known_to=known_to,
    )
    supervisor.start(Child("nats", command(files), listens(settings.nats.host, settings.nats.port), 15.0))


def start_prefect(supervisor: Supervisor, settings: Settings) -> None:
    """Start a Prefect server, unless the settings name another."""
    if settings.prefect.api_url:
        return
    make_secrets(settings)
    supervisor.start(Child("prefect", prefect_command(settings), answers(f"{settings.prefect_api_url}/health"), 120.0,
                           prefect_environment(settings)))


def prefect_command(settings: Settings, listen: str | None = None) -> list[str]:
    """Command line of the Prefect server."""
    host, port = listen or settings.prefect.host, str(settings.prefect.port)
    return [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", port]


def start_mlflow(supervisor: Supervisor, settings: Settings) -> None:
    """Start the pages of the registry, unless the settings name a tracking server."""
    if settings.mlflow.tracking_uri:
        return
    make_secrets(settings)
    host, port = settings.mlflow.host, settings.mlflow.port
    supervisor.start(Child("mlflow", mlflow_command(settings), answers(f"http://{host}:{port}/health"), 120.0,
                           mlflow_environment(settings)))


def mlflow_command(settings: Settings, listen: str | None = None) -> list[str]:
    """Command line of MLflow's pages."""
    return [sys.executable, "-m", "uvicorn", "--factory", "services.registry.mlflow_pages:create_app",
            "--host", listen or settings.mlflow.host, "--port", str(settings.mlflow.port), "--log-level", "warning"]


def start_api(supervisor: Supervisor, settings: Settings) -> None:
    """Start the REST API."""
    supervisor.start(
        Child("api", api_command(settings), answers(f"{api_url(settings)}/readyz"), 90.0, environment(settings))
    )


def api_command(settings: Settings) -> list[str]:
    """Command line of the REST API, whose certificate is made here where it needs one of its own."""
    host, port = settings.api.host, str(settings.api.port)
    program = [sys.executable, "-m", "uvicorn", "--factory", "api.app:create_app", "--host", host, "--port", port,
               "--log-level", "warning", "--timeout-graceful-shutdown", "3"]  # a stream of events has no end of its own
    if settings.api.uses_tls:
        certificate, key = api_certificate(settings)
        program += ["--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    return program


def api_certificate(settings: Settings) -> tuple[Path, Path]:
    """Certificate and key of the API: those of the settings, else its own, made by an authority of its own."""
    if settings.api.certificate is not None and settings.api.key is not None:
        for path in (settings.api.certificate, settings.api.key):
            if not path.is_file():
                raise UnavailableError(f"there is no file {path}, which the settings name for the API's TLS")
        return settings.api.certificate, settings.api.key
    files = TlsFiles(private_folder(settings.tls_folder))
    ensure_certificates(files, settings.api.host_names, "API")
    return files.certificate, files.key


def start_flows(supervisor: Supervisor, settings: Settings) -> None:
    """Start the flows process; Prefect must be ready."""
    supervisor.start(Child("flows", flows_command(), lambda: True, 10.0, flows_environment(settings)))


def flows_command() -> list[str]:
    """Command line of the flows."""
    return [sys.executable, "-m", "flows.runner"]


def api_url(settings: Settings) -> str:
    """Address of the REST API, as this host reaches it."""
    return settings.api.url


def mlflow_url(settings: Settings) -> str:
    """Address of the registry's pages, or where the registry is; a password in the settings is not shown."""
    named = settings.mlflow.tracking_uri
    if not named:
        return f"http://{settings.mlflow.host}:{settings.mlflow.port}"
    if named.startswith(("http:", "https:")):
        parts = urlsplit(named)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
    database = make_url(named).set(query={}).render_as_string(hide_password=True)
    return f"no pages here (ballast up --only mlflow); the registry is {database}"


def prefect_url(settings: Settings) -> str:
    """Address of Prefect's pages."""
    return settings.prefect_api_url.removesuffix("/api")


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


def answers(url: str) -> Callable[[], bool]:
    """Look whether an address answers with 200."""
    # Only whether it lives: a certificate may name other addresses than the one that is asked here.
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE

    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2.0, context=unverified) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    return ready


def log_folder(settings: Settings) -> Path:
    """Where the children's logs go."""
    return settings.home / "logs"
