"""Which rounds of a cohort are kept for an auditor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from services.coordinator.asking.openings import ROUNDS_KEPT, SumRecords


def keep(records: SumRecords, name: str, agreement: str, *rounds: int) -> None:
    for number in rounds:
        found: Any = SimpleNamespace(cohort=agreement, question=SimpleNamespace(round=number))
        records.keep(name, found)


def test_rounds_of_one_agreement_on_keys_are_kept_the_newest_of_them() -> None:
    """Under other masks nobody can open what was said before, and an auditor would take it for a refusal."""
    records = SumRecords()
    keep(records, "cohort-1", "first", 1, 2)
    keep(records, "cohort-2", "other", 1)
    keep(records, "cohort-1", "second", 4)
    assert [*records.kept["cohort-1"]] == [4] and [*records.kept["cohort-2"]] == [1]
    assert records.request("cohort-1", "UAUDITOR", (1, 4)) is None and records.request("cohort-3", "U", (1,)) is None
    keep(records, "cohort-1", "second", *range(5, ROUNDS_KEPT + 6))
    assert [*records.kept["cohort-1"]] == list(range(6, ROUNDS_KEPT + 6))
