"""The tables of `ballast model show`: each figure of a plant, an answer and a gate stands under its name."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest

from api.cli.commands import model
from services.plant_simulator.assets import builtin_asset_type
from tests.api.cli.commands.test_model_fields import version

FRESHNESS = SimpleNamespace(site_id="plant-1", question=7, came=9, at_model=True, at_work=False)
PLANT = {"site_id": "plant-1", "weight": 0.75, "worst_weight": 0.875, "radius": 0.125, "worst_case_risk": 0.25,
         "f1": 0.5, "mae": 1.5, "r2": 0.625, "coverage": 0.9375, "fresh": True}
GATE = SimpleNamespace(name="max_gap", wanted=0.001, found=0.01, holds=False, reason="too wide")
OF_ALL = (
    "name version run_id mlflow_run_id method solvers fingerprint rounds mixture_confidence worst_case_risk "
    "objective_name objective lower_bound certified_gap fresh_weight created_at"
)


def tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, **changes: Any) -> list[dict[str, str]]:
    """The rows of all tables that are shown, by their heads, which two blanks divide."""
    loss = SimpleNamespace(has_ball=changes.pop("has_ball", True))
    facts = dict.fromkeys(OF_ALL.split(), "-") | {"aliases": (), "calibration_facts": None, "risk_is_from_above": False}
    fields = {"sites": [SimpleNamespace(**PLANT)], "freshness": None, "gates": (), "spec": SimpleNamespace(loss=loss)}
    monkeypatch.setattr("api.models.queries.version_detail", lambda *_: version(**facts | fields | changes))
    backend: Any = None
    model._show_version(backend, argparse.Namespace(name="pumps", version="3", json=False))
    found = []
    for part in capsys.readouterr().out.split("\n\n")[1:]:
        head, *rows = (line.split("  ") for line in part.strip().split("\n"))
        names = [name.strip() for name in head if name]
        found += [dict(zip(names, [cell.strip() for cell in row if cell], strict=True)) for row in rows]
    return found


def test_plants_of_a_diagnosis(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = tables(capsys, monkeypatch)
    assert row == {"SITE": "plant-1", "WEIGHT": "0.75", "WORST WEIGHT": "0.875", "RADIUS": "0.125",
                   "WORST-CASE RISK": "0.25", "F1": "0.5", "ANSWERED LAST": "yes"}
    (row,) = tables(capsys, monkeypatch, has_ball=False)
    assert set(row) == {"SITE", "WEIGHT", "WORST WEIGHT", "F1", "ANSWERED LAST"}


def test_plants_of_an_estimate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    severity = builtin_asset_type("triplex-pump-severity")
    (row,) = tables(capsys, monkeypatch, task="regression", asset_type=severity)
    assert {"MAE": "1.5", "R2": "0.625", "COVERAGE": "0.9375"}.items() <= row.items() and "F1" not in row


def test_answers_and_gates(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, answer, gate = tables(capsys, monkeypatch, freshness=(FRESHNESS,), gates=(GATE,))
    assert answer == {"SITE": "plant-1", "NEWEST QUESTION": "7", "CAME IN ROUND": "9", "AT THE MODEL": "yes",
                      "AT WORK": "no"}
    assert gate == {"GATE": "max_gap", "WANTED": "0.001", "FOUND": "0.01", "HOLDS": "no", "WHY": "too wide"}
