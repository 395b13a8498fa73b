"""Documents of versions keep to what was signed, and a version holds numbers alone that can be true."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from services.contracts.errors import ConflictError
from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import PlantFreshness, ReusedCuts, SiteScore

LATER = {"calibration", "tuning", "coupling", "reused", "freshness"}
"""Members that documents of earlier releases do not have; under their signature there must be none of them."""
KIND = AssetType(
    name="pump",
    features=tuple(Feature(name=name, unit="1", low=0, high=2) for name in ("flow", "oil")),
    fault_classes=(FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=1)),
    target=Target(name="wear", unit="mm", low=1, high=5),
)
PINBALL = TrainingSpec(loss={"name": "pinball", "quantile": 0.25})


def version(**changes: Any) -> ModelVersion:
    fields: dict[str, Any] = {
        "name": "pump", "run_id": "0" * 32, "plan": "nightly", "method": "level-bundle", "asset_type": KIND,
        "spec": TrainingSpec(), "weights": np.zeros((1, 3)), "rounds": 4, "certified_gap": 0.5, "worst_case_risk": 1.0,
        "objective": 0.8, "objective_name": "it", "lower_bound": 0.4, "fresh_weight": 1.0,
        "created_at": datetime(2030, 1, 1, tzinfo=UTC),
    }
    return ModelVersion.model_validate(fields | changes)


def test_a_document_has_no_member_that_its_release_did_not_know() -> None:
    document = version().to_document()
    assert not LATER & document.keys() and "network" not in document["spec"]
    assert LATER <= ModelVersion.model_fields.keys(), "each is a field all the same"


@pytest.mark.parametrize(("name", "value"), [
    ("reused", ReusedCuts(run_id="1" * 32, sites=("a",))), ("freshness", ()),
    ("freshness", (PlantFreshness(site_id="a", question=2, came=3, at_model=False),)),
    ("spec", TrainingSpec(multi_class="crammer_singer")),
])
def test_what_a_version_has_stands_in_its_document(name: str, value: object) -> None:
    made = version(**{name: value})
    document = made.to_document()
    assert name in document and getattr(ModelVersion.from_document(document), name) == value
    assert ModelVersion.from_document(document).to_document() == document


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan])
def test_weights_are_finite(wrong: float) -> None:
    with pytest.raises(ValidationError, match="weights must be finite"):
        version(weights=np.array([[0.0, wrong, 0.0]]))


def test_a_version_from_before_objectives_claims_nothing_over_balls_of_what_did_not_minimise_it() -> None:
    site = SiteScore(site_id="a", weight=1.0, radius=0.1, worst_case_risk=0.7, mae=0.2)
    interval = ErrorInterval(confidence=0.9, below=1, above=1, risk=0.1)
    document = version(
        spec=PINBALL, method="fedavg", error_interval=interval, coverage=0.95, mae=0.3, sites=(site,),
    ).to_document()
    old = {name: value for name, value in document.items() if not name.startswith("objective")}
    found = ModelVersion.from_document(old)
    assert (found.worst_case_risk, found.error_interval, found.coverage) == (None, None, None)
    assert (found.objective, found.mae, found.sites[0].mae, found.sites[0].worst_case_risk) == (1.0, 0.3, 0.2, None)
    kept = ModelVersion.from_document(old | {"method": "level-bundle"})
    assert (kept.worst_case_risk, kept.error_interval, kept.coverage) == (1.0, interval, 0.95)


def test_an_interval_is_that_of_the_risk_over_the_balls_by_hand() -> None:
    """Pinball at 1/4 of a risk of 0.06 at 0.8: height 0.3, residuals from -1.2 to 0.4, the target 4 mm wide."""
    interval = ErrorInterval(confidence=0.9, below=1, above=1, risk=0.06)
    found = version(spec=PINBALL, error_interval=interval, worst_case_risk=9.0).error_interval_at(0.8)
    assert (found.below, found.above, found.risk) == pytest.approx((1.6, 4.8, 0.06))
    with pytest.raises(ConflictError, match="has no bound"):
        version(spec=PINBALL).error_interval_at(0.8)
    with pytest.raises(ConflictError, match="tells classes"):
        version(error_interval=interval).error_interval_at(0.8)


def test_the_figures_are_the_certificates_and_the_held_out_scores() -> None:
    assert version(f1=0.9, mae=None).figures == {
        "rounds": 4.0, "certified_gap": 0.5, "worst_case_risk": 1.0, "objective": 0.8, "lower_bound": 0.4, "f1": 0.9,
        "n_test": None, "mae": None, "rmse": None, "r2": None, "pinball": None, "coverage": None,
    }
