"""A sum is over three plants that count for something, whoever the coordinator says is away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.contracts.keys.signing import new_seed_file, signer
from services.contracts.wire.masking import (
    Delivery,
    MaskedWords,
    MaskingCohort,
    MaskKey,
    MaskKeys,
    Preparation,
    Unmasked,
    Unmasking,
)
from services.contracts.wire.messages import SiteUpdate
from services.masking.keys import Words
from services.masking.unmasking import deliveries, unmask_request, unmasked_sum
from services.site_agent.door.masked_runs import MaskedRuns
from services.site_agent.rules.policy import Refusal, SitePolicy
from tests.services.site_agent.party import PEERS, Party, first_question

RUN = "ab" * 16
SITE = "plant-1"


class Nine:
    """Nine plants, all honest, of which three have the whole weight between them."""

    def __init__(self, folder: Path, least: float = 1e-9) -> None:
        self.names = [f"plant-{number}" for number in range(1, 10)]
        keys = {name: new_seed_file(folder / f"{name}.nk") for name in self.names}
        self.shares = {name: 1 / 3 if place < 3 else least for place, name in enumerate(self.names)}
        self.cohort = MaskingCohort(run_id=RUN, name="cohort-1", keys=keys, threshold=6, shares=self.shares)
        self.plants = {
            name: MaskedRuns(name, keys[name], signer(folder / f"{name}.nk"), SitePolicy()) for name in self.names
        }
        said = {name: plant.answer(self.cohort) for name, plant in self.plants.items()}
        self.keys = {name: each for name, each in said.items() if isinstance(each, MaskKey)}

    def prepared(self, away: set[str]) -> dict[str, Preparation]:
        asked = MaskKeys(run_id=RUN, round=1, keys=self.keys)
        said = {name: self.plants[name].answer(asked) for name in self.names if name not in away}
        return {name: each for name, each in said.items() if isinstance(each, Preparation)}

    def words(self, name: str) -> Words:
        return np.rint(np.ldexp(self.shares[name] * np.array([0.125, 7.5]), 40)).astype(np.int64).view(np.uint64)

    def masked(self, given: dict[str, Delivery]) -> dict[str, MaskedWords]:
        for name, each in given.items():
            self.plants[name].summed(each)
        return {name: self.plants[name].mask(each, self.words(name)) for name, each in given.items()}


def test_with_the_others_away_plants_of_hardly_a_share_hide_nothing(tmp_path: Path) -> None:
    """One sum of one round was the plant's own answer, to nine digits: the cohort has three that count, the sum one."""
    nine = Nine(tmp_path)
    prepared = nine.prepared({"plant-2", "plant-3"})
    given = deliveries(nine.cohort, 1, prepared)
    assert len(given) == 7 >= nine.cohort.threshold
    with pytest.raises(Refusal, match="1 plants of a sum of cohort cohort-1 have a share of 0.003") as caught:
        nine.plants[SITE].summed(given[SITE])
    assert caught.value.refusal_code == "masks_refused"


@pytest.mark.parametrize("answered", [["plant-1"], ["plant-1", "plant-1", "plant-1"], ["plant-1", "plant-2"]])
def test_nor_where_they_made_masks_and_are_said_to_have_answered_nothing(tmp_path: Path, answered: list[str]) -> None:
    nine = Nine(tmp_path)
    prepared = nine.prepared(set())
    masked = nine.masked(deliveries(nine.cohort, 1, prepared))
    there = [*answered, *nine.names[3:]]
    request = unmask_request(nine.cohort, 1, prepared, masked)
    request = request.model_copy(update={
        "answered": tuple(there), "absent": tuple(name for name in nine.names if name not in there),
    })
    with pytest.raises(Refusal, match="plants of a sum of cohort cohort-1 have a share"):
        nine.plants[SITE].answer(Unmasking(run_id=RUN, request=request))


def test_small_plants_may_be_away_and_a_sum_over_all_comes_out(tmp_path: Path) -> None:
    nine = Nine(tmp_path)
    prepared = nine.prepared({"plant-8", "plant-9"})
    masked = nine.masked(deliveries(nine.cohort, 1, prepared))
    request = unmask_request(nine.cohort, 1, prepared, masked)
    told = {name: nine.plants[name].answer(Unmasking(run_id=RUN, request=request)) for name in prepared}
    revealed = {name: each.revealed for name, each in told.items() if isinstance(each, Unmasked)}
    total = unmasked_sum(nine.cohort, request, prepared, masked, revealed)
    np.testing.assert_allclose(np.ldexp(total.view(np.int64), -40), [0.125, 7.5], rtol=1e-8)


def test_who_is_summed_is_looked_at_before_anything_is_computed(new_party: Callable[..., Party]) -> None:
    party = new_party(dict(zip((SITE, *PEERS), (0.5, 0.4, 0.0999, 0.0001), strict=True)))
    party.agree()
    prepared = party.prepare(1)
    message, _ = first_question()
    given = {"arrays": message, "parameters": {"questions": 2.0}, "round": 1}
    some = {name: each for name, each in prepared.items() if name != "plant-3"}
    assert party.ask("round", deliveries(party.cohort, 1, some)[SITE], **given).code == "masks_refused"
    train = party.site.door._vault.current().train
    assert party.site.door._gate.figures(train).vectors == 0
    assert isinstance(party.ask("round", deliveries(party.cohort, 1, prepared)[SITE], **given), SiteUpdate)
