"""The forgetting of a plant that left: when it is due, and what goes.

The version without the plant comes from a run as any other, which knows no cut of it. What stands of the plant in older
versions is deleted with these, when a version without it is champion, or at once where that was asked. The flows
process looks every second, and so does a flow at its end; one of them forgets, for it takes the run's lease. Every step
may be done again: whoever is killed in between leaves it due.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from flows.lease import new_owner
from flows.wiring import FlowContext
from services.contracts.errors import BallastError, NotFoundError
from services.contracts.history.run import STAYS, Run
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import CHAMPION, PREVIOUS
from services.round_store.database.queries import MAX_PAGE
from services.round_store.plants.leavings import Forgotten
from services.round_store.store import Repositories

LOG = logging.getLogger("ballast.flows")
TABLES: Final = "tables in Prefect"
LEASE_SECONDS: Final = 60.0
"""Longer than a version takes to be deleted; who is killed in between holds the next one up no longer."""
ForgetTables = Callable[[str, str], int]
"""Deletes what a workflow's pages show of a plan's plant, by both names; says how much (``flows.artifacts``)."""


def forget_those_due(context: FlowContext, forget_tables: ForgetTables) -> None:
    """Forget every plant whose time has come; what cannot be done now stays due, with a line in the log."""
    leavings, owner = context.store.leavings, new_owner()
    for run in leavings.due():
        try:
            if is_due(context, run) and leavings.take(run.run_id, owner, LEASE_SECONDS):
                try:
                    forget(context, run, forget_tables, owner)
                finally:
                    leavings.give_back(run.run_id, owner)
        except BallastError as error:
            LOG.warning("model %s: a plant that left cannot be forgotten yet: %s", run.plan.name, error)


def is_due(context: FlowContext, run: Run) -> bool:
    """Whether the plant of a run may be forgotten now: nothing that serves has it, or that was not to be waited for.

    After a run that failed it may when a later one has made a champion without the plant, unless that is back; at once
    where that was asked and the plan is archived, for which no later one comes.
    """
    if run.leaving is None:
        return False
    if run.status == "failed" and _is_back(context, run.leaving.site_id):
        return False
    if _waits_for_nobody(context, run):
        return True
    alias = context.store.model_versions.alias(run.plan.name, CHAMPION)
    if alias is None or alias.version is None:
        return False
    try:
        champion = context.registry.get(run.plan.name, alias.version)
    except NotFoundError:
        return False
    return not has_plant(champion, run.leaving.site_id)


def _waits_for_nobody(context: FlowContext, run: Run) -> bool:
    """Whether versions with the plant of a run go also where one of them is champion."""
    assert run.leaving is not None
    return run.leaving.at_once and (run.status == "completed" or is_archived(context, run.plan.name))


def _is_back(context: FlowContext, site: str) -> bool:
    try:
        return context.store.sites.get(site).status != "removed"
    except NotFoundError:
        return False


def is_archived(context: FlowContext, name: str) -> bool:
    """Whether there is a plan of the name, and it is archived."""
    try:
        return context.store.plans.get(name).archived
    except NotFoundError:
        return False


def forget(context: FlowContext, run: Run, forget_tables: ForgetTables, owner: str) -> Forgotten | None:
    """Delete the versions with the plant, then all else that is there of it; with an audit entry at the end.

    The store comes last: what could not be deleted elsewhere keeps the forgetting due. None where the ``owner`` of the
    run's lease is another by now, who goes on with it, or where somebody made a version with the plant champion again
    since it was looked whether it is due.
    """
    assert run.leaving is not None
    at_once = _waits_for_nobody(context, run)
    name, site, left = run.plan.name, run.leaving.site_id, list[str]()
    numbers = versions_with(context, name, site)
    made = "made a version without" if run.status == "completed" else "was of"
    reason = f"run {run.run_id} {made} a plant that left"
    with context.store.atomic() as unit:
        unit.audit.take_turn()  # promotions on their way come first, and later ones find the versions marked
        champion = unit.model_versions.alias(name, CHAMPION)
        if champion is not None and champion.version in numbers and not at_once:
            LOG.info("model %s: version %s is champion again; its plant that left waits", name, champion.version)
            return None
        # Before they are deleted: whoever is killed in between finds them no more, and could not say which they were.
        unit.model_versions.mark_forgotten(name, numbers, "forgotten with a plant that left")
        for alias in (CHAMPION, PREVIOUS):
            last = unit.model_versions.alias(name, alias)
            if last is not None and last.version in numbers:
                unit.model_versions.record_alias(name, alias, None, "flows", reason)
    for number in numbers:
        left += context.registry.forget(name, (number,))
        if not context.store.leavings.take(run.run_id, owner, LEASE_SECONDS):
            return None
    tables = forget_tables(name, site)
    with context.store.atomic() as unit:
        deleted = _untold(unit, name, numbers)
        found = unit.leavings.forget(name, site)
        if tables:
            found.deleted[TABLES] = tables
        unit.audit.append(
            actor="flows", role=None, action="model.unlearned", target=f"model:{name}", reason=reason,
            after={
                "site": site, "versions_deleted": list(deleted), "deleted": found.deleted,
                "pseudonymised": found.pseudonymised, "other_models": list(found.other_models),
                "left": [*left, STAYS],
            },
        )
    LOG.info("model %s: a plant that left is forgotten, with versions %s", name, ", ".join(deleted) or "none")
    return found


def versions_with(context: FlowContext, name: str, site: str) -> tuple[str, ...]:
    """Numbers of a model's versions that had the plant, the newest first.

    One that is marked as forgotten has had it: its files may be deleted already.
    """
    try:
        labels = context.registry.versions(name)
    except NotFoundError:
        return ()
    marked = context.store.model_versions.forgotten_numbers(name)
    return tuple(
        each.version for each in labels
        if each.version in marked or has_plant(context.registry.get(name, each.version), site)
    )


def _untold(unit: Repositories, name: str, numbers: Sequence[str]) -> tuple[str, ...]:
    """Versions that were deleted and that no audit entry names yet, the newest first; ``numbers`` by who asks.

    Whoever was killed deleted some and wrote no entry.
    """
    entries = unit.audit.list_events(action="model.unlearned", target=f"model:{name}", limit=MAX_PAGE)
    told = {number for entry in entries for number in (entry.after or {}).get("versions_deleted", ())}
    marked = unit.model_versions.forgotten_numbers(name)
    return tuple(sorted((marked | set(numbers)) - told, key=int, reverse=True))


def has_plant(version: ModelVersion, site: str) -> bool:
    """Whether a plant, or its exclusion, stands in a version."""
    summed = {plant for each in version.cohorts for plant in each.sites}
    named = {each.site_id for each in version.sites} | {each.site_id for each in version.excluded}
    return site in named | summed
