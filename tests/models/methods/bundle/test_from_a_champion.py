"""A run on sums that begins at a champion of which no cut holds any more, as after a plant left the only cohort."""

from __future__ import annotations

import numpy as np
import pytest

from models.basics import FloatArray
from models.cuts.cut_model import CutModel, ModelPoint
from models.cuts.evidence import Evidence
from models.methods.bundle.level import bottom
from models.problem import RobustSpec, ServerProblem, SiteProblem, SiteTerms, Status
from models.simulation.federation import Training, train

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


def one_site_model(slopes: FloatArray, offset: float) -> CutModel:
    nothing = np.zeros(len(slopes))
    return CutModel(np.ones(1), np.zeros(1), nothing.astype(np.intp), nothing + offset, slopes, nothing, "l2", 1)
