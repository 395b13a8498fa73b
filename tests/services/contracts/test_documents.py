from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from services.contracts.documents import to_plain
from services.contracts.errors import InvalidInputError
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore

any_number = st.floats(width=64)
RECENT = (
    "n_test", "mae", "rmse", "r2", "pinball", "coverage", "mixture", "error_interval", "worst_weight", "loss", "note",
    "convex_part", "objective", "objective_name",
)
KIND = AssetType(
    name="triplex-pump",
    features=(Feature(name="flow", unit="l/min", low=0.1, high=0.3), Feature(name="oil", unit="degC", low=-1, high=1)),
    fault_classes=tuple(FaultClass(name=name, severity=1) for name in ("healthy", "leak", "worn")),
)


def version(**changes: object) -> ModelVersion:
    fields: dict[str, object] = {
        "name": "triplex-pump", "run_id": "0" * 32, "plan": "nightly", "method": "fdr-admm", "asset_type": KIND,
        "spec": TrainingSpec(label_flip_cost=math.inf), "weights": np.zeros((3, 3)), "rounds": 1,
        "certified_gap": math.inf, "worst_case_risk": 1.0, "lower_bound": -math.inf, "fresh_weight": 1.0,
        "created_at": datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC),
    }
    return ModelVersion.model_validate(fields | changes)


@given(
    weights=arrays(np.float64, (3, 3), elements=st.floats(allow_nan=False, allow_infinity=False)),
    gap=any_number,
    risk=any_number,
    f1=st.none() | any_number,
)
def test_a_version_comes_back_from_its_document_bit_for_bit(
    weights: np.ndarray[tuple[int, int], np.dtype[np.float64]], gap: float, risk: float, f1: float | None
) -> None:
    site = SiteScore(site_id="plant-a", weight=1.0, radius=risk, f1=f1)
    given_version = version(weights=weights, certified_gap=gap, worst_case_risk=risk, f1=f1, sites=(site,))
    text = json.dumps(given_version.to_document(), allow_nan=False)
    found = ModelVersion.from_document(json.loads(text))
    assert found.weights.tobytes() == weights.tobytes() and found.weights.dtype == np.float64
    assert json.dumps(found.to_document(), allow_nan=False) == text
    assert repr((found.certified_gap, found.worst_case_risk, found.f1, found.sites)) == repr((gap, risk, f1, (site,)))
    assert found.created_at == given_version.created_at and found.spec == given_version.spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "ballast.model-version/2"}, "schema must be 'ballast.model-version/1', got 'ballast.model-"),
        ({"schema": None}, "schema must be"),
        ({"weights": [[1.0, 2.0], [3.0]]}, "rows of numbers"),
        ({"weights": [["a", 1.0, 2.0]]}, "rows of numbers"),
        ({"weights": [[1.0, 2.0, 3.0]]}, r"weights must be finite and of shape \(3, 3\)"),
        ({"weights": [[math.nan] * 3] * 3}, "weights must be finite"),
        ({"rounds": "many"}, "rounds: "),
        ({"extra": 1}, "extra: "),
        ({"asset_type": {}}, "asset_type.name: "),
    ],
)
def test_what_is_no_document_of_a_version_is_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        ModelVersion.from_document({**version().to_document(), **change})
    assert "\n" not in str(caught.value)


def test_a_document_without_a_field_is_one_line() -> None:
    document = version().to_document()
    del document["weights"]
    with pytest.raises(InvalidInputError, match="weights must be finite and of shape"):
        ModelVersion.from_document(document)


def test_plain_values() -> None:
    assert to_plain({"a": (1, True, None, "x"), "b": np.array([[1.5]]), "c": np.float64(2.0)}) == {
        "a": [1, True, None, "x"], "b": [[1.5]], "c": 2.0,
    }
    assert to_plain([math.inf, -math.inf, math.nan]) == ["Infinity", "-Infinity", "NaN"]
    assert type(to_plain(np.float64(2.0))) is float, "shown as 2.0, not as a number of numpy"
    with pytest.raises(TypeError, match="set"):
        to_plain({"a": {1}})


def test_a_document_from_before_targets_losses_mixtures_and_notes_is_read_as_what_it_was() -> None:
    document = version(sites=(SiteScore(site_id="plant-a", weight=1.0, radius=0.1),)).to_document()
    old = {name: document[name] for name in document if name not in RECENT}
    old["spec"] = {name: value for name, value in document["spec"].items() if name != "loss"}
    old["asset_type"] = {name: value for name, value in document["asset_type"].items() if name != "target"}
    old["sites"] = [{name: value for name, value in site.items() if name not in RECENT} for site in document["sites"]]
    found = ModelVersion.from_document(old)
    assert found.task == "classification" and str(found.spec.loss) == "hinge" and found.mixture.radius == 0.0
    assert found.note == "" and found.convex_part is None and found.to_document() == document


@pytest.mark.parametrize(("method", "risk"), [("fdr-admm", 1.0), ("standard", None), ("gone", None)])
def test_a_version_from_before_objectives_claims_a_risk_over_balls_only_where_its_method_minimised_it(
    method: str, risk: float | None
) -> None:
    site = SiteScore(site_id="plant-a", weight=1.0, radius=0.1, worst_case_risk=0.7)
    document = version(method=method, objective=1.0, objective_name="", sites=(site,)).to_document()
    old = {name: value for name, value in document.items() if not name.startswith("objective")}
    found = ModelVersion.from_document(old)
    assert (found.worst_case_risk, found.objective, found.lower_bound) == (risk, 1.0, -math.inf)
    assert found.sites[0].worst_case_risk == (None if risk is None else 0.7)
    assert ("worst-case risk" in found.objective_name) == (method == "fdr-admm")
    assert ModelVersion.from_document(found.to_document()).to_document() == found.to_document()
