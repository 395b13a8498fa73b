"""Whether anything was written to the database since: what was read may then be used again without asking."""

from __future__ import annotations

import sqlite3
import threading

from sqlalchemy import URL

Mark = tuple[int, int]
"""Of which connection, and its number."""


class ChangeMark:
    """A mark that is another one as soon as anybody has committed anything, in this process or in another.

    It is SQLite's ``PRAGMA data_version`` on a connection that writes nothing, which costs microseconds and no query.
    PostgreSQL has nothing of the kind, so there :meth:`read` gives None, which says that all must be read anew.
    """

    def __init__(self, url: URL) -> None:
        # A SQLite file as ``make_engine`` names it: file:PATH, quoted.
        self._file = url.database if url.get_backend_name() == "sqlite" else None
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened = 0

    def read(self) -> Mark | None:
        """The mark of this moment; None where it cannot be told. Two that are equal: nothing was committed between.

        It waits for nobody: while the database is busy it cannot be told.
        """
        with self._lock:
            if self._file is None:
                return None
            try:
                if self._connection is None:
                    self._connection = sqlite3.connect(
                        f"{self._file}?mode=rw", uri=True, timeout=0.0, check_same_thread=False
                    )
                    self._opened += 1  # the numbers of two connections say nothing about each other
                found = self._connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                self._drop()
                return None
            return self._opened, int(found[0])

    def close(self) -> None:
        """Close the connection; there is no mark any more."""
        with self._lock:
            self._file = None
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
