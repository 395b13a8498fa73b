"""MLflow's failures as Ballast's, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError

_IN_AN_ADDRESS: Final = re.compile(r"(?<=://)[^/?#\s]*@")
"""User and password: MLflow's client quotes the address that it asks, and all who use a model read why it is away."""


@contextmanager
def mlflow_errors(doing: str) -> Iterator[None]:
    """Translate what MLflow raises while ``doing`` (such as ``"read model pump"``); Ballast's own errors pass.

    ``NotFoundError``, ``ConflictError`` or ``InvalidInputError`` where MLflow says so, ``UnavailableError`` where the
    database, the server or the artifact store does not answer.
    """
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except MlflowException as error:
        kinds = {
            "RESOURCE_DOES_NOT_EXIST": NotFoundError,
            "RESOURCE_ALREADY_EXISTS": ConflictError,
            "INVALID_STATE": ConflictError,
            "INVALID_PARAMETER_VALUE": InvalidInputError,
        }
        kind = kinds.get(error.error_code, UnavailableError)
        # A cause is printed with its message, in a log or on Prefect's pages.
        cause = None if _IN_AN_ADDRESS.search(str(error)) else error
        raise kind(f"registry could not {doing}: {_one_line(error)}") from cause
    except SQLAlchemyError as error:
        raise UnavailableError(f"registry could not {doing}: {database_reason(error)}") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnavailableError(f"registry could not {doing}: {reason}") from error


def database_reason(error: Exception) -> str:
    """What a database says, on one line, without the statement and its parameters."""
    return _one_line(getattr(error, "orig", None) or error)


def _one_line(error: Exception) -> str:
    """First line of what MLflow says, without what follows (SQL, parameters, stack) or a password."""
    lines = _IN_AN_ADDRESS.sub("", str(error)).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
