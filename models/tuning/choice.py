r"""From held-out scores to a choice: the best candidate, or the simplest that is not told apart from it.

The score of a candidate is the mean over the folds of a score of all sites' held-out rows together: macro F-1 from the
summed confusion counts, or minus the mean absolute (pinball) error. With the rule "best" and one rung it is that of the
counts over all folds together, each row held out once. Its standard error is ``s / sqrt(F)``, s the standard deviation
over the F folds (Hastie, Tibshirani, Friedman 2009, section 7.10: the one-standard-error rule); of folds together there
is none.

A candidate whose bounds are further apart than :data:`UNTRAINED` is chosen only where all are: its score is that of
weights on the way, often good ones as those of training stopped early are, and the run would train on to others.

"paired" is that rule on the differences fold by fold: the simplest whose mean is below the best's by no more than the
standard error of ``best - candidate``. A fold that is hard is so for all candidates, and does not count against any.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from models.basics import ProblemError
from models.tuning.candidates import Candidate, simplicity

Rule = Literal["one-standard-error", "best", "paired"]
UNTRAINED = 0.95
"""Relative gap of a candidate's bounds, in the fold where it is widest, above which its score says nothing of it."""


@dataclass(frozen=True)
class Scored:
    """What is known of a candidate: ``scores`` by fold (higher is better), widest ``gap`` of the folds scored last.

    ``pooled``: it has one score, that of the rows of all folds together, which then stands with each of them.
    """

    candidate: Candidate
    scores: Mapping[int, float] = field(default_factory=dict)
    gap: float = math.inf
    pooled: bool = False

    @property
    def mean(self) -> float:
        """Mean over the folds that it was scored on; minus infinity before."""
        return float(np.mean(list(self.scores.values()))) if self.scores else -math.inf

    @property
    def standard_error(self) -> float | None:
        """Standard error of the mean; None of one fold, and of folds together."""
        if self.pooled or len(self.scores) < 2:
            return None
        return float(np.std(list(self.scores.values()), ddof=1)) / math.sqrt(len(self.scores))


@dataclass(frozen=True)
class Choice:
    """The chosen candidate, and why on one line."""

    candidate: Candidate
    why: str


def check_rule(rule: str) -> None:
    """Refuse a rule that there is not. :class:`ProblemError` names those that there are."""
    if rule not in get_args(Rule):
        raise ProblemError(f"rule must be one of {', '.join(get_args(Rule))}, got {rule!r}")


def kept(scored: Sequence[Scored], count: int, sizes: Sequence[int]) -> tuple[Candidate, ...]:
    """The best ``count`` by their means, of two alike the simpler one."""
    ranked = sorted(scored, key=lambda each: (-each.mean, simplicity(each.candidate, sizes)))
    return tuple(each.candidate for each in ranked[:count])


def chosen(finalists: Sequence[Scored], rule: Rule, sizes: Sequence[int]) -> Choice:
    """One of the finalists, all scored on the same folds.

    Raises
    ------
    ProblemError
        None has a score: too few rows of every class were held out to be counted.
    """
    counted = [each for each in finalists if math.isfinite(each.mean)]
    if not counted:
        raise ProblemError("no held-out row was counted: the sites have too few rows of a class in a fold")
    known = [each for each in counted if each.gap <= UNTRAINED] or counted
    left = len(counted) - len(known)
    without = f"; {left} not among these, for their bounds are more than {UNTRAINED:g} apart" if left else ""
    best = min(known, key=lambda each: (-each.mean, simplicity(each.candidate, sizes)))
    if rule == "best" or best.standard_error is None:
        return Choice(best.candidate, f"best of {len(known)} with {best.mean:.4g}{without}")
    if rule == "paired":
        near = [each for each in known if _within_paired_error(best, each)]
        found = min(near, key=lambda each: simplicity(each.candidate, sizes))
        why = f"simplest of {len(near)} within one paired standard error of the best, "
        return Choice(found.candidate, why + f"{found.mean:.4g} against {best.mean:.4g}{without}")
    least = best.mean - best.standard_error
    near = [each for each in known if each.mean >= least]
    found = min(near, key=lambda each: simplicity(each.candidate, sizes))
    why = (
        f"simplest of {len(near)} within one standard error ({best.standard_error:.2g}) of the best, "
        f"{found.mean:.4g} against {best.mean:.4g}{without}"
    )
    return Choice(found.candidate, why)


def untuned(candidates: Sequence[Candidate], whose: str, why: str) -> Choice:
    """Where a tuning cannot be: the candidate of the terms as they stand, on whose word, and why."""
    return Choice(own_terms(candidates), f"{whose} own terms, untuned: {why}")


def own_terms(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate of the terms as they stand: with the radius, and the lift, that are given."""
    return next(each for each in candidates if each.radius == 1.0 and each.lift == 0)


def _within_paired_error(best: Scored, other: Scored) -> bool:
    """Whether the best leads by no more than the standard error of its lead over the folds that both have."""
    folds = sorted(best.scores.keys() & other.scores.keys())
    if len(folds) < 2:
        return best.candidate == other.candidate
    lead = np.array([best.scores[fold] - other.scores[fold] for fold in folds])
    return bool(lead.mean() <= np.std(lead, ddof=1) / math.sqrt(len(folds)))
