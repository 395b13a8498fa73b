"""Versions of every kind that can be exported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from services.contracts.evaluation.scores import ErrorInterval
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.contracts.problems.lift import (
    FourierLiftSpec,
    LiftSpec,
    NystromLiftSpec,
    ProductLiftSpec,
    SplineLiftSpec,
    lifted_size,
    pinned,
)
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from tests.versions import a_version

FEATURES = (
    Feature(name="flow", unit="l/min", low=-3.0, high=80.0),
    Feature(name="pressure", unit="bar", low=100.0, high=300.0),
    Feature(name="oil", unit="degC", low=-20.0, high=140.0, required=False),
)
BY_LOG = tuple(
    each.model_copy(update={"scale": "log", "low": max(each.low, 2.0)}) if each.name != "flow" else each
    for each in FEATURES
)
"""The same with two sensors that are scaled by logarithms, the optional one among them."""
CLASSES = tuple(FaultClass(name=name, severity=k) for k, name in enumerate(("healthy", "leak", "worn", "blocked")))
WEAR = Target(name="wear", unit="mm", low=1.0, high=5.0)
LIFTS: dict[str, LiftSpec | None] = {
    "none": None,
    "fourier": FourierLiftSpec(components=10, bandwidth=0.6, seed=9),
    "fourier alone": FourierLiftSpec(components=10, bandwidth=0.6, seed=9, keep_linear=False),
    "spline": SplineLiftSpec(kind="spline", segments=4),
    "products": ProductLiftSpec(kind="products", features=(2, 0), squares=True),
    "products of lines": ProductLiftSpec(kind="products", features=(2, 0), squares=True, segments=3),
    "nystrom": NystromLiftSpec(kind="nystrom", components=6, bandwidth=0.5, seed=1),
    "nystrom alone": NystromLiftSpec(kind="nystrom", components=6, bandwidth=0.5, seed=1, keep_linear=False),
}


@pytest.fixture(params=[*LIFTS])
def lift(request: pytest.FixtureRequest) -> LiftSpec | None:
    return LIFTS[request.param]


@pytest.fixture(params=[FEATURES, BY_LOG], ids=["linear", "logarithms"])
def features(request: pytest.FixtureRequest) -> tuple[Feature, ...]:
    made: tuple[Feature, ...] = request.param
    return made


@pytest.fixture(scope="session")
def make_model() -> Callable[..., ModelVersion]:
    """A version by its lift and number of classes; 0 classes: of a target."""

    def make(
        lift: LiftSpec | None = None, n_classes: int = 2, features: tuple[Feature, ...] = FEATURES
    ) -> ModelVersion:
        loss = {"name": "pinball", "quantile": 0.75} if n_classes == 0 else {"name": "hinge"}
        spec = TrainingSpec.model_validate({"loss": loss, "lift": pinned(lift, len(features))})
        kind = AssetType(name="pump-7", features=features, fault_classes=CLASSES[: n_classes or 2], target=WEAR)
        heads = 1 if n_classes in (0, 2) else n_classes
        size = lifted_size(lift, len(features)) + 1
        weights = np.random.default_rng(n_classes).normal(size=(heads, size))
        around = ErrorInterval.implied(spec.loss.loss, WEAR, 0.02, 0.9) if n_classes == 0 else None
        return a_version(kind, weights, spec=spec, version="3", error_interval=around)

    return make


@pytest.fixture(scope="session")
def make_network() -> Callable[..., ModelVersion]:
    """A version of a network with five hidden units, by its number of classes."""

    def make(n_classes: int = 2, features: tuple[Feature, ...] = FEATURES) -> ModelVersion:
        spec = TrainingSpec.model_validate({"loss": "cross_entropy", "network": {"hidden": 5}})
        kind = AssetType(name="pump-7", features=features, fault_classes=CLASSES[:n_classes])
        size = 5 * (len(features) + 1) + n_classes * 6
        weights = np.random.default_rng(n_classes).normal(size=(1, size))
        return a_version(
            kind, weights, spec=spec, version="3", certified_gap=float("inf"), lower_bound=float("-inf"),
            worst_case_risk=None,
        )

    return make


@pytest.fixture(scope="session")
def drawn() -> Callable[..., tuple[list[dict[str, float]], list[list[float]]]]:
    """Samples in and out of their ranges, the optional feature often missing: as mappings, and as rows with NaN."""

    def draw(n: int) -> tuple[list[dict[str, float]], list[list[float]]]:
        rng = np.random.default_rng(7)
        rows = rng.uniform([-20, 80, -50], [100, 320, 170], size=(n, 3))
        rows[rng.uniform(size=n) < 0.4, 2] = np.nan
        names = [feature.name for feature in FEATURES]
        samples = [
            {name: value for name, value in zip(names, row, strict=True) if not np.isnan(value)}
            for row in rows.tolist()
        ]
        return samples, rows.tolist()

    return draw
