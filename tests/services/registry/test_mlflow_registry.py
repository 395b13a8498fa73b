from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from services.contracts.model_version import ModelVersion
from services.contracts.run import RoundRecord
from services.registry.mlflow_registry import ModelRegistry

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]


def test_a_registered_version_comes_back_bit_for_bit(
    registry: ModelRegistry, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    for n_classes in (2, 4):
        version = make_version(name=name, n_classes=n_classes)
        registered = registry.register(version, make_rounds(version.run_id), {"text": "report"})
        found = registry.get(name, registered.version)
        assert found.weights.tobytes() == version.weights.tobytes()
        assert found.to_document() == {**version.to_document(), "version": registered.version}
