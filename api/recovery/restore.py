"""Restores a backup into a home folder that is not there yet: whole, or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from api.backend.actor import local_administrator, record
from api.backend.wiring import open_backend
from api.recovery.kept_inside import keep_inside, without_elsewhere
from api.recovery.later import Unlearn, cancelled, departures, ended, events_since
from api.recovery.restore_targets import RestoreTargets, content, empty_folder, new_artifacts, new_registry, new_store
from migrations.run import upgrade
from services.backup import archive
from services.backup.archive import Manifest
from services.backup.home_files import below
from services.backup.sealed_stream import SealedReader
from services.contracts.errors import ConflictError, UnavailableError
from services.contracts.history.audit import BACKUP_RESTORED, AuditEvent
from services.identity.service_keys import MEANINGS
from services.process.private_files import private_file, private_folder
from services.process.settings import FILE_NAME, Settings
from services.registry.alias_check import moved_aliases
from services.round_store.database.schema import SCHEMA_REVISION

NOT_LOOKED: Final = (
    "plants that were unlearned, suspended or removed after that moment take part again, and tokens that were revoked "
    "hold: `--later` names the home folder that the backup was made of, or a newer backup of it, tells of them, and "
    "has the plants unlearned again"
)
FIRST: Final = (FILE_NAME, "ballast.db")
"""Without these a service that is started in the midst of it would begin anew; without keys it refuses to start."""


@dataclass
class Restored:
    """What was restored."""

    home: Path
    manifest: Manifest
    rows: int = 0
    files: int = 0
    champions: dict[str, str] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    since: tuple[AuditEvent, ...] = ()
    """What happened after the backup was made, by a later state; nothing where none was named."""
    unlearned: list[str] = field(default_factory=list)
    """A line for each plant that is unlearned again."""
    notes: list[str] = field(default_factory=list)


def restore_backup(
    file: Path, home: Path, passphrase: str, *, self_contained: bool = False,
    environment: Mapping[str, str] | None = None, later: tuple[Path, Unlearn] | None = None,
) -> Restored:
    """Restore a backup; the home folder must not be there, or be empty, and its databases too.

    ``self_contained``: the store and the registry become files in the home folder, whatever the settings of the backup
    or the environment say. ``later``: a later state of the same service, a home folder or a newer backup, and what
    unlearns again the plants that left until then.

    ``ConflictError`` or ``InvalidInputError`` for a file, passphrase or target that will not do; ``UnavailableError``
    for a database that does not answer. Nothing is left of a restore that failed.
    """
    home = home.resolve()
    if home.exists() and (not home.is_dir() or content(home)):
        raise ConflictError(f"{home} is not empty; restore into a folder that is not there yet")
    name = f".{home.name}.restoring-{secrets.token_hex(4)}"
    scratch = home / name if _has_to_stay(home) else home.with_name(name)
    environment = dict(os.environ if environment is None else environment)
    if self_contained:
        environment = without_elsewhere(environment)
    try:
        with ExitStack() as undone:
            undone.callback(shutil.rmtree, scratch, ignore_errors=True)
            restored = _Restore(scratch, home, self_contained, environment, undone).run(file, passphrase, later)
            _settle(restored, environment, later)
            undone.pop_all()
        return restored
    except OSError as error:
        raise UnavailableError(f"the backup cannot be restored: {error.strerror or error}") from error


class _Restore:
    """One restore: members are taken in their order, and where the first row comes the databases are opened."""

    def __init__(
        self, scratch: Path, home: Path, self_contained: bool, environment: Mapping[str, str], undone: ExitStack
    ) -> None:
        self._scratch, self._home, self._self_contained = scratch, home, self_contained
        self._environment, self._undone = environment, undone

    def run(self, file: Path, passphrase: str, later: tuple[Path, Unlearn] | None) -> Restored:
        """Take all members, then put the folder in its place.

        :class:`ConflictError` for a backup without a store or of a later schema, :class:`UnavailableError` where it
        cannot be read.
        """
        try:
            opened = file.open("rb")
        except OSError as error:
            raise UnavailableError(f"the backup {file} cannot be read: {error.strerror}") from error
        with opened, ExitStack() as databases:
            members = archive.members(SealedReader(opened, passphrase))
            manifest = archive.read_manifest(*next(members, ("", b"")))
            if manifest.schema_revision > SCHEMA_REVISION:
                raise ConflictError(
                    f"the backup is of schema {manifest.schema_revision}, made by version {manifest.ballast}; this "
                    f"version knows {SCHEMA_REVISION}: install the newer one"
                )
            restored = Restored(self._home, manifest)
            if later is not None:
                restored.since = events_since(later[0], manifest, passphrase, self._environment)
            private_folder(self._scratch)
            targets: RestoreTargets | None = None
            for name, data in members:
                if name.startswith(archive.HOME):
                    self._write(self._scratch, name.removeprefix(archive.HOME), data)
                    restored.files += 1
                    continue
                if targets is None:
                    targets = self._open(manifest, databases)
                if name.startswith(archive.STORE):
                    restored.rows += targets.fill_store(_table_of(name), data)
                elif name.startswith(archive.REGISTRY):
                    targets.fill_registry(_table_of(name), data)
                elif name.startswith(archive.ARTIFACTS):
                    self._write(targets.artifacts, name.removeprefix(archive.ARTIFACTS), data)
                    restored.files += 1
            if targets is None:
                raise ConflictError("the backup holds no store")
            targets.finish()
        upgrade(targets.settings.database)  # from the schema of the backup to that of now
        self._put_in_place()
        return restored

    def _put_in_place(self) -> None:
        """Let the home folder be what was restored; one that has to stay takes it, first what names the databases."""
        if self._scratch.parent == self._home:
            self._undone.callback(empty_folder, self._home)
            for each in sorted(self._scratch.iterdir(), key=lambda path: (path.name not in FIRST, path.name)):
                each.rename(self._home / each.name)
            self._scratch.rmdir()
            return
        if self._home.exists():
            self._home.rmdir()
        self._scratch.rename(self._home)
        self._undone.callback(shutil.rmtree, self._home, ignore_errors=True)

    def _write(self, folder: Path, name: str, data: bytes) -> None:
        path = below(folder, name)
        private_folder(path.parent)
        private_file(path).write_bytes(data)

    def _open(self, manifest: Manifest, databases: ExitStack) -> RestoreTargets:
        if self._self_contained:
            keep_inside(self._scratch / FILE_NAME)
        settings = Settings.load(self._scratch, self._environment)
        final = settings.model_copy(update={"home": self._home})
        store = databases.enter_context(new_store(settings, manifest.schema_revision, self._undone))
        registry = None
        if manifest.registry_revision is not None:
            registry = databases.enter_context(new_registry(settings, manifest.registry_revision, self._undone))
        if manifest.artifact_root is not None:
            new_artifacts(settings, self._undone)
        return RestoreTargets(settings, final, manifest, store, registry)


def _settle(restored: Restored, environment: Mapping[str, str], later: tuple[Path, Unlearn] | None) -> None:
    """Check what must be as it was, let the registry's aliases follow the store, and note the restore.

    Plants that left since are unlearned again.
    """
    settings, manifest = Settings.load(restored.home, environment), restored.manifest
    with open_backend(settings) as backend:
        store = backend.store
        chain = store.audit.verify_chain()
        if (chain.events, chain.head, chain.problem) != (
            manifest.audit_events, manifest.audit_head, manifest.audit_problem
        ):
            raise ConflictError(f"the audit trail is not that of the backup: {chain.problem or chain.head}")
        registry = backend.registry
        for name in store.model_versions.models() if manifest.registry_revision is not None else ():
            for each in moved_aliases(store.model_versions, registry, name):
                registry.point(name, each.alias, each.expected)
            champion = store.model_versions.alias(name, "champion")
            if champion is not None and champion.version is not None:
                backend.checked.get(name, champion.version)  # held to its digests
                restored.champions[name] = champion.version
        after = {
            "made": manifest.created_at.isoformat(), "audit_events": manifest.audit_events,
            "later": later and later[0].name,
        }
        with store.atomic() as unit:
            record(unit, local_administrator(), BACKUP_RESTORED, "store", after=after)
        if later is None:
            restored.notes = [NOT_LOOKED]
        else:
            restored.unlearned, restored.notes = later[1](backend, departures(restored.since))
            restored.notes += ended(restored.since)
        problems = [backend.service_keys.problem(name) for name in MEANINGS]
        restored.notes += [f"the API does not start yet: {each}" for each in problems if each]
        restored.unfinished = [run.run_id for run in store.runs.unfinished_runs()]
        restored.notes += cancelled(restored.since, restored.unfinished)


def _has_to_stay(home: Path) -> bool:
    """Whether an empty home folder cannot be put in another's place: a volume, or in a folder that takes no other."""
    return home.is_dir() and (os.path.ismount(home) or not os.access(home.parent, os.W_OK))


def _table_of(name: str) -> str:
    return name.split("/")[1]
