"""Bounds on a polytope are moved apart by what the rounding of their sums may have done, all terms counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem
from tests.models.worst_case.test_polytope import as_box, bounds_hold, unit_polytope

cp = pytest.importorskip("cvxpy", reason="polytopes need the extra 'reference'")

from models.geometry.norms import dual_norm  # noqa: E402
from models.reference.pieces import pieces, walls  # noqa: E402
from models.reference.polytope import _Program, solve_polytope  # noqa: E402
from models.reference.polytope_atoms import Atoms, PolytopeBall  # noqa: E402
from models.worst_case.risk import site_risk  # noqa: E402

EPS = 2.0**-52
WEIGHTS, INTERCEPT = np.array([3.0, -4.0]), 0.5


def site(loss: str, radius: float = 0.25, cost: float = 0.5) -> SiteProblem:
    """Four rows whose sums are exact in binary."""
    x = np.array([[0.25, 0.5], [0.75, 0.125], [0.5, 0.875], [0.125, 0.25]])
    judged = get_loss(loss)
    y = np.array([1.0, -0.5, 0.75, -1.5]) if judged.task == "regression" else np.array([1.0, -1.0, 1.0, -1.0])
    support = unit_polytope(2, targets=judged.task == "regression")
    return SiteProblem(x, y, RobustSpec(radius, cost, "l2", support, loss=judged))


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_the_lower_bound_is_below_the_loss_of_its_atoms_by_the_rounding_of_every_term(loss: str) -> None:
    problem = site(loss)
    parts, place = pieces(problem)[0], walls(problem)
    ball = PolytopeBall(problem, place, parts)
    masses = np.array([0.5, 0.25, 0.5, 0.25])
    # Flips, which cost something, would be cut to the radius.
    still = [Atoms(0.0 * masses if p.cost else masses, np.zeros((4, 2)), np.zeros(4)) for p in parts]
    value, slope, along = ball.cut(still, WEIGHTS, INTERCEPT)
    scores = problem.features @ WEIGHTS + INTERCEPT
    lost = sum(float(part.mass @ (p.coefficient * scores + p.height)) for p, part in zip(parts, still, strict=True))
    sizes = np.abs(problem.features) @ np.abs(WEIGHTS) + INTERCEPT
    size = sum(
        float(part.mass @ (np.abs(p.coefficient) * sizes + np.abs(p.height)))
        for p, part in zip(parts, still, strict=True)
    )
    assert lost / 4 - value == pytest.approx(16 * EPS * size / 4, rel=0.05, abs=0.0)
    shares = np.sum([p.coefficient * part.mass for p, part in zip(parts, still, strict=True)], axis=0) / 4
    assert slope == pytest.approx(shares @ problem.features) and along == pytest.approx(float(shares.sum()))


def test_what_moves_counts_in_the_rounding_too() -> None:
    """Rows at 0 with targets 0, of which nothing but what moves is left: features, then targets."""
    given = site("pinball", radius=10.0, cost=0.01)
    problem = SiteProblem(np.zeros((4, 2)), np.zeros(4), given.spec)
    parts = pieces(problem)[0]
    ball = PolytopeBall(problem, walls(problem), parts)
    for move, target in ((0.125, 0.0), (0.0, 0.125)):
        atoms = [Atoms(np.ones(4) / 2, np.full((4, 2), move / 2), np.full(4, target / 2)) for _ in parts]
        value, inside = ball.cut(atoms, WEIGHTS, 0.0)[0], ball.brought_inside(atoms)
        lost = [part.move @ WEIGHTS - part.target_move for part in inside]
        sizes = [np.abs(part.move) @ np.abs(WEIGHTS) + np.abs(part.target_move) for part in inside]
        exact, size = (
            sum(float(turn(piece.coefficient) @ each) for piece, each in zip(parts, terms, strict=True)) / 4
            for turn, terms in ((np.asarray, lost), (np.abs, sizes))
        )
        assert exact - value == pytest.approx(16 * EPS * size, rel=0.05, abs=0.0)


@pytest.mark.parametrize("loss", ["hinge", "pinball"])
def test_the_upper_bound_is_above_its_multipliers_by_the_rounding_of_every_term(loss: str) -> None:
    """Multipliers of walls 0, as a solver may leave them: the price is what the whole norm costs."""
    problem = site(loss)
    program = _Program(problem)
    for phi in program.phis:
        phi.value = np.zeros(phi.shape)
    program.model.multiplier.variables()[0].value = 0.0
    upper, price = program._upper(WEIGHTS, INTERCEPT)
    steepest = dual_norm(WEIGHTS, "l2")
    if loss == "hinge":
        assert 4 * EPS * steepest < price - steepest < 64 * EPS * steepest
    scores, heights, size = problem.features @ WEIGHTS + INTERCEPT, np.full(4, -np.inf), 0.25 * price
    if program.constant is not None:
        heights[:] = program.constant
    for piece, found in zip(program.pieces, program.phis, strict=True):
        gain = (program._feasible(found.value, piece, 0.0) * program.ball.clearance).sum(axis=1)
        heights = np.maximum(heights, piece.coefficient * scores + piece.height + gain - piece.cost * price)
        size += float(np.mean(np.abs(piece.coefficient * scores) + np.abs(piece.height) + gain + piece.cost * price))
    assert upper - (0.25 * price + heights.mean()) == pytest.approx(16 * EPS * size, rel=0.06, abs=0.0)


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rows_whose_loss_is_0_at_most_planes_are_known_to_lose_nothing_less(loss: str) -> None:
    """Rows far on the right side, or within epsilon: the constant piece is what most of them are on."""
    problem = site(loss, radius=0.01)
    weights = np.array([0.0, 0.0, 0.0])
    if loss == "hinge":
        problem = SiteProblem(problem.features, np.array([1.0, 1.0, 1.0, -1.0]), problem.spec)
        weights = np.array([1.0, 2.0, 5.0])
    found = solve_polytope(weights[:2], float(weights[2]), problem)
    exact = site_risk(weights, as_box(problem)).value
    assert found is not None and found.lower <= exact <= found.upper <= found.lower + 1e-8
    assert bounds_hold(problem, weights, np.random.default_rng(0)) <= 1e-7


def test_a_row_that_sticks_out_by_rounding_has_no_room_and_no_debt() -> None:
    place = walls(site("hinge"))
    clearance = place.clearance(np.array([[1.0 + 1e-13, 0.5], [-1e-13, 1.0]]), np.zeros(2))
    assert clearance.min() == 0.0
    assert clearance.sum(axis=1) == pytest.approx([2.0, 2.0])


def test_small_targets_are_no_rounding() -> None:
    """A billionth of the polytope's depth is a target as any other."""
    given = site("pinball", radius=0.0)
    small = replace(given, labels=1e-9 * np.sign(given.labels))
    found = solve_polytope(np.zeros(2), 0.0, small)
    assert found is not None
    assert 0.99 * 0.5e-9 <= found.lower <= 0.5e-9 <= found.upper <= 1.01 * 0.5e-9
