"""Squares of several classes: what a race learns of them, and the planes that follow."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from models.basics import Arrays, FloatArray
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem, SiteTerms
from models.tuning.at_hand import answer_cuts, answer_part
from models.tuning.budget import Budget, OneTraining
from models.tuning.candidates import Candidate, grid
from models.tuning.class_squares import ClassSquares
from models.tuning.least_squares import is_by_squares, of_squares
from models.tuning.normal_classes import NormalClasses
from models.tuning.racing import Tuner
from models.tuning.terms import TuningTerms

LOSS = get_loss("logistic")
WEIGHTS = (0.5, 0.3, 0.2)
RADIUS = 4e-3
ONE = Candidate(1.0, 1.0)
Rows = tuple[FloatArray, NDArray[np.intp]]


def plants_of(seed: int, n_features: int, n_classes: int, n_rows: int = 60) -> dict[str, Rows]:
    """Rows in [0, 1] around means of their own; the last plant has none of the last class."""
    random, found = np.random.default_rng(seed), {}
    means = random.uniform(0.2, 0.8, (n_classes, n_features))
    for number in range(len(WEIGHTS)):
        classes = np.arange(n_rows) % (n_classes - (number == len(WEIGHTS) - 1))
        features = np.clip(means[classes] + 0.15 * random.normal(size=(n_rows, n_features)), 0.0, 1.0)
        found[f"site-{number}"] = features, classes.astype(np.intp)
    return found


def heads_of(rows: Rows, n_classes: int) -> list[SiteProblem]:
    features, classes = rows
    spec = RobustSpec(RADIUS, 1.0, loss=LOSS)
    return [SiteProblem(features, np.where(classes == k, 1.0, -1.0), spec) for k in range(n_classes)]


def terms_of(**changes: Any) -> TuningTerms:
    sites = tuple(SiteTerms(f"site-{number}", weight, RADIUS, 1.0) for number, weight in enumerate(WEIGHTS))
    return replace(TuningTerms(sites, LOSS, "l2", True, coupled=True), **changes)


def answers(plants: dict[str, Rows], points: FloatArray) -> dict[str, Arrays]:
    return {
        name: answer_cuts(of_squares(heads_of(rows, len(points))), points).arrays for name, rows in plants.items()
    }


def asked_out(plants: dict[str, Rows], n_classes: int, most: int = 100) -> ClassSquares:
    pool = ClassSquares(terms_of(), next(iter(plants.values()))[0].shape[1], n_classes)
    for _ in range(most):
        step = pool.step(ONE)
        if step.gap == 0.0:
            break
        pool.add(ONE, step.point, answers(plants, step.point))
    return pool


def moments_of(plants: dict[str, Rows], n_classes: int) -> NormalClasses:
    """Shares, means and spread of all rows in the sites' weights, in the features themselves."""
    features, classes = (np.concatenate([rows[part] for rows in plants.values()]) for part in (0, 1))
    weights = np.concatenate([
        np.full(len(own), share / len(own)) for share, (_, own) in zip(WEIGHTS, plants.values(), strict=True)
    ])
    shares = np.array([weights[classes == k].sum() for k in range(n_classes)])
    means = np.stack([weights[classes == k] @ features[classes == k] / shares[k] for k in range(n_classes)])
    apart = features - means[classes]
    return NormalClasses(shares, means, (apart * weights[:, None]).T @ apart)


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(3, 5))
def test_asked_to_the_end_they_know_shares_means_and_spread(seed: int, n_features: int, n_classes: int) -> None:
    plants = plants_of(seed, n_features, n_classes)
    pool, wanted = asked_out(plants, n_classes), moments_of(plants, n_classes)
    assert pool.asked(ONE) <= 1 + math.ceil(n_features / n_classes) + 1, "K directions in each exchange"
    shares, means, _ = pool._classes()
    np.testing.assert_allclose(shares, wanted.shares, atol=1e-12)
    np.testing.assert_allclose(means, wanted.means, atol=1e-10)
    planes, gap = pool.scored(ONE)
    assert gap == math.inf
    exact = wanted.planes(LOSS.lipschitz * RADIUS)
    np.testing.assert_allclose(planes - planes[0], exact - exact[0], rtol=1e-3, atol=1e-3 * np.abs(exact).max())


