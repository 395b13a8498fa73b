"""The form of a run's own terms: fields of a plan that one run may have otherwise, as a person fills them.

A field that is left empty is the plan's. What may be set, and to what, is said by
:mod:`services.contracts.plans.overrides`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.contracts.plans.plan import Plan

PREFIX = "set-"
SAID = {
    "gap": "Certified relative gap at which it stops",
    "max_rounds": "Rounds at most",
    "round_deadline_seconds": "Seconds that a round waits for answers",
    "absence_patience_seconds": "Seconds that it waits for an absent plant",
}
"""What each field is called on the page; ``auto_promote`` is a box to tick, for it can only be taken away."""


@dataclass(frozen=True)
class RunTerm:
    """A field of the form: its name, what it says, what the plan has, and what was filled in (empty: nothing)."""

    name: str
    said: str
    of_plan: str
    given: str


def run_terms(plan: Plan, asked: Mapping[str, str]) -> tuple[RunTerm, ...]:
    """Fields of the form for a plan, with what was asked before."""
    return tuple(RunTerm(name, said, f"{getattr(plan, name):g}", asked.get(name, "")) for name, said in SAID.items())


def given_terms(fields: Mapping[str, str]) -> dict[str, str]:
    """What a posted form sets, by the plan's own names: text as it stands there, without what is empty."""
    told = {name.removeprefix(PREFIX): text.strip() for name, text in fields.items() if name.startswith(PREFIX)}
    return {name: text for name, text in told.items() if text}


def overrides_of(asked: Mapping[str, str]) -> dict[str, Any]:
    """What is handed on as a run's own terms; the plan's check reads the numbers, and refuses what is none."""
    return {name: False if (name, text) == ("auto_promote", "false") else text for name, text in asked.items()}
