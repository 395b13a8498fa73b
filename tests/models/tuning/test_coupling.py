"""The coupling of planes: its optimum and bound against a solver, and what it gives a class between others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from models.losses.joint import Softmax
from models.problem import RobustSpec, SiteProblem
from models.tuning.budget import Budget, OneTraining
from models.tuning.coupling import EXCHANGES, POINTS, RIDGE, Coupler, Told, coupled_planes, coupling_cost
from models.worst_case.joint_risk import joint_weights
from models.worst_case.risk import site_cut


def scored(seed: int, n_classes: int, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Scores (N, K) of planes that are badly sized beside one another, and classes (N,)."""
    random = np.random.default_rng(seed)
    classes = random.integers(n_classes, size=count)
    mixed = np.eye(n_classes) * random.uniform(0.3, 2.0, n_classes) + 0.3 * random.normal(size=(n_classes, n_classes))
    scores = 1.5 * (classes[:, None] == np.arange(n_classes)) + random.normal(size=(count, n_classes))
    return scores @ mixed + random.normal(size=n_classes), classes


def objective(coupling: np.ndarray, scores: np.ndarray, classes: np.ndarray) -> float:
    k = scores.shape[1]
    found = coupling.reshape(k, k + 1)
    new = scores @ found[:, :-1].T + found[:, -1]
    loss = np.log(np.exp(new - new.max(axis=1, keepdims=True)).sum(axis=1)) + new.max(axis=1)
    away = found - np.eye(k, k + 1)
    return float((loss - new[np.arange(len(classes)), classes]).mean() + RIDGE / 2 * (away**2).sum())


def optimum(scores: np.ndarray, classes: np.ndarray) -> float:
    k = scores.shape[1]
    found = minimize(objective, np.eye(k, k + 1).ravel(), (scores, classes), "BFGS", options={"gtol": 1e-8})
    return float(found.fun)


def coupled(coupler: Coupler, scores: np.ndarray, classes: np.ndarray) -> list[int]:
    """Asks as a run does; how many points each exchange had."""
    spec, asked = RobustSpec(0.0, 1.0, loss=Softmax(scores.shape[1])), []
    problem = SiteProblem(scores, classes.astype(float), spec)
    while points := coupler.points():
        cuts = [site_cut(point[0], problem) for point in points]
        coupler.tell([Told(cut.risk, cut.height, cut.slope) for cut in cuts])
        asked.append(len(points))
    return asked


@pytest.mark.parametrize(("seed", "n_classes"), [(1, 3), (2, 3), (3, 4), (4, 5)])
def test_a_coupling_is_near_its_optimum_and_its_bound_is_below_it(seed: int, n_classes: int) -> None:
    scores, classes = scored(seed, n_classes)
    coupler, wanted = Coupler(n_classes), optimum(scores, classes)
    asked = coupled(coupler, scores, classes)
    assert asked[0] == 1 and set(asked[1:]) == {POINTS} and len(asked) == coupler.exchanges <= EXCHANGES
    assert coupler.first == pytest.approx(objective(np.eye(n_classes, n_classes + 1).ravel(), scores, classes))
    assert coupler.objective == pytest.approx(objective(coupler.best.ravel(), scores, classes))
    assert coupler.at_least <= wanted + 1e-9 <= coupler.objective + 2e-9
    assert coupler.objective <= 1.02 * wanted < 0.95 * coupler.first
    assert coupler.exchanges == EXCHANGES or coupler.objective - coupler.at_least <= 1e-2 * coupler.objective


def test_every_answer_bounds_the_optimum_also_where_it_is_less_than_exact() -> None:
    scores, classes = scored(5, 3)
    problem = SiteProblem(scores, classes.astype(float), RobustSpec(0.0, 1.0, loss=Softmax(3)))
    wanted = optimum(scores, classes)
    for less in (0.0, 0.05):
        coupler = Coupler(3, most=6)
        while points := coupler.points():
            cuts = [site_cut(point[0], problem) for point in points]
            coupler.tell([Told(cut.risk, cut.height - less, cut.slope) for cut in cuts])
            assert coupler.at_least <= wanted - less + 1e-9
        assert coupler.at_least > 0.5 * wanted


def test_a_class_between_others_is_found_by_the_coupling_alone() -> None:
    """Planes against the rest whose middle one is flat, as it is best: it wins where both others say no."""
    heat = np.linspace(0.0, 1.0, 301)
    classes = np.digitize(heat, [1 / 3, 2 / 3])
    planes = np.array([[-6.0, 2.0], [0.0, -0.7], [6.0, -4.0]])
    scores = heat[:, None] @ planes[:, :1].T + planes[:, 1]
    coupler = Coupler(3)
    coupled(coupler, scores, classes)
    found = coupled_planes(planes, coupler.best)
    new = heat[:, None] @ found[:, :1].T + found[:, 1]
    assert new == pytest.approx(scores @ coupler.best[:, :-1].T + coupler.best[:, -1])
    assert (scores.argmax(axis=1) == classes).mean() < 0.9 < 0.98 < (new.argmax(axis=1) == classes).mean()


