"""A plant takes up a newer version of its asset type while its agent runs, and stays with the former where it must."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.contracts.errors import InvalidInputError, UnavailableError
from services.contracts.machines.asset_type import AssetType
from services.contracts.toml_text import to_toml
from services.contracts.wire.codec import decode, encode
from services.contracts.wire.messages import SiteRefusal, SiteUpdate
from services.site_agent.contract_watch import WatchedRound
from services.site_agent.door.local_round import LocalRound
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.outgoing.egress import Egress


class Plant:
    """A site whose door is watched, its asset type's file, and how often the door was opened."""

    def __init__(self, site: Any) -> None:
        self.site, self.file, self.opened = site, site.folder / "asset_type.toml", list[int]()
        self.away = False
        site.door.close()
        self.write(site.asset_type)
        self.door = WatchedRound(self.file, self._open)

    def _open(self, asset_type: AssetType) -> LocalRound:
        if self.away:
            raise UnavailableError("the record is held by another agent")
        self.opened.append(asset_type.version)
        site = self.site
        egress = Egress(site.ledger, site.sign, site.policy.max_message_bytes)
        masks = MaskedRuns("plant-1", site.public_key, site.sign, site.policy)
        return LocalRound(
            "plant-1", site.source, asset_type, site.policy, egress, site.folder / "exposure.sqlite", masks
        )

    def write(self, asset_type: AssetType) -> None:
        self.file.write_text(to_toml(asset_type))

    def ask(self, asset_type: AssetType) -> str:
        """What comes of a task of a version: "answered", or the refusal's code."""
        task = self.site.task(contract=asset_type.fingerprint)
        answer = decode(self.door.answer(encode(task)), 1 << 20)
        assert isinstance(answer, SiteUpdate | SiteRefusal)
        return answer.code if isinstance(answer, SiteRefusal) else "answered"


@pytest.fixture
def plant(make_site: Callable[..., Any]) -> Iterator[Plant]:
    made = Plant(make_site())
    yield made
    made.door.close()


@pytest.fixture
def newer(asset_type: AssetType) -> AssetType:
    """The next version, whose first sensor has a wider range."""
    first, *rest = asset_type.features
    wider = first.model_copy(update={"high": first.high + 1.0})
    return asset_type.model_copy(update={"version": asset_type.version + 1, "features": (wider, *rest)})


def test_a_task_of_a_newer_version_is_answered_once_its_file_is_there(
    plant: Plant, asset_type: AssetType, newer: AssetType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ballast")
    assert (plant.ask(asset_type), plant.ask(newer)) == ("answered", "contract_mismatch")
    plant.write(newer)
    assert plant.ask(newer) == "answered"
    assert plant.door.told == f"asset type pump version {newer.version}"
    assert f"version {newer.version} now; it was version {asset_type.version}" in caplog.text
    assert plant.ask(asset_type) == "contract_mismatch", "as after a restart"
    assert plant.opened == [asset_type.version, newer.version]


def test_what_training_depends_on_is_taken_up_though_the_number_is_the_same(
    plant: Plant, asset_type: AssetType, newer: AssetType
) -> None:
    corrected = newer.model_copy(update={"version": asset_type.version})
    plant.write(corrected)
    assert plant.ask(corrected) == "answered" and plant.ask(asset_type) == "contract_mismatch"
    described = corrected.model_copy(update={"version": corrected.version + 1})
    plant.write(described)
    assert plant.ask(described) == "answered" and len(plant.opened) == 2, "another number alone opens no door"


async def test_it_is_taken_up_without_a_task(plant: Plant, newer: AssetType) -> None:
    plant.write(newer)
    watch = asyncio.create_task(plant.door.watch(0.0))
    async with asyncio.timeout(60.0):
        while plant.door.asset_type != newer:
            await asyncio.sleep(0.01)
    watch.cancel()
    assert plant.ask(newer) == "answered"


@pytest.mark.parametrize("text", ["name = ", 'name = "pump"\n', None])
def test_a_file_that_does_not_fit_changes_nothing_and_is_told(
    plant: Plant, asset_type: AssetType, newer: AssetType, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    plant.file.unlink() if text is None else plant.file.write_text(text)
    for _ in range(3):
        assert plant.ask(asset_type) == "answered"
    assert "does not fit, and is not used" in plant.door.told
    assert sum("does not fit" in each.getMessage() for each in caplog.records) == 1, "once, not with every task"
    plant.write(newer)
    assert plant.ask(newer) == "answered" and "does not fit" not in plant.door.told


def test_the_same_version_written_again_opens_nothing(plant: Plant, asset_type: AssetType) -> None:
    plant.write(asset_type)
    assert plant.ask(asset_type) == "answered" and plant.opened == [asset_type.version]


async def test_a_record_that_cannot_be_opened_is_tried_again(
    plant: Plant, newer: AssetType, caplog: pytest.LogCaptureFixture
) -> None:
    plant.write(newer)
    plant.away = True
    watch = asyncio.create_task(plant.door.watch(0.0))
    async with asyncio.timeout(60.0):
        while "could not be opened" not in caplog.text:
            await asyncio.sleep(0.01)
    watch.cancel()
    with pytest.raises(UnavailableError, match="another agent"):
        plant.ask(newer)
    plant.away = False
    assert plant.ask(newer) == "answered"


def test_a_look_disturbs_no_task_and_nothing_after_the_end(plant: Plant, newer: AssetType) -> None:
    plant.write(newer)
    with plant.door._at_work:
        plant.door.look()
    assert plant.door.asset_type != newer
    plant.door.close()
    plant.door.look()
    assert len(plant.opened) == 1


def test_at_the_start_a_file_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no asset type file"):
        WatchedRound(tmp_path / "none.toml", lambda asset_type: pytest.fail("nothing is opened"))
