"""What plants open to an auditor: kept from whoever answers in whichever try, and only what a message holds."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from services.coordinator.round_loop.mask_exchange import opened_bytes
from services.coordinator.round_loop.sum_audits import LARGEST_OPENING, SumAudits

PLANTS = ("plant-1", "plant-2", "plant-3")


class Sums:
    """The sums of a run: what its plants open, try by try."""

    def __init__(self, *tries: dict[str, str]) -> None:
        self.tries, self.cohorts = list(tries), {"cohort-1": PLANTS}
        self.records: Any = self
        self.sealed: dict[str, str] = {}

    async def opened(self, *_: object) -> dict[str, str]:
        return self.tries.pop(0)

    def every_round(self, *_: object) -> Any:
        return SimpleNamespace(rounds=[SimpleNamespace(answered=PLANTS)])

    def case(self, cohort: str, request: object, sealed: dict[str, str]) -> Any:
        self.sealed = dict(sealed)
        return SimpleNamespace(model_dump_json=lambda: "the case")


def asked(sums: Sums, words: int = 10, rounds: int = 1, patience: float = 60.0) -> list[tuple[str, str, bytes]]:
    """Cases that are kept after the last round of a run whose plants open all of them."""
    kept: list[tuple[str, str, bytes]] = []
    plan = SimpleNamespace(auditor="UAUDITOR", absence_patience_seconds=patience)
    run: Any = SimpleNamespace(run_id="a" * 32, plan=plan)

    async def pause() -> None:
        """Nobody is waited for."""

    audits = SumAudits(run, sums, pause, lambda *case: kept.append(case))  # type: ignore[arg-type]  # stand-ins
    at: Any = SimpleNamespace(rounds_of=lambda cohort: tuple(range(1, rounds + 1)))
    question: Any = SimpleNamespace(shapes={"slope": (words,)})
    asyncio.run(audits.open_every_round(at, question))
    return kept


def test_who_opened_in_an_earlier_try_need_not_do_so_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ballast.coordinator")
    sums = Sums({"plant-1": "x"}, {"plant-2": "y"}, {"plant-2": "y", "plant-3": "z"}, {"plant-1": "never"})
    assert asked(sums) == [("a" * 32, "cohort-1", b"the case")]
    assert sums.sealed == {"plant-1": "x", "plant-2": "y", "plant-3": "z"} and len(sums.tries) == 1
    assert "3 of 3 plants of cohort-1 opened every round" in caplog.text


def test_who_opens_nothing_for_the_plans_patience_is_missing_in_the_case(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ballast.coordinator")
    sums = Sums({"plant-1": "x", "plant-3": "z"}, {"plant-2": "too late"})
    assert len(asked(sums, patience=0.0)) == 1 and sums.sealed.keys() == {"plant-1", "plant-3"}
    assert "2 of 3 plants of cohort-1 opened every round" in caplog.text


def test_what_does_not_fit_a_message_of_a_plant_is_not_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    words = 100
    most = LARGEST_OPENING // opened_bytes(1, words, len(PLANTS))
    told = {plant: "x" for plant in PLANTS}
    assert len(asked(Sums(told), words, most)) == 1
    assert asked(Sums(), words, most + 1) == [], "a plant would be asked for what its policy lets nobody have"
    assert f"{most + 1} rounds do not fit a message" in caplog.text
