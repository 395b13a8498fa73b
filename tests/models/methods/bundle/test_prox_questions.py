"""Where each site looks next to a projection: the slope that its model had there, its own penalty and centre."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.cut_program import minimise, project
from models.methods.bundle import level
from models.methods.bundle.level import BundleServer, WorstSiteServer, _site_slopes, norm_and_sides, prox_questions
from models.methods.catalogue import get_method
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import train
from models.site_ambiguity.ball import WHOLE_SIMPLEX, MixtureBall
from tests.models.cuts.test_cut_program import drawn
from tests.models.cuts.test_evidence import known
from tests.models.cuts.told import problem_of

CASES = [
    (seed, norm, swings, ball)
    for seed, (norm, swings, ball) in enumerate([
        ("l2", False, None), ("l1", False, None), ("linf", False, "l2"), ("l2", True, None), ("linf", True, "l1"),
        ("l1", True, "linf"), ("l2", False, "l2"),
    ])
]


def projected(seed: int, norm: Any, swings: bool, ball: Any, floor: float = 0.1) -> tuple[CutModel, ModelPoint, Any]:
    """High floors hold some of the sites up in place of cuts."""
    model, centre = drawn(seed, 4, 5, True, norm, swings, ball)
    model = replace(model, floor=np.full(4, floor))
    lowest, height = model.value(minimise(model, centre).point), model.value(centre)
    return model, project(model, centre, lowest + 0.3 * (height - lowest)), centre


@pytest.mark.parametrize(("seed", "norm", "swings", "ball"), CASES)
@pytest.mark.parametrize(("few", "floor"), [(0, 0.1), (200, 0.1), (200, 1.5)])
def test_slopes_of_the_sites_make_the_step_and_are_those_of_their_models(
    seed: int, norm: Any, swings: bool, ball: Any, few: int, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the worst mixture they sum to (best - point) / nu; each is a subgradient of its site's model at the point."""
    monkeypatch.setattr(level, "_FEW_HELD", few)
    model, found, best = projected(seed, norm, swings, ball, floor)
    assert found.level_price > 0
    assert floor < 1.0 or norm == "l1" or model.with_mixture(found.mixture).floors_left(found.multipliers).max() > 0.01
    slopes = _site_slopes(model, found, best)
    np.testing.assert_allclose(found.mixture @ slopes, (best - found.point) / found.level_price, atol=1e-5)
    random, here = np.random.default_rng(seed), model.site_values(found.point[None])[0]
    for scale in (0.01, 1.0, 10.0):
        for step in scale * random.normal(size=(10, best.shape[0])):
            there = model.site_values((found.point + step)[None])[0]
            held = found.mixture > 1e-3
            assert (there >= here + slopes @ step - 1e-3 * (1.0 + scale))[held].all()


@pytest.mark.parametrize(("seed", "norm", "swings", "ball"), CASES)
def test_norm_and_absolute_weights_add_within_what_they_may(seed: int, norm: Any, swings: bool, ball: Any) -> None:
    """A subgradient of the norm, on the features alone, and signs of at most 1."""
    model, found, best = projected(seed, norm, swings, ball)
    of_norm, sides = norm_and_sides(model.with_mixture(found.mixture), found, best)
    size = {"l1": np.abs(of_norm).sum(), "l2": np.linalg.norm(of_norm), "linf": np.abs(of_norm).max()}[norm]
    assert of_norm[-1] == pytest.approx(0.0, abs=1e-4) and size <= 1.0 + 1e-3
    assert np.abs(sides).max() <= 1.0 and (swings or not sides.any())


def test_a_site_that_weighs_little_is_asked_for_a_stiffer_step() -> None:
    """closeness / (nu q_g), and the centre is where such a step at the model's slope begins."""
    model, found, best = projected(6, "l2", False, "l2")
    problem = problem_of(parameters={"closeness": 30.0}, gap=1e-6)
    for near in (1.0, 0.25):
        centre, penalty = prox_questions(model, found, best, problem, near)
        np.testing.assert_allclose(penalty, near * 30.0 / (found.level_price * found.mixture), rtol=1e-6)
        expected = found.point + _site_slopes(model, found, best) / penalty[:, None]
        np.testing.assert_allclose(centre, expected, atol=1e-6)
    none = ModelPoint(found.point, found.multipliers, found.level_price, np.array([1.0, 0.0, 0.0, 0.0]))
    assert (prox_questions(model, none, best, problem)[1][1:] == pytest.approx(1e9))


