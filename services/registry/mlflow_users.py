"""What the process with MLflow's pages is told: its users, its secrets, its stores, who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from services.process.private_files import private_opener
from services.registry.mlflow_environment import QUIET

ORIGIN: Final = "BALLAST_MLFLOW_ORIGIN"
"""Variable with the address under which the pages are opened."""
STORE: Final = "BALLAST_MLFLOW_STORE_FILE"
"""Variable with the file that holds the store's address, in which there may be a password."""
ARTIFACTS: Final = "BALLAST_MLFLOW_ARTIFACTS"
SECRETS: Final = {
    "BALLAST_MLFLOW_PASSWORD_FILE": "MLFLOW_AUTH_ADMIN_PASSWORD",
    "BALLAST_MLFLOW_FORM_KEY_FILE": "MLFLOW_FLASK_SERVER_SECRET_KEY",
}
"""Variables that name files, and the variables of MLflow that the process puts their content into, for itself."""


def pages_environment(
    home: Path, *, user: str, password: Path, form_key: Path, host: str, port: int, tracking_uri: str,
    artifact_root: str,
) -> dict[str, str]:
    """Write MLflow's configuration of users into the home folder; the environment of the process with its pages.

    ``password`` and ``form_key`` are files; the environment names them, and holds nothing of what they hold.
    """
    users = home / "mlflow-users.db"
    configuration = home / "mlflow-users.ini"
    with open(configuration, "w", encoding="utf-8", opener=private_opener) as file:
        # Whoever is added later sees nothing until he is given it. A password is hashed once a minute, not at every
        # request: a page of MLflow makes dozens.
        file.write(
            f"[mlflow]\ndefault_permission = NO_PERMISSIONS\ndatabase_uri = {_as_value(f'sqlite:///{users.resolve()}')}\n"
            f"admin_username = {_as_value(user)}\nauthorization_function = "
            "mlflow.server.auth:authenticate_request_basic_auth\nauth_cache_ttl_seconds = 60\n"
        )
    store = home / "mlflow-store.txt"
    with open(store, "w", encoding="utf-8", opener=private_opener) as file:
        file.write(tracking_uri + "\n")
    # Under this one name: another user's server may answer to `localhost` on the other kind of address (::1).
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return {
        **QUIET,
        "MLFLOW_AUTH_CONFIG_PATH": str(configuration),
        "MLFLOW_AUTH_ADMIN_USERNAME": user,
        **{name: str(path.resolve()) for name, path in zip(SECRETS, (password, form_key), strict=True)},
        "MLFLOW_BASIC_AUTH_FAIL_CLOSED": "true",
        "MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE": "false",
        "MLFLOW_SERVER_ALLOWED_HOSTS": name,
        "MLFLOW_SERVER_X_FRAME_OPTIONS": "DENY",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        STORE: str(store.resolve()),
        ARTIFACTS: artifact_root,
        ORIGIN: f"http://{name}",
    }


def _as_value(text: str) -> str:
    """A text in the file: there a % begins what is put in from elsewhere."""
    return text.replace("%", "%%")


def forget_users(home: Path) -> None:
    """Throw MLflow's users away, so that the next start makes the one user with the password of now."""
    for name in ("mlflow-users.db", "mlflow-users.db-wal", "mlflow-users.db-shm"):
        (home / name).unlink(missing_ok=True)
