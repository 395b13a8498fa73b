"""Certificates, modes and abstentions in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from services.contracts.plans.plan import Plan
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.report import GateResult
from services.reporting.several_classes import several_classes

REVEALED = {
    "sums": "masked sums over cohorts of plants: no plant's own answer",
    "each site": "the answer of each plant alone",
}
"""What the coordinator sees of a round, by the plan's mode."""

GATES = {
    "max_gap": "Proven gap, at most", "min_f1": "F-1 of all held-out rows, at least",
    "min_site_f1": "F-1 at the worst plant, at least",
    "min_fresh_weight": "Share of weight that answered last, at least",
    "max_mae": "Mean error of all held-out rows, at most", "max_site_mae": "Mean error at the worst plant, at most",
    "min_coverage": "Held-out rows in their interval, at least",
    "audit": "Cohorts of which the auditor convicts nobody, all",
    "classes_told": "Classes that it can say, at least", "coverage": "Coverage that its held-out rows allow, at least",
}

NEAR = 0.1
"""A relative gap up to which a version is near the best: seen from either of the two it is about the same share."""


def certificate_words(version: ModelVersion) -> Iterator[str]:
    """What is proven of a version, a sentence each."""
    risk, gap = version.worst_case_risk, version.certified_gap
    if not version.is_certified:
        yield (
            "No certificate: the objective of a network is not convex, so nothing proves how far it is from the best. "
            "Held-out rows speak for it alone: F-1, and the coverage of its class sets."
        )
    elif not version.spec.loss.has_ball:
        yield "It was trained without a ball around the plants' data: no worst-case risk is stated."
    elif risk is not None and math.isfinite(risk):
        steps = ", told from above, in steps, so that it shows no row" if version.risk_is_from_above else ""
        yield (
            f"Whatever distribution is near the plants' data, within the radius of each plant, the expected "
            f"{version.spec.loss.name.replace('_', ' ')} loss of this model is {risk:.4g} at most{steps}."
        )
    else:
        yield "The worst-case risk of this model over the plants' balls is not known."
    if math.isfinite(gap) and math.isfinite(version.lower_bound):
        has = "this one has" if version.coupling is None else "before its planes were coupled this one had"
        yield (
            f"It minimised the {version.objective_name}. No model of this kind can come below "
            f"{version.lower_bound:.4g}; {has} {version.objective:.4g}, "
            + (f"within {_percent(gap)} of the best." if gap <= NEAR else f"the best may have {_percent(gap)} less.")
        )
    elif version.is_certified:
        yield f"It minimised the {version.objective_name}; how far it is from the best is not proven."
    if lifted := version.spec.ball_words:
        yield lifted
    if summed := several_classes(version.spec, len(version.asset_type.fault_classes)):
        yield summed
    if version.fresh_weight < 1:
        share = _percent(version.fresh_weight)
        where = "In the last round" if version.freshness is None else "At the model itself"
        yield f"{where} plants with {share} of the weight answered; the rest stand by earlier answers."
    else:
        where = "the last round" if version.freshness is None else "at the model itself, whichever round it came in"
        yield f"Every plant answered {where}."
    yield f"In the rounds the coordinator saw {REVEALED[version.reveal]}."
    if version.mixture.radius > 0:
        within = f"within {version.mixture.radius:g} ({version.mixture.norm}) of their weights"
        yield f"The risk is that of the worst mix of plants{'' if version.mixture.is_every else ' ' + within}."
    if version.radii_are_estimates:
        yield "Some radii aim at a confidence and prove none: they are estimates."
    if version.mixture_confidence is not None:
        yield f"The balls hold the plants' true distributions with probability {_percent(version.mixture_confidence)}."
    if version.excluded:
        convicted = sum(each.is_convicted for each in version.excluded)
        if convicted:
            yield f"{convicted} of the plants were left out, because their answers cannot be true."
        if away := len(version.excluded) - convicted:
            yield f"{away} of the plants were left out, because they were away for too long or told no more."
    if version.note:
        yield version.note


def gate_words(gate: GateResult) -> str:
    """What a gate asks."""
    return GATES.get(gate.name, f"Fairness: {gate.name.replace('_', ' ')}, at most")


def reveal_words(plan: Plan) -> str:
    """What runs of a plan show the coordinator."""
    if plan.reveal == "each site":
        return "The coordinator sees the answer of each plant alone."
    text = f"The coordinator sees masked sums over cohorts of {plan.min_cohort} plants or more."
    if plan.noise is not None:
        text += " The plants put noise on them."
    if plan.auditor is not None:
        text += " An auditor may open rounds, where the plants' policies list it."
    return text


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
