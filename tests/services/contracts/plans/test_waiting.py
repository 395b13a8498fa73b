"""How long a round may be told to wait, and which plans may say so."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.plans.waiting import METHODS_THAT_WAIT_FOR_NOBODY, Waiting, waiting_refusal


def test_what_a_round_waits_for_where_nothing_is_written() -> None:
    """A promise of the guide: half of the weight, and a quarter more time than it took."""
    found = Waiting()
    assert (found.enough, found.times, found.seconds, found.furthest_behind, found.sites) == (0.5, 1.25, 0.05, 50, {})


@pytest.mark.parametrize("wrong", [
    {"enough": 0.0}, {"enough": 1.01}, {"times": 0.99}, {"times": 1001.0}, {"seconds": -0.1}, {"seconds": 86_401.0},
    {"furthest_behind": 0}, {"furthest_behind": 10_001}, {"sites": {"Plant 1": 1.0}},
], ids=str)
def test_what_is_beyond_a_limit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        Waiting.model_validate(wrong)


@pytest.mark.parametrize("limit", [
    {"enough": 1.0}, {"times": 1.0}, {"times": 1000.0}, {"seconds": 0.0}, {"seconds": 86_400.0}, {"furthest_behind": 1},
    {"sites": {"plant-1": 0.0}},
], ids=str)
def test_what_is_at_a_limit_is_taken(limit: dict[str, Any]) -> None:
    assert Waiting.model_validate(limit).model_dump(include=set(limit)) == limit


@pytest.mark.parametrize("method", METHODS_THAT_WAIT_FOR_NOBODY)
def test_methods_whose_answers_keep_may_wait_where_each_site_is_seen(method: str) -> None:
    assert waiting_refusal("each site", method) == ""
    assert "sum_threshold" in waiting_refusal("sums", method)


@pytest.mark.parametrize("method", ["cohort-bundle", "fdr-admm", "fedavg", "level", ""])
def test_other_methods_need_the_answers_of_a_round_together(method: str) -> None:
    said = waiting_refusal("each site", method)
    assert said.startswith("waiting goes with the methods level-bundle and level-bundle-plain") and method in said
