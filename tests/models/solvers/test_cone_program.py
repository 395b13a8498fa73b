"""Where a cone program begins, and how its run is judged: the best iterate, its status, and when it is over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray
from models.solvers import arrow_rows, conic_interior_point
from models.solvers.arrow_rows import ArrowRows
from models.solvers.cone_program import ConeProgram, Progress
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.second_order_cone import Cones
from models.solvers.solution import Solution, SolverStatus

PROGRAM = ConeProgram(np.zeros(1), np.ones(1), np.zeros((5, 1)), np.zeros(5), (3,), room=0.2)
CONES = Cones.of(5, (3,))
UNIT = np.array([1.0, 1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ((5.0, 3.0, 3.0), True), ((5.0, 3.9, 2.9), False), ((5.0, 4.0, 4.0), False), ((-5.0, 1.0, 1.0), False),
        ((0.0, 0.0, 0.0), False),
    ],
)
def test_it_begins_inside_and_where_it_is_told_as_far_as_that_is(tail: tuple[float, ...], kept: bool) -> None:
    """Slack of at least the room; a point of a cone where a tenth of its size is left to the surface, else its unit."""
    slack, duals = PROGRAM.first_iterate(np.array([0.7, -3.0, *tail]), CONES)
    np.testing.assert_array_equal(slack, [0.7, 0.2, *(tail if kept else UNIT[2:])])
    np.testing.assert_array_equal(duals, UNIT)


def test_multipliers_that_are_known_are_taken_and_let_it_begin_nearer_to_the_surface() -> None:
    known = replace(PROGRAM, duals=np.array([0.3, 0.4, 2.0, 1.0, 0.0]))
    for tail, kept in (((5.0, 3.9, 2.9), True), ((5.0, 3.0, 3.9999), False)):
        slack, duals = known.first_iterate(np.array([0.7, 0.7, *tail]), CONES)
        assert (slack[2:] == (tail if kept else UNIT[2:])).all()
        np.testing.assert_array_equal(duals, known.duals)


def judged(
    progress: Progress, taken: int, left: tuple[float, float, float], mean: float = 1.0, size: float = 1.0
) -> bool:
    """Whether the run is over after an iterate that is known by its number."""
    return progress.judge(taken, np.full(1, float(taken)), np.full(1, -float(taken)), left, mean, size)[1]


def end(progress: Progress, whole: bool = False) -> Solution:
    return progress.found(np.full(1, 99.0), np.full(1, 98.0), whole)


@pytest.mark.parametrize("place", range(3))
def test_nothing_that_is_missed_is_overlooked(place: int) -> None:
    """Feasibility as it is; stationarity and complementarity by the multipliers' size."""
    left = [0.0, 0.0, 0.0]
    left[place] = 2e-6
    assert not judged(Progress(1e-6), 0, (left[0], left[1], left[2]))
    assert judged(Progress(3e-6), 0, (left[0], left[1], left[2]))
    assert judged(Progress(1e-6), 0, (left[0], left[1], left[2]), size=10.0) is (place > 0)


def test_the_best_iterate_is_returned_with_what_it_misses() -> None:
    progress = Progress(1e-9)
    for taken, error in enumerate((1.0, 1e-3, 1e-2, np.nan)):
        assert not judged(progress, taken, (error, error / 2, error / 4))
    found = end(progress)
    assert (found.point[0], found.multipliers[0], found.iterations) == (1.0, -1.0, 1)
    assert (found.primal_residual, found.dual_residual, found.gap) == (1e-3, 5e-4, 2.5e-4)
    assert found.status is SolverStatus.ROUNDING and end(progress, whole=True).status is SolverStatus.STEP_LIMIT
    assert judged(progress, 4, (1e-9, 0.0, 0.0)) and end(progress).status is SolverStatus.SOLVED


def test_where_no_iterate_is_a_number_the_start_is_returned() -> None:
    progress = Progress(1e-9)
    judged(progress, 0, (np.nan, 0.0, 0.0))
    found = end(progress)
    assert (found.point[0], found.multipliers[0], found.gap, found.iterations) == (99.0, 98.0, np.inf, 0)
    assert found.status is SolverStatus.ROUNDING


def test_it_is_over_where_rounding_is_all_that_is_left() -> None:
    """No progress for more than three steps near the end, products of rounding's size, more than five tiny steps."""
    for error, patient in ((1e-8, False), (1e-3, True)):
        progress = Progress(1e-12)
        ends = [judged(progress, taken, (error, 0.0, 0.0)) for taken in range(5)]
        assert ends == [False] * 4 + [not patient]
    assert judged(Progress(1e-12), 0, (1.0, 0.0, 0.0), mean=1e-16, size=10.0)
    assert not judged(Progress(1e-12), 0, (1.0, 0.0, 0.0), mean=1e-16, size=1.0)
    progress = Progress(1e-12)
    for steps, over in ((5, False), (1, True)):
        for _ in range(steps):
            progress.moved(0.01)
        assert judged(progress, 0, (1.0, 0.0, 0.0)) is over
    progress.moved(0.5)
    assert not judged(progress, 0, (1.0, 0.0, 0.0))


@pytest.mark.parametrize("status", list(SolverStatus))
def test_a_rough_run_that_did_not_end_at_the_tolerance_is_run_anew(
    status: SolverStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def solve(program: ConeProgram, rows: ArrowRows, tolerance: float, roughly: bool) -> Solution:
        runs.append(roughly)
        return Solution(np.full(1, float(roughly)), np.zeros(1), status, 0.0, 0.0, 0.0, 1)

    monkeypatch.setattr(conic_interior_point, "_solve", solve)
    rows = ArrowRows(np.ones((3, 2)), np.zeros(3, int), np.zeros((1, 3)))
    program = ConeProgram(np.ones(3), np.ones(3), rows, np.ones(4))
    assert solve_cone_program(program).point[0] == 0.0 and runs == [False]
    monkeypatch.setattr(arrow_rows, "_WIDE", 1)
    again = status is not SolverStatus.SOLVED
    assert solve_cone_program(program).point[0] == float(not again)
    assert runs == [False, True, False][: 2 + again]


def test_a_run_that_is_cut_short_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it stands; with its residuals as they are at its point."""
    random = np.random.default_rng(0)
    rows = ArrowRows(random.normal(size=(6, 2)), np.zeros(6, int), np.array([[0.0, 0.0, 1.0]]))
    linear, limits = np.array([1.0, -1.0, 0.0]), np.append(random.normal(size=6), 5.0)
    program = ConeProgram(np.array([1.0, 2.0, 0.0]), linear, rows, limits)
    for steps, status in ((2, SolverStatus.STEP_LIMIT), (60, SolverStatus.SOLVED)):
        monkeypatch.setattr(conic_interior_point, "MAX_STEPS", steps)
        found = solve_cone_program(program, 1e-10)
        assert found.status is status and found.iterations < steps
        left: FloatArray = program.curvature * found.point + linear + rows.adjoint(found.multipliers)
        assert found.dual_residual == pytest.approx(float(np.abs(left).max()), abs=1e-15)
        slack, most = limits - rows.times(found.point), found.primal_residual * float(found.multipliers.sum())
        assert found.gap == pytest.approx(float(slack @ found.multipliers), abs=most + 1e-12)
        missed = max(found.dual_residual, found.gap) / (1.0 + float(found.multipliers.max()))
        assert (max(found.primal_residual, missed) <= 1e-10) is (status is SolverStatus.SOLVED)
