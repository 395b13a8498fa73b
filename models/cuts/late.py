r"""Evidence where answers come late: a round may hold answers to questions of earlier rounds.

A site's answer to the question of exchange j, asked at point p_j, holds for ever: its cut bounds the site's risk from
below, and its risk at p_j is what it is. So a late answer counts as it comes. Its cuts enter the cut model at once. Its
risk completes p_j: the row of p_j is written once more, with this risk beside those that were told before, and the old
row counts no more (rows are only ever added, see ``models.methods.packed_change``).

**The upper bound stays exact.** With r_g convex and p a visited point, ``F(p) = max_{q in Q} sum_g q_g r_g(p)`` is
known only where every site that counts told its risk at p. A cut model in place of a missing risk is a lower bound of
it, so the sum would be no upper bound; a Lipschitz constant L of r_g gives ``r_g(p) <= r_g(p_j) + L ||p - p_j||``,
which is one, but is worth a relative gap e only within ``e F / (q_g L)`` of an answered point, where the answered point
itself is as good. So a point counts from above when it is complete, and not before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.cuts.bounds import judged
from models.cuts.evidence import Evidence, cut_model, with_answers
from models.problem import ServerProblem


def with_late_answers(
    evidence: Evidence, problem: ServerProblem, point: FloatArray, answers: Mapping[str, Arrays],
    asked_in: Mapping[str, int], *, asked: bool = False,
) -> Evidence:
    """Evidence after an exchange, the bounds left as they were.

    ``point`` (D,) is this exchange's question, ``asked``: also of sites whose answers are still to come; ``asked_in``:
    the exchange of the question that a site's answer is to, where that is an earlier one.
    """
    number = evidence.exchanges + 1
    by_round: dict[int, dict[str, Arrays]] = {number: {}} if asked else {}
    for site, answer in answers.items():
        by_round.setdefault(asked_in.get(site, number), {})[site] = answer
    grown = evidence
    for exchange in sorted(by_round):
        at = point if exchange == number else evidence.points[row_of(evidence, exchange)]
        added = with_answers(replace(grown, exchanges=exchange - 1), problem, at, by_round[exchange])
        grown = replace(added, risks=_with_risks_known(added), cut_used=_came_now(added, len(grown.cut_used), number))
    return replace(grown, exchanges=number)


def _with_risks_known(evidence: Evidence) -> FloatArray:
    """Risks (K, G), those of the last row with what was told at the very point before."""
    risks = evidence.risks.copy()
    for row in np.flatnonzero((evidence.points[:-1] == evidence.points[-1]).all(axis=1)):
        risks[-1] = np.where(np.isnan(risks[-1]), risks[row], risks[-1])
    return risks


def _came_now(evidence: Evidence, before: int, number: int) -> FloatArray:
    """``cut_used`` (m,): cuts after the first ``before`` came in this exchange, whatever they answer."""
    return np.where(np.arange(len(evidence.cut_used)) >= before, float(number), evidence.cut_used)


def row_of(evidence: Evidence, exchange: int) -> int:
    """Last row of the point that was asked in an exchange; ``KeyError`` where none was."""
    rows = np.flatnonzero(evidence.point_round == exchange)
    if not rows.size:
        raise KeyError(f"no point was asked in exchange {exchange}")
    return int(rows[-1])


def newest_rows(points: FloatArray) -> NDArray[np.intp]:
    """Last row with the very point of each row, (K,): the one that knows all that was told there."""
    keys = [row.tobytes() for row in points + 0.0]  # the zero is one, whatever its sign
    last = {key: k for k, key in enumerate(keys)}
    return np.array([last[key] for key in keys], dtype=np.intp)


def last_told(evidence: Evidence) -> NDArray[np.intp]:
    """Exchange of the newest question that each site answered, (G,); 0 where it answered none."""
    told = ~np.isnan(evidence.risks)
    return np.asarray(np.where(told, evidence.point_round[:, None], 0.0).max(axis=0, initial=0.0), dtype=np.intp)


def with_exact_upper(evidence: Evidence, problem: ServerProblem, away: NDArray[np.bool_]) -> Evidence:
    """Evidence with its upper bound over the complete points.

    Sites that are ``away`` (G,) enter by their cuts where they did not answer (decision 4); ``fresh_weight`` is the
    share of the weight that told its risk at the best point, so below 1 the upper bound speaks of fewer plants.
    """
    newest = newest_rows(evidence.points)
    risks = evidence.risks[newest]
    missing = np.isnan(risks)
    if (missing & away).any():
        risks = np.where(missing & away, cut_model(evidence, problem).site_values(evidence.points), risks)
    found = _at_newest(judged(evidence, problem, risks), newest)
    told = ~missing[found.best] if found.best >= 0 else np.zeros(len(problem.sites), dtype=bool)
    return replace(found, fresh_weight=float(problem.weights[told].sum()))


def hoped_for(evidence: Evidence, problem: ServerProblem) -> Evidence:
    """Evidence judged as if every risk that was not told were its cut model: where to look, and no bound.

    By the newest row of each point: a cut may lie below the risk at its own point (a site's guard gives another valid
    one), and a row from before the risk was told would be the better hope for ever, whose risks are asked again.
    """
    newest = newest_rows(evidence.points)
    risks = evidence.risks[newest]
    missing = np.isnan(risks)
    if missing.any():
        risks = np.where(missing, cut_model(evidence, problem).site_values(evidence.points), risks)
    return _at_newest(judged(evidence, problem, risks), newest)


def _at_newest(evidence: Evidence, newest: NDArray[np.intp]) -> Evidence:
    return evidence if evidence.best < 0 else replace(evidence, best=int(newest[evidence.best]))
