"""Plant folders: raw signals of every measurement, written whole or not at all; the format is in the README here."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from services.contracts.errors import InvalidInputError
from services.plant_simulator.faults import combinations, ordered
from services.plant_simulator.measure import (
    N_SAMPLES,
    SAMPLING_RATE,
    Measurements,
    PlantRequest,
    check_seed,
    measure,
    time_base,
)
from services.plant_simulator.scenarios import PlantShare, plan_plants

Format = Literal["npz", "parquet"]
FORMATS: Final = ("npz", "parquet")
UNITS: Final = {
    "time": "s",
    "flow": "L/min",
    "pressure": "bar",
    "operating_speed": "rpm",
    "operating_load": "1",
    "severity": "1",
    "leak_area": "mm^2",
    "leak_area_factor": "1",
    "inlet_blocking": "1",
    "bearing_friction": "1",
}
_PARTS: Final = ("train", "test")
_SHUFFLE: Final = 2
"""Number of the random stream that orders a plant's rows and flips labels; 0 and 1 measure the parts."""


def simulate_plants(
    out: Path,
    *,
    sites: int = 4,
    seed: int = 0,
    scenario: str = "nominal",
    n_train: int = 400,
    n_test: int = 1000,
    faults: Sequence[str] = ("leak",),
    format: Format = "npz",
) -> list[Path]:
    """Simulate plants and write one folder each, ``out/plant-1`` to ``out/plant-N``; returns these folders.

    Parameters
    ----------
    out : folder to make; it may exist if it is empty. It appears only when all is written.
    sites, n_train, n_test : number of plants; training and test measurements of all plants together.
    seed : everything random follows from it; each plant has streams of its own.
    scenario : a key of :data:`services.plant_simulator.scenarios.SCENARIOS`.
    faults : single faults; with more than one, every combination is a class.
    format : ``npz``, or ``parquet`` (needs the extra of that name).

    Raises
    ------
    InvalidInputError
        If an argument does not fit, ``out`` is not empty, or it cannot be written. Nothing is left behind.
    """
    if format not in FORMATS:
        raise InvalidInputError(f"unknown format {format!r}: choose from {', '.join(FORMATS)}")
    if format == "parquet":
        _pyarrow()
    check_seed(seed)
    classes = combinations(faults)
    plants = plan_plants(scenario, sites, n_train, n_test, len(classes))
    requests = [
        PlantRequest(_spread(classes, counts), plant.severity, site, part)
        for site, plant in enumerate(plants)
        for part, counts in enumerate((plant.train, plant.test))
    ]
    about = {
        "format": "ballast-plant-signals",
        "version": 1,
        **_asset_types(faults),
        "classes": list(classes),
        "scenario": scenario,
        "seed": seed,
        "sampling_rate_hz": SAMPLING_RATE,
        "samples_per_measurement": N_SAMPLES,
        "units": UNITS,
        "files": {part: f"{part}.{format}" for part in _PARTS},
    }
    with _whole_folder(out) as partial:
        measured = measure(requests, seed)
        for site, plant in enumerate(plants):
            random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(site, _SHUFFLE)))
            parts = _finish(measured[2 * site], measured[2 * site + 1], plant, classes, random)
            _write_plant(partial / f"plant-{site + 1}", {"plant": f"plant-{site + 1}", **about}, plant, parts)
    return [out / f"plant-{site + 1}" for site in range(sites)]


def _asset_types(faults: Sequence[str]) -> dict[str, Any]:
    """Built-in asset types that the signals fit."""
    if ordered(faults) != ("leak",):
        return {"asset_type": "triplex-pump-faults"}
    return {"asset_type": "triplex-pump", "also_fits": ["triplex-pump-severity"]}


@contextmanager
def _whole_folder(out: Path) -> Iterator[Path]:
    """Give a hidden folder beside ``out`` that becomes ``out`` at the end, or vanishes when anything fails."""
    out = Path(os.path.abspath(out))
    partial = out.parent / f".{out.name}.{os.getpid()}.partial"
    try:
        for path in (out, *out.parents):
            if path.exists() and not path.is_dir():
                raise InvalidInputError(f"{path} is not a folder: name a new or an empty folder")
        if out.is_dir() and any(out.iterdir()):
            raise InvalidInputError(f"{out} is not empty: name a new or an empty folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        try:
            yield partial
            partial.replace(out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as error:
        raise InvalidInputError(f"cannot write to {out}: {error.strerror}") from None


def _spread(classes: Sequence[str], counts: Sequence[int]) -> tuple[str, ...]:
    """Class names, each as often as its count says."""
    return tuple(name for name, count in zip(classes, counts, strict=True) for _ in range(count))


def _finish(
    train: Measurements, test: Measurements, plant: PlantShare, classes: Sequence[str], random: np.random.Generator
) -> dict[str, dict[str, NDArray[Any]]]:
    """Order rows at random, flip training labels to another class, and number the records."""
    train, test = _shuffled(train, random), _shuffled(test, random)
    labels = train.label.astype(f"<U{max(map(len, classes))}")
    for row in random.choice(len(train), size=plant.flips, replace=False):
        labels[row] = random.choice([name for name in classes if name != train.label[row]])
    parts, first = {}, 0
    for split, rows in (("train", replace(train, label=labels)), ("test", test)):
        records: dict[str, NDArray[Any]] = {"time": time_base()}
        records.update({field.name: getattr(rows, field.name) for field in fields(rows)})
        records["split"] = np.full(len(rows), split)
        records["measurement"] = np.arange(first, first + len(rows), dtype=np.int64)
        parts[split], first = records, first + len(rows)
    return parts


def _shuffled(rows: Measurements, random: np.random.Generator) -> Measurements:
    order = random.permutation(len(rows))
    return Measurements(**{field.name: getattr(rows, field.name)[order] for field in fields(rows)})


def _write_plant(
    folder: Path, about: dict[str, Any], plant: PlantShare, parts: dict[str, dict[str, NDArray[Any]]]
) -> None:
    """Write one plant's signals and its ``plant.json``."""
    folder.mkdir()
    for split, records in parts.items():
        file = folder / about["files"][split]
        if file.suffix == ".npz":
            _write_npz(file, records)
        else:
            _write_parquet(file, records)
    counts = {split: len(records["label"]) for split, records in parts.items()}
    text = json.dumps({**about, "severity": plant.severity, "measurements": counts}, indent=2, sort_keys=True)
    (folder / "plant.json").write_text(text + "\n", encoding="utf-8")


def _write_npz(file: Path, records: dict[str, NDArray[Any]]) -> None:
    """An NPZ archive, uncompressed (noise does not compress) and free of pickles."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, values in records.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, values, allow_pickle=False)


def _pyarrow() -> Any:
    """PyArrow's Parquet module; raise :class:`InvalidInputError` where the extra is not installed."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InvalidInputError("format parquet needs PyArrow: install ballast-diagnosis[parquet]") from None
    return pyarrow


def _write_parquet(file: Path, records: dict[str, NDArray[Any]]) -> None:
    """One row a measurement; signals as lists, the time base repeated (it compresses to nothing)."""
    pyarrow = _pyarrow()
    n = len(records["label"])
    columns = {}
    for name, values in records.items():
        rows = np.broadcast_to(values, (n, len(values))) if name == "time" else values
        columns[name] = pyarrow.array(list(rows) if rows.ndim == 2 else rows)
    pyarrow.parquet.write_table(pyarrow.table(columns), file, compression="zstd")
