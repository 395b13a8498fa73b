"""A plan, its next runs, and what a change of it would do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from api.backend.wiring import Backend
from api.plans.checks import check_plan
from api.plans.cron import next_times
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.history.records import PlanRecord
from services.contracts.history.run import Run
from services.contracts.history.site import Site
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_changes import Change, plan_changes
from services.contracts.reading import explain

NEXT = 5
"""Next runs that a page shows."""


@dataclass(frozen=True)
class DryRun:
    """What a run now would be: the plants that would be asked, and what stands in its way. Nothing is started."""

    asked: tuple[Site, ...]
    present: frozenset[str]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """A plan as somebody wrote it: what it would change, or why it does not fit."""

    text: str
    plan: Plan | None
    changes: Mapping[str, Change]
    problem: str


def next_runs(record: PlanRecord, now: datetime, count: int = NEXT) -> Sequence[datetime]:
    """When the schedule starts the plan next; nothing where it is paused, archived or has no schedule."""
    if record.paused or record.archived or record.plan.cron is None:
        return ()
    return next_times(record.plan.cron, record.plan.timezone, now, count)


def draft(backend: Backend, record: PlanRecord, text: str) -> Draft:
    """Hold a changed plan to all that is checked of a new one; nothing is stored.

    :class:`InvalidInputError` for another name.
    """
    try:
        plan = read_plan(text)
        if plan.name != record.plan.name:
            raise InvalidInputError(f"the plan's name stays {record.plan.name}")
        check_plan(backend.store, plan)
    except BallastError as error:
        return Draft(text, None, {}, str(error))
    return Draft(text, plan, plan_changes(record.plan, plan), "")


def read_plan(text: str) -> Plan:
    """Plan in TOML; ``InvalidInputError`` with one line."""
    try:
        return Plan.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"the plan is not TOML: {error}") from None
    except ValidationError as error:
        raise InvalidInputError(explain(error, Plan)) from None


def dry_run(backend: Backend, plan: Plan, runs: Sequence[Run], now: datetime) -> DryRun:
    """Hold a plan to what is there now, its newest ``runs`` among it, without starting anything."""
    sites = backend.store.sites.list_sites(asset_type=plan.asset_type)
    wanted = [site for site in sites if site.site_id in plan.sites or not plan.sites]
    asked = [site for site in wanted if site.status == "active"]
    present = frozenset(site.site_id for site in asked if site.presence(now) == "connected")
    problems = []
    try:
        check_plan(backend.store, plan)
    except BallastError as error:
        problems.append(str(error))
    suspended = sorted(site.site_id for site in wanted if plan.sites and site.status == "suspended")
    if suspended:
        problems.append(f"suspended, and named by the plan: {', '.join(suspended)}")
    unfinished = [run for run in runs if run.status in ("pending", "running")]
    if unfinished:
        problems.append(f"run {unfinished[0].run_id} is unfinished; one run of a plan at a time")
    if len(asked) < plan.min_sites:
        problems.append(f"the plan wants {plan.min_sites} plants, and {len(asked)} are active")
    elif len(present) < plan.min_sites:
        problems.append(f"the plan wants {plan.min_sites} plants, and {len(present)} are connected now")
    if plan.reveal == "sums" and len(asked) < plan.min_cohort:
        problems.append(f"sums need a cohort of {plan.min_cohort} plants, and {len(asked)} are active")
    return DryRun(tuple(asked), present, tuple(problems))
