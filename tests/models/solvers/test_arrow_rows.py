"""Eliminating the heights gives what the dense matrix gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.solvers import arrow_rows, conic_interior_point, height_blocks
from models.solvers.arrow_rows import ArrowRows
from models.solvers.cone_program import ConeProgram
from models.solvers.conic_interior_point import solve_cone_program
from models.solvers.height_blocks import HeightBlocks
from models.solvers.second_order_cone import Cones, Scaling
from models.solvers.solution import SolverStatus


def drawn(
    random: np.random.Generator, k: int, count: int, extra: int, touching: int, cone: int
) -> tuple[ArrowRows, Cones]:
    """Rows of which ``touching`` touch the heights, and two cones of which one may."""
    height = np.sort(np.concatenate([np.arange(count), random.integers(count, size=random.integers(0, 3 * count + 1))]))
    n = k + count + extra
    others = random.normal(size=(touching + 4 + 2 * cone, n))
    others[touching : touching + 4 + cone, k : k + count] = 0.0
    if cone and touching <= 1:
        others[-cone:, k : k + count] = 0.0
    sizes = (cone, cone) if cone else ()
    rows = ArrowRows(random.normal(size=(height.size, k)), height, others, sizes)
    return rows, Cones.of(rows.shape[0], sizes)


def inside(random: np.random.Generator, rows: int, cones: Cones, spread: float) -> np.ndarray:
    """A point inside the cones whose linear entries are apart by many powers of ten."""
    point = np.exp(spread * random.normal(size=rows))
    for part in cones.parts:
        point[part] = random.normal(size=part.stop - part.start)
        point[part.start] = 1.1 * np.linalg.norm(point[part.start + 1 : part.stop]) + 0.1
    return point


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32 - 1), k=st.integers(1, 7), count=st.integers(1, 9), extra=st.integers(0, 3),
    touching=st.integers(0, 3), cone=st.sampled_from([0, 2, 4]), sparse=st.booleans(), blocks=st.booleans(),
)
def test_a_newton_step_is_that_of_the_whole_matrix(
    seed: int, k: int, count: int, extra: int, touching: int, cone: int, sparse: bool, blocks: bool
) -> None:
    random = np.random.default_rng(seed)
    rows, cones = drawn(random, k, count, extra, touching, cone)
    matrix, (m, n) = rows.dense(), rows.shape
    scaling = Scaling.at(inside(random, m, cones, 1.0), inside(random, m, cones, 1.0), cones)
    curvature, right, duals = random.uniform(0.1, 1.0, n), random.normal(size=n), random.normal(size=m)
    curvature[k : k + count] = 0.0  # heights have none, and none is added
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_rows, "_DENSE", 0 if sparse else 10**6)
        patch.setattr(height_blocks, "_BLOCK", 0 if blocks else 10**6)
        np.testing.assert_allclose(rows.times(right), matrix @ right, atol=1e-12)
        np.testing.assert_allclose(rows.adjoint(duals), matrix.T @ duals, atol=1e-12)
        factor = rows.factor(scaling, curvature)
    assert factor is not None
    scaled = np.column_stack([scaling.unscale(column) for column in matrix.T])
    wanted = np.linalg.solve(np.diag(curvature) + scaled.T @ scaled, right)
    np.testing.assert_allclose(factor.solve(right), wanted, rtol=1e-6, atol=1e-7 * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("place", [-1, -3, -5])
def test_a_row_of_a_cone_that_alone_touches_a_height_is_no_level(place: int) -> None:
    """A level has a weight of its own; a cone's rows have none but together."""
    random, k, count = np.random.default_rng(3), 4, 3
    rows, cones = drawn(random, k, count, 1, 0, 3)
    rows.others[place, k + 1] = 0.7
    (m, n), matrix = rows.shape, rows.dense()
    scaling = Scaling.at(inside(random, m, cones, 1.0), inside(random, m, cones, 1.0), cones)
    curvature, right = random.uniform(0.1, 1.0, n), random.normal(size=n)
    curvature[k : k + count] = 0.0
    factor = rows.factor(scaling, curvature)
    assert factor is not None
    scaled = np.column_stack([scaling.unscale(column) for column in matrix.T])
    wanted = np.linalg.solve(np.diag(curvature) + scaled.T @ scaled, right)
    np.testing.assert_allclose(factor.solve(right), wanted, rtol=1e-6, atol=1e-7 * (1 + np.abs(wanted).max()))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), heavy=st.integers(0, 4), blocks=st.booleans())
