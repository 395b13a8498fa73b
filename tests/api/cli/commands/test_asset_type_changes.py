"""``ballast asset-type``: a newer version says whom it concerns, can be tried first, and handed to the plants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.contracts.keys.signing import new_seed_file
from services.contracts.machines.asset_type import AssetType
from services.plant_simulator.assets import builtin_asset_type_path
from services.round_store.plans.asset_types import AssetTypeRepository

PUMP = builtin_asset_type_path("triplex-pump")
NAME = "triplex-pump"


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The pump with a wider range, as the next version."""
    path = tmp_path / "newer.toml"
    text = PUMP.read_text().replace("version = 1\n", "version = 2\n").replace("high = 48.05\n", "high = 49.05\n")
    path.write_text(text)
    return path


def test_a_newer_version_says_whom_it_concerns_and_can_be_tried(
    shell: Any, behind: Any, newer: Path, plan_file: Callable[..., str], tmp_path: Path
) -> None:
    assert shell.good("asset-type", "add", str(PUMP)).count("\n") == 1, "the first one concerns nobody"
    shell.good("plan", "create", plan_file())
    for site in ("plant-1", "plant-2", "plant-3"):
        key = new_seed_file(tmp_path / f"{site}.nk")
        shell.good("site", "enrol", site, "--key", key, "--asset-type", NAME)
    shell.good("site", "remove", "plant-2")
    tried = shell.good("asset-type", "add", str(newer), "--dry-run")
    assert "runs of nightly that begin from now on would be of it\n" in tried
    assert "plant-1, plant-3 would take no part in them until" in tried and f"show {NAME}" in tried
    assert tried.endswith("nothing was stored\n")
    assert [each["asset_type"]["version"] for each in shell.read("asset-type", "list")] == [1]
    said = shell.good("asset-type", "add", str(newer))
    assert "nightly that begin from now on are of it\n" in said and "plant-1, plant-3 take no part" in said
    assert shell.good("asset-type", "add", str(newer)).count("\n") == 1, "the same again changes nothing"


def test_the_trail_has_each_version_beside_the_one_before_it_and_concerns_its_own_plans_alone(
    shell: Any, behind: Any, tmp_path: Path, plan_file: Callable[..., str]
) -> None:
    text, path = PUMP.read_text(), tmp_path / "next.toml"
    for number in (1, 2, 3, 3):
        path.write_text(text.replace("version = 1\n", f"version = {number}\n"))
        shell.good("asset-type", "add", str(path))
    entries = behind.store.audit.list_events(action="asset_type.put")
    told = [(entry.before and entry.before["version"], entry.after["version"]) for entry in entries]
    assert told == [(2, 3), (1, 2), (None, 1)], "the same again leaves no entry"
    other = builtin_asset_type_path("triplex-pump-severity")
    shell.good("asset-type", "add", str(other))
    shell.good("plan", "create", plan_file())
    path.write_text(other.read_text().replace("version = 1\n", "version = 2\n"))
    assert "nightly" not in shell.good("asset-type", "add", str(path)), "a plan of another kind of machine"


def test_the_stored_versions_are_read_once(shell: Any, newer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, reads = AssetTypeRepository.list_asset_types, list[int]()

    def counted(repository: AssetTypeRepository) -> Any:
        reads.append(1)
        return read(repository)

    shell.good("asset-type", "add", str(PUMP))
    monkeypatch.setattr(AssetTypeRepository, "list_asset_types", counted)
    shell.good("asset-type", "add", str(newer))
    assert len(reads) == 1


def test_what_is_shown_is_what_a_plant_needs(shell: Any, newer: Path, tmp_path: Path) -> None:
    for path in (PUMP, newer):
        shell.good("asset-type", "add", str(path))
    for wanted, original in (((), newer), (("--version", "1"), PUMP)):
        shown = tmp_path / "shown.toml"
        shown.write_text(shell.good("asset-type", "show", NAME, *wanted))
        assert AssetType.from_toml(shown) == AssetType.from_toml(original)
        assert shell.read("asset-type", "show", NAME, *wanted)["version"] == AssetType.from_toml(original).version
    assert "no version 3, but 1, 2" in shell.refused("asset-type", "show", NAME, "--version", "3")
    assert "no asset type turbine" in shell.refused("asset-type", "show", "turbine", "--version", "1")


def test_a_plan_is_tried_before_it_is_stored(shell: Any, behind: Any, plan_file: Callable[..., str]) -> None:
    shell.good("asset-type", "add", str(PUMP))
    assert shell.good("plan", "create", plan_file(), "--dry-run").endswith("nothing was stored\n")
    assert shell.read("plan", "list") == []
    shell.good("plan", "create", plan_file())
    said = shell.good("plan", "update", plan_file("max_rounds = 7"), "--dry-run")
    assert "max_rounds: 100 -> 7\n" in said and said.endswith("nothing was stored\n")
    assert "no time zone" in shell.refused("plan", "update", plan_file('timezone = "Mars/Base"'), "--dry-run")
    assert behind.store.plans.get("nightly").version == 1
    assert {event.action for event in behind.store.audit.list_events()} == {"asset_type.put", "plan.create"}


def test_a_name_that_is_none_is_told_what_one_is(shell: Any) -> None:
    said = shell.refused("site", "enrol-code", "Plant_7")
    assert "a name has 1 to 40 lower-case letters, digits and dashes" in said and "pattern" not in said
