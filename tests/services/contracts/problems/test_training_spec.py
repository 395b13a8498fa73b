"""Which parts of a training problem go together, and which numbers belong to which rule."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.reading import explain

TAIL = {"exponent": 2, "c1": 1, "c2": 1, "c3": 1}
POLYTOPE = {"matrix": [[1.0], [-1.0]], "limits": [1.0, 0.0]}
SPLINE = {"kind": "spline", "segments": 2}


@pytest.mark.parametrize(("rule", "said"), [
    ({"rule": "samples", "value": 0}, "value, the beta of the rule samples, must be above 0, got 0"),
    ({"rule": "samples", "tail": TAIL}, "confidence and tail belong to the rule confidence, the rule is samples"),
    ({"rule": "fixed", "tail": TAIL}, "the rule is fixed"), ({"rule": "confidence", "tail": TAIL}, "needs confidence"),
    ({"rule": "confidence", "confidence": 0}, "confidence"), ({"seed": -1}, "seed"),
    *(({"rule": "confidence", "confidence": 0.9, "tail": TAIL | {name: 0}}, name) for name in ("c1", "c2", "c3")),
    ({"rule": "confidence", "confidence": 0.9, "tail": TAIL | {"exponent": 1}}, "exponent"),
])
def test_a_number_belongs_to_its_rule(rule: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RadiusRule.model_validate(rule)
    assert said in explain(refused.value)


def test_a_fixed_radius_may_be_nothing() -> None:
    assert RadiusRule(rule="fixed", value=0).value == 0 and RadiusRule().value == 10.0


@pytest.mark.parametrize(("spec", "said"), [
    ({"multi_class": "crammer_singer", "support": "sensor_ranges"}, "crammer_singer is the hinge of all classes"),
    ({"multi_class": "crammer_singer", "loss": "logistic"}, "crammer_singer is the hinge of all classes"),
    ({"support": "sensor_ranges", "loss": "squared"}, "the squared loss is for training without a ball"),
    ({"support": "sensor_ranges", "loss": "logistic"}, "the logistic loss has a robust risk for unbounded features"),
    ({"network": {}}, "a network is trained with the loss cross_entropy, got hinge"),
    ({"loss": "cross_entropy", "fit_intercept": False}, "cross_entropy scores the scaled features themselves"),
    ({"loss": "cross_entropy", "lift": SPLINE}, "cross_entropy scores the scaled features themselves"),
    ({"support": POLYTOPE, "lift": SPLINE}, "a polytope speaks of the features themselves"),
])
def test_parts_that_do_not_go_together_are_refused(spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TrainingSpec.model_validate(spec)
    assert said in explain(refused.value)


def test_what_bounds_the_features_has_a_kind() -> None:
    for support, kind in (("unbounded", "unbounded"), ("sensor_ranges", "box"), (POLYTOPE, "polytope")):
        assert TrainingSpec.model_validate({"support": support}).support_kind == kind


def test_plants_and_digests_of_before_see_no_new_key() -> None:
    assert "multi_class" not in TrainingSpec().model_dump()
    assert TrainingSpec(multi_class="crammer_singer").model_dump()["multi_class"] == "crammer_singer"
