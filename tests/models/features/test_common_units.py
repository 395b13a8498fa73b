"""The unit in which features, or targets, are measured is not to be seen in a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.basics import ProblemError, TransportNorm
from models.centralised.bundle import train_at_hand
from models.features.common_units import CommonUnits
from models.geometry.supports import BoxSupport, PolytopeSupport, Support
from models.losses.base import Loss
from models.losses.catalogue import LOSS_NAMES, get_loss
from models.losses.regression import EpsilonInsensitive, Huber
from models.problem import RobustSpec, SiteProblem
from models.simulation.federation import Training, train
from models.site_ambiguity.ball import MixtureBall

BALLS = {
    True: (MixtureBall(), MixtureBall("l2", 0.3)),
    False: (MixtureBall(), MixtureBall("l1", 2.0), MixtureBall("linf", 0.1)),
}
NORMS: tuple[TransportNorm, ...] = ("l1", "l2", "linf")
UNITS = (1e-9, 1e-6, 1e6, 1e9)


def _support(kind: str, p: int, unit: float, target: float, regression: bool) -> Support | None:
    if kind == "box":
        ends = (-0.5 * target, 1.5 * target) if regression else (-np.inf, np.inf)
        return BoxSupport(np.zeros(p), np.full(p, unit), *ends)
    if kind == "unbounded":
        return None
    d = p + int(regression)
    matrix = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d))])
    limits = np.concatenate([np.ones(d), np.full(d, 0.5), [d - 0.2]])
    if regression:
        return PolytopeSupport(matrix[:, :p], limits * unit, matrix[:, p] * unit / target)
    return PolytopeSupport(matrix, limits * unit)


def _loss(name: str, target: float) -> Loss:
    if name == "huber":
        return Huber(0.2 * target)
    return EpsilonInsensitive(0.05 * target) if name == "epsilon_insensitive" else get_loss(name)


def _sites(name: str, kind: str, norm: TransportNorm, unit: float, target: float = 1.0) -> dict[str, SiteProblem]:
    """The same sites, features in ``unit`` and targets in ``target`` to one of the first."""
    random = np.random.default_rng(3)
    loss, p = _loss(name, target), 2
    regression = loss.task == "regression"
    cost = 0.7 * unit / (target if regression else 1.0)
    spec = RobustSpec(0.02 * unit, cost, norm, _support(kind, p, unit, target, regression), True, loss)
    sites = {}
    for g, size in enumerate((4, 3) if kind == "polytope" else (12, 9)):
        features = np.clip(random.uniform(0, 0.8, (size, p)) + 0.1 * g, 0, 0.85)
        score = (features - 0.4) @ np.array([1.0, -0.6]) + 0.3 * random.normal(size=size)
        labels = np.clip(0.5 + 0.3 * score, 0, 0.9) * target if regression else np.where(score > 0, 1.0, -1.0)
        sites[f"site-{g}"] = SiteProblem(features * unit, labels, spec)
    return sites


def _same(found: Training, first: Training, *, weight: float, risk: float = 1.0, digits: float = 1e-9) -> None:
    assert found.n_rounds == first.n_rounds
    assert found.status is first.status
    assert found.certificate.upper == pytest.approx(risk * first.certificate.upper, rel=digits)
    # The lower bound rests on cuts at rough local steps: its last digits follow those of the rows.
    assert found.certificate.gap == pytest.approx(first.certificate.gap, abs=1e-5)
    assert list(found.site_risks.values()) == pytest.approx([risk * each for each in first.site_risks.values()], 1e-4)
    assert found.weights[:2] == pytest.approx(weight * first.weights[:2], rel=1e3 * digits)


KINDS = [
    (name, kind)
    for name in LOSS_NAMES
    for kind in ("unbounded", "box", "polytope")
    if kind == "unbounded" or get_loss(name).lines is not None
]


@pytest.mark.parametrize(("name", "kind"), KINDS)
@pytest.mark.parametrize("at_hand", [True, False], ids=["at hand", "round by round"])
def test_the_unit_of_the_features_does_not_touch_a_fit(name: str, kind: str, at_hand: bool) -> None:
    """Every loss, support and ball over the sites: the same risk, gap and rounds from 1e-9 to 1e9."""
    polytope = kind == "polytope"

    def fit(unit: float, ball: MixtureBall, norm: TransportNorm) -> Training:
        sites, rounds = _sites(name, kind, norm, unit), 12 if polytope else 40
        if at_hand:
            return train_at_hand(sites, mixture=ball, gap=1e-2, max_rounds=rounds)
        return train(sites, mixture=ball, gap=1e-2, max_rounds=rounds)

    for number, ball in enumerate(BALLS[at_hand][:1] if polytope else BALLS[at_hand]):
        norm, unit = NORMS[number % 3], UNITS[(number + len(name)) % 4]
        first = fit(1.0, ball, norm)
        assert polytope or first.certificate.gap <= 1e-2
        _same(fit(unit, ball, norm), first, weight=1.0 / unit)


@pytest.mark.parametrize(("name", "degree"), [("huber", 2), ("epsilon_insensitive", 1), ("pinball", 1)])
def test_the_unit_of_the_target_scales_the_risk_and_nothing_else(name: str, degree: int) -> None:
    first = train(_sites(name, "unbounded", "l2", 1.0), gap=1e-3)
    for target in (1e-9, 1e9):
        found = train(_sites(name, "unbounded", "l2", 1.0, target), gap=1e-3)
        _same(found, first, weight=target, risk=target**degree)
        assert found.history[0].upper == pytest.approx(target**degree * first.history[0].upper)


def test_a_power_of_two_changes_no_bit() -> None:
    first, found = (train(_sites("hinge", "unbounded", "l2", unit), gap=1e-4) for unit in (1.0, 2.0**-20))
    assert found.certificate == first.certificate
    assert np.array_equal(found.weights[:2] * 2.0**-20, first.weights[:2])


def test_step_sizes_are_those_of_the_features_as_given() -> None:
    """A method whose parameters have a unit is left in the units in which these were chosen."""
    sites = _sites("hinge", "unbounded", "l2", 10.0)
    slope = train(sites, method="fdr-sm", parameters={"step_size": 1.0}, max_rounds=1).last_point
    half = train(sites, method="fdr-sm", parameters={"step_size": 0.5}, max_rounds=1).last_point
    scaled = {name: replace(site, features=site.features / 10.0) for name, site in sites.items()}
    assert half == pytest.approx(0.5 * slope)
    assert train(scaled, method="fdr-sm", max_rounds=1).last_point[:2] != pytest.approx(10.0 * slope[:2])


def test_rows_keep_how_often_they_count() -> None:
    counts = np.array([0.5, 1.5])
    site = SiteProblem(np.array([[3.0], [1.0]]), np.array([1.0, -1.0]), RobustSpec(0.1, 1.0), counts)
    (stated,) = CommonUnits.of({"a": site}).stated({"a": site}).values()
    assert stated.row_weights is counts and stated.features[0, 0] == 1.0


def test_where_all_is_0_the_support_gives_the_units() -> None:
    def units(support: Support, loss: str) -> CommonUnits:
        spec = RobustSpec(0.1, 1.0, support=support, loss=get_loss(loss))
        labels = np.zeros(2) if loss == "pinball" else np.ones(2)
        return CommonUnits.of({"a": SiteProblem(np.zeros((2, 3)), labels, spec)})

    box = BoxSupport(np.array([-8.0, -4.0, -1.0]), np.array([2.0, 1.0, 0.0]), -7.0, 3.0)
    assert units(box, "pinball") == CommonUnits(4.0, 7.0, 7.0)
    assert units(box, "hinge") == CommonUnits(4.0, 1.0, 1.0)
    walls = np.vstack([np.eye(4), -np.eye(4)])
    limits = np.array([1.0, 2.0, 4.0, 3.0, 6.0, 1.0, 1.0, 5.0])
    assert units(PolytopeSupport(walls[:, :3], limits, walls[:, 3]), "pinball") == CommonUnits(4.0, 5.0, 5.0)


def test_features_that_are_0_everywhere_have_no_part_in_the_unit() -> None:
    features = np.array([[0.0, -6.0, 0.0, 0.0, 2.0], [0.0, 5.0, 0.0, 0.0, 4.0]])
    sites = {"a": SiteProblem(features, np.array([1.0, -1.0]), RobustSpec(0.1, 1.0))}
    assert CommonUnits.of(sites).feature == 5.0  # between 4 and 6


def test_every_wall_has_one_length_and_the_place_it_had() -> None:
    random = np.random.default_rng(2)
    walls = np.vstack([np.eye(3), -np.eye(3), np.array([[2.0, -1.0, 0.5]])])  # two of them on the target alone
    support = PolytopeSupport(walls[:, :2], np.array([4.0, 3.0, 2e6, 1.0, 1.0, 1e6, 9e5]), walls[:, 2])
    site = SiteProblem(np.array([[3.0, 2.0]]), np.array([5e5]), RobustSpec(0.1, 1.0, support=support,
                                                                          loss=get_loss("pinball")))
    units = CommonUnits.of({"a": site})
    stated = units.stated({"a": site})["a"].spec.support
    assert isinstance(stated, PolytopeSupport) and stated.target_column is not None
    whole = np.column_stack([stated.matrix, stated.target_column])
    np.testing.assert_allclose(np.abs(whole).max(axis=1), 1.0)
    for point in random.uniform(-3, 5, (200, 3)) * np.array([1.0, 1.0, 5e5]):
        there = whole @ (point / np.array([units.feature, units.feature, units.target])) <= stated.limits
        np.testing.assert_array_equal(there, walls @ point <= support.limits)


@pytest.mark.parametrize("kind", ["tiny", "huge", "column", "radius", "target"])
@pytest.mark.parametrize("at_hand", [True, False])
def test_numbers_that_overflow_are_refused_in_words(kind: str, at_hand: bool) -> None:
    """Squares of such numbers overflow: an optimum of 0.26 was "proven" to be above 0.85, or a solver divided by 0."""
    x = np.random.default_rng(0).normal(size=(12, 3))
    radius = 1e200 if kind == "radius" else 0.01
    x[:, :] *= {"tiny": 1e-200, "huge": 1e155}.get(kind, 1.0)
    x[:, 2] *= 1e300 if kind == "column" else 1.0
    spec = RobustSpec(radius, 1.0, loss=get_loss("huber" if kind == "target" else "hinge"))
    labels = np.sign(x[:, 0]) * (1e155 if kind == "target" else 1.0)
    sites = {"a": SiteProblem(x, labels, spec)}
    words = {"column": "beside others", "radius": "too large", "target": "targets"}.get(kind, "features of size")
    with pytest.raises(ProblemError, match=words):
        train_at_hand(sites, mixture=MixtureBall("l2", 0.0)) if at_hand else train(sites, max_rounds=3)


def test_one_feature_far_below_the_others_does_no_harm() -> None:
    sites = _sites("hinge", "unbounded", "l2", 1.0)
    tiny = {n: replace(s, features=np.column_stack([s.features, 1e-160 * s.features[:, 0]])) for n, s in sites.items()}
    found, first = (train_at_hand(each, mixture=MixtureBall("l2", 0.0)) for each in (tiny, sites))
    assert found.certificate.upper == pytest.approx(first.certificate.upper, rel=1e-6)
    assert found.certificate.gap <= 1e-4


@pytest.mark.parametrize("unit", [1e-40, 1.0, 1e40])
@pytest.mark.parametrize(("ratio", "fits"), [(9e49, True), (1.1e50, False)])
def test_how_far_a_feature_may_be_above_the_others_does_not_hang_on_the_unit(
    unit: float, ratio: float, fits: bool
) -> None:
    features = unit * np.array([[1.0, 1.0, 1.0], [0.5, 1.0, ratio]])
    sites = {"a": SiteProblem(features, np.array([1.0, -1.0]), RobustSpec(0.0, 1.0))}
    if fits:
        assert CommonUnits.of(sites).feature == pytest.approx(unit)
        return
    with pytest.raises(ProblemError, match=r"a feature of size .* beside others of .*: take another unit"):
        CommonUnits.of(sites)
