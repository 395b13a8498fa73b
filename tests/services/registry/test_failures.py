from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from services.contracts.errors import BallastError, UnavailableError
from services.contracts.versions.model_version import ModelVersion
from services.registry.mlflow_registry import ModelRegistry

MakeVersion = Callable[..., ModelVersion]


def test_a_database_that_takes_no_writes_is_one_line_and_leaves_nothing(
    registry: ModelRegistry, registry_home: Path, tmp_path: Path, make_version: MakeVersion, name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # MLflow takes the URI for a path and makes its folder
    copy = tmp_path / "copy.db"
    shutil.copy(registry_home / "mlflow.db", copy)
    refusing = ModelRegistry(f"sqlite:///file:{copy}?mode=ro&uri=true", tmp_path / "artifacts")
    with pytest.raises(UnavailableError, match="readonly") as caught:
        refusing.register(make_version(name=name), (), {})
    assert "\n" not in str(caught.value)
    with closing(sqlite3.connect(copy)) as database:
        (found,) = database.execute("select count(*) from registered_models where name = ?", (name,)).fetchone()
    assert found == 0 and not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize(
    "address",
    ["sqlite:////dev/null/mlflow.db", "postgresql+psycopg://u:secret@127.0.0.1:1/none", "http://127.0.0.1:1"],
)
def test_a_store_that_is_not_there_is_one_line_without_the_password(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    registry = ModelRegistry(address, tmp_path)
    for call in (registry.prepare, registry.models, lambda: registry.get("pump", "champion")):
        with pytest.raises(BallastError) as caught:
            call()
        assert isinstance(caught.value, UnavailableError)
        assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
