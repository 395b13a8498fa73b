from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import RoundRecord
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.training_spec import RadiusRule, TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.registry.mlflow_registry import ModelRegistry
from tests.versions import START, a_round, a_version, an_answer

FEATURES = (
    Feature(name="flow_mean", unit="l/min", low=0.0, high=80.0),
    Feature(name="flow_ripple", unit="l/min", low=0.0, high=12.5),
    Feature(name="pressure", unit="bar", low=0.0, high=310.0, out_of_range="refuse"),
    Feature(name="oil_temperature", unit="degC", low=-20.0, high=140.0, required=False),
)


def asset_type(n_classes: int) -> AssetType:
    names = ("healthy", "leak", "blocked_inlet", "worn_bearing")[:n_classes]
    classes = tuple(FaultClass(name=name, severity=severity) for severity, name in enumerate(names))
    return AssetType(name="triplex-pump", features=FEATURES, fault_classes=classes)


@pytest.fixture
def make_version(module_make_version: Callable[..., ModelVersion]) -> Callable[..., ModelVersion]:
    """A version by hand; each call has a run of its own unless it is given."""
    return module_make_version


@pytest.fixture(scope="session")
def module_make_version() -> Callable[..., ModelVersion]:
    numbers = itertools.count(1)

    def make(*, n_classes: int = 2, seed: int = 0, **changes: object) -> ModelVersion:
        kind = asset_type(n_classes)
        number = next(numbers)
        given: dict[str, object] = {
            "run_id": f"{number:032x}", "certified_gap": 8.1e-4, "worst_case_risk": 0.1 + 0.2, "lower_bound": 0.29975,
            "objective": 0.1 + 0.2, "f1": 0.93, "solvers": ("cuts",),
            "spec": TrainingSpec(radius=RadiusRule(rule="samples", value=10.0), transport_norm="l2"),
            "sites": (
                SiteScore(site_id="plant-a", weight=0.5, radius=0.001, f1=0.95, worst_case_risk=0.21),
                SiteScore(site_id="plant-b", weight=0.5, radius=0.002, f1=0.9, worst_case_risk=0.39),
            ),
            "created_at": START + timedelta(minutes=number),
        }
        weights = np.random.default_rng(seed).normal(size=(kind.heads("classification"), len(FEATURES) + 1))
        return a_version(kind, weights, **given | changes)

    return make


@pytest.fixture
def make_rounds() -> Callable[..., tuple[RoundRecord, ...]]:
    def make(run_id: str, count: int = 3) -> tuple[RoundRecord, ...]:
        return tuple(a_round(run_id, number, an_answer("plant-a")) for number in range(1, count + 1))

    return make


@pytest.fixture(scope="session")
def registry_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="session")
def tracking_uri(registry_home: Path, new_mlflow: Callable[[Path], str]) -> str:
    return new_mlflow(registry_home)


@pytest.fixture(scope="session")
def registry(registry_home: Path, tracking_uri: str) -> Iterator[ModelRegistry]:
    """One real MLflow on SQLite for all tests. They keep apart by model names."""
    made = ModelRegistry(tracking_uri, registry_home / "artifacts")
    made.prepare()
    yield made


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A model name of this test's own."""
    plain = "".join(letter if letter.isalnum() else "-" for letter in request.node.name.removeprefix("test_").lower())
    return f"{plain[:31].strip('-')}-{zlib.crc32(request.node.name.encode()):08x}"


@pytest.fixture
def client(registry: ModelRegistry, tracking_uri: str) -> Any:
    """MLflow's own client on the same store, to see what an outsider sees."""
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
