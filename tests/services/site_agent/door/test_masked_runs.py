"""What a plant keeps of its masked runs: an agreement on keys and its own memory, of the runs that agreed last."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.masking import MaskingCohort, MaskKey, MaskKeys, Preparation
from services.masking.keys import MaskKeyPair
from services.site_agent.door.masked_runs import _RUNS_KEPT, MaskedRuns
from services.site_agent.rules.policy import Refusal, SitePolicy

SITE = "plant-1"


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    return {name: new_seed_file(tmp_path / f"{name}.nk") for name in (SITE, "plant-2", "plant-3", "plant-4")}


@pytest.fixture
def runs(keys: dict[str, str], tmp_path: Path) -> MaskedRuns:
    return MaskedRuns(SITE, keys[SITE], signer(tmp_path / f"{SITE}.nk"), SitePolicy())


def run(number: int) -> str:
    return f"{number:032x}"


def agreed(runs: MaskedRuns, keys: dict[str, str], number: int, name: str = "cohort-1") -> MaskKey:
    answer = runs.answer(MaskingCohort(run_id=run(number), name=name, keys=keys, threshold=3))
    assert isinstance(answer, MaskKey)
    return answer


def test_the_runs_that_agreed_on_keys_last_are_kept_and_no_more(runs: MaskedRuns, keys: dict[str, str]) -> None:
    first = agreed(runs, keys, 0)
    for number in range(1, _RUNS_KEPT):
        agreed(runs, keys, number)
    assert agreed(runs, keys, 0) == first, "asked again, the same key"
    agreed(runs, keys, 1, "cohort-2")
    agreed(runs, keys, _RUNS_KEPT)
    assert [runs.memory(run(number)) for number in range(1, _RUNS_KEPT + 1)] == [{}] * _RUNS_KEPT
    with pytest.raises(Refusal) as caught:
        runs.memory(run(0))
    assert caught.value.refusal_code == "masks_missing"
    agreed(runs, keys, _RUNS_KEPT + 1)
    with pytest.raises(Refusal):
        runs.memory(run(2))
    assert runs.memory(run(1)) == {}, "it agreed anew since"


def test_another_agreement_of_the_same_plants_keeps_the_memory_and_has_another_key(
    runs: MaskedRuns, keys: dict[str, str]
) -> None:
    before = agreed(runs, keys, 0)
    runs.remember(run(0), {"held": np.ones(2)})
    assert agreed(runs, keys, 0, "cohort-2") != before
    assert runs.memory(run(0)).keys() == {"held"}
    fewer = {name: key for name, key in keys.items() if name != "plant-4"}
    agreed(runs, fewer, 0)
    assert runs.memory(run(0)) == {}, "what was said with other plants is of another sum"


def test_a_plant_that_began_anew_masks_by_no_key_that_it_lost(
    runs: MaskedRuns, keys: dict[str, str], tmp_path: Path
) -> None:
    """The others would put masks on by the key that it lost, and it would take off other ones: the sum is noise."""
    cohort = MaskingCohort(run_id=run(0), name="cohort-1", keys=keys, threshold=3)
    lost = MaskedRuns(SITE, keys[SITE], signer(tmp_path / f"{SITE}.nk"), SitePolicy()).answer(cohort)
    own = runs.answer(cohort)
    assert isinstance(lost, MaskKey) and isinstance(own, MaskKey) and own != lost
    others = {
        name: MaskKeyPair.new().signed(cohort, name, signer(tmp_path / f"{name}.nk")) for name in keys if name != SITE
    }
    for told in (others | {SITE: lost}, others):
        with pytest.raises(Refusal) as caught:
            runs.answer(MaskKeys(run_id=run(0), round=1, keys=told))
        assert caught.value.refusal_code == "masks_missing", "then keys are agreed on anew"
    asked = MaskKeys(run_id=run(0), round=1, keys=others | {SITE: own})
    prepared = runs.answer(asked)
    assert isinstance(prepared, Preparation) and runs.answer(asked) == prepared, "one whose answer was lost asks again"
