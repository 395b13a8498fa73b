"""Masked words that are not as many as were asked for: their plant is missing from the sum, and is told why."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.wire.masking import MaskedWords
from tests.services.coordinator.fake_ports import FakeWorks
from tests.services.coordinator.round_loop.test_summed_rounds import masks_falsely, on_sums
from tests.services.coordinator.round_loop.test_summed_rounds import works as works  # asked again at once

UNFIT = "plant-2"


@pytest.mark.parametrize("change", [lambda words: words[8:], lambda words: words + bytes(8)], ids=["fewer", "more"])
def test_who_masks_another_number_of_words_is_rejected_by_name_and_the_sum_is_that_of_the_others(
    works: FakeWorks, change: Any
) -> None:
    """As accepted it would stay to the last round, and no round would bound the risk of all plants from above."""
    def unfit(said: Any) -> Any:
        return said.model_copy(update={"words": change(said.words)}) if isinstance(said, MaskedWords) else said

    masks_falsely(works.plants[UNFIT], unfit)
    run = on_sums(works)
    trained = works.train(run)
    (account,) = [each for each in works.store.records[0].answers if each.site_id == UNFIT]
    assert (account.status, account.code) == ("rejected", "wrong_dimension") and "were due" in account.reason
    (out,) = works.store.get_run(run.run_id).excluded
    assert out.site_id == UNFIT and out.code == "wrong_dimension" and "answered none of them" in out.reason
    assert trained.certificate.gap <= 1e-3 and set(trained.worst_weights) == works.plants.keys() - {UNFIT}
