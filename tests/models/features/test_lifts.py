"""What all lifts promise: their box, their gradient, and how far they stretch; and what splines promise beyond."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.basics import FloatArray, ProblemError, TransportNorm
from models.features.fourier import fourier_lift
from models.features.lift import LARGEST, Lift, check_size, check_slopes, lead_over_steepness, lesser_steepness
from models.features.nystrom import drawn_points, nystrom_lift
from models.features.products import product_lift
from models.features.scaled import ScaledProducts
from models.features.spline import spline_between, spline_lift
from models.geometry.norms import DUAL_NORM, vector_norm
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk

LIFTS: dict[str, Lift] = {
    "fourier": fourier_lift(3, 12, bandwidth=0.3, seed=2),
    "spline": spline_lift(3, 5),
    "products": product_lift(3, (2, 0, 1)),
    "squares": product_lift(3, (0, 2), squares=True),
    "products of lines": product_lift(3, (2, 0, 1), segments=2),
    "squares of lines": product_lift(3, (0, 2), squares=True, segments=5),
    "scaled products": ScaledProducts(
        product_lift(3, (0, 1, 2), squares=True), np.array([0.0, -1.0, -0.5]), np.array([1.5, 2.5, 1.5])
    ),
    "scaled products of lines": ScaledProducts(
        product_lift(3, (0, 1, 2), squares=True, segments=4), np.array([0.0, -1.0, -0.5]), np.array([1.5, 2.5, 1.5])
    ),
    "nystrom": nystrom_lift(drawn_points(3, 20, 5), bandwidth=0.4),
    "nystrom bare": nystrom_lift(drawn_points(3, 9, 5), bandwidth=0.2, keep_linear=False),
}
NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")


@pytest.fixture(params=LIFTS)
def lift(request: pytest.FixtureRequest) -> Lift:
    return LIFTS[request.param]


def test_lifted_rows_lie_in_the_box(lift: Lift) -> None:
    rows = np.vstack([np.random.default_rng(0).uniform(size=(300, 3)), [[0, 0, 0], [1, 1, 1], [0, 1, 0.5]]])
    lifted = lift.apply(rows)
    assert lifted.shape == (len(rows), lift.n_outputs)
    assert (lifted >= lift.support.low).all() and (lifted <= lift.support.high).all()


def test_the_gradient_is_that_of_the_lift(lift: Lift) -> None:
    draw = np.random.default_rng(1)
    rows, slopes = draw.uniform(0.01, 0.99, (200, 3)), draw.normal(size=(200, lift.n_outputs))
    gradient = lift.gradient(rows, slopes)
    for k, step in enumerate(1e-7 * np.eye(3)):
        rise = ((lift.apply(rows + step) - lift.apply(rows - step)) * slopes).sum(axis=1) / 2e-7
        np.testing.assert_allclose(gradient[:, k], rise, atol=1e-4)


def test_beyond_the_sensor_ranges_the_gradient_is_that_of_the_lift_too(lift: Lift) -> None:
    """A reading out of its range, by which shares and slopes are told as well."""
    draw = np.random.default_rng(3)
    rows, slopes = draw.uniform(-2.0, 3.0, (100, 3)), draw.normal(size=(100, lift.n_outputs))
    gradient = lift.gradient(rows, slopes)
    for k, step in enumerate(1e-7 * np.eye(3)):
        rise = ((lift.apply(rows + step) - lift.apply(rows - step)) * slopes).sum(axis=1) / 2e-7
        np.testing.assert_allclose(gradient[:, k], rise, atol=1e-4)


def test_the_ends_of_a_splines_range_have_the_slopes_of_the_lines_that_end_there() -> None:
    lift, slopes = spline_lift(1, 2), np.array([[3.0, 5.0]])
    at = np.array([[-0.01], [0.0], [0.5], [1.0], [1.01]])
    gradient = lift.gradient(at, np.repeat(slopes, 5, axis=0))[:, 0]
    rise = [((lift.apply(row[None] + 1e-3) - lift.apply(row[None])) * slopes).sum() / 1e-3 for row in at[1:3]]
    np.testing.assert_allclose(gradient[1:3], rise)
    assert gradient[3] == gradient[2] and gradient[0] == gradient[4] == 0.0


@pytest.mark.parametrize("norm", NORMS)
def test_no_pair_of_rows_is_stretched_further_than_the_constant_says(lift: Lift, norm: TransportNorm) -> None:
    draw = np.random.default_rng(4)
    rows = draw.uniform(size=(2000, 3))
    moves = draw.normal(size=rows.shape) * 10.0 ** draw.uniform(-6, 0.5, (2000, 1))
    moves[::3] *= np.eye(3)[draw.integers(0, 3, len(moves[::3]))]
    far = vector_norm(lift.apply(rows + moves) - lift.apply(rows), norm)
    assert (far <= lift.lipschitz(norm) * vector_norm(moves, norm) + 1e-12).all()


@pytest.mark.parametrize("norm", NORMS)
def test_no_gradient_is_steeper_than_said(lift: Lift, norm: TransportNorm) -> None:
    draw = np.random.default_rng(5)
    slopes = draw.normal(size=(2000, lift.n_outputs)) * (draw.uniform(size=(2000, lift.n_outputs)) < 0.3)
    gradient = lift.gradient(draw.uniform(size=(2000, 3)), slopes)
    bound = lift.steepness(slopes, norm)
    assert (vector_norm(gradient, DUAL_NORM[norm]) <= bound + 1e-12).all()
    assert (bound <= lift.lipschitz(norm) * vector_norm(slopes, DUAL_NORM[norm]) + 1e-12).all()


def test_products_reach_their_constants() -> None:
    lift = product_lift(2, (0, 1))
    ends = np.array([[1.0, 1.0]]), np.array([[1.0 - 1e-6, 1.0]])
    far = np.abs(lift.apply(ends[0]) - lift.apply(ends[1])).sum()
    assert far == pytest.approx(2e-6, rel=1e-4) and lift.lipschitz("l1") == 2.0


@pytest.mark.parametrize(("chosen", "squares", "fingerprint"), [
    ((2, 0, 1), False, "593240023478d846cf35ef9314ac6f0568b94bd6b92cff77bf0fe6bbf38cb8cc"),
    ((0, 2), True, "87a22f34cfce7699d452b0ca856cdfb99021b793659bd96646b9f00a8bf9ea76"),
], ids=["pairs", "squares"])
def test_products_without_segments_are_what_they_were_before_there_were_any(
    chosen: tuple[int, ...], squares: bool, fingerprint: str
) -> None:
    lift, draw = product_lift(3, chosen, squares=squares), np.random.default_rng(8)
    assert lift == product_lift(3, chosen, squares=squares, segments=1) and lift.fingerprint == fingerprint
    rows, slopes = draw.uniform(-0.2, 1.2, (100, 3)), draw.normal(size=(100, lift.n_outputs))
    away = np.clip(rows, 0.0, 1.0) - 0.5
    products = [0.5 + 2.0 * away[:, i] * away[:, j] for i, j in lift.pairs]
    np.testing.assert_array_equal(lift.apply(rows), np.column_stack([rows, *products]))
    np.testing.assert_array_equal(lift.shares(rows, slopes), lift.gradient(rows, slopes) * (rows - 0.5))
    assert (lift.support.high == 1.0).all() and (lift.support.low == 0.0).all()


def test_products_of_lines_are_the_ramps_and_then_the_products() -> None:
    draw, lift = np.random.default_rng(9), product_lift(3, (0, 2), squares=True, segments=5)
    rows = draw.uniform(-0.2, 1.2, (100, 3))
    ramps, products = spline_lift(3, 5), product_lift(3, (0, 2), squares=True)
    parts = [ramps.apply(rows), products.apply(rows)[:, 3:]]
    np.testing.assert_array_equal(lift.apply(rows), np.hstack(parts))
    assert (lift.n_alone, lift.n_outputs) == (15, 18)
    assert lift.support.high.tolist() == [*ramps.support.high, 1.0, 1.0, 1.0]
    equal = np.hstack([np.repeat(draw.normal(size=(100, 3)), 5, axis=1), draw.normal(size=(100, 3))])
    inside, alone = np.clip(rows, 0.0, 1.0), equal[:, [0, 5, 10, 15, 16, 17]]
    np.testing.assert_allclose(
        lift.gradient(inside, equal), products.gradient(inside, alone), atol=1e-12, err_msg="equal slopes are one line"
    )


def test_shares_of_products_of_lines_are_what_lines_rise_and_products_twice() -> None:
    """A product is told by its slope at the row, so each of its two sensors has the whole of it."""
    draw, lift = np.random.default_rng(10), product_lift(3, (0, 1, 2), squares=True, segments=4)
    rows, slopes = draw.uniform(size=(100, 3)), draw.normal(size=(100, lift.n_outputs))
    risen = (lift.apply(rows) - lift.apply(np.full((1, 3), 0.5))) * slopes
    found = lift.shares(rows, slopes)
    np.testing.assert_allclose(
        found.sum(axis=1), risen[:, :12].sum(axis=1) + 2.0 * risen[:, 12:].sum(axis=1), atol=1e-12
    )
    np.testing.assert_allclose(lift.shares(np.full((1, 3), 0.5), slopes[:1]), 0.0, atol=1e-15)
    lines = slopes * (np.arange(lift.n_outputs) < 12)
    np.testing.assert_allclose(lift.shares(rows, lines), spline_lift(3, 4).shares(rows, slopes[:, :12]), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(("segments", "share"), [(1, 0.55), (3, 0.25)])
def test_no_lead_of_products_is_lost_nearer_than_said(
    segments: int, share: float, scaled: bool, norm: TransportNorm
) -> None:
    draw, products = np.random.default_rng(11), product_lift(3, (0, 1, 2), squares=True, segments=segments)
    low, width = np.array([-2.0, 0.0, 5.0]), np.array([4.0, 0.5, 1.0])
    lift = ScaledProducts(products, low, width) if scaled else products
    line = np.linspace(0.0, 1.0, 41)
    grid = np.stack(np.meshgrid(line, line, line), axis=-1).reshape(-1, 3)
    rows = grid[draw.integers(0, len(grid), 25)]
    if scaled:
        grid, rows = low + width * grid, low + width * rows
    shares = list[float]()
    for slopes in draw.normal(size=(6, 1, lift.n_outputs)):
        heights = lift.apply(grid) @ slopes[0]
        level = float(np.quantile(heights, 0.3))
        lead = lift.apply(rows) @ slopes[0] - level
        least = lift.least_move(slopes, rows, lead[:, None], norm)[:, 0]
        for row, ahead, size in zip(rows, lead, least, strict=True):
            if ahead > 0.0:
                nearest = vector_norm(grid[heights <= level] - row, norm).min()
                assert size <= nearest
                shares.append(size / nearest)
    assert len(shares) > 50 and np.median(shares) > share and max(shares) > 0.4


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("segments", [1, 3])
def test_no_move_out_of_the_ranges_loses_a_lead_of_products_sooner(segments: int, norm: TransportNorm) -> None:
    draw, lift = np.random.default_rng(12), product_lift(4, (0, 1, 3), squares=True, segments=segments)
    rows, slopes = draw.uniform(-0.3, 1.3, size=(40, 4)), draw.normal(size=(3, lift.n_outputs))
    lead = draw.uniform(0.01, 1.0, size=(40, 3))
    least = lift.least_move(slopes, rows, lead, norm)
    moves = draw.normal(size=(2000, 4)) * (draw.uniform(size=(2000, 4)) < 0.6)
    lengths = vector_norm(moves, norm)
    moves = moves[lengths > 0] / lengths[lengths > 0, None]
    for row, ahead, sizes in zip(rows, lead, least, strict=True):
        for slope, one, size in zip(slopes, ahead, sizes, strict=True):
            lost = (lift.apply(row[None]) - lift.apply(row + size * moves)) @ slope
            assert lost.max() <= one * (1.0 + 1e-9)


def test_a_lead_of_products_is_lost_where_it_is_said_as_it_grows_small() -> None:
    draw, lift = np.random.default_rng(13), product_lift(3, (0, 1, 2), squares=True)
    rows, slopes = draw.uniform(0.1, 0.9, size=(20, 3)), draw.normal(size=(1, lift.n_outputs))
    gradient = lift.gradient(rows, np.repeat(slopes, 20, axis=0))
    kept = (np.abs(gradient) >= np.abs(slopes[:, :3])).all(axis=1)
    found = lift.least_move(slopes, rows, np.full((20, 1), 1e-7), "l2")[:, 0]
    np.testing.assert_allclose(found[kept], 1e-7 / vector_norm(gradient[kept], "l2"), rtol=1e-5)
    assert kept.any() and lift.least_move(slopes, rows[:1], np.zeros((1, 1)), "l2") == 0.0
    assert lift.least_move(0.0 * slopes, rows[:1], np.ones((1, 1)), "l1") == np.inf


def test_ramps_sum_to_the_feature_and_are_an_isometry_of_l1() -> None:
    draw, lift = np.random.default_rng(2), spline_lift(4, 7)
    rows, others = draw.uniform(size=(2, 200, 4))
    lifted, further = lift.apply(rows), lift.apply(others)
    np.testing.assert_allclose(lifted.reshape(200, 4, 7).sum(axis=2), rows, atol=1e-15)
    np.testing.assert_allclose(vector_norm(lifted - further, "l1"), vector_norm(rows - others, "l1"), rtol=1e-13)
    outside = lift.apply(np.array([[-3.0, 0.0, 1.0, 9.0]]))
    np.testing.assert_array_equal(outside, lift.apply(np.array([[0.0, 0.0, 1.0, 1.0]])))


def test_weights_of_a_spline_are_slopes_of_its_lines() -> None:
    draw, lift = np.random.default_rng(3), spline_lift(2, 4)
    slopes = draw.normal(size=(1, 8))
    heights, rows = lift.curves(slopes)[0], draw.uniform(size=(100, 2))
    drawn: FloatArray = sum(np.interp(rows[:, j], lift.knots[j], heights[j]) for j in range(2))
    np.testing.assert_allclose(lift.apply(rows) @ slopes[0], drawn, atol=1e-14)
    equal = np.repeat([[2.0, -3.0]], 4, axis=1)
    np.testing.assert_allclose(lift.apply(rows) @ equal[0], rows @ [2.0, -3.0], atol=1e-14)
    shares = lift.shares(rows, np.repeat(slopes, 100, axis=0))
    middle = lift.apply(np.full((1, 2), 0.5)) @ slopes[0]
    np.testing.assert_allclose(shares.sum(axis=1), lift.apply(rows) @ slopes[0] - middle, atol=1e-14)


@pytest.mark.parametrize("norm", NORMS)
def test_a_spline_in_units_of_its_own_is_the_same_in_other_words(norm: TransportNorm) -> None:
    draw, width = np.random.default_rng(6), 8.0
    lift, own = spline_lift(3, 4), spline_between(np.full(3, -5.0), np.full(3, 3.0), 4)
    rows, slopes, lead = draw.uniform(size=(20, 3)), draw.normal(size=(2, 12)), draw.uniform(0, 1, (20, 2))
    np.testing.assert_allclose(own.apply(-5.0 + width * rows), width * lift.apply(rows), atol=1e-12)
    near, far = lift.least_move(slopes, rows, lead, norm), own.least_move(slopes, -5 + width * rows, width * lead, norm)
    np.testing.assert_allclose(far.min(axis=1), width * near.min(axis=1), rtol=1e-3)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("segments", [1, 4])
def test_products_in_units_of_their_own_are_the_same_in_other_words(norm: TransportNorm, segments: int) -> None:
    draw, low, width = np.random.default_rng(7), np.array([-5.0, 2.0, 0.0]), np.array([8.0, 0.25, 1e-2])
    lift = product_lift(3, (0, 1, 2), squares=True, segments=segments)
    own, rows = ScaledProducts(lift, low, width), draw.uniform(size=(500, 3))
    slopes = draw.normal(size=(500, lift.n_outputs))
    given = low + width * rows
    np.testing.assert_allclose(own.apply(given), lift.apply(rows), atol=1e-12)
    np.testing.assert_allclose(own.gradient(given, slopes) * width, lift.gradient(rows, slopes), atol=1e-9)
    np.testing.assert_allclose(own.shares(given, slopes), lift.shares(rows, slopes), atol=1e-9)
    bound = own.steepness(slopes, norm)
    assert (vector_norm(own.gradient(given, slopes), DUAL_NORM[norm]) <= bound * (1.0 + 1e-12)).all()
    alike = ScaledProducts(lift, low, np.full(3, 0.25))
    np.testing.assert_allclose(alike.steepness(slopes, norm), 4.0 * lift.steepness(slopes, norm))
    lead = draw.uniform(size=(20, 2))
    moves = alike.least_move(slopes[:2], low + 0.25 * rows[:20], lead, norm), lift.least_move(
        slopes[:2], rows[:20], lead, norm
    )
    np.testing.assert_allclose(moves[0], 0.25 * moves[1])


def test_nystrom_features_are_the_kernel_on_their_points() -> None:
    points = drawn_points(2, 12, 7)
    found = 2.0 * nystrom_lift(points, bandwidth=0.3, keep_linear=False).apply(points) - 1.0
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    np.testing.assert_allclose(found @ found.T, np.exp(-squares / (2 * 0.3**2)), atol=1e-4)


def test_fingerprints_tell_lifts_apart() -> None:
    lifts = [*LIFTS.values(), spline_lift(3, 6), spline_lift(5, 3), product_lift(3, (0, 1)), product_lift(4, (0, 1, 2)),
             product_lift(3, (0, 1, 2), segments=3), product_lift(3, (0, 1, 2), segments=4),
             nystrom_lift(drawn_points(3, 20, 6), bandwidth=0.4), nystrom_lift(drawn_points(3, 20, 5), bandwidth=0.5)]
    assert len({each.fingerprint for each in lifts}) == len(lifts)
    assert product_lift(3, (0, 1, 2)).fingerprint == LIFTS["products"].fingerprint


def test_a_lead_that_nothing_lowers_is_never_lost_and_no_lead_is_lost_at_once() -> None:
    found = lead_over_steepness(np.array([[3.0, 0.0]]), np.array([[2.0, 2.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(found, [[1.5, 0.0], [np.inf, 0.0]])


def test_the_lesser_of_two_bounds_is_in_the_dual_norm() -> None:
    by_feature, slopes = np.array([[3.0, 4.0], [0.3, 0.4]]), np.array([[1.0, 1.0, 1.0], [1.0, -2.0, 2.0]])
    np.testing.assert_allclose(lesser_steepness(by_feature, slopes, 0.5, "linf"), [1.5, 0.7])
    np.testing.assert_allclose(lesser_steepness(by_feature, slopes, 0.5, "l2"), [np.sqrt(3) / 2, 0.5])


def test_shares_of_a_kernel_are_counted_from_the_middle_of_the_ranges() -> None:
    rows = np.array([[0.5, 0.5, 0.5], [0.1, 0.9, 0.4]])
    for kernel in (LIFTS["fourier"], nystrom_lift(drawn_points(3, 20, 5), bandwidth=0.5)):
        slopes = np.random.default_rng(2).normal(size=(2, kernel.n_outputs))
        wanted = kernel.gradient(rows, slopes) * np.array([[0.0, 0.0, 0.0], [-0.4, 0.4, -0.1]])
        np.testing.assert_allclose(kernel.shares(rows, slopes), wanted, atol=1e-14)


def test_refusals() -> None:
    check_size(LARGEST)
    check_slopes(np.zeros((2, 15)), 15)
    for length in (14, 16):
        with pytest.raises(ProblemError, match=f"slopes must have length 15, got {length}"):
            check_slopes(np.zeros((2, length)), 15)
    for n_features, segments in ((3, 0), (0, 3)):
        with pytest.raises(ProblemError, match=f"one feature and one segment, got {n_features} and {segments}"):
            spline_lift(n_features, segments)
    assert nystrom_lift(drawn_points(2, 1024, 0), bandwidth=1.0).n_components == 1024
    with pytest.raises(ProblemError, match="a Nystrom lift has 1024 points at most, got 1025"):
        nystrom_lift(drawn_points(2, 1025, 0), bandwidth=1.0)
    with pytest.raises(ProblemError, match="the lift makes 6400 features, 4096 at most"):
        spline_lift(100, 64)
    with pytest.raises(ProblemError, match="none with number 3"):
        product_lift(3, (0, 3))
    with pytest.raises(ProblemError, match="chosen twice"):
        product_lift(3, (0, 0))
    with pytest.raises(ProblemError, match="two chosen features"):
        product_lift(3, (0,))
    with pytest.raises(ProblemError, match="one segment at least, got 0"):
        product_lift(3, (0, 1), segments=0)
    with pytest.raises(ProblemError, match="the lift makes 6401 features, 4096 at most"):
        product_lift(100, (0, 1), segments=64)
    with pytest.raises(ProblemError, match="between 0 and 1"):
        nystrom_lift(np.array([[0.5, 1.5]]), bandwidth=1.0)
    with pytest.raises(ProblemError, match="bandwidth"):
        nystrom_lift(np.array([[0.5, 0.5]]), bandwidth=0.0)
    for lift in LIFTS.values():
        for shape in ((2, 2), (2, 4), (3,)):
            with pytest.raises(ProblemError, match=r"takes features \(n, 3\)"):
                lift.apply(np.zeros(shape))
    with pytest.raises(ProblemError, match="slopes must have length 15, got 4"):
        spline_lift(3, 5).steepness(np.zeros((2, 4)), "l2")


@pytest.mark.parametrize("norm", NORMS)
def test_the_risk_of_lifted_rows_bounds_that_of_moved_rows(norm: TransportNorm) -> None:
    draw, lift, radius = np.random.default_rng(7), spline_lift(2, 4), 0.05
    rows, labels = draw.uniform(size=(25, 2)), np.where(draw.uniform(size=25) < 0.5, 1.0, -1.0)
    weights = np.append(2.0 * draw.normal(size=8), 0.1)
    site = SiteProblem(lift.apply(rows), labels, RobustSpec(radius, math.inf, norm))
    bound, worst = site_risk(weights, site).value, 0.0
    for _ in range(400):  # distributions in the ball of the readings: rows moved by the radius on the average
        shares = draw.dirichlet(np.full(25, 0.2)) * 25 * radius
        signs = -np.sign(labels)[:, None] * np.sign(lift.gradient(rows, np.tile(weights[:-1], (25, 1))))
        moves = signs * draw.dirichlet(np.full(2, 0.3), 25) + 1e-12
        moves *= (shares / vector_norm(moves, norm))[:, None]
        losses = 1.0 - labels * (lift.apply(np.clip(rows + moves, 0, 1)) @ weights[:-1] + weights[-1])
        worst = max(worst, float(np.maximum(losses, 0.0).mean()))
    plain = float(np.maximum(1.0 - labels * (lift.apply(rows) @ weights[:-1] + weights[-1]), 0.0).mean())
    assert plain < worst <= bound
    if norm == "l1":  # an isometry: no wild bound. With the others ramps of one sensor move together in the ball
        assert worst - plain > 0.4 * (bound - plain)


def test_products_of_other_ranges_have_another_fingerprint() -> None:
    lift, low, width = product_lift(2, (0, 1)), np.zeros(2), np.ones(2)
    ranges = ((low, width), (low, 2.0 * width), (width, width))
    lifts = [ScaledProducts(lift, *ends) for ends in ranges]
    assert len({each.fingerprint for each in lifts}) == 3
    assert ScaledProducts(product_lift(2, (1, 0)), low.copy(), width.copy()).fingerprint == lifts[0].fingerprint
