"""What a run carries proves what it says: last digits that dropped cuts proved are not said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.cuts.bounds import record, tighten_lower_bound
from models.cuts.carried_proof import carried_proof
from models.cuts.evidence import Evidence
from models.methods.catalogue import get_method
from models.methods.site_answers import RiskSite
from models.problem import RobustSpec, ServerProblem, SiteProblem
from models.simulation.federation import FIXED, server_problem


def known() -> tuple[Evidence, ServerProblem]:
    """Cuts of three sites at some points, and the bound that they prove."""
    random = np.random.default_rng(4)
    sites = {}
    for name in "abc":
        rows = random.uniform(size=(30, 3))
        labels = np.where(rows @ [1.0, -1.0, 0.5] + 0.3 * random.normal(size=30) > 0.2, 1.0, -1.0)
        sites[name] = SiteProblem(rows, labels, RobustSpec(1e-2, 1.0, "l2"))
    problem = server_problem(sites, None, get_method("level-bundle"), {}, 1e-3, FIXED)
    evidence, point = Evidence.empty(problem), np.zeros(4)
    for _ in range(12):
        answers = {name: RiskSite().answer(site, {"point": point}, {}) for name, site in sites.items()}
        evidence, minimiser = tighten_lower_bound(record(evidence, problem, point, answers), problem)
        point = 0.5 * (evidence.best_point + minimiser.point)
    return evidence, problem


@pytest.mark.parametrize(("above", "is_said"), [(0.0, True), (3e-8, False), (1e-3, True)])
def test_no_more_is_said_than_is_proven_but_for_what_no_last_digits_explain(above: float, is_said: bool) -> None:
    evidence, problem = known()
    told = carried_proof(evidence, problem)
    assert told is not None and 0 < told.lower <= evidence.lower <= evidence.upper
    claimed = evidence.lower + above * evidence.upper
    found = carried_proof(replace(evidence, lower=claimed), problem)
    assert found is not None
    assert found.lower == pytest.approx(claimed if is_said else told.lower, rel=1e-12)
    assert evidence.lower - 1e-6 * evidence.upper <= told.lower
