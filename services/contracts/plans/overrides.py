"""What may be set for one run of a plan: how far it trains, how long it waits, and that it is not promoted by itself.

Nothing else: what is trained, of whom, under which privacy and through which gates is the plan's, which has versions.
A run may also be asked for its tuning alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from services.contracts.errors import InvalidInputError
from services.contracts.plans.plan import TUNE_ONLY, Plan
from services.contracts.reading import explain

FOR_ONE_RUN = ("gap", "max_rounds", "round_deadline_seconds", "absence_patience_seconds", "auto_promote")
"""Fields of a plan that one run may have of its own.

``absolute_gap`` is none of them: the gate ``max_gap`` holds too where the bounds are within it.
"""


def with_overrides(plan: Plan, overrides: Mapping[str, Any]) -> Plan:
    """The plan as one run has it, with what was set for it in ``overrides``; the same plan where nothing is set.

    A run with a wider gap than the plan's is not promoted by itself: its gap may pass a gate through the distance of
    the bounds that goes with it.

    Raises
    ------
    InvalidInputError
        With one line, for a field that no run has of its own, a value that the plan's own check refuses, or a promotion
        that the plan does not make.
    """
    if not overrides:
        return plan
    wrong = sorted(set(overrides) - set(FOR_ONE_RUN))
    if wrong:
        raise InvalidInputError(
            f"{wrong[0][:60]} cannot be set for one run, change the plan for it; for one run there are "
            f"{', '.join(FOR_ONE_RUN)}", code="not_for_one_run",
        )
    if overrides.get("auto_promote", False) is not False:
        raise InvalidInputError(
            "auto_promote can only be false for one run: whether a run may promote is the plan's to say",
            code="not_for_one_run",
        )
    try:
        changed = Plan.model_validate(plan.model_dump() | dict(overrides))
    except ValidationError as error:
        raise InvalidInputError(f"plan {plan.name} for one run: {explain(error)}") from None
    said = {name: getattr(changed, name) for name in FOR_ONE_RUN if name in overrides}
    promotes = changed.auto_promote and changed.gap <= plan.gap
    return changed.model_copy(update={"overrides": said, "auto_promote": promotes})


def tuning_alone(plan: Plan) -> Plan:
    """The plan as a run has it that chooses its terms and ends, without a round and without a version.

    Raises
    ------
    InvalidInputError
        With one line of what to add, where the plan has no tuning.
    """
    if plan.tuning is None:
        raise InvalidInputError(
            f'plan {plan.name} has no tuning: write tuning = "auto" into it, or a table [tuning] with what to try, '
            "then ask again", code="no_tuning",
        )
    return plan.model_copy(update={"overrides": {TUNE_ONLY: True}})
