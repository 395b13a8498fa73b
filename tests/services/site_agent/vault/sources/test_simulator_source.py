"""Plant folders of raw signals."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.features.condition_indicators import INDICATOR_NAMES, INDICATOR_UNITS, condition_indicators
from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.machines.target import Target
from services.site_agent.settings import SimulatorSource
from services.site_agent.vault.errors import VaultError
from services.site_agent.vault.reader import Vault
from services.site_agent.vault.sources import simulator_source

RATE = 1000.0


@pytest.fixture
def pump() -> AssetType:
    features = tuple(
        Feature(name=name, unit=unit, low=-1e6, high=1e6)
        for name, unit in zip(INDICATOR_NAMES, INDICATOR_UNITS, strict=True)
    )
    classes = (FaultClass(name="healthy", severity=0), FaultClass(name="leak", severity=5))
    # The contract's order is its own: the indicators are found by name.
    return AssetType(name="pump", features=tuple(reversed(features)), fault_classes=classes)


def signals(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    time = np.arange(600) / RATE
    flow = 100 + np.sin(2 * np.pi * 18 * time) + 0.1 * rng.standard_normal((n, 600))
    return {"time": time, "flow": flow.astype(np.float32), "label": np.array(["healthy", "leak"] * (n // 2))}


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    folder = tmp_path / "plant-1"
    folder.mkdir()
    manifest = {
        "format": "ballast-plant-signals", "version": 1, "plant": "plant-1", "asset_type": "pump",
        "sampling_rate_hz": RATE, "units": {"flow": "L/min"}, "files": {"train": "train.npz", "test": "test.npz"},
    }
    (folder / "plant.json").write_text(json.dumps(manifest))
    np.savez(folder / "train.npz", **signals(30, 1))
    np.savez(folder / "test.npz", **signals(10, 2))
    return folder


def vault(folder: Path, asset_type: AssetType) -> Vault:
    return Vault(SimulatorSource(kind="simulator", path=folder), asset_type)


def change_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "plant.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_features_are_the_indicators_of_the_flow_in_the_contracts_order(plant: Path, pump: AssetType) -> None:
    dataset = vault(plant, pump).current()
    assert (len(dataset.train), len(dataset.test)) == (30, 10)
    expected = condition_indicators(signals(30, 1)["flow"], RATE)[:, ::-1]
    np.testing.assert_allclose(dataset.train.features, (expected + 1e6) / 2e6, rtol=1e-12)
    np.testing.assert_array_equal(dataset.train.classes, [0, 1] * 15)


def test_a_changed_part_is_read_again(plant: Path, pump: AssetType) -> None:
    ours = vault(plant, pump)
    assert len(ours.current().test) == 10
    np.savez(plant / "test.npz", **signals(12, 3))
    assert len(ours.current().test) == 12


def test_a_changed_manifest_is_read_again_and_so_is_a_part_of_any_name(plant: Path, pump: AssetType) -> None:
    ours = vault(plant, pump)
    assert len(ours.current().test) == 10
    np.savez(plant / "later.npz", **signals(14, 3))
    change_manifest(plant, files={"train": "train.npz", "test": "later.npz"})
    assert len(ours.current().test) == 14
    np.savez(plant / "later.npz", **signals(16, 4))
    assert len(ours.current().test) == 16
    before = ours.current().train.features
    change_manifest(plant, sampling_rate_hz=10 * RATE)
    assert not np.array_equal(ours.current().train.features, before), "the same signals are other ones at another rate"
    (plant / "plant.json").write_text("{")
    with pytest.raises(VaultError, match="is not JSON"):
        ours.current()


def test_signals_may_fit_several_asset_types(plant: Path, pump: AssetType) -> None:
    change_manifest(plant, asset_type="fan", also_fits=["blower", "pump"])
    assert len(vault(plant, pump).current().train) == 30


def with_target(folder: Path, unit: str = "mm", value: float = 3.0) -> None:
    """An array of the target ``gap`` beside the signals, the fifth value of the training part as given."""
    for split, n, seed in (("train", 30, 1), ("test", 10, 2)):
        gap = np.linspace(0.0, 8.0, n)
        gap[4] = value
        np.savez(folder / f"{split}.npz", **signals(n, seed), gap=gap)
    change_manifest(folder, units={"flow": "L/min", "gap": unit})


def test_a_target_is_read_in_the_contracts_unit_and_whole(plant: Path, pump: AssetType) -> None:
    goal = pump.model_copy(update={"target": Target(name="gap", unit="mm", low=0.0, high=8.0)})
    with pytest.raises(VaultError, match="gives no unit for the target gap"):
        vault(plant, goal).current()
    with_target(plant)
    assert vault(plant, goal).current().train.outcomes("regression")[4] == pytest.approx(3.0 / 8.0)
    with_target(plant, unit="inch")
    with pytest.raises(VaultError, match="target gap is in 'inch', the contract wants 'mm'"):
        vault(plant, goal).current()
    for value in (np.nan, np.inf):
        with_target(plant, value=value)
        with pytest.raises(VaultError, match="gap must hold one finite number for each of the 30 records"):
            vault(plant, goal).current()


def test_what_does_not_fit_in_a_record_names_it_as_people_count(
    plant: Path, pump: AssetType, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = signals(30, 1)
    arrays["label"][2] = "wear"
    np.savez(plant / "train.npz", **{**arrays, "label": arrays["label"]})
    with pytest.raises(VaultError, match=r"train.npz, record 3: label 'wear' is not a class of pump"):
        vault(plant, pump).current()
    np.savez(plant / "train.npz", **signals(30, 1))

    def indicators(flow: Any, rate: float) -> Any:
        found = condition_indicators(flow, rate)
        found[6, 0] = np.inf
        return found

    monkeypatch.setattr(simulator_source, "condition_indicators", indicators)
    with pytest.raises(VaultError, match="train.npz, record 7: the indicators of this flow signal are not finite"):
        vault(plant, pump).current()


def spoil_flow(folder: Path) -> None:
    arrays = signals(30, 1)
    arrays["flow"][4, 7] = np.nan
    np.savez(folder / "train.npz", **arrays)


def drop_labels(folder: Path) -> None:
    arrays = signals(30, 1)
    del arrays["label"]
    np.savez(folder / "train.npz", **arrays)


def with_labels(folder: Path, labels: Any) -> None:
    np.savez(folder / "train.npz", **signals(30, 1) | {"label": labels})


def pickled(folder: Path) -> None:
    arrays = signals(30, 1)
    arrays["label"] = arrays["label"].astype(object)
    np.savez(folder / "train.npz", **arrays)


def damage_packed(folder: Path) -> None:
    """The flow, packed, begins with a block of a kind that there is not."""
    path = folder / "train.npz"
    np.savez_compressed(path, **signals(30, 1))
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("flow.npy").header_offset
    data = bytearray(path.read_bytes())
    name, more = struct.unpack("<HH", data[at + 26 : at + 30])
    data[at + 30 + name + more] = 255
    path.write_bytes(data)


def packed_otherwise(folder: Path) -> None:
    path = folder / "train.npz"
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\1\2") + 10] = 99
    path.write_bytes(data)


def one_array(folder: Path) -> None:
    with (folder / "train.npz").open("wb") as file:
        np.save(file, signals(30, 1)["flow"])


MISFITS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda folder: (folder / "plant.json").unlink(), "is not there; of a table the file is named"),
    "manifest is not JSON": (lambda folder: (folder / "plant.json").write_text("{"), "is not JSON"),
    "other format": (lambda folder: change_manifest(folder, format="x"), "format"),
    "newer version": (lambda folder: change_manifest(folder, version=2), "version"),
    "other asset type": (lambda folder: change_manifest(folder, asset_type="fan"), "of asset type fan, not pump"),
    "wrong unit": (lambda folder: change_manifest(folder, units={"flow": "m3/h"}), "unit of flow is 'm3/h'"),
    "no part named": (lambda folder: change_manifest(folder, files={"train": "train.npz"}), "files.test must name"),
    "file of another folder": (
        lambda folder: change_manifest(folder, files={"train": "../x.npz", "test": "t.npz"}), "files.train must name",
    ),
    "slow sampling": (lambda folder: change_manifest(folder, sampling_rate_hz=100.0), "sampling rate must be over"),
    "part gone": (lambda folder: (folder / "test.npz").unlink(), "test.npz, which plant.json names"),
    "not NPZ": (lambda folder: (folder / "train.npz").write_bytes(b"nothing"), "cannot be read as an NPZ file"),
    "cut short": (
        lambda folder: (folder / "train.npz").write_bytes((folder / "train.npz").read_bytes()[:500]),
        "cannot be read as an NPZ file",
    ),
    "damaged within": (damage_packed, "cannot be read as an NPZ file"),
    "of an unknown method": (packed_otherwise, "cannot be read as an NPZ file"),
    "one array": (one_array, "cannot be read as an NPZ file"),
    "pickled": (pickled, "cannot be read as an NPZ file of plain arrays"),
    "a label too few": (
        lambda folder: with_labels(folder, signals(30, 1)["label"][:-1]), "label must hold one text for each of the 30",
    ),
    "labels in columns": (
        lambda folder: with_labels(folder, signals(30, 1)["label"][:, None]), "label must hold one text for each of",
    ),
    "labels that are numbers": (
        lambda folder: with_labels(folder, np.arange(30)), "label must hold one text for each of the 30 records",
    ),
    "no label": (drop_labels, "train.npz has no array 'label'"),
    "NaN": (spoil_flow, "train.npz, record 5: flow holds NaN"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_said_precisely(plant: Path, pump: AssetType, name: str) -> None:
    spoil, expected = MISFITS[name]
    spoil(plant)
    with pytest.raises(VaultError, match=expected) as caught:
        vault(plant, pump).current()
    assert "\n" not in str(caught.value)


def test_a_contract_that_the_indicators_do_not_meet_is_refused(plant: Path, pump: AssetType) -> None:
    other = pump.features[0].model_copy(update={"name": "temperature"})
    with pytest.raises(VaultError, match="feature temperature is not among the indicators"):
        vault(plant, pump.model_copy(update={"features": (other,)})).current()
    metric = pump.features[0].model_copy(update={"unit": "m3/h"})
    with pytest.raises(VaultError, match="is in 'L/min', the contract wants 'm3/h'"):
        vault(plant, pump.model_copy(update={"features": (metric,)})).current()


def test_signals_in_parquet_give_what_npz_gives(plant: Path, pump: AssetType) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = vault(plant, pump).current()
    for split, n, seed in (("train", 30, 1), ("test", 10, 2)):
        arrays = signals(n, seed)
        columns = {"flow": list(arrays["flow"]), "label": arrays["label"].tolist()}
        parquet.write_table(pyarrow.table(columns), plant / f"{split}.parquet")
    change_manifest(plant, files={"train": "train.parquet", "test": "test.parquet"})
    np.testing.assert_array_equal(vault(plant, pump).current().train.features, expected.train.features)
