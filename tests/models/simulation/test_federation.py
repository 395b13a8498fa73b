"""Trainings in units of their own are those of the problem as given, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from models.basics import Arrays, FloatArray, ProblemError
from models.features.common_units import CommonUnits
from models.losses.catalogue import get_loss
from models.losses.classification import CrossEntropy
from models.losses.regression import EpsilonInsensitive
from models.methods.site_answers import RiskSite
from models.problem import Certificate, RobustSpec, SiteProblem, Status
from models.simulation.federation import Round, Training, check_alike, site_shares, train
from models.worst_case.risk import site_risk


def _sites(unit: float = 1.0, target: float = 1.0) -> dict[str, SiteProblem]:
    random, weights = np.random.default_rng(8), np.array([1.0, -0.5])
    spec = RobustSpec(0.05 * unit, np.inf, loss=EpsilonInsensitive(0.05 * target))
    features = [random.uniform(-1, 1, (size, 2)) for size in (10, 14)]
    return {
        f"site-{g}": SiteProblem(x * unit, target * (x @ weights + 0.3 * random.normal(size=len(x))), spec)
        for g, x in enumerate(features)
    }


def test_a_training_as_given_by_hand() -> None:
    bounds = Certificate(4.0, 3.0, 0.5, 10.0)
    found = Training(
        np.array([8.0, -4.0, 2.0]), bounds, Status.CERTIFIED, {"a": 4.0, "b": 1.0}, {"a": 1.0, "b": 0.0},
        (Round(1, 6.0, 1.0, 0.5, 24),), np.array([2.0, 2.0, 2.0]), convex_part=replace(bounds, lower=2.0),
    ).as_given(CommonUnits(4.0, 3.0, 9.0), 2)
    np.testing.assert_array_equal(found.weights, [6.0, -3.0, 6.0])
    np.testing.assert_array_equal(found.last_point, [1.5, 1.5, 6.0])
    assert found.certificate == Certificate(36.0, 27.0, 0.5, 90.0)
    assert found.convex_part == Certificate(36.0, 18.0, 0.5, 90.0)
    assert found.site_risks == {"a": 36.0, "b": 9.0} and found.mixture_weights == {"a": 1.0, "b": 0.0}
    assert found.history == (Round(1, 54.0, 9.0, 0.5, 24),)


def test_an_absolute_gap_is_one_of_the_risk_as_given() -> None:
    first = train(_sites(), gap=0.0, absolute_gap=1e-3)
    found = train(_sites(target=1e4), gap=0.0, absolute_gap=10.0)
    assert found.n_rounds == first.n_rounds and first.status is Status.CERTIFIED
    assert 1e-5 < first.certificate.upper - first.certificate.lower <= 1e-3


@dataclass(frozen=True)
class _Listening:
    heard: list[SiteProblem] = field(default_factory=list)

    def answer(self, problem: SiteProblem, message: Arrays, parameters: Mapping[str, float]) -> dict[str, FloatArray]:
        self.heard.append(problem)
        return RiskSite().answer(problem, message, parameters)


def test_a_site_half_of_its_own_units_gets_the_rows_as_given() -> None:
    sites, half = _sites(unit=64.0, target=32.0), _Listening()
    train(sites, method="level-bundle-plain", site_half=half, max_rounds=2)
    assert [each.labels is sites[f"site-{g}"].labels for g, each in enumerate(half.heard[:2])] == [True, True]


def test_a_training_that_goes_on_keeps_the_units_that_its_cuts_are_in() -> None:
    sites = _sites()
    ended = train(sites, gap=1e-3).end
    larger = replace(sites["site-1"], features=16.0 * sites["site-1"].features, labels=8.0 * sites["site-1"].labels)
    grown = {"site-0": sites["site-0"], "site-1": larger}
    found = train(grown, gap=1e-3, after=ended, unchanged={"site-0"})
    fresh = train(grown, gap=1e-3)
    assert found.status is Status.CERTIFIED
    risks = [site_risk(found.weights, site).value for site in grown.values()]
    assert found.certificate.upper == pytest.approx(np.mean(risks), rel=1e-9)
    assert found.certificate.lower <= fresh.certificate.upper and fresh.certificate.lower <= found.certificate.upper


def test_cuts_of_a_federation_with_far_larger_features_count_on_where_that_site_has_left() -> None:
    random = np.random.default_rng(0)

    def site(scale: float) -> SiteProblem:
        features = scale * random.normal(size=(30, 3))
        labels = np.where(features[:, 0] + 0.3 * scale * random.normal(size=30) > 0, 1.0, -1.0)
        return SiteProblem(features, labels, RobustSpec(radius=0.05, label_flip_cost=1.0))

    sites = {"a": site(1.0), "b": site(1.0), "c": site(50.0)}
    ended = train(sites, method="level-bundle", gap=1e-4).end
    left = {name: sites[name] for name in "ab"}
    fresh = train(left, method="level-bundle", gap=1e-6)
    found = train(left, method="level-bundle", gap=1e-6, after=ended, unchanged={"a", "b"})
    assert found.n_rounds < fresh.n_rounds  # in other units the cuts would be refuted, and gathered anew
    assert found.certificate.lower <= fresh.certificate.upper and fresh.certificate.lower <= found.certificate.upper


def test_a_run_that_was_not_finished_says_so() -> None:
    assert train(_sites(), gap=1e-9, max_rounds=2).status is Status.ROUND_LIMIT


def test_weights_are_for_these_sites_and_no_others() -> None:
    assert site_shares({"a": 0, "b": 0}, None) == {"a": 0.5, "b": 0.5}
    for weights in ({"a": 1.0}, {"a": 0.5, "b": 0.5, "c": 0.0}):
        with pytest.raises(ProblemError, match="weights are for sites a.*, the data are of sites a, b"):
            site_shares({"a": 0, "b": 0}, weights)


@pytest.mark.parametrize("place", range(4))
def test_one_site_of_many_that_is_unlike_the_others_is_refused(place: int) -> None:
    check_alike("norm", ["l2"] * 4)
    values = ["l2"] * 4
    values[place] = "l1"
    with pytest.raises(ProblemError, match="all sites must have the same norm, got l1, l2$"):
        check_alike("norm", values)


def test_a_loss_without_a_worst_case_is_refused_where_one_is_looked_for() -> None:
    assert CrossEntropy().lipschitz == get_loss("squared").lipschitz == np.inf
    sites = {name: replace(site, spec=replace(site.spec, radius=0.0, loss=get_loss("squared")))
             for name, site in _sites().items()}
    with pytest.raises(ProblemError, match="the squared loss has no worst case over a ball"):
        train(sites)


def test_row_weights_are_refused_by_methods_that_draw_batches() -> None:
    sites = {name: replace(site, row_weights=np.ones(len(site.labels)), spec=replace(site.spec, loss=get_loss("huber")))
             for name, site in _sites().items()}
    with pytest.raises(ProblemError, match="it takes no row weights"):
        train(sites, method="fedavg")
