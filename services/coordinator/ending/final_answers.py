"""What the sites tell at the end, held against what they told before: their cuts and risks, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.basics import Arrays, FloatArray
from models.cuts.contradiction import Contradiction
from models.methods.catalogue import get_method
from services.contracts.history.run import Run, SiteAnswer
from services.coordinator.asking.poll import Poll, rejected
from services.coordinator.run_state.evaluation import ScoresOnSums
from services.coordinator.run_state.terms import cohorts_of
from services.coordinator.run_state.training_state import Training

MOST_HELD_OUT = 19
"""Held-out rows to a training row: no site keeps more than 95 % of its rows from training."""

_TWICE = 1e-9
"""Relative: by how much two answers of one site to the same question may differ."""


def false_ends(at: Training, weights: FloatArray, risks: Mapping[str, FloatArray]) -> dict[str, Contradiction]:
    """Sites whose risks (K,) at weights (K, P + 1) contradict what they answered in the run, by site id.

    Only where the method minimises the risk that the evaluation asks for: others' answers are of other risks.
    """
    if not get_method(at.run.plan.method).is_robust:
        return {}
    return at.server.false_ends(at.state, at.problem, at.of_heads(weights), risks)


def excluded_at_the_end(outcome: Poll, found: Mapping[str, Contradiction]) -> list[SiteAnswer]:
    """Accounts of the sites with a contradiction, for the record of the round in which training goes on without."""
    return [
        answer.model_copy(update={"status": "excluded", "code": "contradiction", "reason": str(found[answer.site_id])})
        for answer in outcome.answers if answer.site_id in found
    ]


def arrays_but_of(outcome: Poll, convicted: Sequence[SiteAnswer]) -> dict[str, Arrays]:
    """What the sites told that are not convicted, by site id."""
    without = {each.site_id for each in convicted}
    return {site: update.arrays for site, update in outcome.updates.items() if site not in without}


def with_accounts(answers: Sequence[SiteAnswer], convicted: Sequence[SiteAnswer]) -> tuple[SiteAnswer, ...]:
    """Accounts of all sites, those of the convicted in place of what they had."""
    theirs = {each.site_id: each for each in convicted}
    return tuple(theirs.get(each.site_id, each) for each in answers)


def with_counts_held(outcome: Poll, run: Run) -> Poll:
    """The outcome without the sites whose counts of held-out rows do not go with the rows that they joined with."""
    joined = {site.site_id: site.n_samples for site in run.sites}
    return _without(outcome, {
        site: reason for site, update in outcome.updates.items() if (reason := _doubt(update.arrays, joined.get(site)))
    })


def with_sums_held(told: ScoresOnSums, run: Run, doubt: Callable[[str, Arrays], str]) -> ScoresOnSums:
    """The scores of cohorts without those that cannot be sums of true ones: who of the cohort lied is not known.

    ``doubt`` says why arrays cannot be a site's own. Risks of a cohort are means of its plants', which lie from the
    least of any rows up to what the plant with the largest ball may have: what all of them doubt is none.
    """
    joined, doubts, cohorts = {site.site_id: site.n_samples for site in run.sites}, dict[str, str](), cohorts_of(run)
    for name, said in told.scores.items():
        members = cohorts[name]
        rows = [n for n in (joined.get(site) for site in members) if n is not None]
        each = [doubt(site, said) for site in members]
        why = _doubt(said, sum(rows) if len(rows) == len(members) else None) or (each[0] if all(each) else "")
        if why:
            doubts[name] = why
    return replace(
        told, scores={name: said for name, said in told.scores.items() if name not in doubts},
        complete=told.complete - doubts.keys(), doubts=doubts,
    )


def with_answers_held(outcome: Poll, before: Mapping[str, Arrays]) -> Poll:
    """The outcome of a question that was asked twice, without the sites that told other risks or rows than ``before``.

    Sums that depend on the interval may differ.
    """
    reasons = {}
    for site, update in outcome.updates.items():
        for name in ("risk", "loss", "n_test", "target_sum", "target_squares"):
            now, then = update.arrays.get(name), before.get(site, {}).get(name)
            if now is not None and then is not None and not np.allclose(now, then, rtol=_TWICE, atol=_TWICE):
                reasons[site] = f"asked twice at the same weights, it told another {name} the second time"
    return _without(outcome, reasons)


def _doubt(said: Arrays, n_samples: int | None) -> str:
    rows = float(said["n_test"] if "n_test" in said else said["confusion"].sum())
    if n_samples is None or rows <= MOST_HELD_OUT * n_samples:
        return ""
    return (
        f"it counted {rows:,.0f} held-out rows and joined with {n_samples:,} for training: at most {MOST_HELD_OUT} to "
        "one are believed"
    )


def _without(outcome: Poll, reasons: Mapping[str, str]) -> Poll:
    """The outcome with some updates rejected, for reasons by site."""
    if not reasons:
        return outcome
    return replace(
        outcome, updates={site: each for site, each in outcome.updates.items() if site not in reasons},
        answers=rejected(outcome.answers, reasons),
    )
