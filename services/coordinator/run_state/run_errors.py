"""Why a run ends without a model, or its tuning without a choice."""

from __future__ import annotations

from services.contracts.errors import BallastError, InvalidInputError


class TooFewSitesError(BallastError):
    """Fewer sites than the plan's ``min_sites``, or its cohorts, need answered for as long as the plan allows."""

    code = "too_few_sites"


class LiftsRefusedError(TooFewSitesError):
    """A site's policy does not let it answer a tuning under the lifts that it asks for."""


class TooFewRowsToTuneError(TooFewSitesError):
    """A plant has too few rows to hold some of them out for a tuning; it may well be trained on."""


class NothingCountedError(InvalidInputError):
    """No plant has held-out rows enough of any class for its policy to count them, so no candidate has a score."""

    code = "tuning_scores"


class TuningBudgetError(InvalidInputError):
    """A training costs so little that a tuning of the grid would cost more than its budget of such trainings."""

    code = "tuning_budget"


class RunCancelledError(BallastError):
    """An operator cancelled the run."""

    code = "cancelled"


class ContradictingAnswersError(BallastError):
    """The sites' answers together prove a bound that they refute, and none of them by its own answers alone."""

    code = "contradicting_answers"
