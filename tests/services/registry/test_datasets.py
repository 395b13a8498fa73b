"""MLflow's datasets of a version: a few scalars by plant, no plant's name, no row."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from services.contracts.versions.model_version import ModelVersion
from services.contracts.versions.version_facts import SiteScore
from services.plant_simulator.assets import builtin_asset_type
from services.registry.datasets import MOST, dataset_inputs
from tests.versions import a_version


def made(n: int, **changes: Any) -> ModelVersion:
    asset_type = builtin_asset_type("triplex-pump")
    fields = {"weight": 1 / n, "radius": 0.1, "confidence": 0.9}
    sites = tuple(SiteScore(site_id=f"secret-{k}", **fields | changes) for k in range(n))
    return a_version(asset_type, np.zeros((1, len(asset_type.features) + 1)), sites=sites)


def test_each_plant_is_a_dataset_by_its_number() -> None:
    inputs = dataset_inputs(made(3), {})
    assert [each.dataset.name for each in inputs] == ["plant 1 of 3", "plant 2 of 3", "plant 3 of 3"]
    assert "secret" not in repr([each.to_dictionary() for each in inputs])
    (tag,) = inputs[0].tags
    assert (tag.key, tag.value) == ("mlflow.data.context", "training")
    columns = json.loads(inputs[0].dataset.schema)["mlflow_colspec"]
    assert [each["name"] for each in columns] == list(builtin_asset_type("triplex-pump").feature_names)
    assert inputs[0].dataset.profile is None and len(inputs[0].dataset.digest) == 32


@pytest.mark.parametrize("changes", [{"radius": 0.2}, {"confidence": 0.8}])
def test_what_a_plant_told_makes_the_digest_and_its_weight_does_not(changes: dict[str, float]) -> None:
    def digest(version: ModelVersion) -> str:
        return str(dataset_inputs(version, {})[0].dataset.digest)

    assert digest(made(2, **changes)) != digest(made(2)) == digest(made(2, weight=0.3))


@pytest.mark.parametrize(("n", "names"), [(MOST, MOST), (MOST + 1, 1)])
def test_of_many_plants_all_together_are_one(n: int, names: int) -> None:
    assert len(dataset_inputs(made(n), {})) == names
