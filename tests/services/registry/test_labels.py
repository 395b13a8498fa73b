"""Labels of versions: what a list shows, also of versions from before their objective stood apart."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.registry.labels import summary, version_tags


@pytest.mark.parametrize(("method", "before"), [("level-bundle", 0.4), ("fedavg", None)])
def test_a_label_from_before_names_a_risk_over_balls_only_where_its_method_minimised_it(
    method: str, before: float | None
) -> None:
    kind = AssetType(
        name="pump", features=(Feature(name="flow", unit="l/min", low=0, high=1),),
        fault_classes=tuple(FaultClass(name=name, severity=1) for name in ("healthy", "leak")),
    )
    version = ModelVersion(
        name="pump", run_id="0" * 32, plan="nightly", method=method, asset_type=kind, spec=TrainingSpec(),
        weights=np.zeros((1, 2)), rounds=1, certified_gap=0.1, worst_case_risk=0.4, objective=0.3, objective_name="it",
        lower_bound=0.2, fresh_weight=1.0, created_at=datetime(2026, 3, 1, tzinfo=UTC),
    )
    tags = version_tags(version, "0" * 64)
    entry = SimpleNamespace(name="pump", version="1", run_id="run", tags=tags)
    assert summary(entry, {}).worst_case_risk == 0.4
    entry.tags = {name: text for name, text in tags.items() if name != "ballast.objective"}
    assert summary(entry, {}).worst_case_risk == before
