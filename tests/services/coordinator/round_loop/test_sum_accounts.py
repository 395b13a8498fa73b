"""What each plant answered over the exchanges of a round on sums: bytes and seconds of all, one status."""

from __future__ import annotations

import pytest

from services.coordinator.asking.poll import Poll
from services.coordinator.round_loop.sum_accounts import SumAccounts
from tests.versions import an_answer


def accounts(*sites: str) -> SumAccounts:
    found = SumAccounts()
    found.add([an_answer(site) for site in sites], keep_status=False)
    return found


@pytest.mark.parametrize(("keep", "status"), [(True, "accepted"), (False, "late")])
def test_bytes_and_seconds_of_all_exchanges_are_added_and_one_status_stands(keep: bool, status: str) -> None:
    found = accounts("a", "b")
    late = an_answer("a", status="late", code="deadline", reason="slow", bytes_in=1, bytes_out=20, seconds=0.5)
    found.add([late], keep_status=keep)
    of_a, of_b = found.of()
    assert (of_a.bytes_in, of_a.bytes_out, of_a.seconds, of_a.status) == (901, 720, 0.51, status)
    assert (of_a.code, of_a.reason) == (("", "") if keep else ("deadline", "slow"))
    assert of_b == an_answer("b")


def test_what_a_plant_answered_may_count_for_nothing_and_its_bytes_are_told_all_the_same() -> None:
    found = accounts("a", "b")
    found.reject("a", "bad_shape", "not what was asked")
    of_a, of_b = found.of()
    assert of_a == an_answer("a", status="rejected", code="bad_shape", reason="not what was asked")
    assert of_b.status == "accepted"


def test_of_a_lost_sum_who_answered_and_revealed_nothing_is_away_and_nobody_else_is() -> None:
    """Neither who revealed, nor who was rejected before, nor who answered nothing that could be lost."""
    found = accounts("a", "b", "c", "d")
    found.reject("c", "bad_shape", "not what was asked")
    away = {"status": "absent", "code": "no_responders", "reason": "gone"}
    told = (an_answer("a", **away), an_answer("b"), an_answer("c", **away), an_answer("d", **away))
    found.in_debt(["a", "b", "c"], Poll({}, told, 0.0, {}))
    assert [each.status for each in found.of()] == ["absent", "accepted", "rejected", "accepted"]
    assert (found.of(["a"])[0].code, found.of(["a"])[0].reason, found.of(["a"])[0].bytes_in) == (
        "no_responders", "gone", 900,
    )


def test_accounts_come_in_the_order_that_was_asked_for_else_by_the_ids() -> None:
    found = accounts("c", "a", "b")
    assert [each.site_id for each in found.of()] == ["a", "b", "c"]
    assert [each.site_id for each in found.of(["b", "nobody", "a"])] == ["b", "a"]
    assert found.of([]) == ()
