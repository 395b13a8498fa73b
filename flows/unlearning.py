"""The forgetting of a plant that left: when it is due, and what goes.

The version without the plant comes from a run as any other, which knows no cut of it. What stands of the plant in older
versions is deleted with these, when a version without it is champion, or at once where that was asked. Every step may
be done again: whoever is killed in between leaves it due, and the flows process looks every second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from flows.wiring import FlowContext
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.history.run import STAYS, Run
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHAMPION, PREVIOUS
from services.round_store.leavings import Forgotten

LOG = logging.getLogger("ballast.flows")
TABLES: Final = "tables in Prefect"
ForgetTables = Callable[[str, str], int]
"""Deletes what a workflow's pages show of a plan's plant, by both names; says how much (``flows.artifacts``)."""


def forget_those_due(context: FlowContext, forget_tables: ForgetTables) -> None:
    """Forget every plant whose time has come; what cannot be done now stays due, with a line in the log."""
    for run in context.store.leavings.due():
        try:
            if is_due(context, run):
                forget(context, run, forget_tables)
        except BallastError as error:
            LOG.warning("model %s: a plant that left cannot be forgotten yet: %s", run.plan.name, error)


def is_due(context: FlowContext, run: Run) -> bool:
    """Whether the plant of a run may be forgotten now: nothing that serves has it, or that was not to be waited for.

    After a run that failed it may when a later one has made a champion without the plant, unless that is back.
    """
    if run.leaving is None:
        return False
    if run.status == "failed" and _is_back(context, run.leaving.site_id):
        return False
    if run.leaving.at_once and run.status == "completed":
        return True
    alias = context.store.model_versions.alias(run.plan.name, CHAMPION)
    if alias is None or alias.version is None:
        return False
    try:
        champion = context.registry.get(run.plan.name, alias.version)
    except NotFoundError:
        return False
    return not has_plant(champion, run.leaving.site_id)


def _is_back(context: FlowContext, site: str) -> bool:
    try:
        return context.store.sites.get(site).status != "removed"
    except NotFoundError:
        return False


def forget(context: FlowContext, run: Run, forget_tables: ForgetTables) -> Forgotten:
    """Delete the versions with the plant, then all else that is there of it; with an audit entry at the end.

    The store comes last: what could not be deleted elsewhere keeps the forgetting due.
    """
    assert run.leaving is not None
    name, site = run.plan.name, run.leaving.site_id
    numbers = versions_with(context, name, site)
    reason = f"run {run.run_id} made a version without a plant that left"
    with context.store.atomic() as unit:
        # Before they are deleted: whoever is killed in between finds them no more, and could not say which they were.
        unit.model_versions.mark_forgotten(name, numbers, "forgotten with a plant that left")
        for alias in (CHAMPION, PREVIOUS):
            last = unit.model_versions.alias(name, alias)
            if last is not None and last.version in numbers:
                unit.model_versions.record_alias(name, alias, None, "flows", reason)
    left = context.registry.forget(name, numbers)
    tables = forget_tables(name, site)
    with context.store.atomic() as unit:
        found = unit.leavings.forget(name, site)
        if tables:
            found.deleted[TABLES] = tables
        if found.deleted or found.pseudonymised:  # another process may have done it meanwhile, and have said so
            unit.audit.append(
                actor="flows", role=None, action="model.unlearned", target=f"model:{name}", reason=reason,
                after={
                    "site": site, "versions_deleted": list(numbers), "deleted": found.deleted,
                    "pseudonymised": found.pseudonymised, "other_models": list(found.other_models),
                    "left": [*left, STAYS],
                },
            )
    LOG.info("model %s: a plant that left is forgotten, with versions %s", name, ", ".join(numbers) or "none")
    return found


def versions_with(context: FlowContext, name: str, site: str) -> tuple[str, ...]:
    """Numbers of a model's versions that had the plant, the newest first."""
    try:
        labels = context.registry.versions(name)
    except NotFoundError:
        return ()
    return tuple(each.version for each in labels if has_plant(context.registry.get(name, each.version), site))


def has_plant(version: ModelVersion, site: str) -> bool:
    """Whether a plant, or its exclusion, stands in a version."""
    summed = {plant for each in version.cohorts for plant in each.sites}
    named = {each.site_id for each in version.sites} | {each.site_id for each in version.excluded}
    return site in named | summed
