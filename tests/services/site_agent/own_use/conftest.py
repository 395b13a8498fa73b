"""A version with its file, and the OEM that signed it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from models.methods.protocol import WORST_CASE
from services.contracts.keys.signed_documents import signature_of
from services.contracts.keys.signing import new_seed_file
from services.contracts.machines.asset_type import AssetType
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion


@pytest.fixture
def version(asset_type: AssetType) -> ModelVersion:
    return ModelVersion(
        name="pump", run_id="a" * 32, plan="pump", method="level-bundle", asset_type=asset_type,
        spec=TrainingSpec(transport_norm="l1"), weights=np.array([[4.0, 3.0, -0.5, -3.6]]), rounds=3,
        certified_gap=1e-3, worst_case_risk=0.4, objective=0.4, objective_name=WORST_CASE,
        lower_bound=0.39, fresh_weight=1.0,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


@pytest.fixture
def oem(tmp_path: Path) -> tuple[Path, str]:
    """Seed and public key of the OEM."""
    seed = tmp_path / "oem.nk"
    return seed, new_seed_file(seed)


@pytest.fixture
def model_file(tmp_path: Path, version: ModelVersion, oem: tuple[Path, str]) -> Path:
    seed, key = oem
    document = version.model_copy(update={"signed_by": key}).to_document()
    path = tmp_path / "champion.json"
    path.write_text(json.dumps({**document, "signature": signature_of(document, seed), "version": "7"}))
    return path
