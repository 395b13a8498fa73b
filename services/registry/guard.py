"""MLflow's failures as Ballast's, one line each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.contracts.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError


@contextmanager
def mlflow_errors(doing: str) -> Iterator[None]:
    """Translate what MLflow raises while ``doing`` (such as ``"read model pump"``); Ballast's own errors pass.

    Raises
    ------
    NotFoundError, ConflictError, InvalidInputError
        Where MLflow says so.
    UnavailableError
        Where the database, the server or the artifact store does not answer.
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
        raise kind(f"registry could not {doing}: {_one_line(error)}") from error
    except SQLAlchemyError as error:
        raise UnavailableError(f"registry could not {doing}: {database_reason(error)}") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnavailableError(f"registry could not {doing}: {reason}") from error


def probe_database(uri: str) -> None:
    """Connect once to a database, so that one that is down is told within seconds: MLflow alone tries for 100 s.

    The folder of an SQLite file is made where it is missing, as MLflow would.

    Raises
    ------
    UnavailableError
        When it does not answer, or no driver for it is installed. The address is not quoted: it may hold a password.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    try:
        url = make_url(uri)
        if url.get_backend_name() == "sqlite" and url.database and not url.database.startswith(("file:", ":")):
            Path(url.database).parent.mkdir(parents=True, exist_ok=True)
        # PostgreSQL's drivers wait for the operating system's timeout by default: minutes.
        arguments = {"connect_timeout": 5} if url.get_backend_name() == "postgresql" else {}
        create_engine(url, poolclass=NullPool, connect_args=arguments).connect().close()
    except SQLAlchemyError as error:
        raise UnavailableError(f"registry could not open its store: {database_reason(error)}") from error
    except ImportError as error:
        raise UnavailableError(f"registry could not open its store: no driver {error.name} for its address") from error
    except OSError as error:
        reason = f"{error.strerror} at the folder of the file"
        raise UnavailableError(f"registry could not open its store: {reason}") from error


def database_reason(error: Exception) -> str:
    """What a database says, on one line, without the statement and its parameters."""
    return _one_line(getattr(error, "orig", None) or error)


def _one_line(error: Exception) -> str:
    """First line of what MLflow says, without what follows: SQL, parameters, stack."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