def test_a_run_that_goes_on_begins_at_the_best_point_with_each_sites_own_centre() -> None:
    """By name, wherever a site stands now; a new one looks at the best point itself, by Polyak's step."""
    server, before = BundleServer(True), problem_of()
    state = server.state(
        known().judged_by(np.array([9.0, 2.0, 3.0, 4.0])), np.full(3, 7.0), np.arange(15.0).reshape(5, 3),
        np.arange(5.0) + 1.0,
    )
    now = ServerProblem(2, tuple(SiteTerms(name, 0.25, 0.1, 1.0) for name in ("d", "new", "a", "c")), "l2", True)
    warm = server.warm(state, before, now, [3, -1, 0, -1])
    assert (warm.point == 1.0).all() and warm.penalty.tolist() == [4.0, 0.0, 1.0, 3.0]
    assert warm.centre.tolist() == [[9.0, 10.0, 11.0], [1.0] * 3, [0.0, 1.0, 2.0], [6.0, 7.0, 8.0]]
    assert set(warm.evidence.cut_site.tolist()) == {0.0, 2.0}
    asked = server.messages(warm, now)
    assert {name: float(each["penalty"]) for name, each in asked.items()} == {"d": 4.0, "new": 0.0, "a": 1.0, "c": 3.0}
    assert {name: each["centre"][0] for name, each in asked.items()} == {"d": 9.0, "new": 1.0, "a": 0.0, "c": 6.0}
    assert all((each["point"] == 1.0).all() for each in asked.values())


def test_against_the_worst_site_the_stated_ball_counts_for_nothing() -> None:
    problem = problem_of("l2", 0.01, parameters=dict(get_method("drfa-exact").parameters))
    whole = problem_of(mixture=WHOLE_SIMPLEX, parameters=problem.parameters)
    answers = {
        name: {"risk": np.array(risk), "cut_height": np.array(risk), "slope": np.full(3, risk),
               "norm_weight": np.array(0.1), "minorant_offset": np.array(0.0), "minorant_slope": np.zeros(3),
               "minorant_norm_weight": np.array(0.1)}
        for name, risk in zip("abcde", (0.3, 0.9, 0.5, 0.2, 0.7), strict=True)
    }
    worst, plain = WorstSiteServer(True), BundleServer(True)
    first, second = worst.step(worst.init(problem), problem, answers), plain.step(plain.init(whole), whole, answers)
    assert first.evidence.upper == second.evidence.upper == 0.9
    assert first.evidence.lower == second.evidence.lower and (first.point == second.point).all()
    assert worst.mixture_weights(first, problem) == plain.mixture_weights(second, whole)
    proof = worst.carried_proof(first, problem)
    assert proof is not None and proof.ball == WHOLE_SIMPLEX != MixtureBall("l2", 0.01)


@pytest.mark.parametrize("method", ["standard", "afl", "drfa-exact"])
def test_of_a_method_without_a_ball_the_stated_radius_changes_no_step(method: str) -> None:
    """Else weights as large as plain risks want them were drawn in as those of a large ball are."""
    random = np.random.default_rng(1)
    features = random.uniform(size=(2, 40, 2))
    labels = np.where(features[..., 0] - features[..., 1] + 0.05 * random.normal(size=(2, 40)) > 0, 1.0, -1.0)
    rows = list(zip("ab", features, labels, strict=True))
    narrow, wide = (
        train(
            {name: SiteProblem(x, y, RobustSpec(radius, 1.0)) for name, x, y in rows}, method=method, gap=1e-3,
            max_rounds=60,
        ) for radius in (1e-3, 1e3)
    )
    assert narrow.status is wide.status is Status.CERTIFIED
    assert narrow.n_rounds == wide.n_rounds and np.abs(narrow.weights).max() > 10.0
    np.testing.assert_array_equal(narrow.weights, wide.weights)
