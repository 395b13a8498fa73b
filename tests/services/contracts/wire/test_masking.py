"""What is agreed on with a cohort: how many must answer, whose shares count, and what all of it is known by."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.contracts.wire.masking import (
    MaskingCohort,
    SealedOpenings,
    default_threshold,
    least_threshold,
    threshold_of,
)

RUN = "ab" * 16
FOUR = ("a", "b", "c", "d")


def cohort(sites: tuple[str, ...] = FOUR, threshold: int = 3, **more: Any) -> MaskingCohort:
    keys = {site: site.upper() for site in sites}
    return MaskingCohort(run_id=RUN, name="one", keys=keys, threshold=threshold, **more)


@pytest.mark.parametrize(
    ("members", "least", "default", "of_seventy"),
    [(3, 2, 3, 3), (4, 3, 3, 3), (5, 4, 4, 4), (6, 4, 4, 5), (100, 67, 67, 70)],
)
def test_two_thirds_at_least_and_never_fewer_than_three_make_a_sum(
    members: int, least: int, default: int, of_seventy: int
) -> None:
    assert (least_threshold(members), default_threshold(members)) == (least, default)
    assert threshold_of(members, 0.7) == of_seventy and threshold_of(members, 2.0 / 3.0) == default
    assert threshold_of(members, 1.0) == members


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sites": ("a", "b"), "threshold": 2}, "at least 3 plants, one has 2"),
        ({"threshold": 2}, "from 3 to 4, got 2"),
        ({"threshold": 5}, "from 3 to 4, got 5"),
        ({"shares": {"a": 0.5, "b": 0.5, "c": 0.0}}, "a share for each of its plants"),
        ({"shares": {"a": 0.5, "b": 0.5, "c": 0.0, "e": 0.0}}, "a share for each of its plants"),
        ({"shares": dict.fromkeys(FOUR, 1.5)}, "less than or equal to 1"),
        ({"noise": {"honest": 4, "row_share": 0.5, "rho": 1.0}}, "must be in every sum, and 3 answers make one"),
        ({"agreement": -1}, "greater than or equal to 0"),
    ],
)
def test_a_cohort_of_which_one_plant_could_be_seen_is_none(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        cohort(**change)


def test_plants_have_the_shares_that_all_sign_or_alike_and_places_by_name() -> None:
    assert cohort(("d", "a", "c")).members == ("a", "c", "d")
    assert cohort(("d", "a", "c")).places == {"a": 1, "c": 2, "d": 3}
    assert [cohort().share(site) for site in FOUR] == [0.25] * 4
    stated = cohort(shares={"a": 0.5, "b": 0.25, "c": 0.25, "d": 0.0})
    assert [stated.share(site) for site in FOUR] == [0.5, 0.25, 0.25, 0.0]


def test_whatever_differs_in_what_is_signed_is_another_fingerprint() -> None:
    shares = dict.fromkeys(FOUR, 0.25)
    changes: list[dict[str, Any]] = [
        {}, {"threshold": 4}, {"shares": shares}, {"agreement": 1}, {"auditor": "U"}, {"audit_every_round": True},
        {"sites": ("a", "b", "c", "e")}, {"noise": {"honest": 3, "row_share": 0.5, "rho": 1.0}},
    ]
    prints = [cohort(**change).fingerprint for change in changes]
    assert len(set(prints)) == len(changes)
    assert cohort(FOUR[::-1]).fingerprint == prints[0], "whatever order the plants are told in"


def test_the_signature_of_openings_is_over_run_plant_auditor_and_box() -> None:
    said = SealedOpenings(run_id=RUN, site_id="a", auditor="U", box=b"box", signature=bytes(64))
    changes: tuple[dict[str, Any], ...] = ({"run_id": "cd" * 16}, {"site_id": "b"}, {"auditor": "V"}, {"box": b"x"})
    others = {said.model_copy(update=change).statement for change in changes}
    assert len(others | {said.statement}) == 5


def test_a_plant_signs_the_whole_box_of_its_openings() -> None:
    named = {"run_id": "ab" * 16, "site_id": "north", "auditor": "U"}
    sealed = SealedOpenings.model_construct(**named, box=bytes(100), signature=bytes(64))
    others = [
        sealed.model_copy(update=change) for change in (
            {"box": bytes(99) + b"x"}, {"box": b"x" + bytes(99)}, {"site_id": "south"}, {"auditor": "V"},
            {"run_id": "cd" * 16},
        )
    ]
    assert len({each.statement for each in (sealed, *others)}) == 6
