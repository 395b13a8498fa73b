"""An ONNX model says what the predictor says, for every kind of version."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from services.contracts.machines.asset_type import Feature
from services.contracts.versions.model_version import ModelVersion
from services.exporting.onnx_model import NO_CLASS, onnx_model
from services.predictor.estimator import Estimator
from services.predictor.predictor import Predictor
from tests.services.exporting.conftest import BY_LOG, LIFTS


def run(data: bytes, rows: Any, kind: Any = np.float64) -> dict[str, Any]:
    model = onnx.load_from_string(data)
    names = [output.name for output in model.graph.output]
    found = ReferenceEvaluator(model).run(None, {"features": np.array(rows, dtype=kind)})
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_and_classes_are_the_predictors(
    make_model: Callable[..., ModelVersion], drawn: Any, lift: Any, n_classes: int, features: tuple[Feature, ...]
) -> None:
    version = make_model(lift, n_classes, features)
    samples, rows = drawn(60)
    said = run(onnx_model(version), rows)
    found = Predictor(version).diagnose(samples)
    assert [str(name) for name in said["class"]] == [each.fault_class for each in found]
    np.testing.assert_allclose(said["scores"], [list(each.scores.values()) for each in found], rtol=0, atol=1e-9)


def test_estimates_are_the_estimators(
    make_model: Callable[..., ModelVersion], drawn: Any, lift: Any, features: tuple[Feature, ...]
) -> None:
    version = make_model(lift, 0, features)
    samples, rows = drawn(60)
    said = run(onnx_model(version), rows)["estimate"]
    found = [each.value for each in Estimator(version).estimate(samples)]
    np.testing.assert_allclose(said[:, 0], found, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_network_answers_as_the_predictor_does(
    make_network: Callable[..., ModelVersion], drawn: Any, features: tuple[Feature, ...], n_classes: int
) -> None:
    version = make_network(n_classes, features)
    samples, rows = drawn(60)
    found = Predictor(version).diagnose(samples)
    for single, near in ((False, 1e-12), (True, 1e-4)):
        said = run(onnx_model(version, single=single), rows, np.float32 if single else np.float64)
        np.testing.assert_allclose(said["scores"], [list(each.scores.values()) for each in found], rtol=0, atol=near)
        assert single or [str(name) for name in said["class"]] == [each.fault_class for each in found]


def test_in_32_bits_it_is_near(
    make_model: Callable[..., ModelVersion], drawn: Any, lift: Any, features: tuple[Feature, ...]
) -> None:
    version = make_model(lift, 4, features)
    samples, rows = drawn(30)
    said = run(onnx_model(version, single=True), rows, np.float32)["scores"]
    assert said.dtype == np.float32
    found = [list(each.scores.values()) for each in Predictor(version).diagnose(samples)]
    np.testing.assert_allclose(said, found, atol=2e-3)


@pytest.mark.parametrize("kind", [*LIFTS, "network"])
def test_a_missing_required_feature_gives_no_score(
    make_model: Callable[..., ModelVersion], make_network: Callable[..., ModelVersion], kind: str
) -> None:
    version = make_network() if kind == "network" else make_model(LIFTS[kind])
    said = run(onnx_model(version), [[np.nan, 150.0, 20.0], [10.0, 150.0, np.nan]])
    assert np.isnan(said["scores"][0]).all() and np.isfinite(said["scores"][1]).all()
    assert said["class"][0] == NO_CLASS and said["class"][1] in ("healthy", "leak")


def test_it_says_what_it_is_and_names_nothing_in_the_graph_by_a_contracts_texts(
    make_model: Callable[..., ModelVersion]
) -> None:
    version = make_model(None, 4).model_copy(update={"name": "pump-a"})
    model = onnx.load_from_string(onnx_model(version))
    told = {entry.key: entry.value for entry in model.metadata_props}
    told_features = json.loads(told.pop("ballast.features"))
    assert told == {
        "ballast.model": "pump-a", "ballast.version": "3", "ballast.run_id": "ab" * 16, "ballast.asset_type": "pump-7",
        "ballast.contract_sha256": version.asset_type.fingerprint, "ballast.task": "classification",
    }
    assert told_features[1] == {"name": "pressure", "unit": "bar", "low": 100.0, "high": 300.0}
    assert (model.opset_import[0].version, model.ir_version) == (18, 8), "from ONNX 1.13 on"
    shapes = [each.type.tensor_type.shape.dim for each in (*model.graph.input, *model.graph.output)]
    assert [[each.dim_param or each.dim_value for each in dims] for dims in shapes] == [["n", 3], ["n", 4], ["n"]]
    names = {name for node in model.graph.node for name in (*node.input, *node.output)}
    assert not names & set(version.asset_type.feature_names) and onnx_model(version) == onnx_model(version)


def test_it_says_of_a_target_its_unit_and_of_a_feature_its_logarithms(make_model: Callable[..., ModelVersion]) -> None:
    model = onnx.load_from_string(onnx_model(make_model(None, 0, BY_LOG)))
    told = {entry.key: entry.value for entry in model.metadata_props}
    assert told["ballast.task"] == "regression" and json.loads(told["ballast.target"]) == {"name": "wear", "unit": "mm"}
    assert [each.get("scale") for each in json.loads(told["ballast.features"])] == [None, "log", "log"]
