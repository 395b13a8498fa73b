"""Diagnoses with a sensor that is scaled by logarithms: the predictor, the model that MLflow serves, and margins."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from api.console.views.diagnose import _margins
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.predictor.predictor import Predictor
from services.registry.pyfunc_model import ServedModel
from tests.versions import a_version

FEATURES = (
    Feature(name="particles", unit="1", low=0.02, high=50.0, scale="log"),
    Feature(name="flow", unit="l/min", low=-3.0, high=80.0),
    Feature(name="iron", unit="ppm", low=1.0, high=1e4, required=False, scale="log"),
)
CLASSES = tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("ok", "worn", "leak")))
WEIGHTS = np.random.default_rng(2).normal(size=(3, 4))
VERSION = a_version(AssetType(name="pump", features=FEATURES, fault_classes=CLASSES), WEIGHTS)


def samples(n: int = 40) -> list[dict[str, float]]:
    """Readings in and out of their ranges, one at 0; iron is missing from every third."""
    random = np.random.default_rng(0)
    found = [
        {"particles": float(np.exp(random.uniform(-5.0, 5.0))), "flow": random.uniform(-9.0, 90.0),
         **({"iron": float(np.exp(random.uniform(-1.0, 10.0)))} if k % 3 else {})}
        for k in range(n)
    ]
    found[0]["particles"] = 0.0
    return found


def by_hand(sample: dict[str, float]) -> Any:
    particles = min(max(sample["particles"], 0.02), 50.0)
    flow, iron = min(max(sample["flow"], -3.0), 80.0), min(max(sample.get("iron", 100.0), 1.0), 1e4)
    scaled = [np.log(particles / 0.02) / np.log(2500.0), (flow + 3.0) / 83.0, np.log10(iron) / 4.0, 1.0]
    return WEIGHTS @ scaled


def test_readings_are_scaled_by_their_logarithms() -> None:
    for sample, found in zip(samples(), Predictor(VERSION).diagnose(samples()), strict=True):
        np.testing.assert_allclose(list(found.scores.values()), by_hand(sample), atol=1e-12)


def test_mlflow_answers_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps(VERSION.to_document()))
    served = ServedModel()
    served.load_context(SimpleNamespace(artifacts={"model": str(tmp_path / "model.json")}))
    answers = served.predict(None, pd.DataFrame(samples()))
    for answer, sample in zip(answers, samples(), strict=True):
        np.testing.assert_allclose(list(answer["scores"].values()), by_hand(sample), atol=1e-12)


def test_a_reading_may_move_by_its_margin_either_way_and_hardly_more() -> None:
    predictor, near = Predictor(VERSION), []
    for sample, found in zip(samples(), predictor.diagnose(samples()), strict=True):
        for margin in _margins(FEATURES, sample, found.robustness_radius):
            name = margin.feature.name
            for move in (-0.999 * margin.by, 0.999 * margin.by):
                moved = predictor.diagnose([{**sample, name: sample[name] + move}])[0]
                assert moved.fault_class == found.fault_class
            if name == "particles" and 0.02 < sample[name] < 50.0:
                scaled = [np.log(each / 0.02) / np.log(2500.0) for each in (sample[name], sample[name] - margin.by)]
                near.append((scaled[0] - scaled[1]) / (found.robustness_radius or 1.0))
    assert near == pytest.approx([1.0] * len(near)), "the way down is the scaled radius itself"
