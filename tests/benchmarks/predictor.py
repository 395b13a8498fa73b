"""Time of a diagnosis in the predictor: ``python -m tests.benchmarks.predictor [--json FILE]``.

Each row: classes, features, samples in one call, and microseconds per call (median and 99th percentile) and per sample.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from models.methods.protocol import WORST_CASE
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.problems.training_spec import TrainingSpec
from services.contracts.versions.model_version import ModelVersion
from services.predictor.predictor import Predictor
from tests.benchmarks.command import output_file

TARGET_MICROSECONDS = 200.0
CASES = ((2, 14, 1), (4, 14, 1), (6, 60, 1), (4, 14, 100), (4, 14, 10_000))


def version(n_classes: int, n_features: int, rng: np.random.Generator) -> ModelVersion:
    """A model with random weights."""
    asset_type = AssetType(
        name="benchmark",
        features=tuple(Feature(name=f"feature_{p}", unit="bar", low=0.0, high=10.0) for p in range(n_features)),
        fault_classes=tuple(FaultClass(name=f"class-{c}", severity=c) for c in range(n_classes)),
    )
    return ModelVersion(
        name="benchmark",
        run_id="0" * 32,
        plan="benchmark",
        method="level-bundle",
        asset_type=asset_type,
        spec=TrainingSpec(),
        weights=rng.normal(size=(asset_type.heads("classification"), n_features + 1)),
        rounds=1,
        certified_gap=0.0,
        worst_case_risk=1.0,
        objective=1.0,
        objective_name=WORST_CASE,
        lower_bound=1.0,
        fresh_weight=1.0,
        created_at=datetime.now(UTC),
    )


def measure(n_classes: int, n_features: int, n_samples: int) -> dict[str, float]:
    """One row: at least 10 calls, and for single samples 2,000."""
    rng = np.random.default_rng(0)
    predictor = Predictor(version(n_classes, n_features, rng))
    names = predictor.version.asset_type.feature_names
    samples = [dict(zip(names, row, strict=True)) for row in rng.uniform(0, 10, (n_samples, n_features)).tolist()]
    calls = max(10, 2_000 // n_samples)
    for _ in range(3):
        predictor.diagnose(samples)
    seconds = np.empty(calls)
    for call in range(calls):
        started = time.perf_counter()
        predictor.diagnose(samples)
        seconds[call] = time.perf_counter() - started
    median = float(np.median(seconds)) * 1e6
    return {
        "classes": n_classes,
        "features": n_features,
        "samples": n_samples,
        "microseconds": median,
        "microseconds_p99": float(np.quantile(seconds, 0.99)) * 1e6,
        "microseconds_per_sample": median / n_samples,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 when a single diagnosis of 14 features misses the target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the rows as JSON")
    chosen = parser.parse_args(arguments)
    rows = [measure(*case) for case in CASES]
    print(f"{'classes':>8}{'features':>9}{'samples':>8}{'us a call':>12}{'p99':>12}{'us a sample':>13}")
    for row in rows:
        print(
            f"{row['classes']:>8}{row['features']:>9}{row['samples']:>8}{row['microseconds']:>12.1f}"
            f"{row['microseconds_p99']:>12.1f}{row['microseconds_per_sample']:>13.1f}"
        )
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    single = max(row["microseconds"] for row in rows if row["samples"] == 1 and row["features"] == 14)
    print(f"slowest single diagnosis of 14 features {single:.0f} us, target {TARGET_MICROSECONDS:.0f} us")
    return 0 if single < TARGET_MICROSECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
