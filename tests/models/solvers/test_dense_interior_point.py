"""The interior point method for a matrix of rows takes the steps of the general one, and ends as sharp."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.basics import FloatArray
from models.solvers.arrow_rows import ArrowRows
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.dense_interior_point import solve_dense
from models.solvers.second_order_cone import Cones, jordan_product
from models.solvers.solution import Solution, SolverStatus


def drawn(
    seed: int, sizes: tuple[int, ...], curved: bool, linear: int = 24
) -> tuple[ConeProgram, ArrowRows, FloatArray]:
    """A program with an optimum, its rows with their structure, and a point inside: rows that hold up three heights."""
    random, (k, count) = np.random.default_rng(seed), (4, 3)
    height = np.sort(np.concatenate([np.arange(count), random.integers(count, size=linear - count)]))
    others = random.normal(size=(2 + sum(sizes), k + count))
    others[1:, k:] = 0.0
    others[0, k:] = np.abs(others[0, k:])
    rows = ArrowRows(random.normal(size=(linear, k)), height, others, sizes)
    matrix, cones = rows.dense(), Cones.of(rows.shape[0], sizes)
    slack, duals = random.uniform(0.1, 1.0, (2, matrix.shape[0]))
    for part in cones.parts:
        for point in (slack, duals):
            point[part] = random.normal(size=part.stop - part.start)
            point[part.start] = 1.5 * np.linalg.norm(point[part.start + 1 : part.stop]) + 0.1
    inside = random.normal(size=k + count)
    curvature = np.append(random.uniform(0.5, 2.0, k), np.zeros(count)) if curved else np.zeros(k + count)
    slope = -matrix.T @ duals
    if curved:
        slope[k:] = random.uniform(0.0, 1.0, count)
    return ConeProgram(curvature, slope, matrix, matrix @ inside + slack, sizes), rows, inside


def error(found: Solution) -> float:
    """What is left of the conditions of optimality, in the solvers' measure."""
    size = 1.0 + float(np.abs(found.multipliers).max())
    return max(found.primal_residual, found.dual_residual / size, found.gap / size)


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1), sizes=st.sampled_from([(), (4,), (3, 5), (2, 2, 2)]), curved=st.booleans(),
    started=st.booleans(),
)
def test_it_takes_the_steps_of_the_general_method(
    seed: int, sizes: tuple[int, ...], curved: bool, started: bool
) -> None:
    """As many, to the same point, from nothing and from a start with multipliers of its own."""
    program, rows, inside = drawn(seed, sizes, curved)
    start = (inside, 0.3 * Cones.of(rows.shape[0], sizes).unit(rows.shape[0])) if started else (None, None)
    dense = ConeProgram(program.curvature, program.linear, program.rows, program.limits, sizes, *start)
    arrow = ConeProgram(program.curvature, program.linear, rows, program.limits, sizes, *start)
    found, wanted = solve_cone_program(dense, 1e-9), solve_cone_program(arrow, 1e-9)
    # where rounding stops one of them before the tolerance the other may go on; this one ends no worse
    assert error(found) <= max(1e-8, error(wanted))
    if found.status is wanted.status:
        assert abs(found.iterations - wanted.iterations) <= 1
    np.testing.assert_allclose(found.point, wanted.point, atol=1e-5 * (1.0 + np.abs(wanted.point).max()))


def test_it_ends_as_sharp_as_the_general_method() -> None:
    """By what is left where all digits are asked for, over many programs with cones at whose border they end."""
    errors = list[tuple[float, float]]()
    for seed in range(150):
        program, rows, _ = drawn(seed, ((6, 5), (9,), (3, 3, 3))[seed % 3], seed % 2 == 0)
        arrow = ConeProgram(program.curvature, program.linear, rows, program.limits, program.cones)
        errors.append((error(solve_dense(program, 1e-13)), error(solve_cone_program(arrow, 1e-13))))
    ratio = np.log10(np.array(errors)[:, 0] / np.array(errors)[:, 1])
    assert ratio.mean() <= 0.1, ratio
    assert max(pair[0] for pair in errors) <= 1e-8


@pytest.mark.parametrize("seed", [55, 73, 124, 183])
def test_a_step_that_is_rounded_to_the_border_ends_at_the_best_iterate_without_a_warning(seed: int) -> None:
    """The highest of some planes over a box, in weights whose units are up to a million times one another."""
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 6))
    m = int(random.integers(k + 2, 14))
    units = 10.0 ** random.integers(0, 7, size=k)
    planes, box = random.normal(size=(m, k)) / units, np.hstack([np.diag(1.0 / units), np.zeros((k, 1))])
    rows = np.vstack([np.hstack([planes, -np.ones((m, 1))]), box, -box])
    limits = np.concatenate([-random.normal(size=m), np.full(2 * k, 0.5)])
    program = ConeProgram(np.zeros(k + 1), np.append(np.zeros(k), 1.0), rows, limits)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve_dense(program, 1e-14)
    # by the last bits of a processor's sums one of them may come below the tolerance
    assert found.status in (SolverStatus.ROUNDING, SolverStatus.SOLVED)
    assert np.isfinite(found.point).all() and (found.multipliers > 0.0).all()


def test_a_program_of_cones_alone_has_its_solution() -> None:
    """The nearest point of a disk to a point beside it, with no linear row."""
    far, disk = [[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]], [[0.0] * 3, [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]
    rows = np.array([*far, *disk])
    limits = np.array([0.0, -3.0, -4.0, 1.0, 0.0, 0.0])
    found = solve_dense(ConeProgram(np.zeros(3), np.array([0.0, 0.0, 1.0]), rows, limits, (3, 3)), 1e-12)
    np.testing.assert_allclose(found.point, [0.6, 0.8, 4.0], atol=1e-9)
    slack = limits[3:] - rows[3:] @ found.point
    np.testing.assert_allclose(jordan_product(slack, found.multipliers[3:]), 0.0, atol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-1, 1e-6])
def test_what_is_left_of_the_conditions_is_told_whichever_sign_it_has(tolerance: float) -> None:
    """A slope of -0.5 that is left is as bad as one of 0.5, and rows are missed by no more than is told."""
    for seed in range(30):
        program, _, _ = drawn(seed, (3,), seed % 2 == 0)
        found, rows = solve_dense(program, tolerance), np.asarray(program.rows)
        uphill = program.curvature * found.point + program.linear + found.multipliers @ rows
        assert found.dual_residual == pytest.approx(np.abs(uphill).max(), rel=1e-9, abs=1e-12)
        missed = (rows @ found.point - program.limits)[:-3]
        assert found.primal_residual >= max(float(missed.max()), 0.0) - 1e-12


def test_what_is_not_finite_is_no_solution_and_no_endless_loop() -> None:
    program, _, _ = drawn(0, (3,), False)
    spoilt = ConeProgram(program.curvature, program.linear * np.nan, program.rows, program.limits, (3,))
    assert solve_dense(spoilt, 1e-9).status is SolverStatus.ROUNDING


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_program_that_no_point_meets_is_given_up_after_a_few_steps(size: int) -> None:
    """Steps of no length would follow one another, and the multipliers grow until they overflow."""
    rows, limits = np.vstack([np.eye(size), -np.eye(size)]), np.repeat([-1.0, -float(size)], size)
    linear = np.random.default_rng(size - 1).normal(size=size)
    found = solve_dense(ConeProgram(np.full(size, float(size % 4 == 2)), linear, rows, limits), 1e-9)
    assert found.status is SolverStatus.ROUNDING and found.primal_residual > 1.0
    assert found.iterations <= 10 and found.multipliers.max() < 1e60
