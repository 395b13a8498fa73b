"""A home folder to back up, and MLflow's tables without the wait for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.registry.mlflow_registry import ModelRegistry


@pytest.fixture(autouse=True)
def quick_mlflow(monkeypatch: pytest.MonkeyPatch, new_mlflow: Callable[[Path], str]) -> None:
    """MLflow makes its tables in files once a session, and not once a restore: 4 s each."""
    slow = ModelRegistry.prepare

    def prepare(registry: Any) -> None:
        if not registry._store._uri.startswith("sqlite:"):
            slow(registry)
            return
        new_mlflow(Path(registry._store._uri.removeprefix("sqlite:///")).parent)

    monkeypatch.setattr(ModelRegistry, "prepare", prepare)


@pytest.fixture
def home(tmp_path: Path, new_sqlite: Callable[[], str], new_mlflow: Callable[[Path], str]) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    Path(new_sqlite().removeprefix("sqlite:///")).rename(folder / "ballast.db")
    new_mlflow(folder)
    (folder / "ballast.toml").write_text("lease_seconds = 4.0\n\n[api]\nport = 8123\n")
    (folder / "webhooks.key").write_text("ab" * 32)
    return folder
