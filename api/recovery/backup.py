"""Makes a backup: one state of the store, the registry as that state knows it, and the home folder's keys.

The store's state is fixed first. A version is entered in the registry before the store knows it, so every version of
the store's state is in the registry when that is copied after it; those that came in between are left out.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sqlalchemy import Connection, create_engine, inspect, make_url, select, text
from sqlalchemy.orm import Session

from api.backend.actor import local_administrator, record
from api.backend.wiring import Backend
from services.backup import archive, tables
from services.backup.archive import Manifest, Writer
from services.backup.home_files import SCRATCH, files_below, files_of
from services.backup.sealed_stream import KeyCost, SealedWriter
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.audit import BACKUP_MADE
from services.identity.service_keys import MEANINGS
from services.process.command_line import product_version
from services.process.private_files import private_opener
from services.round_store.database.failures import explained
from services.round_store.database.schema import SCHEMA_REVISION
from services.round_store.database.session import UnitOfWork
from services.round_store.operation.audit import AuditRepository
from services.round_store.tables.versions import ModelVersionRow

_OF_VERSIONS: Final = {
    "model_versions": "version", "model_version_tags": "version", "registered_model_aliases": "version",
}


@dataclass
class Summary:
    """What went into a backup, and what somebody should know of it."""

    rows: int = 0
    versions: int = 0
    artifacts: int = 0
    home_files: int = 0
    bytes: int = 0
    notes: list[str] = field(default_factory=list)


def make_backup(backend: Backend, target: Path, passphrase: str, cost: KeyCost | None = None) -> Summary:
    """Write a backup to a file that is not there yet (mode 0600), whole or not at all, and note it in the audit trail.

    ``ConflictError`` where the file is there, ``InvalidInputError`` for a passphrase that is too short,
    ``UnavailableError`` where the store, the registry or the file cannot be read or written.
    """
    backend.check_store()
    if target.exists():
        raise ConflictError(f"{target} is there already; a backup is never overwritten")
    scratch = target.with_name(f"{SCRATCH}{secrets.token_hex(4)}")
    try:
        with open(scratch, "xb", opener=private_opener) as file:
            summary = _write(backend, file, passphrase, cost)
            file.flush()
            os.fsync(file.fileno())
            summary.bytes = file.tell()
        os.link(scratch, target)  # unlike a rename it takes nobody's place
    except FileExistsError:
        raise ConflictError(f"{target} is there already; a backup is never overwritten") from None
    except OSError as error:
        raise UnavailableError(f"the backup {target} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(NotADirectoryError):  # what it was to stand in is a file: it was never there
            scratch.unlink(missing_ok=True)
    with backend.store.atomic() as unit:
        record(unit, local_administrator(), BACKUP_MADE, "store", after={"file": target.name, "bytes": summary.bytes})
    return summary


def _write(backend: Backend, file: BinaryIO, passphrase: str, cost: KeyCost | None) -> Summary:
    settings, summary = backend.settings, Summary()
    with snapshot(backend) as store, archive.writing(SealedWriter(file, passphrase, cost)) as writer:
        with Session(store) as session:
            chain = AuditRepository(UnitOfWork(session)).verify_chain()
            known = {(name, str(number)) for name, number in session.execute(
                select(ModelVersionRow.name, ModelVersionRow.version))}
        if not chain.ok:
            summary.notes.append(f"the audit trail does not hold: {chain.problem}")
        with registry_snapshot(settings.tracking_uri, settings.home) as registry:
            artifacts = None if registry is None else folder_of(settings.artifact_root)
            writer.add(archive.MANIFEST, Manifest(
                ballast=product_version(), created_at=datetime.now(UTC), schema_revision=SCHEMA_REVISION,
                audit_events=chain.events, audit_head=chain.head, audit_problem=chain.problem,
                registry_revision=None if registry is None else tables.revision(registry),
                artifact_root=None if artifacts is None else settings.artifact_root,
            ).model_dump_json().encode())
            for name, path in files_of(settings.home):
                if _add_file(writer, f"{archive.HOME}{name}", path):
                    summary.home_files += 1
            summary.rows = _add_tables(writer, archive.STORE, store)
            summary.versions = len(known)
            if registry is None:
                summary.notes.append("the registry is a server of its own and not in the backup; back it up there too")
            else:
                _add_tables(writer, archive.REGISTRY, registry, lambda table: _known_only(table, known))
                for missing in sorted(known - versions_in(registry)):
                    summary.notes.append(f"version {missing[1]} of model {missing[0]} is not in the registry")
            if artifacts is None and registry is not None:
                summary.notes.append("the artifacts are in a store of their own and not in the backup")
            for path in () if artifacts is None else files_below(artifacts):
                name = f"{archive.ARTIFACTS}{path.relative_to(artifacts).as_posix()}"  # type: ignore[arg-type]
                if _add_file(writer, name, path):
                    summary.artifacts += 1
    summary.notes.extend(_outside(backend))
    return summary


@contextmanager
def snapshot(backend: Backend) -> Iterator[Connection]:
    """One state of the store for as long as it is open: writers go on, and nothing of theirs is seen."""
    engine = backend.store.engine
    options = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    with explained(engine), engine.connect().execution_options(**options) as connection, connection.begin():
        tables.revision(connection)  # the first question fixes the state
        yield connection


@contextmanager
def registry_snapshot(tracking_uri: str, scratch: Path) -> Iterator[Connection | None]:
    """One state of MLflow's database; None where it is a server's. SQLite is copied first, so nobody waits for us.

    :class:`UnavailableError` where there is none.
    """
    if tracking_uri.startswith(("http:", "https:")):
        yield None
        return
    url = make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", tracking_uri))
    copy = scratch / f"{SCRATCH}{secrets.token_hex(4)}.db"
    try:
        if url.get_backend_name() == "sqlite":
            source = Path(str(url.database))
            if not source.is_file():
                raise UnavailableError(f"the registry {source} is not there; `ballast up` makes it")
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(source, timeout=60)) as there, closing(sqlite3.connect(copy)) as here:
                there.backup(here)
            url = make_url(f"sqlite:///{copy}")
        engine = create_engine(url)
        options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
        try:
            with explained(engine), engine.connect().execution_options(**options) as connection, connection.begin():
                yield connection
        finally:
            engine.dispose()
    finally:
        copy.unlink(missing_ok=True)


def folder_of(artifact_root: str) -> Path | None:
    """Folder of the artifacts; None where they are in no folder of this host."""
    parts = urlsplit(artifact_root)
    if parts.scheme not in ("", "file"):
        return None
    return Path(url2pathname(parts.path)) if parts.scheme else Path(artifact_root)


def versions_in(registry: Connection) -> set[tuple[str, str]]:
    """Names and numbers of the versions that MLflow's database holds."""
    if not inspect(registry).has_table("model_versions"):
        return set()
    versions = registry.execute(text("SELECT name, version FROM model_versions"))
    return {(name, str(number)) for name, number in versions}


