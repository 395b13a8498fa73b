"""Plans and the runs that operators ask for."""

from __future__ import annotations

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from api.plans.checks import check_plan, check_sites
from services.contracts.plan import Plan
from services.contracts.records import PlanRecord
from services.contracts.run import Run


def create(backend: Backend, actor: Actor, plan: Plan, *, paused: bool = False) -> PlanRecord:
    """Store a new plan.

    ``InvalidInputError`` with one line of what does not fit: asset type, sites, method, parameters, schedule;
    ``ConflictError`` when the name is taken.
    """
    with backend.store.atomic() as store:
        check_plan(store, plan)
        created = store.plans.create(plan, paused=paused)
        record(store, actor, "plan.create", f"plan:{plan.name}", after=created)
    return created


def set_paused(backend: Backend, actor: Actor, name: str, paused: bool, reason: str = "") -> PlanRecord:
    """Pause a plan's schedule, or let it go on."""
    with backend.store.atomic() as store:
        before = store.plans.get(name)
        after = store.plans.set_paused(name, paused)
        if after != before:
            action, change = ("plan.pause" if paused else "plan.resume"), {"paused": paused}
            record(
                store, actor, action, f"plan:{name}", before={"paused": before.paused}, after=change, reason=reason
            )
    return after


def trigger(backend: Backend, actor: Actor, name: str, reason: str = "") -> Run:
    """Ask for a run now, also of a paused plan; the flows process starts it within seconds.

    ``ConflictError`` while a run of the plan is unfinished; ``InvalidInputError`` when a site that the plan names is
    suspended or removed.
    """
    with backend.store.atomic() as store:
        plan = store.plans.get(name).plan
        check_sites(store, plan, active=True)
        run = store.runs.create_run(plan)
        record(store, actor, "plan.trigger", f"plan:{name}", after={"run_id": run.run_id}, reason=reason)
    return run
