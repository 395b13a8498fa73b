"""The file that serves a version in MLflow, by itself: which readings it takes, and what it cuts to a range."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException

from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.estimator import Estimator
from services.registry.pyfunc_model import ServedModel
from tests.versions import a_version

FEATURES = (
    Feature(name="flow", unit="l/min", low=0.0, high=10.0, out_of_range="refuse"),
    Feature(name="oil", unit="deg C", low=0.0, high=100.0, required=False),
)
CLASSES = tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("ok", "leak")))
RIG = AssetType(name="rig", features=FEATURES, fault_classes=CLASSES)
WEIGHTS = np.array([[3.0, 1.0, -1.0]])


def served(version: ModelVersion, folder: Path) -> ServedModel:
    """The serving file with a version's document."""
    (folder / "model.json").write_text(json.dumps(version.to_document()))
    model = ServedModel()
    model.load_context(SimpleNamespace(artifacts={"model": str(folder / "model.json")}))
    return model


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([5.0, None], "flow is required"), ([5.0, np.nan], "flow is required"),
        ([5.0, -0.1], "outside its sensor range"), ([5.0, 10.1], "outside its sensor range"),
        ([5.0, np.inf], "must be a finite number"), ([5.0, 10**400], "must be a finite number"),
        ([5.0, True], "must be a number in l/min, got bool"), ([5.0, "5"], "must be a number in l/min, got str"),
        ([True, False], "must be a number in l/min, got bool"),
    ],
)
def test_one_reading_that_does_not_fit_refuses_all(flows: list[Any], said: str, tmp_path: Path) -> None:
    model = served(a_version(RIG, WEIGHTS), tmp_path)
    assert len(model.predict(None, pd.DataFrame({"flow": [0.0, 10.0], "oil": [-5.0, 500.0]}))) == 2
    with pytest.raises(MlflowException, match=said):
        model.predict(None, pd.DataFrame({"flow": flows}))


def test_an_estimate_and_its_interval_end_with_the_targets_range_as_the_predictors_do(tmp_path: Path) -> None:
    wear = Target(name="wear", unit="mm", low=1.0, high=5.0)
    spec = TrainingSpec.model_validate({"loss": {"name": "pinball", "quantile": 0.75}})
    version = a_version(
        RIG.model_copy(update={"target": wear}), WEIGHTS, spec=spec,
        error_interval=ErrorInterval.implied(spec.loss.loss, wear, 0.02, 0.9),
    )
    samples = [{"flow": flow, "oil": oil} for flow in (0.0, 3.0, 4.0, 6.0, 10.0) for oil in (0.0, 30.0)]
    found = served(version, tmp_path).predict(None, pd.DataFrame(samples))
    for mine, theirs in zip(Estimator(version).estimate(samples), found, strict=True):
        assert theirs["value"] == pytest.approx(mine.value)
        assert (theirs["interval"]["low"], theirs["interval"]["high"]) == pytest.approx(
            (mine.interval.low, mine.interval.high)
        )
    values = [each["value"] for each in found]
    assert {1.0, 5.0} < set(values) and min(values) == 1.0 and max(values) == 5.0
