"""Plans and the runs that operators ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from api.backend.actor import Actor, record
from api.backend.trial import changing
from api.backend.wiring import Backend
from api.plans.checks import check_plan, check_sites, check_training
from services.contracts.errors import ConflictError
from services.contracts.history.plan_notices import plan_notices
from services.contracts.history.records import PlanRecord, PlanVersion
from services.contracts.history.run import OrderedRun, Run
from services.contracts.plans.overrides import tuning_alone, with_overrides
from services.contracts.plans.plan import Plan
from services.contracts.plans.plan_changes import plan_changes
from services.contracts.time_span import check_order


def create(
    backend: Backend, actor: Actor, plan: Plan, *, paused: bool = False, dry_run: bool = False
) -> PlanRecord:
    """Store a new plan, or with ``dry_run`` only see whether it could be.

    ``InvalidInputError`` with one line of what does not fit: asset type, sites, method, parameters, schedule;
    ``ConflictError`` when the name is taken.
    """
    with changing(backend, dry_run=dry_run) as store:
        check_plan(store, plan)
        created = store.plans.create(plan, paused=paused, actor=actor.name)
        record(store, actor, "plan.create", f"plan:{plan.name}", after=created)
    return created


def listed(
    backend: Backend, archived: bool = False, asset_type: str | None = None, paused: bool | None = None
) -> list[PlanRecord]:
    """Plans by name, with ``archived`` the archived ones too; of an asset type, paused or not."""
    return [
        each for each in backend.store.plans.list_plans(archived=archived)
        if asset_type in (None, each.plan.asset_type) and paused in (None, each.paused)
    ]


def given_by(
    versions: Iterable[PlanVersion], actor: str | None, since: datetime | None, until: datetime | None
) -> list[PlanVersion]:
    """Those of a plan's versions that ``actor`` gave, from ``since`` to before ``until``; None: all.

    ``InvalidInputError`` where ``until`` comes before ``since``.
    """
    check_order(since, until)
    return [
        each for each in versions
        if actor in (None, each.actor) and (since is None or each.created_at >= since)
        and (until is None or each.created_at < until)
    ]


def update(
    backend: Backend, actor: Actor, plan: Plan, reason: str = "", expected: Callable[[PlanRecord], None] | None = None,
    *, dry_run: bool = False,
) -> PlanRecord:
    """Give a plan another content; the audit entry has the fields that changed, by their paths.

    With ``dry_run`` nothing is changed, and the record is what it would be.

    ``expected`` raises where what is stored is not what the change was made from. ``InvalidInputError`` as for a new
    plan; ``ConflictError`` where it would change what a running run, or the model's versions, are of.
    """
    with changing(backend, dry_run=dry_run) as store:
        before = store.plans.hold(plan.name)
        if expected is not None:
            expected(before)
        check_plan(store, plan)
        after = store.plans.update(plan, actor=actor.name, reason=reason)
        changes = plan_changes(before.plan, after.plan)
        if changes:
            record(
                store, actor, "plan.update", f"plan:{plan.name}", reason=reason,
                before={"version": before.version} | {path: old for path, (old, _) in changes.items()},
                after={"version": after.version} | {path: new for path, (_, new) in changes.items()},
            )
    return after


def set_paused(backend: Backend, actor: Actor, name: str, paused: bool, reason: str = "") -> PlanRecord:
    """Pause a plan's schedule, or let it go on."""
    with backend.store.atomic() as store:
        before = store.plans.hold(name)
        after = store.plans.set_paused(name, paused)
        if after != before:
            action, change = ("plan.pause" if paused else "plan.resume"), {"paused": paused}
            record(
                store, actor, action, f"plan:{name}", before={"paused": before.paused}, after=change, reason=reason
            )
    return after


def set_archived(backend: Backend, actor: Actor, name: str, archived: bool, reason: str = "") -> PlanRecord:
    """Put a plan away, so that nothing starts it, or bring it back; ``ConflictError`` while a run is unfinished."""
    with backend.store.atomic() as store:
        before = store.plans.hold(name)
        after = store.plans.set_archived(name, archived)
        if after != before:
            action = "plan.archive" if archived else "plan.restore"
            record(
                store, actor, action, f"plan:{name}", before={"archived": before.archived},
                after={"archived": archived}, reason=reason,
            )
    return after


def delete(
    backend: Backend, actor: Actor, name: str, reason: str = "", expected: Callable[[PlanRecord], None] | None = None
) -> PlanRecord:
    """Forget a plan that no run and no version refers to, or raise ``ConflictError``; ``expected`` may refuse, too."""
    with backend.store.atomic() as store:
        gone = store.plans.delete(name)
        if expected is not None:
            expected(gone)
        record(store, actor, "plan.delete", f"plan:{name}", before=gone, reason=reason)
    return gone


def trigger(
    backend: Backend, actor: Actor, name: str, reason: str = "", overrides: Mapping[str, Any] | None = None
) -> OrderedRun:
    """Ask for a run now, also of a paused plan; the flows process starts it within seconds.

    ``overrides``: fields of the plan that this run has of its own (:mod:`services.contracts.plans.overrides`).
    ``ConflictError`` while a run of the plan is unfinished, or where it is archived; ``InvalidInputError`` when a site
    that the plan names is suspended or removed, an override does not fit, or the plan does not fit the newest version
    of its asset type.
    """
    run = _order(backend, actor, name, reason, "plan.trigger", lambda plan: with_overrides(plan, overrides or {}))
    last = backend.store.runs.list_runs(plan=name, status="completed", limit=1, tunings=False)
    return OrderedRun.of_record(run, notices=plan_notices(run.plan, last[0] if last else None))


def tune(backend: Backend, actor: Actor, name: str, reason: str = "") -> Run:
    """Ask for a tuning of the plan's terms and nothing else: no training, no version. Errors as of :func:`trigger`.

    ``InvalidInputError`` (``no_tuning``) where the plan has no tuning.
    """
    return _order(backend, actor, name, reason, "plan.tune", tuning_alone)


def _order(
    backend: Backend, actor: Actor, name: str, reason: str, action: str, of_run: Callable[[Plan], Plan]
) -> Run:
    """Pending run of a plan as ``of_run`` changes it for this run, with its audit entry."""
    with backend.store.atomic() as store:
        found = store.plans.hold(name)
        if found.archived:
            raise ConflictError(f"plan {name} is archived; restore it first", code="plan_archived")
        check_sites(store, found.plan, active=True)
        plan = of_run(found.plan)
        check_training(store, plan)  # a newer version of the asset type may be another than the plan was checked by
        run = store.runs.create_run(plan)
        own = {} if plan.overrides is None else {"overrides": plan.overrides}
        record(store, actor, action, f"plan:{name}", after={"run_id": run.run_id} | own, reason=reason)
    return run
