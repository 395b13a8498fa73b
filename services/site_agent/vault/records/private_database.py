"""A private SQLite file of the vault: opened for the one writer, closed whole, or looked at by who writes nothing."""

from __future__ import annotations

import re
import sqlite3
from contextlib import suppress
from pathlib import Path

from services.process.private_files import private_file


class _Base(sqlite3.Connection):
    """Closed with who holds it, where it was not before; Python 3.13 warns of one that never is."""

    def __del__(self) -> None:
        self.close()


def opened(path: Path | None, tables: str) -> sqlite3.Connection:
    """The private file with these tables in it, or a database in memory; ``UnavailableError``, ``sqlite3.Error``."""
    if path is not None:
        private_file(path)
    base = sqlite3.connect(path or ":memory:", check_same_thread=False, timeout=10.0, factory=_Base)
    if path is not None:
        # A log beside the file: an answer is one forced write and not three. FULL forces it at every commit.
        with suppress(sqlite3.OperationalError):  # somebody looks at this moment, or no log can be kept there
            base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
    base.executescript(tables)
    return base


def closed(base: sqlite3.Connection) -> None:
    """Let go of a file; the last one takes its log in, so that the file by itself is the whole record again."""
    with suppress(sqlite3.Error):  # others have it open, or it is only looked at
        base.execute("PRAGMA journal_mode = DELETE")
    base.close()


def looked_at(path: Path | None, tables: str) -> sqlite3.Connection:
    """The file for who only looks: nothing is written, and what it does not hold yet is empty; ``sqlite3.Error``."""
    if path is None or not path.exists():
        return opened(None, tables)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    base = sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=10.0, factory=_Base)
    try:
        base.execute("PRAGMA temp_store = MEMORY")
        held = {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for statement in filter(None, (part.strip() for part in tables.split(";"))):
            if re.findall(r"EXISTS (\w+)", statement)[0] not in held:
                base.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    except sqlite3.Error:
        base.close()
        raise
    return base
