"""The processes of the OEM's side, as children of a supervisor."""

from __future__ import annotations

import sys
from pathlib import Path

from api.backend.nats_users import active_keys
from api.cli.processes.child_environment import (
    environment,
    flows_environment,
    make_secrets,
    mlflow_environment,
    prefect_environment,
)
from api.cli.processes.listening import answers, api_url, listens, of_home
from api.cli.processes.supervisor import Child, Supervisor
from services.bus.certificates import ensure_certificates
from services.bus.configuration import BusFiles, TlsFiles
from services.bus.server import command, prepare
from services.contracts.errors import UnavailableError
from services.process.private_files import private_folder
from services.process.settings import HOME_VARIABLE, Settings
from services.round_store.store import RoundStore


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
    ready = of_home(settings, settings.nats.port, listens(settings.nats.host, settings.nats.port))
    supervisor.start(Child("nats", command(files), ready, 15.0, {HOME_VARIABLE: str(settings.home)}))


def start_prefect(supervisor: Supervisor, settings: Settings) -> None:
    """Start a Prefect server, unless the settings name another."""
    if settings.prefect.api_url:
        return
    make_secrets(settings)
    ready = of_home(settings, settings.prefect.port, answers(f"{settings.prefect_api_url}/health"))
    supervisor.start(Child("prefect", prefect_command(settings), ready, 120.0, prefect_environment(settings)))


def prefect_command(settings: Settings, listen: str | None = None) -> list[str]:
    """Command line of the Prefect server."""
    host, port = listen or settings.prefect.host, str(settings.prefect.port)
    return [sys.executable, "-m", "prefect", "server", "start", "--host", host, "--port", port]


def start_mlflow(supervisor: Supervisor, settings: Settings) -> None:
    """Start the pages of the registry, unless the settings name a tracking server."""
    if settings.mlflow.tracking_uri:
        return
    make_secrets(settings)
    ready = of_home(settings, settings.mlflow.port, answers(f"{settings.mlflow.own_url}/health"))
    supervisor.start(Child("mlflow", mlflow_command(settings), ready, 120.0, mlflow_environment(settings)))


def mlflow_command(settings: Settings, listen: str | None = None) -> list[str]:
    """Command line of MLflow's pages."""
    return [sys.executable, "-m", "uvicorn", "--factory", "services.registry.mlflow_pages:create_app",
            "--host", listen or settings.mlflow.host, "--port", str(settings.mlflow.port), "--log-level", "warning"]


def start_api(supervisor: Supervisor, settings: Settings) -> None:
    """Start the REST API."""
    ready = of_home(settings, settings.api.port, answers(f"{api_url(settings)}/readyz"))
    supervisor.start(Child("api", api_command(settings), ready, 90.0, environment(settings)))


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
    """Certificate and key of the API: those of the settings, else its own, made by an authority of its own.

    :class:`UnavailableError` where a file of the settings is not there.
    """
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


def log_folder(settings: Settings) -> Path:
    """Where the children's logs go."""
    return settings.home / "logs"
