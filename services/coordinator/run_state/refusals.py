"""What it means that plants do not answer: ask again, or give up; where they do not tune, train untuned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from services.contracts.history.run import SiteAnswer
from services.contracts.plain_words import listed
from services.coordinator.run_state.run_errors import (
    LiftsRefusedError,
    NothingCountedError,
    TooFewRowsToTuneError,
    TooFewSitesError,
    TuningBudgetError,
)

_PASSING = frozenset({"masks_missing", "masks_refused", "no_data", "bad_data", "internal_error"})
"""Codes of refusals after which the same plant may answer the same question: its table may be written just then."""


_OF_CODE: Final[dict[str, type[TooFewSitesError]]] = {
    "too_few_samples": TooFewRowsToTuneError, "exposure_limit": LiftsRefusedError,
}


def is_final(answer: SiteAnswer) -> bool:
    """Whether asking the site again is in vain."""
    return answer.status == "excluded" or (answer.status == "refused_by_site" and answer.code not in _PASSING)


def who_and_why(answers: Iterable[SiteAnswer]) -> str:
    """Sites whose answers were not accepted, by the reason, each of which stands once."""
    of_reason: dict[str, list[str]] = {}
    for each in answers:
        if each.status != "accepted":
            of_reason.setdefault(each.reason, []).append(each.site_id)
    return "; ".join(f"{listed(sites)}: {reason}" for reason, sites in of_reason.items())


def without_answers(missing: Sequence[SiteAnswer]) -> TooFewSitesError:
    """Why a tuning cannot go on, on one line; an error of its own where rows are too few, or lifts are refused."""
    said = who_and_why(missing)
    codes = {each.code for each in missing if each.status == "refused_by_site"}
    kind = next((error for code, error in _OF_CODE.items() if code in codes), TooFewSitesError)
    return kind(f"the tuning needs the answer of every site of the run ({said or 'the masks did not come off'})")


UNTUNED = (TooFewRowsToTuneError, NothingCountedError, TuningBudgetError)
"""Why a run of "auto" trains with its own terms in place of ending."""


def untuned_for(error: TooFewRowsToTuneError | NothingCountedError | TuningBudgetError, n_folds: int) -> str:
    """Why a run trains untuned, without a plant's name."""
    if isinstance(error, TuningBudgetError):
        return "trainings of the plan are so short that a tuning would cost more than three of them"
    if isinstance(error, NothingCountedError):
        return "no plant has rows enough of a class for its policy to count them"
    return f"a plant or more has too few rows for {n_folds} folds"
