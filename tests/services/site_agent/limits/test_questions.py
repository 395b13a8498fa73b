"""Questions without an honest purpose are told from honest ones; the floor is a floor."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.geometry.supports import BoxSupport
from models.losses.base import Loss
from models.losses.catalogue import get_loss
from models.losses.joint import CrammerSinger
from models.losses.regression import EpsilonInsensitive, Huber, Pinball
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk
from services.site_agent.limits.questions import (
    _QUESTIONS_KEPT,
    Heads,
    Questions,
    _changes,
    check_steepness,
    check_sums,
    risk_floor,
)
from services.site_agent.rules.policy import Refusal

RUN = "c" * 32


def problem(loss: str = "hinge", seed: int = 0, **changes: Any) -> SiteProblem:
    rng = np.random.default_rng(seed)
    x, of_loss = rng.uniform(size=(40, 3)), get_loss(loss)  # type: ignore[arg-type]  # a name of the catalogue
    score = x @ rng.normal(size=3)
    labels = np.where(score > np.median(score), 1.0, -1.0) if of_loss.task == "classification" else score
    spec: dict[str, Any] = {"radius": 0.1, "label_flip_cost": 1.0, "loss": of_loss}
    return SiteProblem(x, labels, RobustSpec(**(spec | changes)))


def heads(*problems: SiteProblem) -> Heads:
    return Heads(problems)


def box() -> BoxSupport:
    return BoxSupport(np.zeros(3), np.ones(3), -5.0, 5.0)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(
    ("loss", "boxed"),
    [("hinge", False), ("logistic", False), ("huber", False), ("hinge", True), ("pinball", True),
     ("epsilon_insensitive", True)],
)
def test_the_risk_is_never_below_its_floor(loss: str, boxed: bool, norm: Any) -> None:
    rng, tightest = np.random.default_rng(1), np.inf
    for seed in range(6):
        for radius, cost in ((0.02, 0.5), (0.5, 3.0), (2.0, np.inf)):
            site = problem(loss, seed, radius=radius, label_flip_cost=cost, transport_norm=norm,
                           support=box() if boxed else None)
            for size in (0.1, 3.0, 1e4):
                w = size * rng.normal(size=4)
                floor, risk = risk_floor(w, site), site_risk(w, site).value
                assert 0 <= floor <= risk * (1 + 1e-9)
                assert floor > 0 or size < 1.0
                tightest = min(tightest, risk / floor if floor > 0 else np.inf)
    assert tightest < 20, "a floor that is far below says nothing"


def test_weights_steeper_than_an_optimum_can_be_are_refused() -> None:
    site = problem()
    honest, steep = np.array([[3.0, 4.0, 0.0, 1.0]]), np.array([[30.0, 40.0, 0.0, 1.0]])
    check_steepness(honest, heads(site), 1.0)
    check_steepness(steep, heads(site), 5.0)
    with pytest.raises(Refusal, match="a robust optimum is not that steep") as caught:
        check_steepness(steep, heads(site), 4.99)
    assert caught.value.refusal_code == "question_refused"
    with pytest.raises(Refusal, match="head 1"):
        check_steepness(np.vstack([honest, steep]), heads(site, site), 2.0)
    check_steepness(1e9 * steep, heads(problem(radius=0.0)), 1.0)


def message(point: np.ndarray, **scalars: float) -> dict[str, np.ndarray]:
    return {"point": point, **{name: np.array([value]) for name, value in scalars.items()}}


def test_a_question_next_to_an_earlier_one_is_refused_a_repeat_is_not() -> None:
    site, asked = problem(), Questions()
    start, other = np.array([[1.0, 0.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0, 0.5]])
    near = start + np.array([[0.0, 0.0, 0.0, 1e-9]])
    asked.check_nearness(RUN, message(start), heads(site), 1e-7)
    for point, risk in ((start, 1.0), (other, 0.4)):
        asked.note(RUN, message(point), np.array([risk]))
    asked.check_nearness(RUN, message(start), heads(site), 1e-7)
    asked.check_nearness(RUN, message(start + 1e-6), heads(site), 1e-7)
    asked.check_nearness("d" * 32, message(near), heads(site), 1e-7)
    asked.check_nearness(RUN, message(near, penalty=2.0), heads(site), 1e-7)
    asked.check_nearness(RUN, message(near), heads(site), 0.0)
    with pytest.raises(Refusal, match="nearer to an earlier one") as caught:
        asked.check_nearness(RUN, message(near), heads(site), 1e-7)
    assert caught.value.refusal_code == "question_refused"


def test_how_near_is_too_near_goes_by_what_a_run_has_come_down_and_not_by_how_high_it_is() -> None:
    """Else a plant whose risks are large, and hardly differ any more, would refuse the last steps of an honest run."""
    site, asked = heads(problem()), Questions()
    start = np.array([[1.0, 0.0, 0.0, 0.0]])
    for place in (0.0, 1.0):
        asked.note(RUN, message(start + place), np.array([100.0]))
    asked.check_nearness(RUN, message(start + np.array([[0.0, 0.0, 0.0, 0.01]])), site, 1e-2)
    with pytest.raises(Refusal, match="nearer to an earlier one"):
        asked.check_nearness(RUN, message(start + np.array([[0.0, 0.0, 0.0, 1e-6]])), site, 1e-2)


def test_what_a_run_has_come_down_is_of_all_its_heads() -> None:
    both, asked = heads(problem(), problem(seed=1)), Questions()
    start = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    for place, risks in ((0.0, (1.0, 5.0)), (1.0, (1.0, 0.5))):
        asked.note(RUN, message(start + place), np.array(risks))
    with pytest.raises(Refusal, match="nearer to an earlier one"):
        asked.check_nearness(RUN, message(start + np.array([0.0, 0.0, 0.0, 0.01])), both, 1e-2)


@pytest.mark.parametrize("few", [1.0, -1.0])
def test_a_floor_in_a_box_knows_whichever_class_is_rare(few: float) -> None:
    site = problem(radius=2.0, support=box())
    labels = np.full(40, -few)
    labels[0] = few
    rare = SiteProblem(site.features, labels, site.spec)
    w = np.array([1e3, 0.0, 0.0, 0.0])
    assert 0 < risk_floor(w, rare) <= risk_floor(w, site) / 8, "1 of 40 rows, and 20 of 40"


def test_on_sums_a_risk_may_be_twice_its_largest_score_and_no_number_is_not_small() -> None:
    site = heads(problem())
    for intercept, fits in ((1e5, True), (1.6e5, False), (np.nan, False), (np.inf, False)):
        weights = np.array([[0.0, 0.0, 0.0, intercept]])
        if fits:
            check_sums([weights], site)
            continue
        with pytest.raises(Refusal, match="are possible there"):
            check_sums([weights], site)


def test_a_new_question_is_held_to_the_latest_ones_of_the_runs_that_asked_last() -> None:
    site = heads(problem())
    asked, first, near = Questions(kept=2), np.full((1, 4), 0.3), np.full((1, 4), 0.3 + 1e-9)

    def ask(run: str, point: np.ndarray) -> bool:
        try:
            asked.check_nearness(run, {"point": point}, site, 1e-4, hidden=True)
        except Refusal:
            return False
        asked.note(run, {"point": point}, np.zeros(1))
        return True

    assert ask("a", first) and ask("b", first) and not ask("a", near)
    assert ask("a", first + 1.0) and ask("c", first)
    assert not ask("a", near) and not ask("c", near) and ask("b", near), "of the one before nothing is known"
    assert all(ask("b", first + 1.0 + k) for k in range(_QUESTIONS_KEPT - 1)) and not ask("b", first)
    assert ask("b", first - 1.0) and ask("b", first), "so many questions later it is no longer held to it"


def test_one_head_that_goes_on_excuses_the_others() -> None:
    site, asked = problem(), Questions()
    start = np.zeros((2, 4))
    asked.note(RUN, message(start), np.array([1.0, 1.0]))
    small = start.copy()
    small[0, 0] = 1e-12
    moved = small.copy()
    moved[1, 0] = 0.5
    asked.check_nearness(RUN, message(moved), heads(site, site), 1e-7)
    with pytest.raises(Refusal):
        asked.check_nearness(RUN, message(small), heads(site, site), 1e-7)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_of_several_heads_change_what_each_of_them_changes_by_itself(norm: Any, fit_intercept: bool) -> None:
    random = np.random.default_rng(11)
    sites = [problem(seed=seed, transport_norm=norm, fit_intercept=fit_intercept) for seed in (1, 2)]
    steps = random.normal(size=(9, 2, sites[0].dimension))
    steps[3], steps[5, 1], steps[7, 0] = 0.0, 0.0, 1e-9 * steps[7, 0]
    found = _changes(steps, sites)
    for step, change in zip(steps, found, strict=True):
        alone = [float(_changes(row[None, None], (site,))[0]) for row, site in zip(step, sites, strict=True)]
        assert change == pytest.approx(sum(alone))
        at = random.normal(size=step.shape)
        moved = [site_risk(w + d, of).value - site_risk(w, of).value for w, d, of in zip(at, step, sites, strict=True)]
        assert sum(map(abs, moved)) <= change + 1e-9
    assert found[3] == 0.0 and (np.delete(found, 3) > 0).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("cost", [0.5, np.inf])
def test_all_classes_as_one_problem_have_a_floor_and_a_largest_change_that_hold(norm: Any, cost: float) -> None:
    random = np.random.default_rng(7)
    for _ in range(30):
        features, labels = random.uniform(size=(12, 3)), random.integers(3, size=12).astype(float)
        site = SiteProblem(features, labels, RobustSpec(0.1, cost, norm, loss=CrammerSinger(3)))
        at, step = random.normal(size=(2, site.dimension)) * np.array([[3.0], [random.choice([0.01, 1.0])]])
        risk, moved = site_risk(at, site).value, site_risk(at + step, site).value
        assert 0 < risk_floor(at, site) <= risk + 1e-9
        assert abs(moved - risk) <= float(_changes(step[None, None], (site,))[0]) + 1e-9
    assert heads(site).at_zero == pytest.approx([site_risk(np.zeros(site.dimension), site).value])
    with pytest.raises(Refusal, match="not that steep"):
        check_steepness(1e4 * at[None], heads(site), 10.0)


@pytest.mark.parametrize(
    ("loss", "largest"), [(Huber(1.0), 0.5), (Pinball(0.9), 0.9), (Pinball(0.1), 0.9), (EpsilonInsensitive(0.1), 0.9)]
)
def test_of_targets_what_is_steep_goes_by_the_largest_there_may_be_however_small_a_sites_own_are(
    loss: Loss, largest: float
) -> None:
    """A site whose targets are all next to 0 is asked at weights that others need."""
    site = problem("huber", radius=0.1, label_flip_cost=np.inf)
    small = SiteProblem(site.features, 1e-3 * site.labels, replace(site.spec, loss=loss))
    assert float(heads(small).at_zero[0]) < 0.01
    unit = np.array([[1.0, 0.0, 0.0, 0.0]])
    most = 10.0 * 2.0 ** np.ceil(np.log2(largest)) / risk_floor(unit[0], small)
    check_steepness(0.99 * most * unit, heads(small), 10.0)
    with pytest.raises(Refusal, match="not that steep"):
        check_steepness(1.01 * most * unit, heads(small), 10.0)


@pytest.mark.parametrize("intercept_alone", [True, False])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "huber"])
def test_no_risk_changes_by_more_than_a_step_is_said_to_change_it(loss: str, intercept_alone: bool) -> None:
    """A step of the intercept moves every row alike, and counts as much as it is long."""
    rng, tightest = np.random.default_rng(9), 0.0
    for seed in range(8):
        site = problem(loss, seed, radius=0.05)
        weights, step = 0.3 * rng.normal(size=4), 0.2 * rng.normal(size=4)
        step[:3] *= not intercept_alone
        most = float(_changes(step[np.newaxis, np.newaxis], (site,))[0])
        moved = abs(site_risk(weights + step, site).value - site_risk(weights, site).value)
        assert moved <= most * (1 + 1e-9)
        tightest = max(tightest, moved / most)
    assert tightest > 0.05


def test_a_refusal_is_the_same_whatever_the_rows_and_on_sums_whatever_the_risks() -> None:
    """Else halving the step would give the largest reading along it, which is one row's, under no mask."""
    start, along = np.zeros((1, 4)), np.array([[0.3, -1.0, 0.2, 0.1]])
    verdicts = set()
    for seed, scale in ((0, 1.0), (1, 0.2), (2, 0.01)):
        site, asked = problem(seed=seed), Questions()
        rows = SiteProblem(scale * site.features, site.labels, site.spec)
        asked.note(RUN, message(start), np.array([1.0]))
        asked.note(RUN, message(start + 1.0), np.array([7.0 * scale]))
        verdicts.add(tuple(
            refuses(asked, start + size * along, rows) for size in np.geomspace(1e-12, 1e-8, 200)
        ))
    (verdict,) = verdicts
    assert any(verdict) and not all(verdict)


