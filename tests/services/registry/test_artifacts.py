from __future__ import annotations

import ast
import json
import os
import pickletools
import stat
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from services.contracts.history.run import RoundRecord
from services.contracts.versions.model_version import ModelVersion
from services.process.private_files import UMASK
from services.registry import pyfunc_model
from services.registry.mlflow_registry import ModelRegistry
from services.registry.model_files import CODE

MakeVersion = Callable[..., ModelVersion]
MakeRounds = Callable[..., tuple[RoundRecord, ...]]
PROJECT = Path(pyfunc_model.__file__).parents[2]


@pytest.fixture
def files(
    registry: ModelRegistry, registry_home: Path, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> dict[str, bytes]:
    """Every file that a registration leaves, by its name."""
    version = make_version(name=name, n_classes=4)
    registry.register(version, make_rounds(version.run_id), {"kind": "report"}, {"report.html": "<p>page</p>"})
    folder = registry_home / "artifacts" / name
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_pickle(content: bytes) -> bool:
    try:
        return sum(1 for _ in pickletools.genops(content)) > 0
    except (ValueError, IndexError, UnicodeDecodeError):
        return False


def test_nothing_is_pickled(files: dict[str, bytes]) -> None:
    assert {"model.json", "MLmodel", "pyfunc_model.py", "report.json", "report.html"} <= set(files)
    assert is_pickle(b"\x80\x04K\x01.")
    for name, content in files.items():
        assert not name.endswith((".pkl", ".pickle", ".npy", ".npz")) and not is_pickle(content), name
        content.decode("utf-8")


def test_no_path_of_this_machine_gets_into_a_model(files: dict[str, bytes]) -> None:
    for name in ("model.json", "pyfunc_model.py", "report.json", "requirements.txt"):
        assert str(PROJECT).encode() not in files[name] and b"/tmp" not in files[name], name
    described = files["MLmodel"].decode()
    assert "model_code_path: pyfunc_model.py" in described and str(PROJECT) not in described
    assert "uri: model.json" in described


def test_every_file_of_a_registration_is_its_owners_alone(
    registry: ModelRegistry, registry_home: Path, make_version: MakeVersion, make_rounds: MakeRounds, name: str
) -> None:
    """Under the mask of the flows process, though the serving code is copied from a file that everybody may read."""
    version, before = make_version(name=name), os.umask(UMASK)
    try:
        registry.register(version, make_rounds(version.run_id), {"kind": "report"}, {"report.html": "<p>page</p>"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(CODE.stat().st_mode) & UMASK, "the installed file is no secret"
    found = list((registry_home / "artifacts" / name).rglob("*"))
    assert CODE.name in {path.name for path in found}
    assert [path.name for path in found if stat.S_IMODE(path.stat().st_mode) & UMASK] == []


def test_the_model_needs_mlflow_numpy_and_pandas_alone(files: dict[str, bytes]) -> None:
    wanted = [line.partition("==")[0] for line in files["requirements.txt"].decode().split()]
    assert wanted == ["mlflow", "numpy", "pandas"]
    imported = set()
    for node in ast.walk(ast.parse(files["pyfunc_model.py"])):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    assert imported <= {"__future__", "hashlib", "json", "numbers", "pathlib", "typing", *wanted}


def test_the_signature_names_the_features_and_the_metadata_their_units(files: dict[str, bytes]) -> None:
    described = files["MLmodel"].decode()
    assert "flow_mean: l/min" in described and "pressure: bar" in described
    (signature,) = [line for line in described.split("inputs: ")[1:]]
    inputs = json.loads(" ".join(signature.split("outputs:")[0].split()).strip("' "))
    assert [(column["name"], column["type"], column["required"]) for column in inputs] == [
        ("flow_mean", "any", True),
        ("flow_ripple", "any", True),
        ("pressure", "any", True),
        ("oil_temperature", "any", False),
    ]
    outputs = json.loads(" ".join(described.split("outputs: ")[1].split("params:")[0].split()).strip("' "))
    assert [(column["name"], column["required"]) for column in outputs] == [
        ("fault_class", True), ("severity", True), ("scores", True), ("robustness_radius", False)
    ], "nothing changes a diagnosis of an infinite radius, which is told as None"
    example = json.loads(files["serving_input_example.json"])
    assert example["dataframe_split"]["columns"][0] == "flow_mean"
    assert example["dataframe_split"]["data"] == [[40.0, 6.25, 155.0, 60.0]]


def test_whole_numbers_are_taken_and_texts_are_not(
    registry: ModelRegistry, make_version: Callable[..., ModelVersion], name: str, tracking_uri: str
) -> None:
    """A table whose values happen to be whole has columns of integers in pandas."""
    import mlflow
    import pandas as pd
    from mlflow.exceptions import MlflowException

    registered = registry.register(make_version(name=name), (), {})
    source = registry._store.entry(name, str(registered.version)).source
    model = mlflow.pyfunc.load_model(source)
    row: dict[str, Any] = {"flow_mean": 41.0, "flow_ripple": 2.0, "pressure": 151.0, "oil_temperature": 55.0}
    whole = {key: int(value) for key, value in row.items()}
    expected = model.predict(pd.DataFrame([row]))
    one_whole = row | {"pressure": 151}
    for frame in (pd.DataFrame([whole]), pd.DataFrame([whole]).astype("Int64"), pd.DataFrame([one_whole])):
        assert model.predict(frame) == expected
    missing = model.predict(pd.DataFrame([row]).drop(columns=["oil_temperature"]))
    for nothing in (None, pd.NA, pd.NaT, float("nan"), pd.array([pd.NA], dtype="Int64")):
        assert model.predict(pd.DataFrame([row]).assign(oil_temperature=nothing)) == missing != expected
    assert model.predict(pd.DataFrame([row | {"pressure": Decimal(151)}])) == expected
    wrongs = ("41", True, b"41", np.bool_(True), pd.Timestamp("2031-05-06"), pd.Timedelta(41), 41 + 1j, [41.0])
    for wrong in wrongs:
        with pytest.raises(MlflowException, match="flow_mean must be a number"):
            model.predict(pd.DataFrame([row | {"flow_mean": wrong}]))
    with pytest.raises(MlflowException):
        model.predict(pd.DataFrame([row]).drop(columns=["pressure"]))
