"""Rings of abalones through the running service: three plants with a CSV each, Huber and quantile models, estimates."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.machines.asset_type import AssetType, Feature
from services.contracts.machines.target import Target
from services.predictor.cache import PredictorCache
from services.site_agent.settings import CsvSource
from tests.tables import table_or_skip

MEASURES = ("length", "diameter", "height", "whole_weight", "shucked_weight", "viscera_weight", "shell_weight")
ABALONE = AssetType(
    name="abalone",
    features=tuple(Feature(name=name, unit="1", low=0.0, high=3.0) for name in MEASURES),
    target=Target(name="rings", unit="rings", low=0.0, high=30.0),
)
RADIUS = {"rule": "fixed", "value": 1e-4}
SPECS: dict[str, dict[str, Any]] = {
    "rings-huber": {"loss": {"name": "huber", "epsilon": 0.045}, "radius": RADIUS},
    "rings-median": {"loss": {"name": "pinball", "quantile": 0.5}, "radius": RADIUS},
    "rings-upper": {"loss": {"name": "pinball", "quantile": 0.9}, "radius": RADIUS},
}


@pytest.fixture(scope="module")
def table() -> list[dict[str, str]]:
    with table_or_skip("abalone").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def works(
    tmp_path_factory: pytest.TempPathFactory, new_sqlite: Any, opening_works: Any, table: list[dict[str, str]]
) -> Iterator[Any]:
    base = tmp_path_factory.mktemp("abalone")
    order, sources = np.random.default_rng(4).permutation(len(table)), {}
    for number, part in enumerate(np.array_split(order, 3), start=1):
        path = Path(base / f"plant-{number}.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*MEASURES, "rings"])
            writer.writerows([[table[row][name] for name in MEASURES] + [table[row]["label"]] for row in part])
        sources[f"plant-{number}"] = CsvSource(kind="csv", path=path, target_column="rings")
    with opening_works(base, new_sqlite(), ABALONE, sources) as opened:
        yield opened


@pytest.mark.parametrize("name", SPECS)
def test_rings_are_estimated_in_rings_and_the_interval_covers(
    works: Any, table: list[dict[str, str]], name: str
) -> None:
    plan = works.plan(name, spec=SPECS[name], max_rounds=60, mixture={"norm": "l2", "radius": 0.1})
    _, outcome, version = works.train(plan)
    assert outcome.certificate.gap <= 1e-3
    assert version.mae is not None and version.mae < (2.0 if name != "rings-upper" else 4.0)
    assert version.coverage is not None and version.coverage >= 0.9
    works.context.registry.promote(name, version.version)
    asked = table[:200]
    samples = [{measure: float(row[measure]) for measure in MEASURES} for row in asked]
    estimates = PredictorCache(works.context.registry).estimator(name, "champion").estimate(samples, confidence=0.9)
    values = np.array([each.value for each in estimates])
    truth = np.array([float(row["label"]) for row in asked])
    assert {each.unit for each in estimates} == {"rings"}
    covered = [e.interval.low <= t <= e.interval.high for e, t in zip(estimates, truth, strict=True)]
    assert np.mean(covered) >= 0.9
    if name == "rings-upper":
        assert 0.8 <= np.mean(truth <= values) <= 1.0
    else:
        assert np.abs(values - truth).mean() < 2.5
