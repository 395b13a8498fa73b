"""What is checked of a plan before it is stored, so that a mistake shows now and not at night."""

from __future__ import annotations

from zoneinfo import available_timezones

from api.plans.cron import check_cron
from services.contracts.errors import InvalidInputError, NotFoundError
from services.contracts.plans.plan import Plan
from services.round_store.store import Repositories


def check_plan(store: Repositories, plan: Plan) -> None:
    """Raise :class:`InvalidInputError` with one line at the first thing of a plan that cannot work.

    That its asset type is there, the store checks itself.
    """
    from services.registry.labels import check_new_name  # lists, which check nothing, do without

    check_new_name(plan.name)  # its model bears the same name
    check_untuned(plan)
    check_training(store, plan)
    check_schedule(plan)
    check_sites(store, plan)


def check_untuned(plan: Plan) -> None:
    """What a tuning chose, or was set for one run, stands with the run and in no plan: :class:`InvalidInputError`."""
    if plan.overrides is not None:
        raise InvalidInputError(f"plan {plan.name}: overrides are of one run; give them when it is triggered")
    if plan.tuned is not None:
        raise InvalidInputError(f"plan {plan.name}: tuned is what a run's tuning finds; write tuning instead")


def check_training(store: Repositories, plan: Plan) -> None:
    """The loss and the lift must fit the asset type, and the method the problem, or :class:`InvalidInputError`."""
    try:
        asset_type = store.asset_types.get(plan.asset_type).asset_type
    except NotFoundError:
        return
    from services.contracts.plans.plan_problem import check_problem  # with all methods, which only a new plan needs

    check_problem(plan, asset_type, n_sites=len(set(plan.sites)) or None)


def check_schedule(plan: Plan) -> None:
    """The schedule must be one that can come, in a time zone that exists, or :class:`InvalidInputError`."""
    if plan.cron is not None:
        check_cron(plan.cron)
    if plan.timezone not in available_timezones():
        raise InvalidInputError(
            f"plan {plan.name}: {plan.timezone[:60]!r} is no time zone; give a name such as UTC or Europe/Berlin"
        )


def check_sites(store: Repositories, plan: Plan, *, active: bool = False) -> None:
    """Every named site must be enrolled (and active, where asked), and there must be enough of them.

    :class:`InvalidInputError` names those that are not.
    """
    status = {site.site_id: site.status for site in store.sites.list_sites()}
    waited_for = plan.waiting.sites if plan.waiting else {}
    named = {*plan.sites, *plan.site_settings} | set(waited_for)
    unknown = sorted(site for site in named if status.get(site, "removed") == "removed")
    if unknown:
        raise InvalidInputError(
            f"plan {plan.name} names sites that are not enrolled: {', '.join(unknown)}", code="unknown_site"
        )
    suspended = sorted(site for site in set(plan.sites) if active and status[site] == "suspended")
    if suspended:
        raise InvalidInputError(
            f"plan {plan.name} names sites that are suspended: {', '.join(suspended)}", code="suspended_site"
        )
    if plan.sites and len(set(plan.sites)) < plan.min_sites:
        raise InvalidInputError(
            f"plan {plan.name} wants {plan.min_sites} sites at least, but names {len(set(plan.sites))}"
        )
    if plan.sites:
        from services.contracts.plans.plan_problem import check_cohort_size

        check_cohort_size(plan, len(set(plan.sites)))
