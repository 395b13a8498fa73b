"""Radii by confidence and lifted features, as a site computes them and holds them to the task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from models.features.fourier import fourier_lift
from models.problem import RobustSpec, SiteProblem
from models.worst_case.radius import LightTail, confidence_radius, estimated_radius
from models.worst_case.risk import site_risk
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.lift import (
    FourierLiftSpec,
    NystromLiftSpec,
    ProductLiftSpec,
    SplineLiftSpec,
    lift_check,
    lifted_size,
    pinned,
)
from services.contracts.problems.training_spec import RadiusRule, TailConstants, TrainingSpec
from services.contracts.wire.messages import SiteUpdate
from services.site_agent.answers.local_solve import rounded_up
from services.site_agent.door.own_draws import with_own_seed
from services.site_agent.rules.policy import SitePolicy
from services.site_agent.vault.dataset import Dataset
from services.site_agent.vault.reader import Vault

Make = Callable[..., Any]
LIFT = FourierLiftSpec(components=8, bandwidth=0.5, seed=3)


def dataset_of(site: Any) -> Dataset:
    return Vault(site.source, site.asset_type).current()


def by_confidence(**more: Any) -> TrainingSpec:
    return TrainingSpec(radius=RadiusRule(rule="confidence", confidence=0.9, **more), transport_norm="l1")


def test_given_constants_give_the_radius_of_the_proposition_and_its_confidence(make_site: Make) -> None:
    answer = make_site().ask("join", spec=by_confidence(tail=TailConstants(exponent=2, c1=2, c2=1, c3=1)))
    expected = confidence_radius(0.9, 76, 3, LightTail(2, 2, 1, 1))
    assert answer.arrays["radius"] == pytest.approx(expected) and expected > 0
    assert (answer.arrays["confidence"], answer.arrays["radius_is_estimate"]) == (0.9, 0.0)


def test_without_constants_the_radius_is_estimated_says_so_and_is_the_same_again(make_site: Make) -> None:
    site = make_site()
    answers = [site.ask("join", spec=by_confidence(seed=seed)).arrays for seed in (5, 5, 6)]
    train, own = dataset_of(site).train, with_own_seed(by_confidence(seed=5), site.door._record.secret()).radius.seed
    expected = estimated_radius(
        train.features, np.where(train.classes == 1, 1.0, -1.0), label_flip_cost=1.0, transport_norm="l1",
        confidence=0.9, seed=own,
    )
    assert answers[0]["radius"] == answers[1]["radius"] == rounded_up(expected.radius, 3) > expected.radius > 0
    assert answers[2]["radius"] != answers[0]["radius"]
    assert (answers[0]["confidence"], answers[0]["radius_is_estimate"]) == (0.9, 1.0)


def test_halves_of_an_estimate_are_nobody_elses_to_know(make_site: Make) -> None:
    """With a flip cost above all distances an estimate is how unlike the halves' class counts are."""
    site = make_site()
    train = dataset_of(site).train
    labels, foreseen = np.where(train.classes == 1, 1.0, -1.0), 0
    for seed in range(12):
        terms, run = by_confidence(seed=seed).model_copy(update={"label_flip_cost": 1e6}), f"{seed:032x}"
        told = site.ask("join", run_id=run, spec=terms).arrays["radius"]
        guess = estimated_radius(
            train.features, labels, label_flip_cost=1e6, transport_norm="l1", confidence=0.9, seed=seed
        )
        foreseen += told == rounded_up(guess.radius, 3)
        assert told == site.ask("join", run_id=run, spec=terms).arrays["radius"]
    assert foreseen < 9, "who knows the rows does not foresee which are drawn"


def test_a_problem_without_an_estimate_keeps_its_seed_and_vaults_have_seeds_of_their_own() -> None:
    tail = TailConstants(exponent=2, c1=2, c2=1, c3=1)
    for spec in (TrainingSpec(radius=RadiusRule(seed=4)), by_confidence(seed=4, tail=tail)):
        assert with_own_seed(spec, b"secret") is spec
    seeds = {with_own_seed(by_confidence(seed=s), key).radius.seed for s in (0, 1) for key in (b"one", b"two")}
    assert len(seeds) == 4 and all(0 <= seed <= 2**53 for seed in seeds)


def test_an_estimate_is_told_to_three_digits_and_never_below_itself() -> None:
    """All digits of it, for seeds and confidences of the asker's choice, would be distances between single rows."""
    for value in (1e-12, 0.0123401, 0.9999, 1.0, 12.3, 123.0, 12345.6789, 9.995e7):
        found = rounded_up(value, 3)
        assert value <= found <= value * 1.0101 and float(f"{found:.2e}") == found
    assert rounded_up(0.0, 3) == 0.0 and rounded_up(0.125, 3) == 0.125


