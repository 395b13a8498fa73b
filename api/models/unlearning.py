"""A plant leaves a model: its enrolment ends, the plan goes on without it, and a run makes a version without it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from api.backend.actor import Actor, record
from api.backend.wiring import Backend
from api.models.schemas import Unlearned, Unlearning
from services.contracts.errors import ConflictError, NotFoundError
from services.contracts.history.audit import BACKUP_MADE
from services.contracts.history.run import STAYS, Leaving, Run
from services.contracts.history.site import Site
from services.contracts.plans.plan import Plan
from services.round_store.database.queries import MAX_PAGE
from services.round_store.store import Repositories

NOT_TRAINED: Final = "the plan is archived, so no version is trained: what stands of the plant that left goes at once"
"""Why a run of an archived plan, of which a plant left, ended as failed."""


def unlearn(backend: Backend, actor: Actor, name: str, wanted: Unlearning) -> Unlearned:
    """Ask for a version of a model that never had a plant; the flows do the rest.

    Nothing is trained for an archived plan: its versions that had the plant go at once, where that was asked.
    ``NotFoundError`` where there is no such plan, or no run of it had the plant; ``ConflictError`` while a run of it is
    unfinished, where the plan is archived and older versions were to wait for one without the plant, or where the plan
    is not archived and is of this plant alone, or needs more sites than it names besides.
    """
    site, leaving = wanted.site, Leaving(site_id=wanted.site, at_once=wanted.purge == "now")
    with backend.store.atomic() as store:
        store.plans.get(name)  # is there one at all
        runs = store.leavings.runs_with(name, site)
        others = store.leavings.plans_with(site, but=name)
        before, after = _end_enrolment(store, site)
        held = store.plans.hold(name)
        if held.archived:
            run = _without_training(store, held.plan, leaving)
        else:
            fewer = without_site(held.plan, site)
            if fewer != held.plan:
                store.plans.update(fewer, actor=actor.name, reason="a plant left")
            run = store.runs.create_run(fewer, leaving=leaving)
        if before is not None:
            record(store, actor, "site.remove", f"site:{site}", before=before, after=after, reason=wanted.reason)
        record(
            store, actor, "model.unlearn", f"model:{name}", reason=wanted.reason,
            after={"site": site, "run_id": run.run_id, "purge": wanted.purge},
        )
        versions = store.model_versions.numbers(name, runs=frozenset(runs))
        backups = _backups_since(store, store.runs.get_run(runs[-1]).created_at)
    backend.nats_users.refresh()
    return Unlearned(
        model=name, run_id=run.run_id, versions=versions, runs=tuple(runs), other_models=others, purge=wanted.purge,
        backups=backups, stays=STAYS,
    )


def _backups_since(store: Repositories, first: datetime) -> tuple[str, ...]:
    """Names of the backups that were made since a moment, the newest first."""
    files: list[str] = []
    before: int | None = None
    while entries := store.audit.list_events(action=BACKUP_MADE, since=first, limit=MAX_PAGE, before=before):
        files += [str((entry.after or {}).get("file")) for entry in entries]
        before = entries[-1].number
    return tuple(files)


def without_site(plan: Plan, site: str) -> Plan:
    """Plan that does not name a site; explicit weights of the others are scaled up to sum to 1.

    ``ConflictError`` where it names no other, or fewer than it wants at least, or than a sum is over.
    """
    waiting = plan.waiting
    waited_for = waiting is not None and site in waiting.sites
    if site not in plan.sites and site not in plan.site_settings and not waited_for:
        return plan
    sites = tuple(each for each in plan.sites if each != site)
    if plan.sites and not sites:
        raise ConflictError(
            f"plan {plan.name} is of site {site} alone, so that nothing is left to train: archive it (`ballast plan "
            f"archive {plan.name}`) and unlearn with --purge now"
        )
    if plan.sites and len(set(sites)) < plan.min_sites:
        raise ConflictError(
            f"plan {plan.name} wants {plan.min_sites} sites at least and names {len(set(sites))} without {site}, so "
            "that no run of it could train: give it fewer min_sites first (`ballast plan update`), or archive it and "
            "unlearn with --purge now"
        )
    if plan.sites and plan.reveal == "sums" and len(set(sites)) < plan.min_cohort:
        raise ConflictError(
            f"plan {plan.name} sums over {plan.min_cohort} sites at least and names {len(set(sites))} without {site}, "
            'so that no run of it could train: name more sites or set reveal = "each site" first (`ballast plan '
            "update`), or archive it and unlearn with --purge now"
        )
    total = sum(weight for each, weight in plan.explicit_weights.items() if each != site)
    settings = {
        each: own if own.weight is None or not total else own.model_copy(update={"weight": own.weight / total})
        for each, own in plan.site_settings.items() if each != site
    }
    if waiting is not None and waited_for:
        others = {each: seconds for each, seconds in waiting.sites.items() if each != site}
        waiting = waiting.model_copy(update={"sites": others})
    return Plan.model_validate(dict(plan) | {"sites": sites, "site_settings": settings, "waiting": waiting})


def _without_training(store: Repositories, plan: Plan, leaving: Leaving) -> Run:
    """Run of an archived plan, ended before it began: only the forgetting is left of it."""
    if not leaving.at_once:
        raise ConflictError(
            f"plan {plan.name} is archived, so that no version without site {leaving.site_id} comes: restore it first, "
            "or unlearn with --purge now, which deletes its versions that had the plant and trains none",
            code="plan_archived",
        )
    run = store.runs.create_run(plan, leaving=leaving)
    return store.runs.finish_run(run.run_id, "failed", NOT_TRAINED)


def _end_enrolment(store: Repositories, site: str) -> tuple[Site | None, Site | None]:
    """End a plant's enrolment; the plant before and after, None where it was over.

    Codes first, as where one is used, and all rows before the audit trail: else two transactions may wait for each
    other.
    """
    store.enrolment_codes.revoke_unused(site)
    try:
        before = store.sites.hold(site)
    except NotFoundError:
        return None, None
    return (None, None) if before.status == "removed" else (before, store.sites.remove(site))
