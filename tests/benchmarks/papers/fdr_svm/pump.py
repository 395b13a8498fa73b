"""The industrial data set, simulated: fourteen condition indicators of a triplex pump with a leak, at four plants.

400 training and 1,000 test measurements, a severity of the leak for each plant; five settings. The indicators of a
setting and seed are kept beside the results, since simulating takes longer than most methods.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np

from models.basics import FloatArray
from models.features.condition_indicators import condition_indicators
from services.plant_simulator.assets import builtin_asset_type
from services.plant_simulator.writer import simulate_plants
from tests.benchmarks.papers.fdr_svm.uci import Split, folds_of

SETTINGS = {
    "Nominal": "nominal",
    "Client Imbalance": "client-imbalance",
    "Class Imbalance": "class-imbalance",
    "Client + Class Imbalance": "both",
    "Noisy Labels": "noisy-labels",
}
"""The paper's settings and the simulator's scenarios."""
SAMPLING_RATE = 1000.0


def pump_split(setting: str, repetition: int, cache: Path) -> Split:
    """Repetition of a setting; the leak is the positive class."""
    arrays = _indicators(SETTINGS[setting], repetition, cache)
    asset = builtin_asset_type("triplex-pump")
    ranges = np.array([[feature.low for feature in asset.features], [feature.high for feature in asset.features]])
    site = arrays["site"].astype(int)
    fold = folds_of(site, np.random.default_rng([repetition, len(setting)]))
    return Split(
        arrays["features"], arrays["labels"], site, fold, arrays["test_features"], arrays["test_labels"], ranges,
        "pump",
    )


def _indicators(scenario: str, seed: int, cache: Path) -> dict[str, FloatArray]:
    path = cache / f"{scenario}-{seed}.npz"
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
        np.savez(partial, **_simulated(scenario, seed))
        partial.replace(path)
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _simulated(scenario: str, seed: int) -> dict[str, FloatArray]:
    names = ("features", "labels", "site", "test_features", "test_labels")
    parts: dict[str, list[FloatArray]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for g, plant in enumerate(simulate_plants(Path(folder) / "plants", scenario=scenario, seed=seed)):
            for split, prefix in (("train", ""), ("test", "test_")):
                with np.load(plant / f"{split}.npz", allow_pickle=False) as archive:
                    parts[f"{prefix}features"].append(condition_indicators(archive["flow"], SAMPLING_RATE))
                    parts[f"{prefix}labels"].append(np.where(archive["label"] == "healthy", -1.0, 1.0))
            parts["site"].append(np.full(parts["labels"][-1].shape[0], float(g)))
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}
