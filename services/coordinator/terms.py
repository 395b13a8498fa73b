"""What a plan means for each site: its own problem, its scalars in the run, its share of the mixture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from models.lift import check_same_lift
from models.methods.catalogue import get_method
from models.problem import Arrays, ProblemError
from services.contracts.asset_type import AssetType
from services.contracts.errors import BallastError, InvalidInputError
from services.contracts.lift import draw_lift, lift_check, pinned
from services.contracts.messages import RadiusRule, TrainingSpec
from services.contracts.plan import Plan, check_weights
from services.contracts.run import Run, SiteTermsRecord

JOIN_SHAPES: dict[str, tuple[int, ...]] = {
    "n_samples": (), "radius": (), "radius_is_estimate": (), "confidence": (), "lift_check": (),
}
"""What a site says of itself when it joins."""


NO_BALL = RadiusRule(rule="fixed", value=0.0)


class LiftsDifferError(BallastError):
    """Sites of a run lift their features differently: their answers speak of different problems."""

    code = "lifts_differ"


def shared_spec(plan: Plan, asset_type: AssetType) -> TrainingSpec:
    """The problem that the sites share: the plan's, its lift pinned, and what the method overrides."""
    method, changes = get_method(plan.method), dict[str, object]()
    changes["lift"] = pinned(plan.spec.lift, len(asset_type.features))
    if method.trusts_labels:
        changes["label_flip_cost"] = float("inf")
    if method.ignores_radius:
        changes["radius"] = NO_BALL
    return plan.spec.model_copy(update=changes)


def site_spec(plan: Plan, asset_type: AssetType, site_id: str, radius: float | None = None) -> TrainingSpec:
    """The problem of one site. ``radius``, once the site has joined, is the one that it joined with."""
    spec, own = shared_spec(plan, asset_type), plan.site_settings.get(site_id)
    method, changes = get_method(plan.method), dict[str, object]()
    if own is not None and own.radius is not None and not method.ignores_radius:
        changes["radius"] = own.radius
    if radius is not None:
        changes["radius"] = RadiusRule(rule="fixed", value=radius)
    if own is not None and own.label_flip_cost is not None and not method.trusts_labels:
        changes["label_flip_cost"] = own.label_flip_cost
    return spec.model_copy(update=changes)


def site_specs(run: Run, asset_type: AssetType, sites: Iterable[str]) -> dict[str, TrainingSpec]:
    """The problem of each site of a run."""
    radii = {site.site_id: site.radius for site in run.sites}
    return {site: site_spec(run.plan, asset_type, site, radii.get(site)) for site in sites}


def check_asked(plan: Plan, asked: Iterable[str]) -> None:
    """Explicit weights must be there for all sites that are asked, and sum to 1; :class:`InvalidInputError` if not."""
    try:
        check_weights(plan.explicit_weights, asked)
    except ValueError as error:
        raise InvalidInputError(f"plan {plan.name}: {error}", code="bad_weights") from None


def joined_terms(plan: Plan, asset_type: AssetType, joined: Mapping[str, Arrays]) -> list[SiteTermsRecord]:
    """Scalars of the sites that joined, by what they answered.

    Raises
    ------
    InvalidInputError
        A site said something of itself that cannot be: the run must not build on it.
    LiftsDifferError
        A site's lift is not that of the plan.
    """
    for site, arrays in joined.items():
        _check_scalars(site, {name: float(array) for name, array in arrays.items()})
    spec = shared_spec(plan, asset_type)
    own_check = lift_check(draw_lift(spec.lift, len(asset_type.features)))
    _check_lifts(own_check, {site: float(arrays["lift_check"]) for site, arrays in joined.items()})
    weights = _weights(plan, {site: float(arrays["n_samples"]) for site, arrays in joined.items()})
    return [
        SiteTermsRecord(
            site_id=site, weight=weights[site], radius=float(arrays["radius"]), n_samples=int(arrays["n_samples"]),
            radius_is_estimate=bool(arrays["radius_is_estimate"]), confidence=float(arrays["confidence"]) or None,
            label_flip_cost=site_spec(plan, asset_type, site).label_flip_cost,
        )
        for site, arrays in sorted(joined.items())
    ]


def _check_scalars(site: str, said: Mapping[str, float]) -> None:
    possible = {
        "n_samples": said["n_samples"] >= 1 and said["n_samples"].is_integer(),
        "radius": said["radius"] >= 0,
        "confidence": 0 <= said["confidence"] < 1,
        "radius_is_estimate": said["radius_is_estimate"] in (0.0, 1.0),
    }
    wrong = [name for name, holds in possible.items() if not holds]
    if wrong:
        text = f"site {site} joined with a {wrong[0]} that cannot be: {said[wrong[0]]:g}"
        raise InvalidInputError(text, code="bad_join")


def _weights(plan: Plan, samples: Mapping[str, float]) -> dict[str, float]:
    """Share of each joined site: explicit ones scaled up to sum to 1, else equal ones or by the sample counts."""
    raw: Mapping[str, float] = plan.explicit_weights
    if not raw:
        raw = samples if plan.site_weights == "samples" else dict.fromkeys(samples, 1.0)
    total = sum(raw[site] for site in samples)
    return {site: raw[site] / total for site in samples}


def _check_lifts(own: float, checks: Mapping[str, float]) -> None:
    try:
        check_same_lift({site: repr(check) for site, check in checks.items()})
    except ProblemError as error:
        raise LiftsDifferError(str(error)) from None
    if any(check != own for check in checks.values()):
        raise LiftsDifferError("the sites lift their features otherwise than the plan says: the seed or a size differs")


def weights_note(run: Run) -> str:
    """One line where explicit weights were scaled up because weighted sites did not join; else empty."""
    missing = sorted(set(run.plan.explicit_weights) - {site.site_id for site in run.sites})
    if not missing:
        return ""
    return f"weights scaled up to sum to 1 without {', '.join(missing)}"
