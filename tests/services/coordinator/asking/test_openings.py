"""Which rounds of a cohort are kept for an auditor."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from services.coordinator.asking import openings
from services.coordinator.asking.openings import SumRecords
from services.masking.committer import ROUNDS_KEPT


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


def test_of_a_pair_that_agreed_on_no_mask_neither_is_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of the two lies is not known, and a mask that one of them alone put on would not come off the sum."""
    monkeypatch.setattr(openings, "check_commitment", lambda *_: None)
    monkeypatch.setattr(openings, "disagreeing", lambda bound: [("plant-1", "plant-3")])
    sent: Any = {f"plant-{number}": SimpleNamespace(commitment="bound") for number in (1, 2, 3)}
    sent["plant-4"] = SimpleNamespace(commitment=None)
    asked: Any = SimpleNamespace(sha256="0" * 64)
    cohort: Any = "the cohort"
    found = openings.unbound(cohort, asked, dict.fromkeys(sent), sent)
    assert found == {
        "plant-1": "it and plant-3 agreed on no mask", "plant-3": "it and plant-1 agreed on no mask",
        "plant-4": "it did not commit itself to its answer, and the plan has an auditor",
    }
