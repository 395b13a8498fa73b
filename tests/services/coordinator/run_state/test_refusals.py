"""Which silence is worth another question, and which is not."""

from __future__ import annotations

from typing import get_args

import pytest

from services.contracts.history.run import SiteAnswer
from services.contracts.wire.messages import RefusalCode
from services.coordinator.run_state.refusals import is_final, who_and_why, without_answers
from services.coordinator.run_state.run_errors import LiftsRefusedError, TooFewRowsToTuneError, TooFewSitesError


def answered(status: str, code: str = "") -> SiteAnswer:
    return SiteAnswer.model_validate({"site_id": "plant-1", "status": status, "code": code, "reason": "said so"})


def test_a_plant_that_may_answer_in_a_moment_is_asked_again() -> None:
    """Its table is written just then, its disk was full, its masks went with its agent; it may only not have heard."""
    asked_again = {code for code in get_args(RefusalCode) if not is_final(answered("refused_by_site", code))}
    assert asked_again == {"no_data", "bad_data", "internal_error", "masks_missing", "masks_refused"}
    assert not any(is_final(answered(status)) for status in ("absent", "late", "rejected", "open", "accepted"))
    assert is_final(answered("excluded", "no_data")), "the run goes on without it, whatever it says"


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        ("refused_by_site", "too_few_samples", TooFewRowsToTuneError),
        ("refused_by_site", "exposure_limit", LiftsRefusedError),
        ("refused_by_site", "work_limit", TooFewSitesError),
        ("excluded", "too_few_samples", TooFewSitesError),
    ],
)
def test_a_tuning_ends_by_what_a_plant_itself_refused(status: str, code: str, kind: type[Exception]) -> None:
    """Of another site's account nothing follows for what is tuned next."""
    error = without_answers([answered("late"), answered(status, code)])
    assert type(error) is kind and "plant-1: said so" in str(error)


def test_a_reason_stands_once_for_all_who_gave_it() -> None:
    away = [SiteAnswer(site_id=f"p{number}", status="absent", reason="nobody answers") for number in range(7)]
    said = [SiteAnswer(site_id="q", status="accepted"), SiteAnswer(site_id="r", status="late", reason="no answer")]
    assert who_and_why([*away, *said]) == "p0, p1, p2, p3, p4 and 2 more: nobody answers; r: no answer"
    assert who_and_why([said[0]]) == ""
