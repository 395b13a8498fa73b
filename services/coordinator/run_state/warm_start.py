"""From where a run begins: which cuts of the plan's last run still hold, and who is in a cohort with whom.

Nothing is taken over but cuts of plants that signed the same digest of rows and terms as then, with the same radius and
flip cost, under the same contract, problem, lift, method and mode; on sums of cohorts with the same plants and shares.
Never where there is noise (its bounds hold in probability, over one run's rounds), and never where an auditor is to see
every round (those of an earlier run cannot be opened any more).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.basics import FloatArray
from models.cohorts.dealing import cohort_problem, cohort_shares
from models.cohorts.regrouping import kept_cohorts, regroup
from models.methods.catalogue import check_parameters, get_method
from models.methods.protocol import StartsWarm
from services.contracts.history.run import Run, RunStart, SiteTermsRecord, SummedSites
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import Plan
from services.coordinator.run_state.terms import NO_BALL, cohorts_of, seed_of, server_problem, shared_spec, site_spec
from services.coordinator.run_state.training_state import Training

Digests = Mapping[str, str]
"""Keyed digest of each site's rows and terms, by site id; empty where it told none."""


@dataclass(frozen=True)
class Earlier:
    """A completed run of the plan: what its sites said of their rows, and the method's state at its end."""

    run: Run
    digests: Digests
    state: Mapping[str, FloatArray]


def may_reuse(plan: Plan) -> bool:
    """Whether runs of the plan go on from one another at all."""
    warm = isinstance(get_method(plan.method).server, StartsWarm)
    return plan.warm_start and warm and plan.noise is None and plan.audit != "every round"


def run_start(
    run: Run, sites: Sequence[SiteTermsRecord], digests: Digests, asset_type: AssetType, earlier: Earlier | None
) -> RunStart:
    """What a run begins with, after the join: the run that it follows, and on sums its cohorts."""
    contract = asset_type.fingerprint
    if earlier is None or not _follows(run.plan, earlier.run, contract):
        return RunStart(contract=contract)
    if run.plan.reveal != "sums":
        return RunStart(contract=contract, after=earlier.run.run_id)
    ids = [site.site_id for site in sites]
    changed = {site for site in ids if not _said_the_same(site, digests, earlier.digests)}
    dealt = regroup(cohorts_of(earlier.run), ids, changed, run.plan.min_cohort, seed_of(run))
    cohorts = tuple(SummedSites(name=name, sites=members) for name, members in dealt.items())
    return RunStart(contract=contract, after=earlier.run.run_id, cohorts=cohorts)


def warmed(at: Training, digests: Digests, asset_type: AssetType, earlier: Earlier) -> Training:
    """A run before its first round, with what still holds of the earlier one; as it is where nothing fits."""
    run, before = at.run, earlier.run
    if not _follows(run.plan, before, asset_type.fingerprint) or not _same_problem(run.plan, before.plan, asset_type):
        return at
    then, now = server_problem(before, asset_type), server_problem(run, asset_type)
    same = _unchanged(run, before, digests, earlier.digests, asset_type)
    if run.plan.reveal == "sums":
        groups, new = cohorts_of(before), cohorts_of(run)
        kept = kept_cohorts(groups, cohort_shares(then, groups), new, cohort_shares(now, new), same)
        then = cohort_problem(then, groups)
    else:
        places = {site.site_id: place for place, site in enumerate(then.sites)}
        kept = [places[site.site_id] if site.site_id in same else -1 for site in now.sites]
    state = at.server.warm(at.server.unpack(earlier.state), then, at.problem, kept)
    return replace(at, state=state)


def _follows(plan: Plan, before: Run, contract: str) -> bool:
    """Whether a run of the plan may go on from an earlier one, before anything is asked of its problem."""
    return (
        may_reuse(plan) and may_reuse(before.plan) and before.start is not None and before.start.contract == contract
        and (plan.method, plan.reveal, plan.asset_type)
        == (before.plan.method, before.plan.reveal, before.plan.asset_type)
    )


def _same_problem(plan: Plan, before: Plan, asset_type: AssetType) -> bool:
    """Whether the sites share one problem in both, with the method's own numbers; a radius by rule is each site's."""
    ours, theirs = (
        shared_spec(each, asset_type).model_copy(update={"radius": NO_BALL, "label_flip_cost": 1.0})
        for each in (plan, before)
    )
    parameters = [check_parameters(get_method(each.method), each.parameters) for each in (plan, before)]
    return ours == theirs and parameters[0] == parameters[1]


def _unchanged(run: Run, before: Run, digests: Digests, then: Digests, asset_type: AssetType) -> set[str]:
    """Sites whose risk is the same function: rows as they sign, radius and flip cost as the runs have them."""

    def terms(each: Run) -> dict[str, tuple[float, float]]:
        return {
            site.site_id: (site.radius, site_spec(each.plan, asset_type, site.site_id).label_flip_cost)
            for site in each.members
        }

    ours, theirs = terms(run), terms(before)
    return {site for site in ours if ours[site] == theirs.get(site) and _said_the_same(site, digests, then)}


def _said_the_same(site: str, digests: Digests, then: Digests) -> bool:
    return bool(digests.get(site)) and digests.get(site) == then.get(site)
