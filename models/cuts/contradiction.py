r"""Answers of one site that no convex risk can have given, whatever its data.

A risk r_g is convex and its cuts are below it everywhere, so for the site's own answers

    r_g(w_i) >= offset_j + <slope_j, w_i> + norm_weight_j ||w_i||_* + <swing_j, |w_i|>

for all visited points i and all its cuts j, and r_g(w_i) is nowhere below the largest norm weight times the norm, which
the cut model builds on as well. Where two answers break this, one of them is false, or the site's data changed between
the two. Anyone who holds the two signed answers can check it. Other data tell no contradiction: flipped labels are a
true risk of other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.basics import FloatArray
from models.cuts.evidence import Evidence
from models.geometry.norms import DUAL_NORM, vector_norm
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
    own = np.flatnonzero(evidence.cut_site == site)
    if not (own.size and known.size):
        return None
    points, risks = evidence.points[known], evidence.risks[known, site]
    steepest = own[int(np.argmax(evidence.cut_norm_weight[own]))]
    units = np.ones(problem.n_features) if problem.feature_scale is None else problem.feature_scale
    norms = vector_norm(points[:, : problem.n_features] * units, DUAL_NORM[problem.transport_norm])

    offset = np.append(evidence.cut_offset[own], 0.0)
    slope = np.vstack([evidence.cut_slope[own], np.zeros(points.shape[1])])
    norm_weight = np.append(evidence.cut_norm_weight[own], max(evidence.cut_norm_weight[steepest], 0.0))
    rounds = np.append(evidence.cut_round[own], evidence.cut_round[steepest])
    fresh = (evidence.point_round[known][:, None] == evidence.exchanges) | (rounds == evidence.exchanges)

    swings = evidence.cut_swing[own]
    swung = np.hstack([np.abs(points[:, : swings.shape[1]]) @ swings.T, np.zeros((points.shape[0], 1))])

    bounds = offset + points @ slope.T + norms[:, None] * norm_weight + swung
    sizes = np.abs(offset) + np.abs(points) @ np.abs(slope).T + norms[:, None] * np.abs(norm_weight) + np.abs(swung)
    excess = _relative_excess(bounds, risks[:, None], sizes)
    excess[~fresh] = -np.inf
    i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
    if excess[i, j] <= TOLERANCE:
        return None
    return Contradiction(
        float(risks[i]), float(bounds[i, j]), int(evidence.point_round[known[i]]), int(rounds[j])
    )


def _relative_excess(bounds: FloatArray, risks: FloatArray, sizes: FloatArray) -> FloatArray:
    """By how much bounds lie above risks, relative to the size of what was added up."""
    scale = sizes + np.abs(risks)
    return np.divide(bounds - risks, scale, out=np.zeros_like(bounds), where=scale > 0)


def _named(number: int) -> str:
    return f"round {number}" if number else "an earlier round"
