"""The state of the service in one answer."""

from __future__ import annotations

import shutil
import time
from datetime import datetime

from api.backend.flows_process import flows_at_work
from api.backend.wiring import Backend
from api.system.doctor import last_backup
from api.system.facts import utc_now
from services.contracts.base import Contract
from services.process.command_line import product_version
from services.round_store.database.schema import SCHEMA_REVISION

STARTED = time.monotonic()


class SystemState(Contract):
    """What an administrator asks first. ``last_backup`` null: none was ever made."""

    version: str
    schema_revision: str
    uptime_seconds: float
    store: str
    disk_free_bytes: int
    last_backup: datetime | None
    flows_running: bool | None
    pending_runs: tuple[str, ...]
    running_runs: tuple[str, ...]
    connected_sites: tuple[str, ...]
    active_sites: int


def system_state(backend: Backend) -> SystemState:
    """State of now; ``UnavailableError`` where the store is away or of another schema."""
    backend.check_store()
    store, now = backend.store, utc_now()
    unfinished = store.runs.unfinished_runs()
    sites = store.sites.list_sites(status="active")
    return SystemState(
        version=product_version(), schema_revision=SCHEMA_REVISION, uptime_seconds=time.monotonic() - STARTED,
        store=store.engine.dialect.name, disk_free_bytes=shutil.disk_usage(backend.settings.home).free,
        last_backup=last_backup(backend), flows_running=flows_at_work(backend.settings),
        pending_runs=tuple(run.run_id for run in unfinished if run.status == "pending"),
        running_runs=tuple(run.run_id for run in unfinished if run.status == "running"),
        connected_sites=tuple(site.site_id for site in sites if site.presence(now) == "connected"),
        active_sites=len(sites),
    )
