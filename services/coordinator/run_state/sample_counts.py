"""Whether the rows that sites say they have can be believed, where weights go by them; and how far they may weigh.

Nobody but a site can count its rows, so a claim is held to what others claim and to what the site claimed before: a
site that says more than ``sample_factor`` times the median of the others, or than its own number in the run before,
does not take part. Below that its weight still is at most ``largest_share``. Of two sites whose claims are that far
apart neither is believed over the other: a run of them ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

from services.contracts.errors import BallastError
from services.contracts.plans.plan import Plan
from services.coordinator.asking.poll import Poll, rejected

LEAST_CAPPED = 3
"""Of two sites that differ in size one always has more than half."""


class UnlikeClaimsError(BallastError):
    """Of two sites whose weights go by samples nobody says which counts falsely."""

    code = "unlike_claims"


def weighs_by_samples(plan: Plan) -> bool:
    """Whether the sites' weights follow from what they say of themselves."""
    return plan.site_weights == "samples" and not plan.explicit_weights


def with_samples_held(outcome: Poll, plan: Plan, before: Mapping[str, int]) -> Poll:
    """The outcome of a join without the sites whose rows are not believed; ``before``: rows in the run before.

    ``UnlikeClaimsError`` where two are left whose claims are apart by more than the plan's ``sample_factor``.
    """
    if not weighs_by_samples(plan):
        return outcome
    told = {site: float(update.arrays["n_samples"]) for site, update in outcome.updates.items()}
    changed = {site: why for site in told if (why := _changed(told[site], plan.sample_factor, before.get(site)))}
    kept = {site: rows for site, rows in told.items() if site not in changed}  # who is not believed is no measure
    alone = len(kept) == 2  # the two that are left say nothing of one another
    reasons = changed | {site: why for site in kept if not alone and (why := _more(site, kept, plan.sample_factor))}
    believed = {site: rows for site, rows in told.items() if site not in reasons}
    if len(believed) == 2 and max(believed.values()) > plan.sample_factor * min(believed.values()):
        claims = " and ".join(f"{site} says that it has {rows:,.0f} rows" for site, rows in sorted(believed.items()))
        raise UnlikeClaimsError(
            f"{claims}, which is more than the plan's sample_factor apart ({plan.sample_factor:g}): of two neither is "
            "believed over the other; let weights not go by samples, or raise the factor where both are right"
        )
    return replace(
        outcome, updates={site: each for site, each in outcome.updates.items() if site not in reasons},
        answers=rejected(outcome.answers, reasons),
    )


def capped(weights: Mapping[str, float], largest: float) -> dict[str, float]:
    """Weights that sum to 1 with none above ``largest``, or above equal ones; what is cut off is dealt to the others.

    Fewer than three are left as they are.
    """
    if len(weights) < LEAST_CAPPED:
        return dict(weights)
    limit, full = max(largest, 1.0 / len(weights)), set[str]()
    while True:
        left = 1.0 - limit * len(full)
        total = sum(weight for site, weight in weights.items() if site not in full)
        shares = {
            site: limit if site in full else left * weight / total for site, weight in weights.items()
        }
        over = {site for site, share in shares.items() if share > limit * (1.0 + 1e-12)} - full
        if not over:
            return shares
        full |= over


def _more(site: str, told: Mapping[str, float], factor: float) -> str:
    own, others = told[site], [each for name, each in told.items() if name != site]
    if others and own > factor * median(others):
        return (
            f"it says that it has {own:,.0f} rows, the others have {median(others):,.0f} in the median: the plan's "
            f"sample_factor believes up to {factor:g} times as many"
        )
    return ""


def _changed(own: float, factor: float, before: int | None) -> str:
    if before is not None and not before / factor <= own <= before * factor:
        return (
            f"it says that it has {own:,.0f} rows, in the run before it were {before:,}: the plan's sample_factor "
            f"believes a change up to {factor:g}-fold"
        )
    return ""
