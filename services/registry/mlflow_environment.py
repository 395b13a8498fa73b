"""MLflow without phone-home and chatter. Call before the first import of ``mlflow``, here or in a child process."""

from __future__ import annotations

import logging
import os
from types import MappingProxyType

QUIET = MappingProxyType(
    {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # DO_NOT_TRACK=1 is not enough for MLflow, the word is; Prefect reads the same variable.
        "DO_NOT_TRACK": "true",
        # Alembic's steps when the database is created, at INFO on stderr.
        "MLFLOW_LOGGING_LEVEL": "WARNING",
        # No look at the environment variables that a model reads while its input example is tried.
        "MLFLOW_RECORD_ENV_VARS_IN_MODEL_LOGGING": "false",
        # A registry that is down answers within seconds: by default MLflow tries for minutes.
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
        "GIT_PYTHON_REFRESH": "quiet",
    }
)
"""Environment of every process that uses MLflow."""


def silence_mlflow() -> None:
    """Set :data:`QUIET` in this process; what the operator has set already stays."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # A database that is down is told in one line by what we raise; MLflow logs the stacks of three libraries with it.
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)


def mlflow_environment() -> dict[str, str]:
    """Copy of this process's environment with :data:`QUIET` in it, for a child process that runs ``mlflow``."""
    return {**QUIET, **os.environ}
