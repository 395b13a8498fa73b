"""From what a tuning starts: a run takes the choice of before where all of it is the same."""

from __future__ import annotations

from typing import Any

import pytest

from services.contracts.plans.plan import Plan
from services.coordinator.beginning.chosen_terms import base_of


def base(**changes: Any) -> str:
    stated = {"name": "p", "asset_type": "rig", "reveal": "each site", "method": "level-bundle", "tuning": "auto"}
    return base_of(Plan.model_validate(stated | changes))


@pytest.mark.parametrize("changed", [
    {"spec": {"label_flip_cost": 2.0}}, {"mixture": {"norm": "l1", "radius": 0.1}}, {"tuning": {"radius": [1.0, 3.0]}},
    {"method": "level-bundle-plain"}, {"reveal": "sums"},
], ids=str)
def test_other_terms_are_tuned_anew(changed: dict[str, Any]) -> None:
    """A radius that was chosen over one mixture of plants says nothing of another."""
    assert base(**changed) != base()


def test_a_schedule_a_name_or_a_gate_changes_no_choice() -> None:
    assert base(name="q", cron="0 3 * * 1", gates={"min_f1": 0.5}) == base()
