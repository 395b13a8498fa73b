"""Looks at everything and says what is wrong: the host first, then the store, then what needs the store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from api.backend.checked_source import check_recorded
from api.backend.disk_space import sqlite_file
from api.backend.flows_process import flows_at_work, flows_idle
from api.backend.wiring import Backend
from api.system import checks, facts, host_checks
from api.system.finding import Finding
from api.system.keys import keys, lost_keys
from api.system.let_in import let_in
from api.system.link_users import link_users
from api.system.ways import ways
from services.contracts.errors import BallastError
from services.contracts.history.audit import BACKUP_MADE, BACKUP_RESTORED
from services.contracts.keys.signed_documents import check_signature
from services.contracts.keys.signing import public_key
from services.contracts.versions.model_version import ModelVersion
from services.contracts.wire.codec import digest
from services.registry.alias_check import moved_aliases
from services.round_store.database.failures import CANNOT_OPEN
from services.round_store.database.session import utc_now
from services.verification.version import CERTIFICATE


def examine(backend: Backend) -> list[Finding]:
    """Every check, in an order in which the first failure is the likeliest cause of those after it."""
    settings, now = backend.settings, facts.utc_now()
    if not settings.home.is_dir():
        is_file = settings.home.exists()
        made, todo = "" if is_file else "`ballast up` makes it, or ", "give the right one with --home or BALLAST_HOME"
        return [Finding(check="home folder", state="fail", todo=f"{made}{todo}",
                        said=f"{settings.home} is no folder" if is_file else f"there is no {settings.home}")]
    found = [facts.disk(settings), facts.secrets(settings), *facts.ports(settings),
             *facts.certificates(settings, now), *keys(settings), *ways(settings)]
    try:
        backend.check_store()
    except BallastError as error:
        return [*found, checks.lost_store(_code(error, settings.database), str(error))]
    found.append(Finding(check="store", state="ok", said="answers, at the newest schema"))
    return [*found, *of_store(backend, now), *link_users(backend, now), *of_registry(backend)]


def of_store(backend: Backend, now: datetime) -> Iterator[Finding]:
    """What the store's rows say."""
    store = backend.store
    newest = store.audit.list_events(limit=1)
    with store.database.read() as session:
        database = utc_now(session) if store.engine.dialect.name == "postgresql" else None
    yield host_checks.clock(facts.utc_now(), database, newest[0].at if newest else None)
    chain = store.audit.verify_chain()
    yield checks.audit(chain.ok, chain.events, chain.problem)
    if chain.ok:
        yield let_in(store, now)
    yield checks.sites(store.sites.list_sites(status="active"), now)
    alive = flows_at_work(backend.settings)
    yield checks.flows(alive, flows_idle(backend.settings))
    yield checks.runs(store.runs.unfinished_runs(), now, flows_alive=alive is not False)
    webhooks = store.webhooks.list_webhooks()
    yield checks.webhooks(webhooks)
    known_to = sum(site.last_seen is not None for site in store.sites.list_sites() if site.status != "removed")
    yield from lost_keys(backend, known_to=known_to, webhooks=len(webhooks))
    restored = store.audit.list_events(action=BACKUP_RESTORED, limit=1)
    yield checks.backup(last_backup(backend), now, restored[0].at if restored else None)


def of_registry(backend: Backend) -> Iterator[Finding]:
    """The registry against the store, by model."""
    records, registry = backend.store.model_versions, backend.registry
    file = sqlite_file(backend.settings.tracking_uri)
    if file is not None and not file.exists():  # MLflow would make it, without what was in it
        if records.models():
            yield Finding(check="registry", state="fail", said=f"there is no {file}",
                          todo="put it back from a backup: `ballast restore` into another folder")
        return
    try:
        for name in records.models():
            known, forgotten = frozenset(records.numbers(name)), records.forgotten_numbers(name)
            there = {summary.version for summary in registry.versions(name)}
            champion, problem, unproven, altered = records.alias(name, "champion"), "", "", ""
            if champion is not None and champion.version is not None:
                try:
                    version = registry.get(name, champion.version)
                    unproven, altered = _unproven(backend, version), _altered(backend, version)
                except BallastError as error:
                    problem = str(error)
            missing, unknown = known - there, there - known - forgotten
            moved = moved_aliases(records, registry, name)
            yield checks.registry(name, moved, missing, unknown, problem, unproven, altered)
    except BallastError as error:
        yield Finding(check="registry", state="fail", said=str(error),
                      todo="start the registry's server or mend its address; a lost one comes back from a backup")


def _unproven(backend: Backend, version: ModelVersion) -> str:
    """Why nobody can check what a version's bounds rest on any more; empty where its file is as it was written."""
    if not version.certificate_sha256:
        return ""
    try:
        data = backend.registry.certificate(version)
    except BallastError as error:
        return str(error)
    if data is None:
        return f"{CERTIFICATE} is gone"
    return "" if digest(data) == version.certificate_sha256 else f"{CERTIFICATE} is another file than was registered"


def _altered(backend: Backend, version: ModelVersion) -> str:
    """Why a version is not the one that was registered; empty where it is, or its signature cannot be checked here.

    Its digest stands in the registry too: who writes there can make both fit.
    """
    seed = backend.settings.nats_seed
    try:
        check_recorded(backend.store, version)
        if seed.is_file():
            check_signature(version.to_document(), public_key(seed), backend.nats_users.line)
    except BallastError as error:
        return str(error)
    return ""


def last_backup(backend: Backend) -> datetime | None:
    """When the last backup was made, as the audit trail has it."""
    made = backend.store.audit.list_events(action=BACKUP_MADE, limit=1)
    return made[0].at if made else None


def _code(error: BallastError, address: str) -> str:
    """Code of a store's failure; of a file that cannot be opened it tells one that is gone from one that is shut."""
    file = sqlite_file(address)
    if file is None or error.code != CANNOT_OPEN:
        return error.code
    return "database_shut" if file.exists() else "database_no_file"
