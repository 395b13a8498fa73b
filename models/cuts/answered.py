"""What the sites' answers to one question are: their risks at the point asked, and the cuts that came with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.basics import Arrays, FloatArray
from models.geometry.norms import dual_norm
from models.problem import ServerProblem, SiteTerms
from models.worst_case.risk import RiskCut

_NO_WEIGHT = 1e-9
"""Share of a site's radius up to which a norm weight is what rounding left of none.

The proof of a bound counts on the norm to carry what is left of the slopes (``models.cuts.lower_bound``); where both
are what rounding left, that would take all off the bound."""


@dataclass(frozen=True)
class Answered:
    """Risks (G,), NaN where a site did not answer, and m cuts: site, offset, slope (D,), norm weight, swing.

    The swing is None for a cut without. A site brings one cut, and a second one where its answer has a prox minorant.
    """

    risks: FloatArray
    sites: tuple[int, ...]
    offsets: tuple[float, ...]
    slopes: tuple[FloatArray, ...]
    norm_weights: tuple[float, ...]
    swings: tuple[FloatArray | None, ...]


def answered(problem: ServerProblem, point: FloatArray, answers: Mapping[str, Arrays]) -> Answered:
    """Risks and cuts at ``point`` (D,), by site id.

    A norm weight that is none but for rounding is taken for 0: what is left is a cut still.
    """
    risks = np.full(len(problem.sites), np.nan)
    cuts: list[tuple[int, float, FloatArray, float, FloatArray | None]] = []
    stretched = point[: problem.n_features] * (1.0 if problem.feature_scale is None else problem.feature_scale)
    norm = dual_norm(stretched, problem.transport_norm)
    for g, site in enumerate(problem.sites):
        answer = answers.get(site.site_id)
        if answer is None:
            continue
        risks[g] = answer["risk"]
        cut = RiskCut(
            float(answer["risk"]), float(answer["cut_height"]), answer["slope"], float(answer["norm_weight"]),
            answer.get("swing"),
        )
        cuts.append((g, cut.offset(point, norm), cut.slope, _carried(cut.norm_weight, site), cut.swing))
        if "minorant_slope" in answer:
            norm_weight = _carried(float(answer["minorant_norm_weight"]), site)
            offset, swing = float(answer["minorant_offset"]), answer.get("minorant_swing")
            cuts.append((g, offset, answer["minorant_slope"], norm_weight, swing))
    sites, offsets, slopes, norm_weights, swings = zip(*cuts, strict=True) if cuts else ((),) * 5
    return Answered(risks, sites, offsets, slopes, norm_weights, swings)


def _carried(norm_weight: float, site: SiteTerms) -> float:
    return norm_weight if norm_weight > _NO_WEIGHT * site.radius else 0.0


def with_swings(known: FloatArray, new: Sequence[FloatArray | None]) -> FloatArray:
    """Swings of the cuts so far (m, P or 0) and of new ones, None for a cut without; of the widest that is known."""
    width = max([known.shape[1], *(swing.shape[0] for swing in new if swing is not None)])
    grown = np.zeros((known.shape[0] + len(new), width))
    grown[: known.shape[0], : known.shape[1]] = known
    for row, swing in zip(grown[known.shape[0] :], new, strict=True):
        if swing is not None:
            row[:] = swing
    return grown
