"""What `ballast model show` says of a version beside its figures: for what it is, and what was promised and seen."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import model
from api.models.schemas import VersionDetail
from services.contracts.plans.plan import MixtureSpec
from services.plant_simulator.assets import builtin_asset_type


def version(**changes: Any) -> Any:
    """A version of classes on sums, without a ball around the weights; a test changes what it is about."""
    fields: dict[str, Any] = {
        "task": "classification", "reveal": "sums", "spec": SimpleNamespace(loss="hinge"), "noise": None, "f1": 0.5,
        "mixture": MixtureSpec(norm="l1", radius=0.0), "asset_type": builtin_asset_type("triplex-pump"),
        "error_interval": None, "n_test": 40, "mae": 1.5, "rmse": 2.5, "r2": 0.75, "pinball": 3.5, "coverage": 0.9375,
        "note": "", "confusion": None, "convex_part": None,
    }
    return SimpleNamespace(**fields | changes)


def test_of_classes_the_score_is_f1() -> None:
    assert model._scores(version()) == [
        ("task", "classification"), ("loss", "hinge"), ("the coordinator saw", "masked sums over cohorts of sites"),
        ("ball around the weights", "none: the weights are trusted"), ("f1", 0.5),
    ]


def test_of_a_target_the_scores_are_its_errors_with_the_interval_around_the_estimate() -> None:
    interval = SimpleNamespace(confidence=0.95, below=0.25, above=1.75)
    severity = builtin_asset_type("triplex-pump-severity")
    assert severity.target is not None
    found = model._scores(version(
        task="regression", reveal="each site", asset_type=severity, error_interval=interval,
        mixture=MixtureSpec(norm="l2", radius=0.125),
    ))
    assert found[2:] == [
        ("the coordinator saw", "the answers of each site"),
        ("ball around the weights", "l2, radius 0.125: the risk is that of the worst one in it"),
        ("target", f"{severity.target.name} in {severity.target.unit}"), ("n_test", 40), ("mae", 1.5), ("rmse", 2.5),
        ("r2", 0.75), ("pinball", 3.5), ("interval at 0.95", "0.25 below to 1.75 above the estimate"),
        ("coverage, held out", 0.9375),
    ]


def test_what_noise_promises_is_said() -> None:
    noise = SimpleNamespace(epsilon=2.0, delta=1e-6, confidence=0.9, within="a row")
    found = dict(model._scores(version(noise=noise)))
    assert {name: value for name, value in found.items() if name.startswith("noise")} == {
        "noise epsilon": 2.0, "noise delta": 1e-6, "noise confidence": 0.9, "noise within": "a row",
    }


@pytest.mark.parametrize(("changes", "said"), [
    ({}, []), ({"note": "no bound"}, [("the method says", "no bound")]),
    ({"convex_part": SimpleNamespace(gap=0.25, lower_bound=0.5)}, [("gap of the convex part", 0.25)]),
])
def test_what_the_method_says_is_noted(changes: dict[str, Any], said: list[tuple[str, object]]) -> None:
    assert model._notes(version(**changes)) == said


def test_a_champion_takes_the_place_of_another_or_of_none() -> None:
    change: Any = SimpleNamespace(version="3", previous_version="2")
    assert model._instead(change) == " instead of 2"
    change.previous_version = None
    assert model._instead(change) == ""


@pytest.mark.parametrize(("reveal", "risk", "said"), [
    ("sums", 0.074274, "at most 0.07427"), ("sums", None, None), ("each site", 0.074274, 0.074274),
])
def test_a_risk_that_plants_tell_from_above_is_called_a_bound(reveal: str, risk: float | None, said: object) -> None:
    """Beside the bound of the rounds, which may be smaller, it would be another value of the same risk."""
    told: dict[str, Any] = {"reveal": reveal, "worst_case_risk": risk, "f1": 0.5}  # all that is asked for
    found = VersionDetail.model_construct(**told)
    assert model._as_told(found, "worst_case_risk") == said
    assert model._as_told(found, "f1") == 0.5
