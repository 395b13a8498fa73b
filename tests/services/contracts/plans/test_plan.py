"""What a plan may say of single sites, radii and lifts, and what is refused in one line."""

from __future__ import annotations

import json
import math
import tomllib
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from models.features.fourier import FourierLift, fourier_lift
from services.contracts.documents import to_plain
from services.contracts.errors import ConflictError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.problems.lift import (
    FourierLiftSpec,
    LiftMismatchError,
    draw_lift,
    lift_check,
    lifted_size,
    pinned,
)
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.reading import explain
from services.contracts.versions.model_version import ModelVersion

A_TUNING = 'a tuning is "auto", or a table of what is tried'
PLAN: dict[str, Any] = {"name": "nightly", "asset_type": "pump", "sites": ["a", "b"]}


def weights(**given: float) -> dict[str, Any]:
    return {"site_settings": {site: {"weight": weight} for site, weight in given.items()}}


def radius(**rule: Any) -> dict[str, Any]:
    return {"spec": {"radius": rule}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (weights(a=0.5, b=0.6), "the weights of the sites must sum to 1, they sum to 1.1"),
        (weights(a=1.0), "there is none for b"),
        (weights(a=1.0, b=0.0), "site_settings.b.weight: Input should be greater than 0"),
        (weights(a=1.0, b=-0.5), "site_settings.b.weight"),
        (weights(a=math.nan, b=0.5), "site_settings.a.weight"),
        ({"site_settings": {"c": {}}}, "site_settings names sites that are not in sites: c"),
        ({"site_settings": {"a": {"label_flip_cost": 0}}}, "site_settings.a.label_flip_cost"),
        ({"site_settings": {"a": {"label_flip_cost": math.nan}}}, "site_settings.a.label_flip_cost"),
        ({"site_settings": {"a": {"radius": {"rule": "fixed", "value": -1}}}}, "site_settings.a.radius.value"),
        (radius(rule="fixed", value=-1e-3), "spec.radius.value: Input should be greater than or equal to 0"),
        (radius(rule="fixed", value=math.nan), "spec.radius.value"),
        (radius(rule="fixed", value=math.inf), "spec.radius.value"),
        (radius(rule="confidence"), "spec.radius: a radius by confidence needs confidence"),
        (radius(rule="confidence", confidence=1.0), "spec.radius.confidence"),
        (radius(rule="fixed", confidence=0.9), "belong to the rule confidence, the rule is fixed"),
        (radius(rule="confidence", confidence=0.9, tail={"exponent": 1, "c1": 1, "c2": 1, "c3": 1}), "exponent"),
        ({"spec": {"label_flip_cost": 0}}, "spec.label_flip_cost"),
        ({"spec": {"label_flip_cost": math.nan}}, "spec.label_flip_cost"),
        ({"spec": {"transport_norm": "l3"}}, "spec.transport_norm"),
        ({"spec": {"lift": {"components": 0, "bandwidth": 1}}}, "spec.lift.fourier.components"),
        ({"spec": {"lift": {"components": 5, "bandwidth": math.nan}}}, "spec.lift.fourier.bandwidth"),
        ({"spec": {"lift": {"components": 5, "bandwidth": 1e-160}}}, "bandwidth must lie between 1e-100 and 1e+100"),
        (
            {"spec": {"lift": {"kind": "nystrom", "components": 5, "bandwidth": 1e300}}},
            "bandwidth must lie between 1e-100 and 1e+100",
        ),
        ({"spec": {"lift": {"components": 5, "bandwidth": 1, "kind": "deep"}}}, "spec.lift: the kind of a lift is"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Plan.model_validate(PLAN | changes)
    text = explain(refusal.value)
    assert said in text and "\n" not in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gates": 3}, "gates: give a table of keys and values"),
        ({"sites": "plant-1"}, "sites: give a list, in brackets"),
        ({"parameters": [1]}, "parameters: give a table of keys and values"),
        ({"tuning": {"radius": 3.0}}, "tuning.radius: give a list, in brackets"),
        *(
            ({"tuning": wrong}, f"tuning: {A_TUNING}, as in {{ radius = [1.0, 10.0] }}") for wrong in ("often", True, 5)
        ),
        (
            {"tuning": {"lifts": ["none", "spline"]}}, 'tuning.lifts.1: a lift to be tried is "none", or a table with '
            'its kind, as in { kind = "spline", segments = 6 }',
        ),
        (
            {"tuning": {"lifts": ["none", {"kind": "spline", "segments": 65}]}},
            "tuning.lifts.1.spline.segments: Input should be less than or equal to 64",
        ),
        (
            {"spec": {"lift": {"kind": "products", "features": ["p", "q"], "segments": 0}}},
            "spec.lift.products.segments: Input should be greater than or equal to 1",
        ),
        (
            {"spec": {"lift": "spline"}}, "spec.lift: the kind of a lift is fourier, spline, products or nystrom, as "
            'in { kind = "spline", segments = 6 }',
        ),
    ],
)
def test_another_kind_of_value_is_told_in_the_words_of_the_file(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Plan.model_validate(PLAN | changes)
    assert explain(refusal.value) == said


def test_of_many_findings_a_line_has_the_first_and_says_how_many_more() -> None:
    with pytest.raises(ValidationError) as refusal:
        Plan.model_validate(PLAN | {"site_settings": {f"plant-{number}": 3 for number in range(60)}})
    text = explain(refusal.value)
    assert text.count("give a table") == 5 and text.endswith("; and 55 more")


def test_weights_may_be_left_out_given_for_all_or_be_left_to_the_join() -> None:
    assert Plan.model_validate(PLAN).explicit_weights == {}
    given = Plan.model_validate(PLAN | weights(a=0.1, b=0.9))
    assert given.explicit_weights == {"a": 0.1, "b": 0.9}
    assert Plan.model_validate(PLAN | {"sites": []} | weights(a=0.1)).explicit_weights == {"a": 0.1}
    assert Plan.model_validate(PLAN | {"site_settings": {"a": {"label_flip_cost": 2}}}).explicit_weights == {}


def test_a_plan_comes_back_from_toml_and_from_its_document() -> None:
    text = """
    name = "nightly"
    asset_type = "pump"
    [spec]
    label_flip_cost = inf
    [spec.radius]
    rule = "confidence"
    confidence = 0.95
    [spec.lift]
    components = 64
    bandwidth = 0.5
    [site_settings.a]
    label_flip_cost = inf
    """
    plan = Plan.model_validate(tomllib.loads(text))
    assert plan.spec.label_flip_cost == math.inf == plan.site_settings["a"].label_flip_cost
    assert Plan.model_validate(json.loads(json.dumps(to_plain(plan), allow_nan=False))) == plan


def test_a_pinned_lift_is_drawn_only_where_it_is_the_same() -> None:
    spec = pinned(FourierLiftSpec(components=5, bandwidth=0.5, seed=1), 3)
    lift = fourier_lift(3, 5, bandwidth=0.5, seed=1)
    assert spec is not None and spec.fingerprint == lift.fingerprint
    drawn = draw_lift(spec, 3)
    assert isinstance(drawn, FourierLift)
    np.testing.assert_array_equal(drawn.frequencies, lift.frequencies)
    assert (lifted_size(spec, 3), lifted_size(None, 3)) == (drawn.n_outputs, 3) == (8, 3)
    with pytest.raises(LiftMismatchError, match="drawn here from seed 2"):
        draw_lift(spec.model_copy(update={"seed": 2}), 3)
    assert draw_lift(None, 3) is None and pinned(None, 3) is None and lift_check(None) == 0.0
    other = fourier_lift(3, 5, bandwidth=0.5, seed=2)
    assert lift_check(lift) == int(lift.fingerprint[:13], 16) != lift_check(other)


def test_the_weights_of_a_lifted_version_have_the_size_of_the_lift() -> None:
    features = tuple(Feature(name=name, unit="1", low=0, high=1) for name in ("p", "q"))
    kind = AssetType(
        name="rig", features=features,
        fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
    )
    fields: dict[str, Any] = {
        "name": "rig", "run_id": "0" * 32, "plan": "rig", "method": "level-bundle", "asset_type": kind,
        "spec": TrainingSpec(lift=pinned(FourierLiftSpec(components=4, bandwidth=0.5), 2)), "rounds": 1,
        "certified_gap": 0.0,
        "worst_case_risk": 1.0, "lower_bound": 1.0, "fresh_weight": 1.0, "created_at": datetime(2030, 1, 1, tzinfo=UTC),
    }
    version = ModelVersion(weights=np.ones((1, 7)), **fields)
    again = ModelVersion.from_document(json.loads(json.dumps(version.to_document())))
    assert again.lift is not None and again.spec == version.spec
    with pytest.raises(ValidationError, match=r"shape \(1, 7\), got \(1, 3\)"):
        ModelVersion(weights=np.ones((1, 3)), **fields)
    lift = fields["spec"].lift.model_copy(update={"fingerprint": "0" * 64})
    elsewhere = ModelVersion(weights=np.ones((1, 7)), **fields | {"spec": TrainingSpec(lift=lift)})
    with pytest.raises(ConflictError, match="model rig cannot be used here: the lift drawn here"):
        _ = elsewhere.lift
