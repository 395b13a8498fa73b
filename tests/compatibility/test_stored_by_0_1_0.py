"""What version 0.1.0 stored is read, served and continued by the code of today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.backend.wiring import Backend, open_backend
from migrations.run import upgrade
from services.process.settings import Settings
from services.site_agent.cli import main as ballast_site
from tests.compatibility.stored import unpack


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    unpack(folder)
    upgrade(Settings(home=folder).database)
    return folder


@pytest.fixture(scope="module")
def backend(home: Path) -> Any:
    with open_backend(Settings(home=home)) as opened:
        opened.check_store()
        yield opened


@pytest.fixture(scope="module")
def expected(home: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((home / "expected.json").read_text(encoding="utf-8"))
    return read


def test_the_champion_is_served_as_it_was(backend: Backend, expected: dict[str, Any]) -> None:
    version = backend.registry.get("pump-leak", "champion")
    np.testing.assert_array_equal(version.weights, expected["weights"])
    diagnoses = backend.predictors.diagnoser("pump-leak").diagnose(expected["samples"])
    for found, stored in zip(diagnoses, expected["diagnoses"], strict=True):
        assert (found.fault_class, found.severity) == (stored["fault_class"], stored["severity"])
        assert found.scores == pytest.approx(stored["scores"], rel=1e-12)
        assert found.robustness_radius == pytest.approx(stored["robustness_radius"], rel=1e-12)


def test_runs_rounds_and_the_audit_trail_are_read(backend: Backend) -> None:
    (run,) = backend.store.runs.list_runs()
    assert run.status == "completed" and run.model_version == "1"
    rounds = backend.store.runs.get_rounds(run.run_id)
    assert [record.round for record in rounds] == list(range(1, 20))
    assert all(answer.status == "accepted" for record in rounds for answer in record.answers)
    assert backend.store.audit.verify_chain().ok
    assert len(backend.store.sites.list_sites()) == 4


def test_the_plants_folder_works(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(home / "site" / "site.toml")
    assert ballast_site(["ledger", "verify", "--config", config]) == 0
    assert "sound: 22 entries" in capsys.readouterr().out
    assert ballast_site(["check", "--config", config]) == 0
    assert "training: 45 rows" in capsys.readouterr().out