def test_a_radius_and_the_sites_own_are_the_price_of_size() -> None:
    plants = plants_of(2, 4, 3)
    wanted = moments_of(plants, 3)
    sites = tuple(SiteTerms(f"site-{g}", share, radius, 1.0) for g, (share, radius) in enumerate(
        zip(WEIGHTS, (0.1, 0.2, 0.4), strict=True)
    ))
    pool = asked_out(plants, 3)
    pool.terms = terms_of(sites=sites)
    found = pool.scored(Candidate(0.5, 1.0))[0]
    exact = wanted.planes(LOSS.lipschitz * 0.5 * (0.5 * 0.1 + 0.3 * 0.2 + 0.2 * 0.4))
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())
    assert not np.allclose(found, pool.scored(ONE)[0], rtol=1e-2)


def test_points_to_ask_keep_residuals_within_the_square_and_are_unlike_one_another() -> None:
    plants = plants_of(4, 9, 4)
    pool, asked = ClassSquares(terms_of(), 9, 4), []
    for _ in range(3):
        points = pool.step(ONE).point
        assert points.shape == (4, 10) and np.abs(points).sum(axis=1).max() <= 1.0 + 1e-2
        assert not points[:, -1].any(), "the intercept's own part is known from the answers at zero"
        asked += [each[:-1] / np.linalg.norm(each) for each in points if each.any()]
        pool.add(ONE, points, answers(plants, points))
    assert len(asked) == 8 and np.abs(np.array(asked) @ np.array(asked).T - np.eye(8)).max() < 1e-2


def test_the_first_directions_are_the_means_own_and_lead_further_than_drawn_ones() -> None:
    """Twelve features of which two matter: one exchange of directions nearly has the planes."""
    random, plants = np.random.default_rng(0), {}
    for name in terms_of().sites:
        classes = np.arange(300) % 3
        features = random.uniform(size=(300, 12))
        features[:, 0] = 0.2 + 0.3 * classes + 0.05 * random.normal(size=300)
        plants[name.site_id] = np.clip(features, 0.0, 1.0), classes.astype(np.intp)
    pool = asked_out(plants, 3, most=2)
    planes = pool.scored(ONE)[0]
    rows, classes = plants["site-0"]
    assert (np.argmax(rows @ planes[:, :-1].T + planes[:, -1], axis=1) == classes).mean() > 0.95


def test_features_that_never_move_are_asked_no_further() -> None:
    plants = plants_of(1, 6, 3)
    for name, (features, classes) in plants.items():
        plants[name] = features * np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), classes
    pool = asked_out(plants, 3)
    assert pool.asked(ONE) <= 4 and pool.step(ONE).gap == 0.0


def test_what_a_guard_tells_in_place_of_a_gradient_leads_to_finite_planes() -> None:
    plants = plants_of(7, 5, 3)
    pool = ClassSquares(terms_of(), 5, 3)
    for number in range(3):
        points = pool.step(ONE).point
        told = answers(plants, points)
        if number == 1:
            told = {name: {**each, "slope": each["slope"] - 3.0 * points} for name, each in told.items()}
        pool.add(ONE, points, told)
    assert np.isfinite(pool.scored(ONE)[0]).all()
    assert not ClassSquares(terms_of(), 5, 3).scored(ONE)[0].any(), "of nothing there are no planes"