def _add_tables(
    writer: Writer, start: str, connection: Connection,
    keeping: Callable[[str], Callable[[dict[str, Any]], bool] | None] = lambda table: None,
) -> int:
    lines = 0
    for table in tables.reflected(connection):
        for number, part in enumerate(tables.dump(connection, table, keeping(table.name))):
            writer.add(f"{start}{table.name}/{number}", part)
            lines += part.count(b"\n") - 1
    return lines


def _known_only(table: str, known: set[tuple[str, str]]) -> Callable[[dict[str, Any]], bool] | None:
    """Whether a row of MLflow is of a version that the store's state knows, or of a model that is not the store's."""
    models = {name for name, _ in known}
    column = _OF_VERSIONS.get(table)
    if column is None:
        return None
    return lambda row: row["name"] not in models or (row["name"], str(row[column])) in known


def _add_file(writer: Writer, name: str, path: Path) -> bool:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return False  # gone since it was listed
    except OSError as error:
        raise UnavailableError(f"there is no backup, for {path} cannot be read: {error.strerror or error}") from error
    writer.add(name, data)
    return True


def _outside(backend: Backend) -> Iterator[str]:
    settings = backend.settings
    for name in MEANINGS:
        problem = backend.service_keys.problem(name)
        if problem:
            yield f"the backup is without the service's {name}: {problem}"
    named = (settings.nats.seed_file, settings.nats.ca_file, settings.api.certificate, settings.api.key)
    for path in named:
        if path is not None and not path.resolve().is_relative_to(settings.home):
            yield f"{path}, which the settings name, is outside of the home folder and not in the backup"
