"""What a plan means for each site: its own problem, its scalars in the run, its share of the mixture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from models.basics import Arrays
from models.cohorts.dealing import deal, without
from models.methods.catalogue import check_parameters, get_method
from models.problem import ServerProblem, SiteTerms
from services.contracts.errors import InvalidInputError
from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.machines.asset_type import AssetType
from services.contracts.plans.plan import MixtureSpec, Plan, check_weights
from services.contracts.problems.all_scores import joint_loss, objective_of
from services.contracts.problems.lift import lifted_size, numbered, pinned
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.wire.messages import SiteUpdate
from services.coordinator.run_state.sample_counts import capped, weighs_by_samples

JOIN_SHAPES: dict[str, tuple[int, ...]] = {
    "n_samples": (), "radius": (), "radius_is_estimate": (), "confidence": (), "lift_check": (),
}
"""What a site says of itself when it joins."""

NO_BALL = RadiusRule(rule="fixed", value=0.0)


def shared_spec(plan: Plan, asset_type: AssetType) -> TrainingSpec:
    """The problem that the sites share: the plan's, its lift pinned, without a ball where its loss has no worst case.

    A method that trains without the ball, or trusts labels, does so by its own site half: the problem stays as stated,
    for at the end every model is judged by it.
    """
    lift = numbered(plan.spec.lift, asset_type.feature_names)
    changes: dict[str, object] = {"lift": pinned(lift, len(asset_type.features))}
    if not math.isfinite(plan.spec.loss.loss.lipschitz):
        changes["radius"] = NO_BALL
    return plan.spec.model_copy(update=changes)


def site_spec(plan: Plan, asset_type: AssetType, site_id: str, radius: float | None = None) -> TrainingSpec:
    """The problem of one site. ``radius``, once the site has joined, is the one that it joined with."""
    return _of_site(shared_spec(plan, asset_type), plan, site_id, radius)


def _of_site(spec: TrainingSpec, plan: Plan, site_id: str, radius: float | None) -> TrainingSpec:
    """The shared problem as one site has it."""
    own = plan.site_settings.get(site_id)
    changes = dict[str, object]()
    if own is not None and own.radius is not None and math.isfinite(plan.spec.loss.loss.lipschitz):
        changes["radius"] = own.radius
    if radius is not None:
        changes["radius"] = RadiusRule(rule="fixed", value=radius)
    if own is not None and own.label_flip_cost is not None:
        changes["label_flip_cost"] = own.label_flip_cost
    return spec.model_copy(update=changes)


def site_specs(run: Run, asset_type: AssetType, sites: Iterable[str]) -> dict[str, TrainingSpec]:
    """The problem of each site of a run."""
    radii = {site.site_id: site.radius for site in run.sites}
    spec = shared_spec(run.plan, asset_type)
    return {site: _of_site(spec, run.plan, site, radii.get(site)) for site in sites}


def server_problem(run: Run, asset_type: AssetType) -> ServerProblem:
    """The problem of the run's sites, as a server half sees it."""
    plan = run.plan
    method = get_method(plan.method)
    specs = site_specs(run, asset_type, [site.site_id for site in run.members])
    objective, n_features = objective_of(plan.spec, asset_type), lifted_size(plan.spec.lift, len(asset_type.features))
    joint = joint_loss(plan.spec, asset_type)
    size = n_features if objective is None else objective.size(n_features)
    if joint is not None:
        size = joint.planes * (n_features + int(plan.spec.fit_intercept))
    return ServerProblem(
        # All parameters of a model of all scores or all classes are one vector, whose intercepts lie inside.
        n_features=size,
        sites=tuple(
            SiteTerms(site.site_id, site.weight, site.radius, specs[site.site_id].label_flip_cost)
            for site in run.members
        ),
        transport_norm=plan.spec.transport_norm,
        fit_intercept=plan.spec.fit_intercept and objective is None and joint is None,
        gap=plan.gap, absolute_gap=plan.absolute_gap, parameters=check_parameters(method, plan.parameters),
        mixture=mixture_of(plan).ball, box=method.place(plan.spec.support_kind) == "box",
    )


def mixture_of(plan: Plan) -> MixtureSpec:
    """The ball over the plants that the plan's method reckons with: its own, or every mixture of them."""
    ball = get_method(plan.method).ball_over_sites(plan.mixture.ball)
    return MixtureSpec(norm=ball.norm, radius=ball.radius)


def check_asked(plan: Plan, asked: Iterable[str]) -> None:
    """Explicit weights must be there for all sites that are asked, and sum to 1; :class:`InvalidInputError` if not."""
    try:
        check_weights(plan.explicit_weights, asked)
    except ValueError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="bad_weights") from None


def joined_terms(plan: Plan, asset_type: AssetType, joined: Mapping[str, Arrays]) -> list[SiteTermsRecord]:
    """Scalars of the sites that joined, by what they answered and admission let in."""
    weights = _weights(plan, {site: float(arrays["n_samples"]) for site, arrays in joined.items()})
    return [
        SiteTermsRecord(
            site_id=site, weight=weights[site], radius=float(arrays["radius"]), n_samples=int(arrays["n_samples"]),
            radius_is_estimate=bool(arrays["radius_is_estimate"]), confidence=float(arrays["confidence"]) or None,
            label_flip_cost=site_spec(plan, asset_type, site).label_flip_cost,
        )
        for site, arrays in sorted(joined.items())
    ]


def with_figures(terms: Iterable[SiteTermsRecord], told: Mapping[str, SiteUpdate]) -> list[SiteTermsRecord]:
    """The terms with what each site told at the join of its drift, its exposure, and its own scores."""
    names = ("drift", "exposed", "own_scores")
    return [
        each.model_copy(update={name: getattr(told[each.site_id], name) for name in names}) for each in terms
    ]


def _weights(plan: Plan, samples: Mapping[str, float]) -> dict[str, float]:
    """Share of each joined site: explicit ones scaled up to sum to 1, else equal ones or by the sample counts."""
    raw: Mapping[str, float] = plan.explicit_weights
    if not raw:
        raw = samples if plan.site_weights == "samples" else dict.fromkeys(samples, 1.0)
    total = sum(raw[site] for site in samples)
    shares = {site: raw[site] / total for site in samples}
    return capped(shares, plan.largest_share) if weighs_by_samples(plan) else shares


def cohorts_of(run: Run) -> dict[str, tuple[str, ...]]:
    """Plants by cohort of a run on sums, without those that it goes on without.

    Dealt by chance from the run's id, or at the join around what changed since the run that it follows.
    """
    if run.start is not None and run.start.cohorts:
        dealt = {each.name: each.sites for each in run.start.cohorts}
    else:
        dealt = deal([site.site_id for site in run.sites], run.plan.min_cohort, seed=seed_of(run))
    return without(dealt, {each.site_id for each in run.excluded}, run.plan.min_cohort)


def seed_of(run: Run) -> int:
    """What cohorts of a run are dealt by."""
    return int(run.run_id[:12], 16)


def weights_note(run: Run) -> str:
    """One line where explicit weights were scaled up because weighted sites take no part; else empty."""
    missing = sorted(set(run.plan.explicit_weights) - {site.site_id for site in run.members})
    if not missing:
        return ""
    return f"weights scaled up to sum to 1 without {', '.join(missing)}"


def exclusions_note(run: Run) -> str:
    """One line that names the sites that were excluded, and why; else empty."""
    return "; ".join(f"{each.site_id} left out in round {each.round}: {each.reason}" for each in run.excluded)
