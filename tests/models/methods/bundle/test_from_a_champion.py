"""A run on sums that begins at a champion of which no cut holds any more, as after a plant left the only cohort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import FloatArray, TransportNorm
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.evidence import Evidence
from models.methods.answer_arrays import cut_answer, minorant
from models.methods.bundle.asked_level import bottom, projected
from models.methods.bundle.level import BundleServer
from models.methods.catalogue import get_method
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import Training, train
from models.worst_case.risk import RiskCut

GAP, FEATURES, ROWS = 3e-2, 8, 30
LEAVES = {0: "plant-1", 4: "plant-3"}
"""By seed of the tables; with 4 the least of the cuts is too far away to be found in the third round."""


def four_plants(seed: int) -> dict[str, SiteProblem]:
    """Readings of two values for the most part, and classes that hardly follow from them."""
    draw, found = np.random.default_rng(seed), {}
    plane = draw.standard_normal(FEATURES)
    for number in range(4):
        rows = np.sign(draw.standard_normal((ROWS, FEATURES)) + 0.5 * draw.standard_normal(FEATURES))
        rows[:, :4] *= draw.uniform(0.0, 1.0, (ROWS, 4))
        labels = np.sign(rows @ plane + 2.0 * draw.standard_normal(ROWS))
        labels[:2] = 1.0, -1.0
        found[f"plant-{number}"] = SiteProblem(rows, labels, RobustSpec(1.0 / (10 * ROWS), 1.0))
    return found


def trained(sites: dict[str, SiteProblem], after: Training | None = None) -> Training:
    return train(
        sites, method="cohort-bundle", gap=GAP, cohorts={"cohort-1": tuple(sites)}, max_rounds=60,
        after=after and after.end, unchanged=set(sites),
    )


@pytest.mark.parametrize("seed", LEAVES)
def test_it_ends_at_its_gap_in_no_more_rounds_than_from_zero(seed: int) -> None:
    plants = four_plants(seed)
    champion = trained(plants)
    left = {name: plant for name, plant in plants.items() if name != LEAVES[seed]}
    zero, warm = trained(left), trained(left, champion)
    assert zero.status is warm.status is Status.CERTIFIED
    assert warm.certificate.gap <= GAP and warm.n_rounds <= zero.n_rounds
    # Two certificates of one federation: each one's lower bound is below the other's upper one.
    assert warm.certificate.lower <= zero.certificate.upper and zero.certificate.lower <= warm.certificate.upper


@pytest.mark.parametrize("lower, far", [(0.0, True), (0.999999, True), (0.0, False)])
def test_levels_are_counted_from_below_the_best_point(lower: float, far: bool) -> None:
    terms = ServerProblem(1, (SiteTerms("cohort-1", 1.0, 0.1, 1.0),), "l2", fit_intercept=True)
    best, minimiser = np.array([1.0, 0.0]), np.array([2e10 if far else 0.5, 0.0])
    slopes = np.array([[1e-9, 0.0]]) if far else np.array([[1.0, 0.0]])
    model = one_site_model(slopes, 1.0 - float(slopes[0] @ best))
    evidence = Evidence.empty(terms)
    grown = Evidence(**{**vars(evidence), "points": best[None], "upper": 1.0, "lower": lower, "best": 0})
    lowest, towards = bottom(model, ModelPoint(minimiser, np.ones(1), 0.0, np.ones(1)), grown)
    if far and lower == 0.0:
        assert lowest == lower and towards is None
    else:  # found, or no more than the last digits are left: to go below the least of the cuts would lead nowhere
        assert lowest == model.value(minimiser) and towards is minimiser


@pytest.mark.parametrize("size, within", [(1.0, 4096.0), (1e4, 2e4)])
def test_questions_lie_within_the_reach(size: float, within: float) -> None:
    """A cut that is nearly flat is at its level at weights of 2.5e5; no farther than twice as far as the best point."""
    terms = ServerProblem(1, (SiteTerms("cohort-1", 1.0, 0.1, 1.0),), "l2", fit_intercept=True)
    best, model = np.array([0.0, size]), one_site_model(np.array([[0.0, 2e-6]]), 1.0)
    grown = Evidence(**{**vars(Evidence.empty(terms)), "points": best[None], "upper": 1.02, "lower": 0.0, "best": 0})
    found = projected(model, 0.5, grown, terms)
    np.testing.assert_allclose(found.point, [0.0, size - within])


@pytest.mark.parametrize("box, radii, norm, size, away", [
    (False, (0.1,), "l1", 0.0, 163.2), (False, (0.1,), "l2", 0.0, 163.2 / 2**0.5), (False, (0.1,), "linf", 0.0, 81.6),
    (False, (0.1,), "l2", 300.0, 600.0), (False, (0.01, 0.1), "l1", 0.0, 163.2),
    (False, (0.0,), "l2", 0.0, 4096.0), (False, (1e-4,), "l2", 0.0, 4096.0), (True, (0.0,), "l2", 0.0, 4096.0),
    (True, (0.1,), "l1", 0.0, 326.4), (True, (0.1,), "l2", 0.0, 326.4 / 2**0.5), (True, (0.1,), "linf", 0.0, 163.2),
    (True, (16.0,), "l1", 0.0, 16.32),
])
def test_questions_lie_where_a_ball_lets_a_best_model_be(
    box: bool, radii: tuple[float, ...], norm: TransportNorm, size: float, away: float
) -> None:
    """Cuts that say nothing of the ball are all but flat, and their levels far off, where plants answer nothing.

    Sixteen times the best risk of 1.02, by the largest radius; where the best point is far, twice as far as that.
    """
    sites = tuple(SiteTerms(f"plant-{k}", 1.0 / len(radii), radius, 1.0) for k, radius in enumerate(radii))
    terms = ServerProblem(2, sites, norm, fit_intercept=False, box=box)
    best, model = np.full(2, size), one_site_model(np.array([[1e-5, 1e-5]]), 1.0)
    grown = Evidence(**{**vars(Evidence.empty(terms)), "points": best[None], "upper": 1.02, "lower": 0.0, "best": 0})
    found = projected(model, 0.7, grown, terms)
    np.testing.assert_allclose(found.point, size - away)


def test_a_weight_that_no_cut_bounds_keeps_no_question_near() -> None:
    """What is least lies far along the second weight, and the level near along the first: that is asked."""
    terms = ServerProblem(2, (SiteTerms("a", 1.0, 0.1, 1.0),), "l2", fit_intercept=False)
    model = one_site_model(np.array([[1.0, 1e-9], [0.0, 1e-9]]), 1.0)
    model = replace(model, offset=np.array([1.0, 0.0]), n_features=2)
    grown = Evidence(
        **{**vars(Evidence.empty(terms)), "points": np.zeros((1, 2)), "upper": 1.0, "lower": 0.0, "best": 0}
    )
    found = projected(model, 0.5, grown, terms, towards=np.array([-1.0, -1e9]))
    np.testing.assert_allclose(found.point, [-0.5, 0.0], atol=1e-6)


@pytest.mark.parametrize("prox_cuts", [False, True])
def test_a_level_bundle_on_single_answers_asks_where_its_levels_lie(prox_cuts: bool) -> None:
    """Its first cut, at zero, is nearly flat in the intercept; half of the way to its least is at weights of 2.5e5."""
    parameters = dict(get_method("level-bundle").parameters)
    terms = ServerProblem(
        1, (SiteTerms("plant-1", 1.0, 0.1, 1.0),), "l2", fit_intercept=True, parameters=parameters
    )
    told = cut_answer(RiskCut(1.0, 1.0, np.array([0.0, 2e-6]), 0.1))
    if prox_cuts:
        told |= minorant(0.0, np.zeros(2), 0.0)
    server = BundleServer(prox_cuts)
    state = server.step(server.init(terms), terms, {"plant-1": told})
    assert 1.0 < np.abs(state.point).max() <= 4096.0


@pytest.mark.parametrize("fall, lowest", [(0.05, True), (0.2, False)])
def test_where_the_cuts_have_no_lower_point_the_run_has_stalled(fall: float, lowest: bool) -> None:
    """Zero weights are best where the norm outweighs the slope; that of the intercept is rounding, and proves nothing.

    Questions next to zero would follow, which plants refuse.
    """
    parameters = dict(get_method("level-bundle-plain").parameters)
    terms = ServerProblem(1, (SiteTerms("a", 1.0, 0.1, 1.0),), "l2", fit_intercept=True, parameters=parameters)
    server = BundleServer(False)
    told = {"a": cut_answer(RiskCut(1.0, 1.0, np.array([-fall, -1e-17]), 0.1))}
    state = server.step(server.init(terms), terms, told)
    assert state.stagnated == lowest and state.evidence.lower == 0.0
    assert (server.status(state, terms) is Status.STALLED) == lowest


def test_classes_that_no_plane_tells_apart_are_asked_near() -> None:
    """Labels by the squares of a chessboard: the first prox cuts are all but flat, and their least is at 4e5."""
    draw, plants = np.random.default_rng([5, 1]), {}
    for number in range(4):
        x = draw.uniform(0, 1, (140, 5))
        label = 2.0 * ((np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1])) % 2) - 1.0
        plants[f"plant-{number}"] = SiteProblem(x, label, RobustSpec(1.0 / 1400, 1.0))
    found = train(plants, method="cohort-bundle", gap=1e-3, cohorts={"cohort-1": tuple(plants)}, max_rounds=60)
    asked = max(float(np.abs(point).max()) for point in found.end.state.evidence.points)
    assert found.status is Status.CERTIFIED and asked <= 4096.0


def one_site_model(slopes: FloatArray, offset: float) -> CutModel:
    nothing = np.zeros(len(slopes))
    return CutModel(np.ones(1), np.zeros(1), nothing.astype(np.intp), nothing + offset, slopes, nothing, "l2", 1)


def test_on_sums_no_question_lies_beyond_what_they_are_true_of() -> None:
    """However far the best point is; of single answers it may be twice as far."""
    terms = ServerProblem(1, (SiteTerms("cohort-1", 1.0, 0.0, 1.0),), "l2", fit_intercept=True)
    best, model = np.array([0.0, -3000.0]), one_site_model(np.array([[0.0, 2e-6]]), 1.0)
    grown = Evidence(**{**vars(Evidence.empty(terms)), "points": best[None], "upper": 1.0, "lower": 0.0, "best": 0})
    for reach, asked in ((4096.0, -4096.0), (np.inf, -9000.0)):
        np.testing.assert_allclose(projected(model, 0.5, grown, replace(terms, reach=reach)).point, [0.0, asked])


@pytest.mark.parametrize("offset, away", [(0.5, 160.0), (3.0, 480.0)])
def test_before_all_sites_were_heard_losses_are_of_order_one(offset: float, away: float) -> None:
    """No risk is known yet: sixteen times 1, or what the cuts say of the best point, by a radius of .1."""
    terms = ServerProblem(1, (SiteTerms("cohort-1", 1.0, 0.1, 1.0),), "l2", fit_intercept=True)
    model = one_site_model(np.array([[1e-6, 0.0]]), offset)
    grown = Evidence(**{**vars(Evidence.empty(terms)), "points": np.zeros((1, 2)), "upper": np.inf, "best": 0})
    np.testing.assert_allclose(projected(model, 0.1 * offset, grown, terms).point, [-away, 0.0])
