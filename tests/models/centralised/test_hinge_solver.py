"""The interior point of the pooled problem alone: steps that count, a gap that is honest, and the best iterate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import TransportNorm
from models.centralised.hinge_solver import PooledPoint, PooledProblem, _iterate, solve_pooled
from models.geometry.norms import vector_norm
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk

NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")


class Drawn:
    """Three sites of unlike size, radius and flip cost; ``radii`` and ``costs`` (3,)."""

    def __init__(self, norm: TransportNorm, radii: tuple[float, ...], costs: tuple[float, ...], seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        counts, self.weight = (40, 25, 12), np.array([0.5, 0.3, 0.2])
        self.sites = []
        for count, radius, cost in zip(counts, radii, costs, strict=True):
            x = random.normal(size=(count, 4))
            y = np.where(x @ [1.0, -1.0, 0.5, 0.0] + 0.8 * random.normal(size=count) > 0.2, 1.0, -1.0)
            self.sites.append(SiteProblem(x, y, RobustSpec(radius, cost, norm)))
        site = np.repeat(np.arange(3), counts)
        rows = [np.column_stack([s.features, np.ones(len(s.labels))]) * s.labels[:, None] for s in self.sites]
        self.problem = PooledProblem(
            np.vstack(rows), (self.weight / counts)[site], site, np.array(radii), np.array(costs), self.weight, norm, 4
        )

    def value(self, found: PooledPoint) -> float:
        """Objective at the point, by the exact risks."""
        return float(self.weight @ [site_risk(found.weights, site).value for site in self.sites])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("radii", "costs"),
    [
        ((0.1, 0.02, 0.3), (0.5, 2.0, 1.0)), ((0.1, 0.0, 0.0), (0.5, 1.0, np.inf)),
        ((0.05, 0.05, 0.05), (3e-2, 50.0, 1.0)), ((0.1, 0.05, 0.2), (0.5, np.inf, np.inf)),
    ],
)
def test_it_ends_in_few_steps_with_a_gap_that_is_honest_all_the_way(
    norm: TransportNorm, radii: tuple[float, ...], costs: tuple[float, ...]
) -> None:
    drawn = Drawn(norm, radii, costs)
    end = solve_pooled(drawn.problem)
    best = drawn.value(end)
    assert end.gap <= 1e-10 and end.iterations <= STEPS
    for tolerance in (1.0, 0.3, 0.1, 1e-2, 1e-4):
        found = solve_pooled(drawn.problem, tolerance)
        assert found.gap <= tolerance
        assert drawn.value(found) - best <= 1.01 * found.gap * drawn.value(found) + 1e-12


STEPS = 16


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("radii", "costs"), [((0.0,) * 3, (1.0,) * 3), ((0.1, 0.02, 0.3), (0.5, 2.0, 1.0))])
def test_a_feature_that_is_told_twice_or_always_0_keeps_it_from_no_digit(
    norm: TransportNorm, radii: tuple[float, ...], costs: tuple[float, ...]
) -> None:
    """Without a ball nothing decides how the weights of two alike are shared, nor that of one without a value."""
    problem = Drawn(norm, radii, costs).problem
    for other in (problem.signed[:, 0], np.zeros(len(problem.signed))):
        signed = problem.signed.copy()
        signed[:, 3] = other
        assert solve_pooled(replace(problem, signed=signed)).gap <= 1e-10


@pytest.mark.parametrize("norm", NORMS)
def test_the_point_is_the_best_of_the_run(norm: TransportNorm) -> None:
    """Where nothing ends it but rounding, what it did last is not better than what it keeps."""
    drawn = Drawn(norm, (0.1, 0.02, 0.3), (0.5, 2.0, 1.0))
    gaps = [solve_pooled(drawn.problem, tolerance).gap for tolerance in (1e-10, 1e-13, 0.0)]
    assert gaps[2] <= gaps[1] <= gaps[0]


@pytest.mark.parametrize("norm", NORMS)
def test_the_duals_of_the_end_prove_its_value(norm: TransportNorm) -> None:
    """Weights of a row at most 1 in sum, flips within each site's radius, a slope that the norm's dual answers."""
    drawn = Drawn(norm, (0.1, 0.02, 0.3), (0.3, 2.0, 1.0))
    problem, found = drawn.problem, solve_pooled(drawn.problem)
    assert min(found.keep.min(), found.flip.min()) >= 0.0 and (found.keep + found.flip).max() <= 1.0 + 1e-7
    spent = problem.label_flip_cost * np.bincount(problem.site, problem.share * found.flip)
    assert (spent <= problem.price * (1.0 + 1e-6)).all() and spent[0] > 0.5 * problem.price[0]
    slope = (problem.share * (found.flip - found.keep)) @ problem.signed
    np.testing.assert_allclose(slope, np.append(found.norm_dual, 0.0), atol=1e-8)
    # What is left of the radii pays for the norm, and the value is what the losses' heights are worth.
    assert vector_norm(found.norm_dual, norm) <= float((problem.price - spent).sum()) * (1.0 + 1e-6)
    assert float(problem.share @ (found.keep + found.flip)) == pytest.approx(drawn.value(found), rel=1e-7)


class Steps:
    """A run whose gaps are written down: it is at the end where rounding makes them grow again."""

    def __init__(self, *gaps: float, near_end: bool = True) -> None:
        self.gaps, self.taken, self.near_end = gaps, 0, near_end

    @property
    def gap(self) -> float:
        return self.gaps[self.taken]

    def advance(self) -> bool:
        if self.taken + 1 == len(self.gaps):
            return False
        self.taken += 1
        return True

    def point(self, iteration: int) -> PooledPoint:
        assert iteration == self.taken
        return PooledPoint(np.full(1, self.gap), np.zeros(0), np.zeros(0), np.zeros(0), iteration, self.gap)


@pytest.mark.parametrize(
    ("run", "best", "taken"),
    [
        (Steps(1.0, 0.1, 0.3, 0.2), 0.1, 3), (Steps(0.1, 0.3), 0.1, 1), (Steps(1.0, 0.1, 1e-3, 1e-9), 1e-3, 2),
        (Steps(1.0, *[0.1] * 9), 0.1, 6), (Steps(1.0, *[0.1] * 9, near_end=False), 0.1, 9),
        (Steps(1.0, *[2.0] * 3, 0.5), 0.5, 4), (Steps(1.0, 0.95, 0.94, 0.93, 0.1, 0.099, 0.098, 1e-3), 1e-3, 7),
    ],
    ids=["grows again", "only grows", "is there", "stands still", "stands still far off", "grows at first", "rests"],
)
def test_the_best_iterate_is_kept_and_ends_it_where_nothing_more_comes(run: Any, best: float, taken: int) -> None:
    """At the tolerance, where no step is left, or after more than four without progress near the end."""
    found = _iterate(run, 0.01)
    assert (found.gap, found.weights[0], run.taken) == (best, best, taken)
