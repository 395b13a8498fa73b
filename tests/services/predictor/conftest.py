from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from tests.versions import a_version

FEATURES = (
    Feature(name="flow_mean", unit="l/min", low=0.0, high=80.0),
    Feature(name="flow_ripple", unit="l/min", low=0.0, high=10.0),
    Feature(name="pressure", unit="bar", low=100.0, high=300.0, out_of_range="refuse"),
    Feature(name="oil_temperature", unit="degC", low=-20.0, high=140.0, required=False),
    Feature(name="vibration", unit="mm/s", low=0.0, high=50.0),
    Feature(name="speed", unit="1/min", low=0.0, high=1500.0),
)
CLASSES = tuple(
    FaultClass(name=name, severity=severity)
    for name, severity in (("healthy", 0), ("leak", 3), ("blocked_inlet", 2), ("worn_bearing", 5))
)
MakeVersion = Callable[..., ModelVersion]


@pytest.fixture(scope="session")
def make_version() -> MakeVersion:
    """A version by its weights, shape (K, P + 1): the first P features, two classes for one plane, else K."""

    def make(weights: object, *, version: str = "1", **spec_of: str) -> ModelVersion:
        rows = np.array(weights, dtype=np.float64)
        n_features = rows.shape[1] - 1
        n_classes = 2 if len(rows) == 1 else len(rows)
        asset_type = AssetType(
            name="triplex-pump", features=FEATURES[:n_features], fault_classes=CLASSES[:n_classes]
        )
        spec = TrainingSpec.model_validate({"transport_norm": "l2"} | spec_of)
        return a_version(asset_type, rows, version=version, spec=spec)

    return make


@pytest.fixture
def sample() -> dict[str, float]:
    return {"flow_mean": 60.0, "flow_ripple": 2.5, "pressure": 200.0, "oil_temperature": 60.0}