def test_a_rough_product_has_all_digits_that_count(seed: int, heavy: int, blocks: bool) -> None:
    """Rows a million times a million heavier than most lose nothing that counts beside these, nor do light ones."""
    random, k, firsts = np.random.default_rng(seed), 5, np.array([0, 7, 12])
    rows = HeightBlocks(random.normal(size=(30, k)), firsts)
    weights = random.uniform(0.5, 2.0, 30)
    weights[random.choice(30, heavy, replace=False)] *= 1e12
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(height_blocks, "_BLOCK", 0 if blocks else 10**6)
        total, means, rough = rows.product(weights, roughly=True)
        exact = rows.product(weights, roughly=False)
    site = np.searchsorted(firsts, np.arange(30), side="right") - 1
    centred = rows.wide - means[site]
    np.testing.assert_allclose(total, np.bincount(site, weights=weights), rtol=1e-12)
    np.testing.assert_allclose(means, exact[1], rtol=1e-12)
    wanted = np.tril(centred.T @ (centred * weights[:, None]))
    np.testing.assert_allclose(np.tril(exact[2]), wanted, rtol=1e-9, atol=1e-14 * np.abs(wanted).max())
    np.testing.assert_allclose(np.tril(rough), wanted, rtol=0.0, atol=1e-4 + 1e-14 * np.abs(wanted).max())


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6), count=st.integers(1, 7), extra=st.integers(0, 2),
    touching=st.integers(0, 3), cone=st.sampled_from([0, 3]), single=st.booleans(),
)
def test_a_program_has_the_same_solution(
    seed: int, k: int, count: int, extra: int, touching: int, cone: int, single: bool
) -> None:
    """Feasible and bounded by construction, strictly convex but for the heights; also by steps in single precision."""
    random = np.random.default_rng(seed)
    rows, cones = drawn(random, k, count, extra, touching, cone)
    matrix, (m, n) = rows.dense(), rows.shape
    heights = slice(k, k + count)
    if touching <= 1:  # as a level does: it holds heights down that rows hold up, and nothing pulls them up
        rows.others[:touching, heights] = np.abs(rows.others[:touching, heights])
        matrix = rows.dense()
    limits = matrix @ random.normal(size=n) + inside(random, m, cones, 0.3)
    curvature, linear = random.uniform(0.5, 2.0, n), -matrix.T @ inside(random, m, cones, 0.3)
    curvature[heights] = 0.0
    if touching <= 1:
        linear[heights] = random.uniform(0.0, 1.0, count)
    sizes = tuple(part.stop - part.start for part in cones.parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_rows, "_WIDE", 0 if single else 10**6)
        found = solve_cone_program(ConeProgram(curvature, linear, rows, limits, sizes), 1e-11)
    wanted = solve_cone_program(ConeProgram(curvature, linear, matrix, limits, sizes), 1e-11)
    free = np.r_[0:k, k + count : n]  # a height may be anything between its rows and what holds it from above
    # Where rounding ends both, a column of little curvature is known to some 1e-6, now and then just above it.
    np.testing.assert_allclose(found.point[free], wanted.point[free], atol=5e-6 * (1.0 + np.abs(wanted.point).max()))
    assert max(found.primal_residual, found.dual_residual) <= 1e-7 * (1.0 + np.abs(wanted.multipliers).max())


def test_further_directions_of_a_factor_save_factors_and_change_no_solution() -> None:
    """By counting, over programs as those of a cut model: many rows a height, a level that holds the heights down."""
    steps, points = {0: 0, 3: 0}, {0: list[np.ndarray](), 3: list[np.ndarray]()}
    for seed in range(6):
        random = np.random.default_rng(seed)
        height = np.repeat(np.arange(5), 40)
        others = np.append(np.zeros(10), np.full(5, 0.2))[None]
        rows = ArrowRows(random.normal(size=(200, 10)), height, others)
        curvature = np.append(np.ones(10), np.zeros(5))
        limits = np.append(random.uniform(-1.0, 1.0, 200), 1.5)
        for correctors in steps:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(arrow_rows, "_WIDE", 0)
                patch.setattr(conic_interior_point, "_CORRECTORS", correctors)
                found = solve_cone_program(ConeProgram(curvature, np.zeros(15), rows, limits), 1e-11)
            assert found.status is SolverStatus.SOLVED
            steps[correctors] += found.iterations
            points[correctors].append(found.point[:10])
    np.testing.assert_allclose(points[0], points[3], atol=1e-6)
    assert steps[3] <= 0.9 * steps[0], steps


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), linear=st.integers(0, 6), cones=st.lists(st.integers(2, 5), max_size=3))
def test_the_longest_step_ends_at_the_border(seed: int, linear: int, cones: list[int]) -> None:
    random = np.random.default_rng(seed)
    held = Cones.of(linear + sum(cones), tuple(cones))
    slack, dual = (inside(random, linear + sum(cones), held, 1.0) for _ in range(2))
    dslack, ddual = random.normal(size=(2, slack.size)) * random.choice([0.1, 1.0, 10.0])

    def is_inside(length: float) -> bool:
        return all(
            (point[:linear] > 0).all()
            and all(point[part][0] > np.linalg.norm(point[part][1:]) for part in held.parts)
            for point in (slack + length * dslack, dual + length * ddual)
        )

    longest = Scaling.at(slack, dual, held).longest(slack, dslack, dual, ddual)
    assert is_inside(min(0.9999 * longest, 1e9))
    assert longest == np.inf or not is_inside(1.0001 * longest)


def test_the_factor_has_the_free_columns_alone() -> None:
    """By counting: with many heights the matrix that is factored is no larger."""
    random, sizes = np.random.default_rng(0), []
    for count in (5, 50):
        height = np.repeat(np.arange(count), 3)
        others = np.zeros((1, 4 + count))
        others[0, 4:] = 1.0 / count
        rows = ArrowRows(random.normal(size=(3 * count, 4)), height, others)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(arrow_rows, "cholesky", lambda matrix, curvature: sizes.append(matrix.shape))
            point = np.ones(3 * count + 1)
            rows.factor(Scaling.at(point, point, Cones.of(3 * count + 1, ())), np.zeros(4 + count))
    assert sizes == [(4, 4), (4, 4)]