def refuses(asked: Questions, point: np.ndarray, site: SiteProblem) -> bool:
    try:
        asked.check_nearness(RUN, message(point), heads(site), 1e-7, hidden=True)
    except Refusal:
        return True
    return False


def test_how_steep_is_too_steep_tells_a_power_of_two_of_the_rows() -> None:
    """The risk of zero weights of a target, and the share of a class on a box, to no digit more."""
    for loss, boxed in (("huber", False), ("hinge", True)):
        steps = []
        for seed in range(8):
            site = problem(loss, 0, support=box() if boxed else None, radius=0.5, label_flip_cost=np.inf)
            count = 5 + seed % 4
            labels = np.where(np.arange(40) < count, 1.0, -1.0) if boxed else site.labels / (1.0 + seed / 8)
            site = SiteProblem(site.features, labels, site.spec)
            held, sizes = heads(site), np.geomspace(1e-3, 1e4, 2000)
            steps.append(sum(not too_steep(size * np.array([[1.0, 1.0, 1.0, 0.0]]), held) for size in sizes))
        assert 0 < min(steps) and max(steps) < 2000
        assert len(set(steps)) <= 3, "halving would find the rows' own number"


def too_steep(weights: np.ndarray, held: Heads) -> bool:
    try:
        check_steepness(weights, held, 3.0)
    except Refusal:
        return True
    return False


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("walls", [None, (-0.4, 0.7)])
def test_a_step_changes_a_risk_by_what_it_changes_the_score_of_the_worst_row(norm: Any, walls: Any) -> None:
    """Of any rows in the box, whose corners are the worst ones, and of what moving them adds: no more, and no less."""
    random = np.random.default_rng(3)
    low, high = walls or (0.0, 1.0)
    corners = np.array(list(itertools.product((low, high), repeat=3)))
    around = None if walls is None else BoxSupport(np.full(3, low), np.full(3, high), -5.0, 5.0)
    steps = random.normal(size=(20, 1, 4))
    site = problem(transport_norm=norm, radius=0.3)
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]
    expected = [
        np.abs(corners @ step[:3] + step[3]).max() + 0.3 * np.linalg.norm(step[:3], ord=order) for step in steps[:, 0]
    ]
    np.testing.assert_allclose(_changes(steps, [site], around), expected, rtol=1e-12)
