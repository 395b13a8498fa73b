r"""Answers of one site that no convex risk can have given, whatever its data.

A risk r_g is convex and its cuts are below it everywhere, so for the site's own answers

    r_g(w_i) >= offset_j + <slope_j, w_i> + norm_weight_j ||w_i||_* + <swing_j, |w_i|>

for all visited points i and all its cuts j, and r_g(w_i) is nowhere below the largest norm weight times the norm, which
the cut model builds on as well. Where two answers break this, one of them is false, or the site's data changed between
the two. Anyone who holds the two signed answers can check it. Other data tell no contradiction: flipped labels are a
true risk of other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.basics import FloatArray
from models.cuts.cut_model import CutModel
from models.cuts.evidence import Evidence, cut_model
from models.problem import ServerProblem

TOLERANCE = 1e-6
"""Relative to the size of the terms: above what a site's solver and float64 leave of an exact cut."""

AT_THE_END = -1
"""Stands for the evaluation where an exchange of messages is named by its number."""


@dataclass(frozen=True)
class Contradiction:
    """A risk, and a bound above it that the same site answered; with the exchanges of messages that they are of.

    Exchange 0 is an earlier one whose number is not known, -1 (``AT_THE_END``) the evaluation.
    """

    risk: float
    bound: float
    risk_round: int
    cut_round: int

    def __str__(self) -> str:
        """One line, without the site's name."""
        return (
            f"its answers contradict each other: the risk {self.risk:.6g} of {_named(self.risk_round)} lies below "
            f"{self.bound:.6g}, which its answer of {_named(self.cut_round)} proves; "
            "either an answer is false or its data changed during the run"
        )


def find_contradiction(evidence: Evidence, problem: ServerProblem, site: int) -> Contradiction | None:
    """The widest contradiction of the last exchange's answers of a site, by index, with all of its answers.

    ``problem`` gives the norm; earlier answers are not held against one another again.
    """
    known = np.flatnonzero(~np.isnan(evidence.risks[:, site]))
    own = evidence.kept_cuts(evidence.cut_site == site)
    if not (own.cut_site.size and known.size):
        return None
    points, risks = evidence.points[known], evidence.risks[known, site]
    rounds = np.append(own.cut_round, own.cut_round[int(np.argmax(own.cut_norm_weight))])
    fresh = (evidence.point_round[known][:, None] == evidence.exchanges) | (rounds == evidence.exchanges)

    model = cut_model(own, problem)
    bounds, sizes = _cuts_and_floor(model, points, site), _cuts_and_floor(_sizes(model), np.abs(points), site)
    excess = _relative_excess(bounds, risks[:, None], sizes)
    excess[~fresh] = -np.inf
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[i, j] <= TOLERANCE:
        return None
    return Contradiction(
        float(risks[i]), float(bounds[i, j]), int(evidence.point_round[known[i]]), int(rounds[j])
    )


def suspected(evidence: Evidence, problem: ServerProblem) -> set[int]:
    """Sites, by index, of which :func:`find_contradiction` may find one: of hundreds of plants hardly any.

    All at once, by the points and the cuts of the last exchange and what they meet; half of its tolerance is enough.
    """
    if not evidence.cut_site.size or not evidence.points.size:
        return set()
    whole = cut_model(evidence, problem)
    site, floors = whole.site, whole.norms(evidence.points)[:, None] * whole.floor
    under = _relative_excess(floors, evidence.risks, floors) > TOLERANCE / 2
    found = set(np.flatnonzero(under.any(axis=0)).tolist())
    new_points, new_cuts = evidence.point_round == evidence.exchanges, evidence.cut_round == evidence.exchanges
    every_point, every_cut = np.ones_like(new_points), np.ones_like(new_cuts)
    for points, cuts in ((new_points, every_cut), (every_point, new_cuts)):
        model = cut_model(evidence.kept_cuts(cuts), problem)
        told = evidence.risks[points][:, site[cuts]]
        bounds, sizes = model.heights(evidence.points[points]), _sizes(model).heights(np.abs(evidence.points[points]))
        found |= set(site[cuts][(_relative_excess(bounds, told, sizes) > TOLERANCE / 2).any(axis=0)].tolist())
    return found


def find_false_end(
    evidence: Evidence, problem: ServerProblem, site: int, point: FloatArray, risk: float, *, above: bool = False
) -> Contradiction | None:
    """Contradiction of the risk that a site tells at the end, at a point (D,), with all that it answered in a run.

    Held against its cuts, and against the risks that it told at the very point; against its cuts alone where risks are
    told from ``above``, as on sums: two at one point may then differ.
    """
    told = np.flatnonzero((evidence.points == point).all(axis=1) & ~np.isnan(evidence.risks[:, site]))
    for k in () if above else told:
        before, number = float(evidence.risks[k, site]), int(evidence.point_round[k])
        if abs(before - risk) > TOLERANCE * (1.0 + abs(before) + abs(risk)):
            rounds = (AT_THE_END, number) if risk < before else (number, AT_THE_END)
            return Contradiction(min(before, risk), max(before, risk), *rounds)
    risks, number = np.full(evidence.risks.shape[1], np.nan), evidence.exchanges + 1
    risks[site] = risk
    grown = replace(
        evidence, points=np.vstack([evidence.points, point]), risks=np.vstack([evidence.risks, risks]),
        point_round=np.append(evidence.point_round, number), exchanges=number,
    )
    found = find_contradiction(grown, problem, site)
    return None if found is None else replace(found, risk_round=AT_THE_END)


def _cuts_and_floor(model: CutModel, points: FloatArray, site: int) -> FloatArray:
    """Heights of a site's m cuts at points (K, D), and last of its floor, (K, m + 1)."""
    return np.column_stack([model.heights(points), model.norms(points) * model.floor[site]])


def _sizes(model: CutModel) -> CutModel:
    """The terms of the cuts without their signs: what rounding is a share of."""
    return replace(
        model, offset=np.abs(model.offset), slope=np.abs(model.slope), norm_weight=np.abs(model.norm_weight)
    )


def _relative_excess(bounds: FloatArray, risks: FloatArray, sizes: FloatArray) -> FloatArray:
    """By how much bounds lie above risks, relative to the size of what was added up."""
    scale = sizes + np.abs(risks)
    return np.divide(bounds - risks, scale, out=np.zeros_like(bounds), where=scale > 0)


def _named(number: int) -> str:
    if number == AT_THE_END:
        return "the evaluation"
    return f"round {number}" if number else "an earlier round"
