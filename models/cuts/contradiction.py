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


@dataclass(frozen=True)
class Contradiction:
    """A risk, and a bound above it that the same site answered; with the exchanges of messages that they are of.

    Exchange 0 is an earlier one whose number is not known.
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
    absolute = replace(
        model, offset=np.abs(model.offset), slope=np.abs(model.slope), norm_weight=np.abs(model.norm_weight)
    )
    bounds, sizes = _cuts_and_floor(model, points, site), _cuts_and_floor(absolute, np.abs(points), site)
    excess = _relative_excess(bounds, risks[:, None], sizes)
    excess[~fresh] = -np.inf
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[i, j] <= TOLERANCE:
        return None
    return Contradiction(
        float(risks[i]), float(bounds[i, j]), int(evidence.point_round[known[i]]), int(rounds[j])
    )


def _cuts_and_floor(model: CutModel, points: FloatArray, site: int) -> FloatArray:
    """Heights of a site's m cuts at points (K, D), and last of its floor, (K, m + 1)."""
    return np.column_stack([model.heights(points), model.norms(points) * model.floor[site]])


def _relative_excess(bounds: FloatArray, risks: FloatArray, sizes: FloatArray) -> FloatArray:
    """By how much bounds lie above risks, relative to the size of what was added up."""
    scale = sizes + np.abs(risks)
    return np.divide(bounds - risks, scale, out=np.zeros_like(bounds), where=scale > 0)


def _named(number: int) -> str:
    return f"round {number}" if number else "an earlier round"
