"""A run on sums while a plant changes its key: two keys hold, and the plant alone knows which of them it uses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from services.contracts.keys.signing import new_seed_file
from services.contracts.wire.messages import Task
from services.coordinator.asking.ports import RawAnswer
from services.coordinator.training import Coordinator
from services.site_agent.rules.policy import SitePolicy
from tests.services.coordinator.fake_ports import RIG, FakeWorks
from tests.waiting import PATIENCE


def trained(works: FakeWorks, keys: dict[str, str], **terms: Any) -> Any:
    """A run on sums of all plants with such keys, from join to end; its id and what came out."""
    needed = {"parameters": {"questions": 2}, "min_sites": len(works.plants)}
    run = works.run(reveal="sums", method="cohort-bundle", **needed | terms)

    async def whole() -> Any:
        coordinator = Coordinator(works.store, works.transport, keys, RIG)
        return await coordinator.train(await coordinator.join(run))

    return run.run_id, asyncio.run(whole())


def keys_of(works: FakeWorks) -> dict[str, str]:
    return {site: plant.public_key for site, plant in works.plants.items()}


@pytest.mark.parametrize("uses", ["the former", "the new"])
def test_a_run_that_begins_during_the_change_has_the_plant(works: FakeWorks, tmp_path: Path, uses: str) -> None:
    keys, other = keys_of(works), new_seed_file(tmp_path / "other.nk")
    own = keys["plant-1"]
    keys["plant-1"] = f"{other} {own}" if uses == "the former" else f"{own} {other}"
    run_id, found = trained(works, keys)
    assert found.certificate.gap <= 1e-3 and set(found.worst_weights) == set(works.plants)
    assert works.store.get_run(run_id).excluded == ()


def test_a_change_of_the_key_in_the_middle_of_a_run_costs_no_round(works: FakeWorks, tmp_path: Path) -> None:
    """The OEM knows the new key from round 3 on, the plant uses it from round 6 on."""
    keys, plant = keys_of(works), works.plants["plant-1"]
    seed = tmp_path / "next.nk"
    former, new = plant.public_key, new_seed_file(seed)

    def behave(task: Task) -> RawAnswer | None:
        if task.kind == "round" and task.round == 3:
            keys["plant-1"] = f"{new} {former}"
        if task.kind == "agree" and task.round == 6 or task.kind == "round" and task.round == 6:
            if plant.public_key == former:
                plant.public_key, plant.seed_file = new, seed
                plant.restart()
        return None

    plant.behave = behave
    run_id, found = trained(works, keys)
    assert plant.public_key == new
    assert found.certificate.gap <= 1e-3 and set(found.worst_weights) == set(works.plants)
    assert works.store.get_run(run_id).excluded == ()
    numbers = [record.round for record in works.store.records]
    assert numbers == list(range(1, len(numbers) + 1)), "every round is committed once"


def test_a_policy_that_lists_the_former_key_alone_keeps_the_new_one_out(works: FakeWorks, tmp_path: Path) -> None:
    """That two keys hold lets nobody mask with a key that a plant's policy does not list."""
    keys = keys_of(works)
    other = works.plants["plant-2"]
    other.policy = SitePolicy(peers={site: key for site, key in keys.items() if site != "plant-2"})
    other.restart()
    plant = works.plants["plant-1"]
    former = plant.public_key
    run_id, found = trained(works, keys | {"plant-1": f"{new_seed_file(tmp_path / 'other.nk')} {former}"})
    assert found.certificate.gap <= 1e-3 and works.store.get_run(run_id).excluded == (), "it uses the listed one"
    plant.seed_file = tmp_path / "third.nk"
    plant.public_key = new_seed_file(plant.seed_file)
    plant.restart()
    with pytest.raises(Exception, match="does not allow this cohort"):
        trained(works, keys | {"plant-1": f"{plant.public_key} {former}"})


@pytest.mark.parametrize("comes_back_with", ["its own key", "another key"])
def test_a_plant_that_is_suspended_and_back_while_the_round_waits_stays_in_the_run(
    works: FakeWorks, tmp_path: Path, comes_back_with: str
) -> None:
    """From round 3 on it has no key; when the cohort is asked the second time to agree, it has one again."""
    keys, plant, other = keys_of(works), works.plants["plant-1"], works.plants["plant-2"]
    own, seed, asked = plant.public_key, tmp_path / "next.nk", []
    if comes_back_with == "its own key":  # which the policy of another lists
        other.policy = SitePolicy(peers={site: key for site, key in keys.items() if site != "plant-2"})
        other.restart()

    def behave(task: Task) -> RawAnswer | None:
        if task.kind == "round" and task.round == 3:
            keys["plant-1"] = ""
        if task.kind == "agree" and not keys["plant-1"]:
            asked.append(task)
        if len(asked) == 2 and not keys["plant-1"]:
            if comes_back_with == "another key":
                plant.public_key, plant.seed_file = new_seed_file(seed), seed
                plant.restart()
            keys["plant-1"] = plant.public_key
        return None

    plant.behave = behave
    run_id, found = trained(works, keys, absence_patience_seconds=PATIENCE)
    assert len(asked) == 2 and (plant.public_key == own) == (comes_back_with == "its own key")
    assert works.store.get_run(run_id).excluded == () and set(found.worst_weights) == set(works.plants)
    assert found.certificate.gap <= 1e-3
