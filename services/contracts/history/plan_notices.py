"""What a plan says that is allowed and seldom meant: told to whoever writes it or asks for a run, and never refused."""

from __future__ import annotations

from services.contracts.history.run import Run
from services.contracts.plans.gates import SITE_GATES
from services.contracts.plans.plan import Plan


def plan_notices(plan: Plan, last: Run | None = None) -> tuple[str, ...]:
    """A line for each thing of a plan to look at.

    ``last``: the plan's last completed run, whose plants said then whether they tell their own scores.
    """
    found = (_gap_above_its_gate(plan), _gates_of_single_sites(plan, last))
    return tuple(each for each in found if each)


def _gap_above_its_gate(plan: Plan) -> str:
    gate = plan.gates.max_gap
    if gate is None or plan.gap <= gate:
        return ""
    return (
        f"a run ends at a gap of {plan.gap:g}, and the gate max_gap makes no version above {gate:g} champion: "
        f"say gap = {gate:g}, or max_gap = {plan.gap:g} under [gates]"
    )


def _gates_of_single_sites(plan: Plan, last: Run | None) -> str:
    """On sums a site's score is in its cohort's sum, so that such a gate has no figure unless every site tells it."""
    gates = [name for name in SITE_GATES if getattr(plan.gates, name) is not None]
    gates += [gate.name for gate in plan.gates.fairness]
    if not gates or plan.reveal != "sums":
        return ""
    if last is not None and last.members and all(site.own_scores for site in last.members):
        return ""
    kept = [site.site_id for site in last.members if site.own_scores is False] if last is not None else []
    return (
        f"on sums {', '.join(gates)} {'holds' if len(gates) == 1 else 'hold'} only where every plant tells its own "
        "scores (own_scores = true in its policy.toml, `ballast-site enrol --own-scores`); where one keeps them every "
        f"version stays challenger{': in the last run ' + ', '.join(kept) + ' kept them' if kept else ''}"
    )
