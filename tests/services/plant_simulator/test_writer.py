"""Plant folders: the documented format, shares and flips, and nothing half-written."""

import json
import os
from functools import cache

import numpy as np
import pytest

from services.contracts.errors import InvalidInputError
from services.plant_simulator import writer
from services.plant_simulator.measure import measure
from services.plant_simulator.pump import LITRE_PER_MINUTE, RPM, PumpParameters
from services.plant_simulator.writer import simulate_plants

COLUMNS = {
    "time": "f", "flow": "f", "pressure": "f", "operating_speed": "f", "operating_load": "f", "label": "U",
    "severity": "f", "split": "U", "measurement": "i", "leak_area": "f", "leak_area_factor": "f", "inlet_blocking": "f",
    "bearing_friction": "f",
}
SMALL = {"n_train": 40, "n_test": 16}


def read(folder, split):
    with np.load(folder / f"{split}.npz", allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.fixture(scope="module", autouse=True)
def measured_once():
    """The same plants are measured once: what is shown here is how they are written."""
    once = cache(lambda requests, seed: measure(requests, seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "measure", lambda requests, seed: once(tuple(requests), seed))
        yield


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Four small plants of the noisy scenario, seed 2: ten training rows each, of which two are flipped."""
    return simulate_plants(tmp_path_factory.mktemp("noisy") / "out", seed=2, scenario="noisy-labels", **SMALL)


def test_the_folder_is_as_documented(nominal):
    assert [folder.name for folder in nominal] == ["plant-1", "plant-2", "plant-3", "plant-4"]
    for folder in nominal:
        assert {path.name for path in folder.iterdir()} == {"plant.json", "train.npz", "test.npz"}
        about = json.loads((folder / "plant.json").read_text())
        assert (about["format"], about["version"]) == ("ballast-plant-signals", 1)
        assert (about["plant"], about["asset_type"]) == (folder.name, "triplex-pump")
        assert (about["scenario"], about["seed"]) == ("nominal", 0)
        assert about["classes"] == ["healthy", "leak"]
        assert about["measurements"] == {"train": 100, "test": 250}
        for split, n in about["measurements"].items():
            records = read(folder, split)
            assert {name: array.dtype.kind for name, array in records.items()} == COLUMNS
            assert set(about["units"]) == {name for name, kind in COLUMNS.items() if kind == "f"}
            steps = np.diff(records["time"])
            np.testing.assert_allclose(steps, 1.0 / about["sampling_rate_hz"])
            samples = about["samples_per_measurement"]
            assert records["time"].shape == (samples,)
            assert records["flow"].shape == records["pressure"].shape == (n, samples)
            assert records["flow"].dtype == np.float32
            for name in set(COLUMNS) - {"time", "flow", "pressure"}:
                assert records[name].shape == (n,)
            assert (records["split"] == split).all()


def test_numbers_are_in_the_units_that_the_folder_names(nominal):
    about = json.loads((nominal[3] / "plant.json").read_text())
    named = {name: about["units"][name] for name in ("flow", "pressure", "operating_speed", "leak_area")}
    assert named == {"flow": "L/min", "pressure": "bar", "operating_speed": "rpm", "leak_area": "mm^2"}
    assert about["also_fits"] == ["triplex-pump-severity"]
    records, parameters = read(nominal[3], "train"), PumpParameters()
    assert records["operating_speed"].mean() == pytest.approx(parameters.set_speed / RPM, rel=0.02)
    np.testing.assert_allclose(records["leak_area"], records["leak_area_factor"] * parameters.valve_area * 1e6)
    swept = parameters.displacement_per_revolution * parameters.set_speed / (2 * np.pi) / LITRE_PER_MINUTE
    assert 0.8 * swept < records["flow"].mean() < swept
    assert 1.0 < records["pressure"].mean() < 200.0


def test_each_plant_holds_its_own_severity_and_half_of_it_is_healthy(nominal):
    for folder, severity in zip(nominal, (1e-3, 4e-3, 7e-3, 1e-2), strict=True):
        assert json.loads((folder / "plant.json").read_text())["severity"] == pytest.approx(severity)
        for split, half in (("train", 50), ("test", 125)):
            records = read(folder, split)
            healthy = records["label"] == "healthy"
            assert healthy.sum() == (records["label"] == "leak").sum() == half
            assert (records["severity"][healthy] == 0.0).all()
            np.testing.assert_allclose(records["severity"][~healthy], severity)
            np.testing.assert_allclose(records["leak_area_factor"], records["severity"])
            assert 0 < np.flatnonzero(healthy)[0] + np.flatnonzero(~healthy)[0] < 30
        train, test = (read(folder, split)["measurement"] for split in ("train", "test"))
        np.testing.assert_array_equal(np.concatenate([train, test]), np.arange(350))


def test_training_labels_alone_are_flipped(noisy):
    for folder in noisy:
        train, test = read(folder, "train"), read(folder, "test")
        wrong = (train["label"] == "leak") != (train["severity"] > 0.0)
        assert wrong.sum() == 2
        assert ((test["label"] == "leak") == (test["severity"] > 0.0)).all()


def test_parquet_holds_what_npz_holds(noisy, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    folders = simulate_plants(tmp_path / "out", seed=2, scenario="noisy-labels", format="parquet", **SMALL)
    about = json.loads((folders[1] / "plant.json").read_text())
    assert about["files"] == {"train": "train.parquet", "test": "test.parquet"}
    table = parquet.read_table(folders[1] / "train.parquet")
    assert set(table.column_names) == set(COLUMNS)
    records = read(noisy[1], "train")
    for name, array in records.items():
        column = np.array(table[name].to_pylist())
        np.testing.assert_array_equal(column, np.broadcast_to(array, column.shape) if name == "time" else array)


def test_several_faults_make_a_class_of_every_combination_in_a_folder_that_may_be_there(tmp_path):
    (tmp_path / "out").mkdir()
    (folder,) = simulate_plants(tmp_path / "out", sites=1, n_train=8, n_test=8, faults=("worn_bearing", "leak"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    about = json.loads((folder / "plant.json").read_text())
    assert about["asset_type"] == "triplex-pump-faults"
    assert about["classes"] == ["healthy", "leak", "worn_bearing", "leak+worn_bearing"]
    records = read(folder, "train")
    assert sorted(records["label"]) == sorted(about["classes"] * 2)
    both = records["label"] == "leak+worn_bearing"
    assert (records["leak_area_factor"][both] > 0).all()
    assert (records["bearing_friction"][both] > 1).all()
    assert (records["bearing_friction"][records["label"] == "leak"] == 1).all()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"scenario": "easy"}, "unknown scenario 'easy'"),
        ({"faults": ("rust",)}, "unknown fault 'rust'"),
        ({"format": "csv"}, "unknown format 'csv': choose from npz, parquet"),
        ({"sites": 0}, "sites must be"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"n_train": 3}, "too few"),
    ],
)
def test_arguments_that_do_not_fit_leave_nothing_behind(tmp_path, arguments, says):
    with pytest.raises(InvalidInputError, match=says):
        simulate_plants(tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_refused_untouched(tmp_path):
    (tmp_path / "mine.txt").write_text("kept")
    with pytest.raises(InvalidInputError, match="is not empty"):
        simulate_plants(tmp_path)
    with pytest.raises(InvalidInputError, match="is not a folder"):
        simulate_plants(tmp_path / "mine.txt")
    assert (tmp_path / "mine.txt").read_text() == "kept"


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInputError, match="file is not a folder"):
        simulate_plants(tmp_path / "file" / "out")
    with pytest.raises(InvalidInputError, match="cannot write to .*: File name too long"):
        simulate_plants(tmp_path / ("x" * 250))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_disk_that_fails_in_the_middle_leaves_nothing_behind(tmp_path, monkeypatch):
    """Let the second plant's file fail as a full disk does."""
    write, calls = np.lib.format.write_array, []

    def fail_late(*args, **kwargs):
        calls.append(args)
        if len(calls) > 30:
            raise OSError(28, os.strerror(28))
        write(*args, **kwargs)

    monkeypatch.setattr(np.lib.format, "write_array", fail_late)
    with pytest.raises(InvalidInputError, match="cannot write to .*: No space left"):
        simulate_plants(tmp_path / "out", seed=2, scenario="noisy-labels", **SMALL)
    assert len(calls) == 31
    assert list(tmp_path.iterdir()) == []


def test_who_interrupts_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulate_plants(tmp_path / "out", seed=2, scenario="noisy-labels", **SMALL)
    assert list(tmp_path.iterdir()) == []