def test_scores_that_part_the_rows_do_not_grow_for_ever() -> None:
    classes = np.arange(90) % 3
    coupler = Coupler(3)
    coupled(coupler, 4.0 * np.eye(3)[classes], classes)
    assert coupler.exchanges < EXCHANGES and np.abs(coupler.best).max() < 5.0


def test_a_coupling_is_kept_out_of_the_budget_of_the_tuning_before_it() -> None:
    cost = coupling_cost(3, 20, 36)
    assert (cost.rounds, cost.numbers) == (12, 12.0 * (3 * 21 + POINTS * (2 * 8 + 3)))
    assert coupling_cost(3, 20, 9).rounds == 3
    budget = Budget(OneTraining(12, 1000.0), 3.0, kept=cost)
    assert (budget.rounds_left, budget.numbers_left) == (24, 3000.0 - cost.numbers)


def test_the_first_steps_go_down_the_gradient_by_stated_lengths() -> None:
    """Nothing is known of curvature yet: lengths 1, 0.3 and 2.5 in the direction of steepest descent."""
    scores, classes = scored(6, 3)
    coupler = Coupler(3, most=2)
    site = SiteProblem(scores, classes.astype(float), RobustSpec(0.0, 1.0, loss=Softmax(3)))
    (start,) = coupler.points()
    cut = site_cut(start[0], site)
    coupler.tell([Told(cut.risk, cut.height, cut.slope)])
    at, small = np.eye(3, 4).ravel(), 1e-6 * np.eye(12)
    slope = np.array([
        (objective(at + each, scores, classes) - objective(at - each, scores, classes)) / 2e-6 for each in small
    ]).reshape(3, 4)
    down = -slope / np.linalg.norm(slope)
    relative = (down - down[0])[1:]  # points are counted from the first class
    zero = np.vstack([start[0][:6].reshape(2, 3).T, start[0][6:]]).T
    for point, length in zip(coupler.points(), (1.0, 0.3, 2.5), strict=True):
        moved = np.vstack([point[0][:6].reshape(2, 3).T, point[0][6:]]).T - zero
        assert moved == pytest.approx(length * relative, abs=1e-6)


def test_after_an_exchange_in_vain_steps_are_a_quarter() -> None:
    """Steeper where it went: that says nothing of curvature, so the direction stays."""
    coupler, slope = Coupler(3), np.arange(8.0) - 3.0
    (start,) = coupler.points()
    coupler.tell([Told(1.0, 0.0, slope)])
    before = [np.linalg.norm(point - start) for point in coupler.points()]
    coupler.tell([Told(2.0, 0.0, 2.0 * slope)] * POINTS)
    assert coupler.objective == 1.0 and coupler.exchanges == 2
    after = [np.linalg.norm(point - start) for point in coupler.points()]
    assert before == pytest.approx([before[0], 0.3 * before[0], 2.5 * before[0]])
    assert after == pytest.approx([0.25 * each for each in before])


def test_what_a_coupling_may_be_is_as_the_limits_say() -> None:
    """Twelve exchanges of three points, mu = 0.01: the README and the version's words state them."""
    assert (EXCHANGES, POINTS, RIDGE) == (12, 3, 1e-2)
    assert coupling_cost(3, 20, 60).rounds == 12


def test_where_the_loss_is_linear_the_first_bound_is_the_optimum() -> None:
    """So that no bound of a coupling could be higher: the ridge alone bends the objective."""
    k, draw = 3, np.random.default_rng(6)
    slope = 0.02 * draw.normal(size=(k - 1, k + 1))
    start = np.hstack([np.eye(k), np.zeros((k, 1))])

    def told(point: np.ndarray) -> Told:
        loss = 1.0 + float((slope * (point[1:] - point[0] - start[1:] + start[0])).sum())
        return Told(loss, loss, joint_weights(np.vstack([np.zeros(k + 1), slope]), True))

    # In all K planes the slope of the first is minus the sum of the others'.
    whole = np.vstack([-slope.sum(axis=0), slope])
    best = start - whole / RIDGE
    least = told(best).loss + RIDGE / 2 * float(((best - start) ** 2).sum())
    coupler = Coupler(k)
    assert len(coupler.points()) == 1
    coupler.tell([told(start)])
    assert coupler.first == 1.0 and coupler.at_least == pytest.approx(least) and least > 0.2
