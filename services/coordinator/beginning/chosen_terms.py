"""The choice of a tuning: whether a run takes an earlier one, and the plan that goes on with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import takewhile

from services.contracts.history.run import Run, SiteTermsRecord
from services.contracts.plans.plan import MixtureSpec, Plan
from services.contracts.problems.training_spec import RadiusRule
from services.contracts.problems.tuning import settled
from services.contracts.problems.tuning_curve import TuningCurve


def base_of(plan: Plan) -> str:
    """Digest of what a tuning starts from: the same plan, but for its schedule and names, gives the same."""
    parts = [plan.model_dump(mode="json")[name] for name in ("spec", "mixture", "tuning", "method", "reveal")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def earlier_choice(
    plan: Plan, before: Sequence[Run], last: Run | None = None, *, however_often: bool = False
) -> TuningCurve | None:
    """The last choice, where this run takes it: of the same terms, and fewer than ``every`` trainings took it so far.

    ``before``: completed trainings of the plan, the last one first. ``last``: the last completed run, which tuned alone
    where it is none of them; a training that tuned is the first that took its choice. ``however_often``: were it taken
    any number of times, for there is no better one.
    """
    curve = None if last is None else last.plan.tuned
    if last is None or curve is None or curve.base != base_of(plan):
        return None
    spec, origin = settled(plan.tuning), _origin(last)
    taken = sum(1 for _ in takewhile(lambda run: _origin(run) == origin, before))
    due = taken >= (spec.every if spec else 1) and not however_often
    return None if due else curve.model_copy(update={"reused_from": origin})


def _origin(run: Run) -> str:
    """Run whose choice a run has; empty where it has none."""
    return "" if run.plan.tuned is None else run.plan.tuned.reused_from or run.run_id


def with_choice(run: Run, curve: TuningCurve) -> tuple[Plan, list[SiteTermsRecord]]:
    """The plan with the chosen terms and the curve, and the sites' balls by them."""
    plan, terms = run.plan, curve.terms
    rule, factor = plan.spec.radius, terms.radius
    value = rule.value / factor if rule.rule == "samples" else rule.value * factor
    spec = plan.spec.model_copy(update={
        "radius": RadiusRule(rule=rule.rule, value=value), "label_flip_cost": terms.label_flip_cost, "lift": terms.lift,
    })
    mixture = MixtureSpec(norm=plan.mixture.norm, radius=terms.mixture_radius)
    sites = [
        site.model_copy(update={"radius": site.radius * factor, "label_flip_cost": terms.label_flip_cost})
        for site in run.sites
    ]
    return plan.model_copy(update={"spec": spec, "mixture": mixture, "tuned": curve}), sites
