"""The databases that a restore fills, which must be empty before, and the folder that its artifacts go into."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Select, Table, create_engine, func, inspect, make_url, select

from api.recovery.backup import folder_of
from migrations.run import downgrade, upgrade
from services.backup import tables
from services.backup.archive import Manifest
from services.contracts.errors import ConflictError
from services.process.private_files import private_file
from services.process.settings import Settings
from services.registry.mlflow_registry import ModelRegistry
from services.round_store.database.failures import describe, explained
from services.round_store.database.session import make_engine


class RestoreTargets:
    """The databases that are filled, each in one transaction."""

    def __init__(
        self, settings: Settings, final: Settings, manifest: Manifest, store: Connection, registry: Connection | None
    ) -> None:
        self.settings, self._final, self._manifest = settings, final, manifest
        self._store, self._registry = store, registry
        self._store_tables = {table.name: table for table in tables.reflected(store)}
        self._registry_tables = {} if registry is None else {each.name: each for each in tables.reflected(registry)}
        tables.empty(store, self._store_tables.values())
        if registry is not None:
            tables.empty(registry, self._registry_tables.values())

    @property
    def artifacts(self) -> Path:
        """Folder that the artifacts go into for now."""
        return _artifacts_of(self.settings)

    def fill_store(self, table: str, data: bytes) -> int:
        """Insert rows of the store; how many."""
        return tables.fill(self._store, _known(self._store_tables, table), data)

    def fill_registry(self, table: str, data: bytes) -> None:
        """Insert rows of the registry, in which the artifacts' address is another now."""
        if self._registry is not None:
            tables.fill(self._registry, _known(self._registry_tables, table), data, self._moved)

    def finish(self) -> None:
        """Let counters go on where they were; the transactions are committed by who opened them."""
        tables.reset_counters(self._store, self._store_tables.values())
        if self._registry is not None:
            tables.reset_counters(self._registry, self._registry_tables.values())

    def _moved(self, text: str) -> str:
        former = self._manifest.artifact_root
        if former is None or not (text == former or text.startswith(former.rstrip("/") + "/")):
            return text
        return self._final.artifact_root.rstrip("/") + text[len(former.rstrip("/")) :]


@contextmanager
def new_store(settings: Settings, revision: str, undone: ExitStack) -> Iterator[Connection]:
    """A store of this schema without rows, in a transaction; ``undone`` takes back what it made on a server.

    ``ConflictError`` where the database is not empty; ``UnavailableError`` where it does not answer.
    """
    if not settings.database_url:
        private_file(settings.home / "ballast.db")
    engine = make_engine(settings.database, create=True)
    try:
        with explained(engine), engine.connect() as connection:
            if set(inspect(connection).get_table_names()) - {tables.REVISION_TABLE}:
                raise ConflictError(f"{describe(engine)} is not empty; give an empty one, or --self-contained")
        if settings.database_url:
            undone.callback(downgrade, settings.database, "base")
        upgrade(settings.database, revision)
        with explained(engine), engine.execution_options(ballast_writes=True).begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def new_registry(settings: Settings, revision: str, undone: ExitStack) -> Iterator[Connection]:
    """A registry of this schema of MLflow without content, in a transaction; ``undone`` empties it on a server.

    ``ConflictError`` where anything is in it, it is of another schema, or is behind a registry server.
    """
    if settings.tracking_uri.startswith(("http:", "https:")):
        raise ConflictError("the settings name a registry server, and the backup holds a registry's database; "
                            "restore with --self-contained")
    ModelRegistry(settings.tracking_uri, settings.artifact_root).prepare()
    engine = create_engine(make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", settings.tracking_uri)))
    try:
        with explained(engine), engine.begin() as connection:
            if (found := tables.revision(connection)) != revision:
                raise ConflictError(f"the backup's registry is of MLflow's schema {revision}, and this MLflow has "
                                    f"{found}; restore with the version of Ballast that made the backup, then upgrade")
            if any(connection.scalar(_rows(table)) for table in tables.reflected(connection)):
                raise ConflictError("the registry that the settings name is not empty; give an empty one, or "
                                    "--self-contained")
            if settings.mlflow.tracking_uri:
                undone.callback(_empty_registry, engine.url)
            yield connection
    finally:
        engine.dispose()


def new_artifacts(settings: Settings, undone: ExitStack) -> None:
    """See that the folder of the artifacts is empty, or not there yet; ``undone`` empties it where it is elsewhere.

    :class:`ConflictError` where it is not.
    """
    folder = _artifacts_of(settings)
    if folder.is_dir() and content(folder):
        raise ConflictError(f"{folder}, where the settings put the artifacts, is not empty; give an empty folder, or "
                            "--self-contained")
    undone.callback(empty_folder, folder)


def content(folder: Path) -> list[Path]:
    """What is in a folder; what a file system itself put into its root does not count."""
    return [each for each in folder.iterdir() if each.name != "lost+found" or not os.path.ismount(folder)]


def empty_folder(folder: Path) -> None:
    """Take away what is in a folder, where it is there."""
    for each in content(folder) if folder.is_dir() else ():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)


def _artifacts_of(settings: Settings) -> Path:
    folder = folder_of(settings.artifact_root)
    if folder is None:
        raise ConflictError("the settings put the artifacts into another store; restore with --self-contained")
    return folder


def _rows(table: Table) -> Select[tuple[int]]:
    """Rows of a table that are not MLflow's own, which it makes with the table."""
    counted = select(func.count()).select_from(table)
    if table.name == "experiments":
        return counted.where(table.c.experiment_id != 0)
    return counted.where(table.c.name != "default") if table.name == "workspaces" else counted


def _empty_registry(url: URL) -> None:
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            tables.empty(connection, tables.reflected(connection))
    finally:
        engine.dispose()


def _known(found: Mapping[str, Table], name: str) -> Table:
    if name not in found:
        raise ConflictError(f"the backup has a table {name[:60]} that its schema does not know")
    return found[name]
