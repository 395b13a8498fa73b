r"""Cuts of an earlier run that still hold: those of a risk whose rows and terms are the same.

A cut bounds a risk from below everywhere and for ever, so a run may begin with those that an earlier run of the same
problem gathered of every site that did not change. Nothing else is taken over: risks, points and bounds are those of
the new run's own answers, so its upper bound speaks of what is there now, and its lower bound follows from cuts that
all hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.cuts.evidence import EARLIER_RUN, Evidence
from models.problem import ServerProblem

MOST_REUSED = 60
"""Cuts of a site that are taken over: those that counted last. Weeks of runs must not make the server's step longer."""


def reused_cuts(evidence: Evidence, problem: ServerProblem, kept: Sequence[int]) -> Evidence:
    """Evidence at the start of a run on ``problem`` (G sites): the cuts that an earlier run leaves, and nothing else.

    ``kept`` (G,) is the place of each site in the earlier run, -1 for one of which nothing holds any more.
    """
    places = np.full(evidence.risks.shape[1], -1.0)
    for place, before in enumerate(kept):
        if before >= 0:
            places[before] = place
    site = places[evidence.cut_site.astype(np.intp)]
    cuts = replace(evidence, cut_site=site).kept_cuts((site >= 0) & _latest(evidence))
    nothing = Evidence.empty(problem)
    return replace(
        cuts, points=nothing.points, risks=nothing.risks, point_round=nothing.point_round,
        cut_round=np.full(cuts.cut_round.shape, float(EARLIER_RUN)), cut_used=np.zeros_like(cuts.cut_used),
        upper=nothing.upper, lower=nothing.lower, fresh_weight=0.0, best=-1, exchanges=0, scale_before=evidence.scale,
    )


def without_reused(evidence: Evidence, site: int) -> Evidence:
    """Evidence without what an earlier run told of a site, by index; the bound that rested on it is found anew."""
    ours = (evidence.cut_site != site) | (evidence.cut_round != EARLIER_RUN)
    return replace(evidence.kept_cuts(ours), lower=0.0)


def _latest(evidence: Evidence) -> NDArray[np.bool_]:
    """Mask (m,) of the cuts of each site that held up a solution last, at most :data:`MOST_REUSED` of them."""
    latest = np.zeros(evidence.cut_site.shape[0], dtype=np.bool_)
    for g in np.unique(evidence.cut_site):
        own = np.flatnonzero(evidence.cut_site == g)
        order = np.lexsort((evidence.cut_round[own], evidence.cut_used[own]))
        latest[own[order[-MOST_REUSED:]]] = True
        latest[own[int(np.argmax(evidence.cut_norm_weight[own]))]] = True  # it makes the site's floor
    return latest
