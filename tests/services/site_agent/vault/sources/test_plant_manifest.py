"""``plant.json`` as people, editors and other programs leave it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.contracts.machines.asset_type import AssetType
from services.contracts.machines.target import Target
from services.site_agent.vault.errors import VaultError
from tests.services.site_agent.vault.sources.test_simulator_source import plant as plant
from tests.services.site_agent.vault.sources.test_simulator_source import pump as pump
from tests.services.site_agent.vault.sources.test_simulator_source import vault, with_target


@pytest.mark.parametrize(("written", "meant"), [("\u00b5m", "\u03bcm"), ("\u2103", "\u00b0C")])
def test_a_targets_unit_is_the_contracts_however_its_signs_are_encoded(
    plant: Path, pump: AssetType, written: str, meant: str
) -> None:
    goal = pump.model_copy(update={"target": Target(name="gap", unit=meant, low=0.0, high=8.0)})
    with_target(plant, unit=written)
    assert vault(plant, goal).current().train.outcomes("regression")[4] == pytest.approx(3.0 / 8.0)


def test_a_mark_in_front_as_some_editors_write_it_is_passed_over(plant: Path, pump: AssetType) -> None:
    path = plant / "plant.json"
    path.write_text(path.read_text(encoding="utf-8"), encoding="utf-8-sig")
    assert len(vault(plant, pump).current().train) == 30


def test_a_manifest_too_deep_to_be_read_is_no_json(plant: Path, pump: AssetType) -> None:
    (plant / "plant.json").write_text("[" * 100_000)
    with pytest.raises(VaultError, match="plant.json is not JSON"):
        vault(plant, pump).current()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_manifest_that_is_no_file_is_refused_at_once(
    plant: Path, pump: AssetType, make: Callable[[Path], None]
) -> None:
    """Who reads a pipe waits for somebody to write into it."""
    (plant / "plant.json").unlink()
    make(plant / "plant.json")
    with pytest.raises(VaultError, match="plant.json is (no file|a pipe)"):
        vault(plant, pump).current()
