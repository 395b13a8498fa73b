"""The minorant holds everywhere, at the optimum touches, and needs no trust in a solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.prox.hinge import robust_prox
from models.prox.hinge.certify import clip_weights, minorant
from models.prox.hinge.statement import Statement
from models.prox.solution import ProxSolution
from models.worst_case.risk import site_risk


def _probes(solution, centre, random):
    """Random points of many sizes, and the directions in which a wrong minorant would be caught first."""
    size = centre.size
    points = [random.normal(size=size) * scale for scale in (1e-6, 1e-2, 1.0, 1e2, 1e5) for _ in range(4)]
    points += [np.zeros(size), centre, solution.point, solution.point + 1e-6 * random.normal(size=size)]
    for direction in (solution.slope, np.sign(solution.slope), *np.eye(size), np.ones(size)):
        for length in (1e-3, 1.0, 1e3, 1e6):
            points += [solution.point + length * direction, solution.point - length * direction, length * direction]
    return points


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_minorant_holds_everywhere_and_touches_at_the_optimum(steps, assert_minorant, data):
    step = data.draw(steps)
    found = robust_prox(step.problem, step.centre, step.penalty, ridge=step.ridge, warm_start=step.warm_start)
    assert_minorant(found, step.problem, _probes(found, step.centre, np.random.default_rng(0)))
    height = found.offset + float(found.slope @ found.point)
    assert site_risk(found.point, step.problem).value - height <= 1e-7 * max(found.value, 1e-2)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_any_dual_weights_make_a_minorant(steps, assert_minorant, data, seed):
    problem = data.draw(steps).problem
    random = np.random.default_rng(seed)
    count, p = problem.features.shape
    spec = problem.spec
    rows = problem.features * problem.labels[:, None]
    if spec.fit_intercept:
        rows = np.column_stack((rows, problem.labels))
    size = rows.shape[1]
    flip = spec.label_flip_cost if spec.radius > 0 else np.inf
    stated = Statement(
        rows, p, np.zeros(size), 0.0, np.zeros(size), count * spec.radius, flip, 1.0, spec.transport_norm, count
    )
    keep = random.normal(size=count) * random.choice([0.1, 1.0, 10.0])
    flips = random.normal(size=count) * random.choice([0.1, 1.0, 10.0]) if np.isfinite(flip) else np.zeros(0)
    bound = minorant(stated, keep, flips, random.normal(size=p) * random.choice([0.0, 1.0, 1e3]))
    norm_slope = np.zeros(size)
    norm_slope[:p] = bound.norm_slope / count
    wild = ProxSolution(
        point=np.zeros(size),
        value=0.0,
        offset=bound.offset / count,
        slope=bound.slope / count,
        gap=0.0,
        primal_residual=0.0,
        dual_residual=0.0,
        iterations=0,
        solver="none",
        norm_weight=bound.norm_weight / count,
        norm_slope=norm_slope,
    )
    assert_minorant(wild, problem, _probes(wild, np.ones(size), random))


@pytest.mark.parametrize("budget", [0.5, 1.5, 3.0])
def test_no_more_is_flipped_than_the_radius_pays_for(budget: float) -> None:
    """Beyond it the norm's part of the bound would be negative, and the bound none."""
    keep, flip = clip_weights(np.zeros(2), np.ones(2), budget)
    assert flip.sum() <= budget
    assert flip.sum() == pytest.approx(min(budget, 2.0), rel=1e-12)
    assert (keep + flip).max() <= 1.0
