"""What a run says of its end: of sites whose own cuts keep the bounds apart, and of cuts of an earlier run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flows.publish import why_stopped
from models.problem import Certificate, Status


def ended(
    held_open: dict[str, float], reused: tuple[str, ...] = (), reveal: str = "each site", note: str = ""
) -> str:
    trained: Any = SimpleNamespace(
        status=Status.STALLED, certificate=Certificate(upper=1.1, lower=1.0), held_open=held_open, note=note,
        reused=reused,
    )
    run: Any = SimpleNamespace(plan=SimpleNamespace(reveal=reveal, min_cohort=1), start=SimpleNamespace(
        after="earlier", cohorts=(SimpleNamespace(name="cohort-1", sites=("plant-1",)),),
    ), excluded=())
    return why_stopped(run, trained)


def test_sites_that_keep_it_open_only_together_are_one_line() -> None:
    assert ended({"plant-2": 0.04, "plant-1": 0.03}) == (
        "no further round brings progress; plant-2, plant-1 keep the gap open together: of 0.1 between the bounds "
        "their own cuts leave 0.07, as where guards hide single rows of few, and no further round closes that"
    )


@pytest.mark.parametrize(("count", "said"), [(5, "p0, p1, p2, p3, p4 keep"), (7, "p0, p1, p2, p3, p4 and 2 more keep")])
def test_of_many_the_first_five_have_their_names(count: int, said: str) -> None:
    assert said in ended({f"p{number}": 0.06 / count for number in range(count)})


def test_one_that_leaves_half_of_it_alone_has_a_line_of_its_own() -> None:
    one = ended({"plant-2": 0.06})
    assert "plant-2 keeps the gap open: of 0.1 between the bounds its own cuts leave 0.06" in one
    assert ended({"plant-2": 0.06, "plant-1": 0.05}).count("keeps the gap open") == 2
    assert ended({}) == "no further round brings progress"


def test_cuts_of_an_earlier_run_are_counted() -> None:
    assert ended({}, ("cohort-1",), "sums").endswith("; with the cuts of 1 unchanged cohort from run earlier")
    assert ended({}, ("plant-1", "plant-2")).endswith("; with the cuts of 2 unchanged sites from run earlier")


def test_what_the_method_says_of_its_result_is_told() -> None:
    assert ended({}, note="the steps were halved") == "no further round brings progress; the steps were halved"
