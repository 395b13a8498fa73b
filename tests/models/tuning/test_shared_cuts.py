"""What is known of the risks: on a box, too, no cut is above a risk and each is the risk at its own point."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import without_needless_digits
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.tuning.candidates import Candidate
from models.tuning.shared_cuts import DIGITS, SharedCuts
from models.tuning.terms import TuningTerms
from models.worst_case.risk import site_cut, site_risk

CANDIDATE = Candidate(3.0, 2.0)
RADII = (0.02, 0.05)


def on_a_box(seed: int, intercept: bool) -> dict[str, SiteProblem]:
    draw, found = np.random.default_rng(seed), {}
    for number, radius in enumerate(RADII):
        features = draw.uniform(0.0, 1.0, (30, 3))
        labels = np.where(features[:, 0] + 0.4 * draw.normal(size=30) > 0.5, 1.0, -1.0)
        spec = RobustSpec(
            radius * CANDIDATE.radius, CANDIDATE.label_flip_cost, "linf", BoxSupport(np.zeros(3), np.ones(3)), intercept
        )
        found[f"site-{number}"] = SiteProblem(features, labels, spec)
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("intercept", [True, False])
def test_on_a_box_the_model_is_the_risk_where_it_was_asked_and_nowhere_above_it(seed: int, intercept: bool) -> None:
    problems, draw = on_a_box(seed, intercept), np.random.default_rng(seed + 100)
    terms = TuningTerms(
        tuple(SiteTerms(f"site-{k}", 0.5, radius, 1.0) for k, radius in enumerate(RADII)), get_loss("hinge"), "linf",
        intercept, unbounded=False,
    )
    pool, dimension = SharedCuts(terms, 3), 3 + int(intercept)
    points = draw.normal(size=(5, dimension)) * (draw.uniform(size=(5, dimension)) < 0.8)
    swings = 0.0
    for point in points:
        cuts = {name: site_cut(point, problem) for name, problem in problems.items()}
        swings += sum(float(cut.swing.sum()) for cut in cuts.values() if cut.swing is not None)
        pool.add(CANDIDATE, point, {
            name: {
                "risk": np.array(cut.risk), "cut_height": np.array(cut.height), "slope": cut.slope,
                "norm_weight": np.array(cut.norm_weight), "swing": cut.swing,
            } for name, cut in cuts.items()
        })
    assert swings > 0

    def risk(point: np.ndarray) -> float:
        return 0.5 * sum(site_risk(point, problem).value for problem in problems.values())

    model = pool.model(CANDIDATE)
    for point in points:
        assert model.value(point) == pytest.approx(risk(point), rel=1e-9)
    for point in draw.normal(size=(40, dimension)):
        assert model.value(point) <= risk(point) * (1.0 + 1e-9)


def told(risks: tuple[float, float], norm_weights: tuple[float, float]) -> dict[str, dict[str, np.ndarray]]:
    """Flat cuts of two sites, of a norm weight each."""
    return {
        f"site-{k}": {
            "risk": np.array(risk), "cut_height": np.array(risk), "slope": np.zeros(3), "norm_weight": np.array(weight),
        } for k, (risk, weight) in enumerate(zip(risks, norm_weights, strict=True))
    }


def pool_of_two_sites() -> SharedCuts:
    sites = tuple(SiteTerms(f"site-{k}", 0.5, radius, 1.0) for k, radius in enumerate(RADII))
    return SharedCuts(TuningTerms(sites, get_loss("hinge"), "l2", False, mixture_norm="l1"), 3)


def test_a_risk_is_known_in_the_ball_over_the_sites_of_who_wants_it() -> None:
    """Who has the same ball at the sites has their risks; it was not asked for all that."""
    pool, point = pool_of_two_sites(), np.array([0.3, -0.2, 0.1])
    fixed, dear = Candidate(1.0, 2.0), Candidate(1.0, 5.0)
    wide = Candidate(1.0, 2.0, mixture_radius=0.4)
    pool.add(fixed, point, told((0.2, 0.8), (0.0, 0.0)))
    assert [risk for risk, _ in pool.known(fixed)] == [pytest.approx(0.5)]
    assert [risk for risk, _ in pool.known(wide)] == [pytest.approx(0.3 * 0.2 + 0.7 * 0.8)]
    assert [pool.asked(each) for each in (fixed, wide, dear)] == [1, 0, 0]
    pool.add(wide, point, told((0.4, 0.6), (0.0, 0.0)))
    assert [risk for risk, _ in pool.known(wide)] == [pytest.approx(0.62), pytest.approx(0.54)]
    assert [pool.asked(each) for each in (fixed, wide, dear)] == [1, 1, 0]


def test_the_floor_of_a_site_is_its_largest_norm_weight_whenever_it_was_told() -> None:
    pool, candidate = pool_of_two_sites(), Candidate(1.0, 2.0)
    for weights in ((0.01, 0.04), (0.015, 0.02), (0.005, 0.03)):
        pool.add(candidate, np.array([0.3, -0.2, 0.1]), told((0.2, 0.8), weights))
    assert pool.model(candidate).floor.tolist() == [0.015, 0.04]


@pytest.mark.parametrize("unbounded", [True, False])
def test_on_a_box_a_cut_is_of_the_balls_of_which_it_was_told_and_of_no_others(unbounded: bool) -> None:
    sites = tuple(SiteTerms(f"site-{k}", 0.5, radius, 1.0) for k, radius in enumerate(RADII))
    pool = SharedCuts(TuningTerms(sites, get_loss("hinge"), "l2", False, mixture_norm="l1", unbounded=unbounded), 3)
    point, told_for = np.array([0.3, -0.2, 0.1]), Candidate(1.0, 2.0)
    pool.add(told_for, point, told((0.2, 0.8), RADII))  # all of the radius was moved: no row flips
    for other in (Candidate(2.0, 2.0), Candidate(1.0, 3.0)):
        assert len(pool.model(other).offset) == (2 if unbounded else 0)
    assert len(pool.known(Candidate(2.0, 2.0))) == int(unbounded)
    wide = Candidate(1.0, 2.0, mixture_radius=0.4)
    assert len(pool.model(wide).offset) == 2 and len(pool.known(wide)) == 1


def test_a_point_is_asked_with_the_digits_that_count_and_its_gap_is_none_below_0() -> None:
    """A message is as long as its digits; where bounds meet, rounding may have them cross."""
    problems, gaps = on_a_box(3, True), list[float]()
    sites = tuple(SiteTerms(f"site-{k}", 0.5, radius, 1.0) for k, radius in enumerate(RADII))
    pool, point = SharedCuts(TuningTerms(sites, get_loss("hinge"), "linf", True, unbounded=False), 3), np.zeros(4)
    for _ in range(25):
        cuts = {name: site_cut(point, problem) for name, problem in problems.items()}
        pool.add(CANDIDATE, point, {
            name: {
                "risk": np.array(cut.risk), "cut_height": np.array(cut.height), "slope": cut.slope,
                "norm_weight": np.array(cut.norm_weight), "swing": cut.swing,
            } for name, cut in cuts.items()
        })
        step = pool.step(CANDIDATE)
        point = step.point
        np.testing.assert_array_equal(point, without_needless_digits(point, DIGITS))
        gaps.append(step.gap)
    assert min(gaps) >= 0.0 and gaps[-1] < 0.05


@pytest.mark.parametrize(("unbounded", "farthest"), [(True, 16.0 / 0.15), (False, 2 * 16.0 / 0.15)])
def test_a_candidate_asks_no_farther_than_its_own_ball_lets_its_best_weights_be(
    unbounded: bool, farthest: float
) -> None:
    """A cut that is all but flat is at its level at weights of 3e4; three times .05 is the largest radius."""
    terms = TuningTerms(
        tuple(SiteTerms(f"site-{k}", 0.5, radius, 1.0) for k, radius in enumerate(RADII)), get_loss("hinge"), "linf",
        fit_intercept=True, unbounded=unbounded,
    )
    pool = SharedCuts(terms, 1)
    one = np.array(1.0)
    flat = {"risk": one, "cut_height": one, "slope": np.array([1e-5, 0.0]), "norm_weight": 0.0 * one}
    pool.add(CANDIDATE, np.zeros(2), {f"site-{k}": flat for k in range(2)})
    np.testing.assert_allclose(pool.step(CANDIDATE).point, [-farthest, 0.0], rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize(("loss", "farthest"), [("hinge", 16.0 / 0.1), ("huber", 16.0 * 2000.0 / 0.1)])
def test_what_a_candidate_knows_of_one_bad_point_lets_it_ask_no_farther_than_zero_weights_do(
    loss: str, farthest: float
) -> None:
    """Another was asked at zero, whose risk is that of all where there are classes; of targets it is not known here."""
    terms = TuningTerms(
        tuple(SiteTerms(f"site-{k}", 0.5, 0.05, 1.0) for k in range(2)), get_loss(loss), "linf", fit_intercept=True,
        unbounded=loss == "hinge",
    )
    pool, one, wide = SharedCuts(terms, 1), np.array(1.0), Candidate(2.0, 2.0)
    flat = {"risk": one, "cut_height": one, "slope": np.zeros(2), "norm_weight": 0.0 * one}
    pool.add(Candidate(1.0, 2.0), np.zeros(2), {f"site-{k}": flat for k in range(2)})
    bad = 2000.0 * one
    falling = {"risk": bad, "cut_height": bad, "slope": np.array([1e-4, 0.0]), "norm_weight": 0.0 * one}
    pool.add(wide, np.array([0.7, 0.0]), {f"site-{k}": falling for k in range(2)})
    assert np.abs(pool.step(wide).point).max() <= farthest
    assert np.abs(pool.step(wide).point).max() == pytest.approx(min(farthest, 4096.0), rel=1e-2)


def test_a_cut_of_a_target_serves_another_radius_less_what_its_own_ball_adds() -> None:
    """``r rho max(||w||, 1 / kappa)``: at small weights it is in the risk told, beyond in the norm weight."""
    sites = tuple(SiteTerms(f"site-{k}", 0.5, 0.1, 1.0) for k in range(2))
    asked, wanted = Candidate(10.0, 2.0), Candidate(1.0, 2.0)
    for point, risk, norm_weight, expected in (
        (np.zeros(3), 0.5 + 1.0 / 2.0, 0.0, 0.5), (np.array([3.0, 0.0, 0.0]), 0.5 + 1.0 * 3.0, 1.0, 0.5 + 0.1 * 3.0),
    ):
        pool = SharedCuts(TuningTerms(sites, get_loss("epsilon_insensitive"), "l2", False), 3)
        pool.add(asked, point, told((risk, risk), (norm_weight, norm_weight)))
        assert pool.model(asked).value(point) == pytest.approx(risk)
        assert pool.model(wanted).value(point) == pytest.approx(expected)
