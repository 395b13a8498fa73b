"""Whether everything that the service needs is there."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Final

from api.backend.answering import hanging
from api.backend.disk_space import disk_problem
from api.backend.flows_process import HANGS, flows_at_work, flows_idle
from api.backend.wiring import Backend
from services.contracts.errors import BallastError, NotFoundError
from services.identity.service_keys import MEANINGS
from services.registry.alias_check import RESTORED, moved_aliases
from services.round_store.database.failures import UPGRADE_COMMAND

LOG = logging.getLogger("ballast.api")
NOTICE_TIME: Final = timedelta(days=1)
"""How long an alias that was put back is spoken of."""
WHAT_TO_DO: Final = {
    "database_no_table": f"is empty; run `{UPGRADE_COMMAND}`",
    "database_too_old": f"is of an older version; run `{UPGRADE_COMMAND}`",
    "database_too_new": "was written by a newer version; install that one",
    "database_read_only": "is read-only",
    "database_full": "has no room left on its disk",
    "database_disk": "cannot be read or written: its disk failed",
}


def missing_parts(backend: Backend) -> dict[str, str]:
    """What is needed and does not answer: what to do where that is known, but not where it is, for anybody may ask."""
    missing = {}
    parts = {"database": backend.check_store, "registry": backend.registry.models}
    for part, error in backend.looks.failures(parts).items():
        LOG.warning("not ready: %s", error)
        missing[part] = WHAT_TO_DO.get(error.code, "does not answer; the server's log says why")
    if "database" not in missing:
        problems = [found for name in MEANINGS if (found := backend.service_keys.problem(name))]
        for found in problems:
            LOG.warning("not ready: %s", found)
        if problems:
            missing["keys"] = "one of the home folder is not the service's; the server's log says what to do"
    problem = disk_problem(backend.settings)
    if problem:
        LOG.warning("not ready: the disk %s", problem)
        missing["disk"] = problem
    return missing


def notices(backend: Backend) -> dict[str, str]:
    """What works and somebody should look at: moved aliases, runs that nobody is there to start, servers that hang.

    Without plant link and Prefect nothing is trained; diagnoses go on, so the process stays ready.
    """
    return _moved(backend) | _waiting(backend) | hanging(backend.settings)


def _waiting(backend: Backend) -> dict[str, str]:
    try:
        waits = bool(backend.store.runs.unfinished_runs())
    except BallastError:
        return {}  # the database is said to be missing
    if not waits:
        return {}
    alive = flows_at_work(backend.settings)
    if alive is False:
        return {"flows": "runs wait, and no flows process runs here to drive them; `ballast up` starts one"}
    if alive and flows_idle(backend.settings) > HANGS:
        return {"flows": "runs wait, and the flows process hangs; `ballast doctor` says since when, and what to do"}
    return {}


def _moved(backend: Backend) -> dict[str, str]:
    try:
        standing = any(moved_aliases(backend.store.model_versions, backend.registry, name)
                       for name in backend.store.model_versions.models())
        last = backend.store.audit.list_events(action=RESTORED, limit=1)
    except NotFoundError as error:
        LOG.warning("the registry lacks what the store knows: %s", error)
        return {"registry": "lacks a model that the store knows, as a new one does; the server's log says which"}
    except BallastError as error:
        LOG.warning("the registry was not compared with the store: %s", error)
        return {}
    if standing:
        return {"registry": "an alias was moved by hand; diagnoses go by the store, and it is put back within seconds"}
    if last and datetime.now(UTC) - last[0].at < NOTICE_TIME:
        return {"registry": f"an alias was moved by hand and put back; the audit trail says which ({RESTORED})"}
    return {}
