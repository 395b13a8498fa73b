"""A Huber fit that serves another setting is one of that setting: its risk and its gap there are true."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.losses.regression import Huber
from models.problem import RobustSpec, SiteProblem
from models.worst_case.risk import site_risk
from tests.benchmarks.papers.drfl.huber_fits import HuberFits, carried
from tests.benchmarks.papers.drfl.methods import fit, problems
from tests.benchmarks.papers.drfl.settings import THRESHOLD, Fitted, Setting
from tests.benchmarks.papers.drfl.tables import N_CLIENTS, Rows, folds

COSTS, RADII = (1.0, 0.5, 0.2), (0.01, 0.3, 1.0)


def targets(seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1.0, 1.0, size=(60, 2))
    labels = features @ np.array([2.5, -1.0]) + 4.0 + 0.5 * rng.normal(size=60)
    client = np.arange(60) % N_CLIENTS
    return Rows(features, labels, client, folds(client, rng))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.floats(0.1, 2.0), st.floats(0.0, 0.5))
def test_weights_that_are_carried_have_the_risk_and_at_most_the_gap_that_is_told(
    seed: int, scale: float, gap: float
) -> None:
    data, rng = targets(seed), np.random.default_rng(seed)
    before, now = (Setting(*each) for each in zip(sorted(rng.uniform(0, 1, 2)), (0.1, 0.1), sorted(
        rng.uniform(0.1, 1, 2), reverse=True), strict=True))
    exact = {each: fit(data, "DRFL", each, "regression", 1e-7) for each in (before, now)}
    weights = exact[before].weights * np.array([scale, scale, 1.0])
    found = Fitted(weights, one_risk(data, weights, before), 0.0)
    lower = min(exact[before].risk * (1 - 1e-7), found.risk)
    found = Fitted(weights, found.risk, (found.risk - lower) / found.risk)
    kept = carried(found, before, now)
    assert kept is not None
    assert kept.risk == pytest.approx(one_risk(data, weights, now), rel=1e-9)
    assert kept.risk * (1 - kept.gap) <= exact[now].risk * (1 + 1e-9)


def one_risk(data: Rows, weights: np.ndarray, setting: Setting) -> float:
    """The worst mixture's risk for the l1 ball around the shares, by what it may move: half of theta."""
    risks = [site_risk(weights, site).value for site in problems(data, "DRFL", setting, "regression")[0].values()]
    moved = setting.theta / 2
    return float(np.mean(risks) + moved * (max(risks) - min(risks)))


def test_of_many_settings_few_are_solved_and_each_is_as_good_as_solved() -> None:
    data = targets(1)
    solved: list[Setting] = []

    def solve(setting: Setting) -> Fitted:
        solved.append(setting)
        return fit(data, "DRFL", setting, "regression", 1e-5)

    fits = HuberFits(solve, 2e-5)
    tried = [Setting(r, t, k) for r, t, k in product(RADII, (0.1, 1.0), COSTS)]
    for setting in tried:
        kept, own = fits(setting), fit(data, "DRFL", setting, "regression", 1e-6)
        assert kept.gap <= 2e-5
        assert own.risk * (1 - 1e-6) <= kept.risk * (1 + 1e-9)
        assert kept.risk * (1 - 2e-5) <= own.risk * (1 + 1e-9)
    assert 2 <= len(solved) <= 12 < len(tried)


def test_nothing_is_carried_to_a_smaller_radius_a_cheaper_target_or_another_theta() -> None:
    found = Fitted(np.array([1.0, 0.0]), 1.0, 0.0)
    setting = Setting(0.1, 0.1, 0.5)
    assert carried(found, setting, setting) == Fitted(found.weights, 1.0, 0.0)
    for other in (Setting(0.05, 0.1, 0.5), Setting(0.1, 0.1, 0.6), Setting(0.1, 0.2, 0.5)):
        assert carried(found, setting, other) is None


def test_the_last_term_is_what_a_ball_adds_to_the_loss() -> None:
    data, weights = targets(2), np.array([0.4, -3.0, 1.0])
    plain = np.abs(data.features @ weights[:-1] + weights[-1] - data.labels)
    loss = np.where(plain <= THRESHOLD, plain**2 / 2, THRESHOLD * (plain - THRESHOLD / 2)).mean()
    for cost, norm in ((1.0, 3.0), (0.2, 5.0)):
        site = SiteProblem(data.features, data.labels, RobustSpec(0.3, cost, "l1", loss=Huber(THRESHOLD)))
        assert site_risk(weights, site).value == pytest.approx(loss + 0.3 * THRESHOLD * norm, rel=1e-9)
