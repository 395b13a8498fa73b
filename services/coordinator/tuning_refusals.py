"""What it means that plants did not answer a question of a tuning: ask again, give up, or train untuned."""

from __future__ import annotations

from collections.abc import Sequence

from services.contracts.run import SiteAnswer
from services.coordinator.training_state import TooFewRowsToTuneError, TooFewSitesError

_PASSING = frozenset({"masks_missing", "masks_refused", "no_data", "internal_error"})
"""Codes of refusals after which the same plant may answer the same question."""


def is_final(answer: SiteAnswer) -> bool:
    """Whether asking the site again is in vain."""
    return answer.status == "excluded" or (answer.status == "refused_by_site" and answer.code not in _PASSING)


def without_answers(missing: Sequence[SiteAnswer]) -> TooFewSitesError:
    """Why a tuning cannot go on, on one line; where plants have too few rows for it, an error that says just that."""
    said = "; ".join(f"{each.site_id}: {each.reason}" for each in missing)
    few = any(each.status == "refused_by_site" and each.code == "too_few_samples" for each in missing)
    kind = TooFewRowsToTuneError if few else TooFewSitesError
    return kind(f"the tuning needs the answer of every site of the run ({said or 'the masks did not come off'})")
