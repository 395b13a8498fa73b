"""The paper's worst-case program beside the exact risk: as printed, with its sign mended, and complete."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.geometry.supports import BoxSupport
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk

pytest.importorskip("cvxpy", reason="the oracle of these tests needs the extra 'reference'")


def _problem(norm: TransportNorm, flip_cost: float) -> tuple[SiteProblem, np.ndarray]:
    random = np.random.default_rng(3)
    features, weights = random.uniform(0, 1, (40, 5)), 4 * random.normal(size=5)
    labels = np.where((features - 0.5) @ weights + 2 * random.normal(size=40) > 0, 1.0, -1.0)
    spec = RobustSpec(0.3, flip_cost, norm, BoxSupport(np.zeros(5), np.ones(5)), fit_intercept=False)
    return SiteProblem(features, labels, spec), weights


def test_printed_mended_complete_side_by_side() -> None:
    """The printed signs move features the harmless way; mended, the hinge's zero piece is still missing."""
    from tests.oracles.paper_program import solve_paper_program

    problem, weights = _problem("linf", 5.0)
    empirical = np.maximum(0, 1 - problem.labels * (problem.features @ weights)).mean()
    exact = site_risk(weights, problem).value
    printed, mended, complete = (solve_paper_program(weights, problem, v) for v in ("printed", "mended", "complete"))
    assert printed.risk < empirical < mended.risk < complete.risk
    assert complete.objective == pytest.approx(exact, rel=1e-7)
    assert complete.risk == pytest.approx(exact, rel=1e-5)
    assert mended.risk < 0.9 * exact


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("flip_cost", [0.2, 1.0])
def test_the_complete_program_is_exact(norm: TransportNorm, flip_cost: float) -> None:
    from tests.oracles.paper_program import solve_paper_program

    problem, weights = _problem(norm, flip_cost)
    complete = solve_paper_program(weights, problem, "complete")
    assert complete.objective == pytest.approx(site_risk(weights, problem).value, rel=1e-7)


def test_the_program_wants_a_box() -> None:
    from tests.oracles.paper_program import solve_paper_program

    problem, weights = _problem("l2", 1.0)
    free = SiteProblem(problem.features, problem.labels, RobustSpec(0.3, 1.0, "l2", None, fit_intercept=False))
    with pytest.raises(ProblemError, match="box support"):
        solve_paper_program(weights, free, "printed")
