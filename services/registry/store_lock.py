"""Opening MLflow's store: told at once when it is down, and its tables made by one process alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from services.contracts.errors import UnavailableError
from services.process.private_files import private_file, private_opener

if TYPE_CHECKING:
    from sqlalchemy import URL

ADVISORY_LOCK = 0x42414C4C  # "BALL"; any number that other users of the database do not lock


@contextmanager
def opening(uri: str) -> Iterator[None]:
    """Hold the store of a tracking URI alone while MLflow connects to it for the first time.

    MLflow alone tries for 100 s to reach a database that is down, and two processes that make its tables at the same
    time break each other's. The folder of an SQLite file is made where it is missing. A server (``http``) looks after
    its own database.

    ``UnavailableError`` when no driver for the database is installed; ``SQLAlchemyError`` or ``OSError`` when the
    database does not answer, or its folder cannot be made: :func:`mlflow_errors` says so in one line. The address is
    not quoted: it may hold a password.
    """
    if uri.startswith(("http:", "https:")):
        yield
        return
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.pool import NullPool

    try:
        url = make_url(uri)
        postgresql = url.get_backend_name() == "postgresql"
        # PostgreSQL's drivers wait for the operating system's timeout by default: minutes.
        arguments = {"connect_timeout": 5} if postgresql else {}
        with _lock_file(url), create_engine(url, poolclass=NullPool, connect_args=arguments).connect() as connection:
            if postgresql:
                connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
                connection.commit()  # the lock is the session's; an open transaction would be in the tables' way
            yield
    except ImportError as error:
        raise UnavailableError(f"registry could not open its store: no driver {error.name} for its address") from error


@contextmanager
def _lock_file(url: URL) -> Iterator[None]:
    if url.get_backend_name() != "sqlite" or not url.database or url.database.startswith(("file:", ":")):
        yield
        return
    import fcntl

    file = Path(f"{url.database}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", opener=private_opener) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        private_file(Path(url.database))
        yield
