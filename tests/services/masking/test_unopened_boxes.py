"""Sealed shares that a peer cannot open: they cost no sum where enough others can, and never an honest plant its place.

Of each pair of plants, who sealed and who says that it does not open, one lies, and no message shows which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from services.contracts.wire.masking import MaskingError
from services.masking.masks import KEY_BYTES
from services.masking.unmasking import UnfitSharesError, deliveries, most_liars, unmask_request, unmasked_sum

Make = Callable[..., Any]
LIAR = "plant-001"


def total(
    plants: Any, spoilt: Iterable[str] = (), denied: Iterable[str] = (), *, own: bool = True,
    silent: Iterable[str] = (), absent: bool = False, garbled: bool = False,
) -> Any:
    """The sum of a round in which the liar seals nothing for ``spoilt`` and reveals no share of ``denied``.

    ``own``: whether it reveals a share of its own; ``absent``: it does not answer; ``garbled``: its recovery box.
    """
    prepared, words = plants.prepared(1), plants.words(1)
    changed: dict[str, Any] = {"sealed": prepared[LIAR].sealed | {site: bytes(108) for site in spoilt}}
    if garbled:
        changed["recovery"] = bytes(KEY_BYTES)
    prepared[LIAR] = prepared[LIAR].model_copy(update=changed)
    asked = deliveries(plants.cohort, 1, prepared)
    masked = {name: each.mask(asked[name], words[name]) for name, each in plants.members.items()}
    if absent:
        del masked[LIAR]
    request = unmask_request(plants.cohort, 1, prepared, masked)
    told = {name: plants.members[name].reveal(request) for name in request.answered if name not in set(silent)}
    left = {*denied} | (set() if own else {LIAR})
    if LIAR in told:
        kept = {site: share for site, share in told[LIAR].self_shares.items() if site not in left}
        told[LIAR] = told[LIAR].model_copy(update={"self_shares": kept})
    found = unmasked_sum(plants.cohort, request, prepared, masked, told)
    np.testing.assert_array_equal(found, np.add.reduce([words[name] for name in request.answered]))
    return found


@pytest.mark.parametrize(("count", "threshold", "most"), [(3, 3, 1), (4, 3, 1), (5, 5, 1), (9, 6, 3), (30, 20, 10)])
def test_as_many_may_lie_as_a_cohort_can_spare(make_plants: Make, count: int, threshold: int, most: int) -> None:
    assert most_liars(make_plants(count, threshold).cohort) == most


@pytest.mark.parametrize("absent", [False, True])
def test_a_box_that_does_not_open_costs_no_sum(make_plants: Make, absent: bool) -> None:
    total(make_plants(9), ["plant-000", "plant-002"], absent=absent)


def test_who_says_of_all_boxes_that_they_do_not_open_costs_no_sum(make_plants: Make) -> None:
    plants = make_plants(5)
    total(plants, denied=[name for name in plants.members if name != LIAR])


@pytest.mark.parametrize("count", [3, 4, 5, 9])
def test_who_seals_for_nobody_is_named(make_plants: Make, count: int) -> None:
    plants = make_plants(count)
    with pytest.raises(UnfitSharesError, match="more than may lie together") as found:
        total(plants, [name for name in plants.members if name != LIAR])
    assert found.value.site == LIAR


def test_of_three_plants_who_denies_both_others_is_named(make_plants: Make) -> None:
    with pytest.raises(UnfitSharesError) as found:
        total(make_plants(3), denied=["plant-000", "plant-002"])
    assert found.value.site == LIAR


@pytest.mark.parametrize("how", [{"spoilt": ["plant-000"]}, {"denied": ["plant-000"]}])
def test_one_against_one_is_a_tie_that_names_both(make_plants: Make, how: dict[str, Any]) -> None:
    with pytest.raises(MaskingError, match="the others cannot tell which of the two lies") as found:
        total(make_plants(3), **how)
    assert not isinstance(found.value, UnfitSharesError)
    assert "plant-000" in str(found.value) and LIAR in str(found.value)


def test_who_withholds_its_own_share_is_named(make_plants: Make) -> None:
    """An honest plant always holds its own, so none is lost by a pair in which it stands for both."""
    with pytest.raises(UnfitSharesError) as found:
        total(make_plants(4), ["plant-000"], own=False)
    assert found.value.site == LIAR


def test_as_many_as_may_lie_name_nobody_out(make_plants: Make) -> None:
    """Three of nine say that an honest plant's boxes do not open, and another is away just then."""
    plants = make_plants(9)
    with pytest.raises(MaskingError, match="5 of the 6 shares") as found:
        total(plants, ["plant-000", "plant-002", "plant-003"], silent=["plant-008"])
    assert not isinstance(found.value, UnfitSharesError), "what three say may be a lie of three"


def test_a_recovery_box_that_is_none_is_its_plants(make_plants: Make) -> None:
    """The key that the others' shares give fits what it committed itself to, and does not open what it left."""
    with pytest.raises(UnfitSharesError, match=f"what {LIAR} prepared for its absence .* does not open") as found:
        total(make_plants(5), absent=True, garbled=True)
    assert found.value.site == LIAR
