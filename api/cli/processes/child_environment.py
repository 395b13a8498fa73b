"""Environment of the OEM's processes: where the servers and their secrets are, nothing that phones home."""

from __future__ import annotations

import os
from pathlib import Path

from api.cli.processes.listening import prefect_url
from api.cli.processes.prefect_profiles import client_profile, server_profile
from services.identity.server_secrets import USER, ServerSecrets
from services.process.private_files import private_folder
from services.process.settings import Settings
from services.registry.mlflow_environment import QUIET
from services.registry.mlflow_users import forget_users, pages_environment

PACKAGES = Path(__file__).parents[3]
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


def of_a_child(settings: Settings) -> dict[str, str]:
    """Environment of a child that is started without the supervisor: with this process's own."""
    return {**os.environ, **environment(settings)}