@pytest.mark.parametrize(("changes", "heads", "mixture", "expected"), [
    ({}, 3, 0.0, True), ({}, 2, 0.0, False), ({}, 1, 0.0, False),
    ({"coupled": False}, 3, 0.0, False), ({"loss": get_loss("hinge")}, 3, 0.0, False),
    ({"fit_intercept": False}, 3, 0.0, False), ({"transport_norm": "l1"}, 3, 0.0, False),
    ({"unbounded": False}, 3, 0.0, False), ({}, 3, 0.1, False),
])
def test_several_classes_race_by_squares_where_their_planes_are_coupled(
    changes: dict[str, Any], heads: int, mixture: float, expected: bool
) -> None:
    candidates = [ONE, Candidate(3.0, 1.0, mixture_radius=mixture)]
    assert is_by_squares(terms_of(**changes), candidates, heads) is expected


def test_a_race_asks_each_lift_and_fold_once_in_an_exchange_and_takes_what_tells_classes_apart() -> None:
    """The middle class lies between the others in one feature: alone it is hidden, with its square it is not."""
    random, plants = np.random.default_rng(5), {}
    for name in terms_of().sites:
        classes = np.arange(90) % 3
        main = np.array([0.5, 0.05, 0.95])[classes] + 0.03 * random.normal(size=90)
        side = np.where(classes == 0, 0.5, random.uniform(size=90))
        features = np.clip(np.column_stack([main, side]), 0.0, 1.0)
        plants[name.site_id] = features, classes.astype(np.intp)

    def lifted(features: FloatArray, lift: int) -> FloatArray:
        return np.column_stack([features, features**2]) if lift else np.full_like(features, 0.5) + 1e-3 * features

    tuner = Tuner(
        terms_of(), grid((1.0,), (1.0,), 2), (2, 4), 3, 3, Budget(OneTraining(12, 4000.0), 2.0), "best", 9
    )
    exchanges = 0
    while (exchange := tuner.exchange()) is not None:
        if not exchange.scored:
            exchanges += 1
            assert all(part.squares and part.penalty is None for part in exchange.asked)
            assert len({(part.candidate.lift, part.fold) for part in exchange.asked}) == len(exchange.asked) <= 6
            told = []
            for part in exchange.asked:
                kept = np.arange(90) // 3 % 3 != part.fold
                told.append({
                    name: answer_part(part, heads_of((lifted(x, part.candidate.lift)[kept], y[kept]), 3)).arrays
                    for name, (x, y) in plants.items()
                })
            tuner.tell_cuts(told)
            continue
        scores = []
        for place in exchange.told:
            hits = []
            for part in exchange.together(place):
                for x, y in plants.values():
                    held = np.arange(90) // 3 % 3 == part.fold
                    rows = lifted(x, part.candidate.lift)[held]
                    told_class = np.argmax(rows @ part.weights[:, :-1].T + part.weights[:, -1], axis=1)
                    hits.append(float((told_class == y[held]).mean()))
            scores.append(float(np.mean(hits)))
        tuner.tell_scores(scores)
    assert exchanges == 3, "at zero, three directions, and the last of four"
    assert tuner.choice is not None and tuner.choice.candidate.lift == 1
    assert all(each.gap == math.inf for each in tuner.scored)


def test_a_class_that_no_row_has_is_never_told() -> None:
    """Its mean is rounding, divided by the least of all shares; sums under masks are whole numbers of 2^-36."""
    plants, pool = plants_of(3, 5, 3), ClassSquares(terms_of(), 5, 4)
    while (step := pool.step(ONE)).gap > 0.0:
        told = answers(plants, step.point)
        pool.add(ONE, step.point, {
            name: {key: np.round(array * 2.0**36) / 2.0**36 for key, array in each.items()}
            for name, each in told.items()
        })
    planes = pool.scored(ONE)[0]
    rows, classes = (np.concatenate([each[part] for each in plants.values()]) for part in (0, 1))
    told_class = np.argmax(rows @ planes[:, :-1].T + planes[:, -1], axis=1)
    assert 3 not in told_class and (told_class == classes).mean() > 0.8
