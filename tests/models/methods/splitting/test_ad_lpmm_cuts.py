"""Which cuts AD-LPMM keeps: all while there are few, then those of use to the bound and those of the last rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from models.cuts.cut_model import ModelPoint
from models.cuts.evidence import Evidence
from models.methods.splitting.ad_lpmm import _CUTS_EACH, _RECENT, _pruned
from models.problem import ServerProblem, SiteTerms

PROBLEM = ServerProblem(2, tuple(SiteTerms(name, 0.5, 0.1, 1.0) for name in "ab"), "l2", True)
FEW = _CUTS_EACH * (3 + 2)
"""As many as weights and sites together, each so many times."""


def _with_cuts(count: int) -> tuple[Evidence, ModelPoint]:
    """Cuts told apart by their offsets; the third and the sixth hold up the minimiser."""
    evidence = replace(
        Evidence.empty(PROBLEM), cut_site=np.arange(count) % 2 * 1.0, cut_offset=np.arange(count) * 1.0,
        cut_slope=np.zeros((count, 3)), cut_norm_weight=np.zeros(count), cut_swing=np.zeros((count, 0)),
        cut_round=np.zeros(count), cut_used=np.zeros(count),
    )
    multipliers = np.zeros(count)
    multipliers[[2, 5]] = 0.1
    return evidence, ModelPoint(np.zeros(3), multipliers, 0.0, np.full(2, 0.5))


def test_few_cuts_are_all_kept() -> None:
    evidence, minimiser = _with_cuts(FEW)
    assert _pruned(evidence, minimiser, PROBLEM) is evidence


def test_of_many_those_of_use_and_two_a_site_of_the_last_rounds_are_kept() -> None:
    count = FEW + 1
    kept = _pruned(*_with_cuts(count), PROBLEM).cut_offset
    recent = range(count - 2 * 2 * _RECENT, count)
    np.testing.assert_array_equal(kept, [2, 5, *recent])
