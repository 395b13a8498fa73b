"""What a plant makes of a penalty that says next to nothing."""

from __future__ import annotations

import numpy as np
import pytest

from models.methods.site_answers import ProxCutSite, asked_penalty
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk


def site(seed: int) -> SiteProblem:
    """Twenty rows of three features."""
    random = np.random.default_rng(seed)
    return SiteProblem(
        random.random((20, 3)), np.where(random.random(20) < 0.5, 1.0, -1.0), RobustSpec(0.01, 1.0)
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [0.0, 1e-321, 1e-200, 1e-13, 1e-11])
@pytest.mark.parametrize("seed", range(3))
def test_a_soft_penalty_gets_a_minorant_of_the_risk(seed: int, penalty: float) -> None:
    problem, random = site(seed), np.random.default_rng(seed)
    message = {"point": np.zeros(4), "centre": random.normal(size=4), "penalty": np.array(penalty)}
    said = ProxCutSite().answer(problem, message, {})
    for point in random.normal(size=(20, 4)):
        below = said["minorant_offset"] + said["minorant_slope"] @ point
        below += said["minorant_norm_weight"] * np.linalg.norm(point[:3])
        assert np.isfinite(below) and below <= site_risk(point, problem).value + 1e-9


def test_no_penalty_is_too_soft_to_solve_with() -> None:
    soft = {"penalty": np.array(1e-321)}
    assert asked_penalty(soft, 0.5, np.array([0.3, 0.4])) == pytest.approx(0.5)
    assert asked_penalty(soft, 0.5, np.array([1e-160, 0.0])) == 0.0
    assert asked_penalty({"penalty": np.array(1e-3)}, 0.5, np.array([1e-160, 0.0])) == 1e-3
