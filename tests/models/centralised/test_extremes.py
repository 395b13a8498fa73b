"""Optima of 0, and radii and flip costs that float64 hardly sees beside the rows: no warning, no crash, true bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.centralised.hinge import train_pooled
from models.estimators import FederatedDRClassifier
from models.losses.catalogue import LossName, get_loss
from models.problem import RobustSpec, SiteProblem, Status
from models.simulation.federation import train
from models.worst_case.risk import site_risk

NORMS: Any = ("l1", "l2", "linf")


def rows(count: int, size: float = 1.0) -> tuple[Any, Any]:
    """Rows that a plane through 0 separates."""
    x = np.random.default_rng(0).normal(size=(count, 2)) * size
    return x, np.where(x[:, 0] > 0, 1.0, -1.0)


@pytest.mark.parametrize("count", [1, 4, 30])
@pytest.mark.parametrize(
    ("size", "radius", "cost"),
    [(1e7, 1e-12, np.inf), (1e7, 1e-12, 1.0), (1.0, 0.05, 1e160), (1.0, 0.05, 1e300), (1e7, 1e-3, 1e160)],
)
def test_the_pooled_solver_meets_what_rounding_hides(count: int, size: float, radius: float, cost: float) -> None:
    x, y = rows(count, size)
    for norm in NORMS:
        site = SiteProblem(x, y, RobustSpec(radius, cost, norm))
        found = train_pooled({"all": site})
        assert found.status is Status.CERTIFIED
        assert found.certificate.upper == site_risk(found.weights, site).value
        trusted = train_pooled({"all": SiteProblem(x, y, RobustSpec(radius, np.inf, norm))})
        assert found.certificate.lower <= site_risk(trusted.weights, site).value


@pytest.mark.parametrize("method", ["level-bundle", "fdr-admm"])
@pytest.mark.parametrize("norm", NORMS)
def test_the_client_step_takes_a_flip_cost_without_end(method: str, norm: Any) -> None:
    x, y = rows(12)
    y[:2] *= -1
    bounds = [
        train({"all": SiteProblem(x, y, RobustSpec(0.05, cost, norm))}, method=method, gap=1e-3, max_rounds=4)
        for cost in (1e160, np.inf)
    ]
    assert bounds[0].certificate.upper == pytest.approx(bounds[1].certificate.upper, rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "huber", "pinball"])
def test_an_optimum_of_zero_is_certified_by_its_distance(loss: LossName) -> None:
    """The relative gap stays 1; the rounds end where the risk is a millionth of that of zero weights."""
    random, sites = np.random.default_rng(0), {}
    for name in ("a", "b", "c"):
        x = random.normal(size=(20, 3))
        heights = x @ np.array([1.0, -2.0, 0.5]) + 0.3
        y = np.where(heights > 0, 1.0, -1.0) if loss == "logistic" else heights
        sites[name] = SiteProblem(x, y, RobustSpec(0.0, 1.0, "l2", loss=get_loss(loss)))
    found = train(sites, gap=1e-3, max_rounds=80)
    start = np.mean([site_risk(np.zeros(4), site).value for site in sites.values()])
    assert found.status is Status.CERTIFIED and found.certificate.upper <= 1e-6 * start
    assert found.certificate.scale == pytest.approx(start)
    tighter = train(sites, gap=1e-3, absolute_gap=1e-4 * start, max_rounds=80)
    assert tighter.status is Status.CERTIFIED and tighter.n_rounds < found.n_rounds


def test_the_estimator_does_not_warn_of_an_optimum_of_zero() -> None:
    """Warnings are errors here."""
    x, y = rows(40)
    terms: dict[str, Any] = {"loss": "logistic", "radius": 0.0, "gap": 1e-2, "calibration_folds": 0}
    model = FederatedDRClassifier(**terms).fit(x, y, groups=[0] * 40)
    assert model.worst_case_risk_ <= 1e-5
    with pytest.warns(UserWarning, match="relative gap"):
        FederatedDRClassifier(absolute_gap=0.0, max_rounds=40, **terms).fit(x, y, groups=[0] * 40)
