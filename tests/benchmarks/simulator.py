"""Seconds for the simulator's 400 training and 1,000 test measurements: ``python -m tests.benchmarks.simulator``."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from models.features.condition_indicators import condition_indicators
from services.plant_simulator.measure import simulate_measurement
from services.plant_simulator.writer import simulate_plants
from tests.benchmarks.command import output_file

LIMIT_SECONDS = 60.0


def measure_once() -> dict[str, float]:
    """Seconds to write the nominal scenario, for its features, and for one fresh measurement."""
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        folders = simulate_plants(Path(folder) / "plants")
        simulated = {"seconds": time.perf_counter() - wall, "processor_seconds": time.process_time() - processor}
        flows = []
        for plant in folders:
            for split in ("train", "test"):
                with np.load(plant / f"{split}.npz", allow_pickle=False) as archive:
                    flows.append(archive["flow"])
    wall = time.perf_counter()
    condition_indicators(np.concatenate(flows), 1000.0)
    features = time.perf_counter() - wall
    wall = time.perf_counter()
    simulate_measurement("leak", 7e-3, seed=1)
    return {**simulated, "feature_seconds": features, "fresh_measurement_seconds": time.perf_counter() - wall}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures, write them where ``--json`` says; 1 when 400 + 1,000 measurements took over a minute."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=output_file, metavar="FILE", help="write the figures here as JSON")
    args = parser.parse_args(arguments)
    figures = measure_once()
    print(
        f"simulate 400 + 1000 measurements: {figures['seconds']:.1f} s "
        f"({figures['processor_seconds']:.1f} s of processor)"
    )
    print(f"condition indicators of them:     {figures['feature_seconds']:.2f} s")
    print(f"one fresh measurement:            {figures['fresh_measurement_seconds']:.2f} s")
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if figures["seconds"] < LIMIT_SECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
