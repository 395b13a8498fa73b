"""The level bundle with all rows at hand: answers in units of their own are cuts of the risk, bounds are as given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from models.basics import FloatArray
from models.centralised.bundle import UnitSite, train_at_hand
from models.centralised.feature_scaling import Units
from models.geometry.norms import dual_norm
from models.geometry.supports import BoxSupport
from models.losses.catalogue import get_loss
from models.problem import RobustSpec, SiteProblem, Status
from models.site_ambiguity.ball import MixtureBall, worst_mixture
from models.worst_case.risk import site_risk

SIZES = np.array([40.0, 1.0, 0.02])


def site(norm: Any, loss: str, boxed: bool, intercept: bool, seed: int = 0) -> SiteProblem:
    """Rows with features of unlike sizes, far from 0."""
    random, judged = np.random.default_rng(seed), get_loss(loss)
    x = (random.uniform(-1, 1, size=(25, 3)) + 1.5) * SIZES
    heights = x @ (np.array([1.0, -2.0, 1.0]) / SIZES) + 0.3 * random.normal(size=25)
    y = heights if judged.task == "regression" else np.where(heights > 0, 1.0, -1.0)
    support = BoxSupport(0.4 * SIZES, 2.6 * SIZES) if boxed else None
    return SiteProblem(x, y, RobustSpec(0.05, 0.7, norm, support, intercept, get_loss(loss)))


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(
    ("loss", "boxed", "intercept"),
    [("hinge", True, True), ("pinball", False, True), ("pinball", True, True), ("logistic", False, False)],
)
def test_answers_are_cuts_of_the_risk_in_the_units_of_the_weights(
    norm: Any, loss: str, boxed: bool, intercept: bool
) -> None:
    """Exact where asked, below the risk everywhere; so is the minorant of the prox step, whose norm is in its slope."""
    problem, random = site(norm, loss, boxed, intercept), np.random.default_rng(1)
    units = Units.of([problem])
    dimension = 3 + intercept
    point, centre = random.normal(size=(2, dimension))

    def risk(at: FloatArray) -> float:
        return site_risk(units.back(at), problem).value

    def length(at: FloatArray) -> float:
        return dual_norm(at[:3] / units.spread, norm)

    message = {"point": point, "centre": centre, "penalty": np.array(0.1)}
    found = UnitSite(units).answer(problem, message, {})
    assert found["risk"] == pytest.approx(risk(point), rel=1e-12)
    swing = found.get("swing", np.zeros(3))
    above = found["minorant_swing"] if "minorant_swing" in found else np.zeros(3)
    for scale in (1e-3, 1.0, 30.0):
        for _ in range(6):
            at = point + scale * random.normal(size=dimension)
            bound = float(found["cut_height"] + found["slope"] @ (at - point))
            bound += float(found["norm_weight"]) * (length(at) - length(point))
            bound += float(swing @ (np.abs(at[:3]) - np.abs(point[:3])))
            assert bound <= risk(at) + 1e-9
            bound = float(found["minorant_offset"] + found["minorant_slope"] @ at + above @ np.abs(at[:3]))
            assert bound <= risk(at) + 1e-9
    assert found["minorant_norm_weight"] == 0.0
    touched = max(
        float(found["minorant_offset"] + found["minorant_slope"] @ at + above @ np.abs(at[:3])) / risk(at)
        for at in (centre, point, *(centre + 0.3 * random.normal(size=(40, dimension))))
    )
    assert touched > 0.5


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("loss", "boxed"), [("hinge", True), ("pinball", True), ("pinball", False)])
def test_planes_of_a_prox_step_are_cuts_in_the_units_of_the_weights(norm: Any, loss: str, boxed: bool) -> None:
    """With a ball that moves the largest feature, so that its swing counts."""
    problem, random = site(norm, loss, boxed, True), np.random.default_rng(2)
    problem = replace(problem, spec=replace(problem.spec, radius=8.0))
    half = UnitSite(Units.of([problem]))
    for point in random.normal(size=(4, 4)):
        cut = half._plane(problem, point)
        assert cut.height == pytest.approx(site_risk(half.units.back(point), problem).value, rel=1e-9)
        assert (cut.swing is not None) == boxed and cut.norm_weight == 0.0
        swing = np.zeros(3) if cut.swing is None else cut.swing
        for at in point + random.normal(size=(20, 4)) * 10.0 ** random.uniform(-2, 1.5, (20, 1)):
            bound = cut.height + cut.slope @ (at - point) + swing @ (np.abs(at[:3]) - np.abs(point[:3]))
            assert bound <= site_risk(half.units.back(at), problem).value * (1.0 + 1e-9)


def test_a_plain_answer_has_no_minorant() -> None:
    problem = site("l2", "hinge", True, True)
    found = UnitSite(Units.of([problem]), plain=True).answer(problem, {"point": np.ones(4)}, {})
    assert set(found) == {"risk", "cut_height", "slope", "norm_weight", "swing"}
    assert found["norm_weight"] == 0.0  # on a box the hinge moves by its swing


@pytest.mark.parametrize(("loss", "radius"), [("logistic", 0.3), ("hinge", 0.3), ("hinge", 0.0)])
def test_bounds_are_those_of_the_worst_mixture_at_the_weights_as_given(loss: str, radius: float) -> None:
    """Shares too; and an absolute gap is in the units of the risk, whatever those of the targets."""
    sites = {name: site("l2", loss, False, True, seed) for seed, name in enumerate("abc")}
    ball, weights = MixtureBall("l2", radius), {"a": 0.5, "b": 0.3, "c": 0.2}
    found = train_at_hand(sites, weights=weights, mixture=ball, gap=1e-3)
    risks = np.array([site_risk(found.weights, each).value for each in sites.values()])
    worst = worst_mixture(risks, np.array([0.5, 0.3, 0.2]), ball)
    assert found.certificate.upper == pytest.approx(worst.value, rel=1e-9)
    assert list(found.mixture_weights.values()) == pytest.approx(worst.weights, abs=1e-6)
    assert list(found.site_risks.values()) == pytest.approx(risks, rel=1e-9)
    assert found.status is Status.CERTIFIED and found.certificate.gap <= 1e-3


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_an_absolute_gap_is_in_the_units_of_the_risk(unit: float) -> None:
    sites = {}
    for seed, name in enumerate("ab"):
        given = site("l2", "pinball", False, True, seed)
        spec = replace(given.spec, radius=0.05, label_flip_cost=0.7 / unit)
        sites[name] = SiteProblem(given.features, unit * given.labels, spec)
    rough, fine = (
        train_at_hand(sites, mixture=MixtureBall(), gap=1e-9, absolute_gap=share * unit, max_rounds=60)
        for share in (0.03, 0.003)
    )
    assert rough.status is Status.CERTIFIED and fine.status is Status.CERTIFIED
    assert 0.003 * unit < rough.certificate.upper - rough.certificate.lower <= 0.03 * unit
    assert fine.certificate.upper - fine.certificate.lower <= 0.003 * unit