def test_an_estimate_for_many_classes_is_at_least_that_of_each_head(
    make_site: Make, make_table: Make, three_classes: AssetType
) -> None:
    site = make_site(make_table(90, classes=("healthy", "leak", "worn")), asset_type=three_classes)
    train, own = dataset_of(site).train, with_own_seed(by_confidence(), site.door._record.secret()).radius.seed
    found = site.ask("join", spec=by_confidence()).arrays["radius"]
    labels = [np.where(train.classes == k, 1.0, -1.0) for k in range(3)]
    *heads, whole = (
        estimated_radius(
            train.features, of, label_flip_cost=1.0, transport_norm="l1", confidence=0.9, seed=own
        ).radius
        for of in [*labels, train.classes.astype(float)]
    )
    assert max(heads) <= whole and found == rounded_up(whole, 3)


def test_a_lifted_problem_is_evaluated_in_lifted_features(make_site: Make) -> None:
    site = make_site()
    spec = TrainingSpec(lift=pinned(LIFT, 3))
    weights = np.random.default_rng(0).normal(size=(1, lifted_size(LIFT, 3) + 1))
    answer = site.ask("evaluate", spec=spec, arrays={"weights": weights})
    data, lift = dataset_of(site), fourier_lift(3, 8, bandwidth=0.5, seed=3)
    labels = np.where(data.train.classes == 1, 1.0, -1.0)
    problem = SiteProblem(lift.apply(data.train.features), labels, RobustSpec(1 / 760, 1.0))
    np.testing.assert_allclose(answer.arrays["risk"], [site_risk(weights[0], problem).value], rtol=1e-12)
    said = lift.apply(data.test.features) @ weights[0, :-1] + weights[0, -1] > 0
    assert answer.arrays["confusion"][1, 1] == np.sum(said & (data.test.classes == 1))
    assert site.refusal_code("evaluate", spec=spec, arrays={"weights": np.ones((1, 4))}) == "bad_task"


def test_a_lifted_round_has_the_size_of_the_lift(make_site: Make) -> None:
    spec = TrainingSpec(lift=pinned(LIFT, 3))
    site = make_site()
    message = {"point": np.zeros((1, 12)), "centre": np.zeros((1, 12)), "penalty": np.ones(1)}
    answer = site.ask("round", spec=spec, arrays=message)
    assert isinstance(answer, SiteUpdate) and answer.arrays["slope"].shape == (1, 12)
    assert site.ask("join", spec=spec).arrays["lift_check"] == lift_check(fourier_lift(3, 8, bandwidth=0.5, seed=3))


@pytest.mark.parametrize("lift", [
    SplineLiftSpec(kind="spline", segments=4), ProductLiftSpec(kind="products", features=(0, 1, 2), segments=3),
    NystromLiftSpec(kind="nystrom", points=((0.5, 0.5, 0.5),) * 9, bandwidth=1e-3),
    FourierLiftSpec(components=9, bandwidth=0.5), ProductLiftSpec(kind="products", features=(0, 1, 2), squares=True),
])
def test_rounds_under_a_lift_count_as_ones_that_may_tell_single_readings(
    make_site: Make, policy: SitePolicy, lift: Any
) -> None:
    """A narrow kernel is 0 at all rows but one, whose distance the slope then tells; products solve for two rows."""
    spec = TrainingSpec(lift=pinned(lift, 3))
    zeros = np.zeros((1, lifted_size(lift, 3) + 1))
    message = {"point": zeros, "centre": zeros, "penalty": np.ones(1)}
    strict = make_site(policy=policy.model_copy(update={"allow_unaccounted": False, "exposure_limit": 0.0}))
    assert strict.refusal_code("round", spec=spec, arrays=message) == "exposure_limit"
    plain = {name: array[:, :4] if array.ndim == 2 else array for name, array in message.items()}
    assert isinstance(strict.ask("round", spec=TrainingSpec(), arrays=plain), SiteUpdate)


@pytest.mark.parametrize("change", [{"seed": 4}, {"components": 9}, {"bandwidth": 0.6}, {"keep_linear": False}])
def test_a_lift_that_differs_from_the_fingerprint_of_the_task_is_refused(make_site: Make, change: Any) -> None:
    pin = pinned(LIFT, 3)
    assert pin is not None
    site = make_site()
    for kind in ("join", "round", "evaluate"):
        spec = TrainingSpec(lift=pin.model_copy(update=change))
        assert site.refusal_code(kind, spec=spec) == "contract_mismatch"
    assert isinstance(site.ask("join", spec=TrainingSpec(lift=pin)), SiteUpdate)
