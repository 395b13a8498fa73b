"""A run whose end convicts a plant trains once more, and judges, calibrates and keeps what came of that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from services.contracts.errors import UnavailableError

retrain: Any = import_module("flows.retrain")


class Coordinator:
    """Trains weights 1, 2, ...; couples them to weights with a dash; the first two ends convict a plant each."""

    def __init__(self) -> None:
        self.trained, self.told = 0, list[tuple[Any, ...]]()

    async def train(self, run: Any, _progress: Any, judged: Any = None) -> Any:
        self.told.append(("train", run, judged and judged.convicted))
        self.trained += 1
        gap = SimpleNamespace(gap=1e-4)
        return SimpleNamespace(weights=str(self.trained), risk_bound=self.trained, rounds=self.trained, certificate=gap)

    async def couple(self, run: Any, trained: Any) -> Any:
        return SimpleNamespace(**vars(trained) | {"weights": f"{trained.weights}'"})

    async def evaluate(self, run: Any, weights: str, risk_bound: int) -> Any:
        self.told.append(("evaluate", run, weights, risk_bound))
        return SimpleNamespace(convicted=f"plant-{self.trained}" if self.trained < 3 else "")

    async def calibrate(self, run: Any, weights: str) -> str:
        self.told.append(("calibrate", run, weights))
        return "calibrated"


class Progress:
    """Notes what it is told."""

    told: ClassVar[list[str]] = []

    def __init__(self, *_: object) -> None:
        self.told.clear()

    async def finish(self, *_: object) -> None:
        """The training has ended."""
        self.told.append("finished")

    async def show(self) -> None:
        """Show it."""
        self.told.append("shown")


@pytest.fixture
def driven(monkeypatch: pytest.MonkeyPatch) -> Callable[[Coordinator], Any]:
    """What a run of a coordinator comes to; the run knows how often it was trained when it was read."""
    async def step(_context: Any, _run: Any, _name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        return await work()

    async def as_written(_coordinator: Any, run: Any) -> Any:
        return run

    def keep(_context: Any, run: Any, trained: Any, evaluation: Any, calibrated: str) -> tuple[Any, ...]:
        return run, trained.weights, evaluation.convicted, calibrated

    told = {
        "told_step": step, "tune": as_written, "Progress": Progress, "keep_draft": keep, "announce": lambda *_: None,
        "couples": lambda *_: True,
    }
    for name, stand_in in told.items():
        monkeypatch.setattr(retrain, name, stand_in)

    def drive(coordinator: Coordinator) -> Any:
        runs = SimpleNamespace(get_rounds=lambda _: (), get_run=lambda _: SimpleNamespace(
            run_id="r", plan=None, known=coordinator.trained))
        context = SimpleNamespace(store=SimpleNamespace(runs=runs), contract_of=lambda _: None)
        return asyncio.run(retrain.train_and_evaluate(context, coordinator, runs.get_run("r")))

    return drive


def test_what_was_trained_without_the_convicted_is_what_is_judged_and_kept(
    driven: Callable[[Coordinator], Any]
) -> None:
    coordinator = Coordinator()
    run, draft = driven(coordinator)
    asked = [(name, each.known, *more) for name, each, *more in coordinator.told]
    assert asked == [
        ("train", 0, None), ("evaluate", 1, "1'", 1), ("train", 1, "plant-1"), ("evaluate", 2, "2'", 2),
        ("train", 2, "plant-2"), ("evaluate", 3, "3'", 3), ("calibrate", 3, "3'"),
    ], "by the run as it is after each training, and with the weights that came of it"
    assert draft == (run, "3'", "", "calibrated") and run.known == 3
    assert Progress.told == ["finished", "shown"]


@pytest.mark.parametrize("place", ["train", "evaluate", "calibrate"])
def test_of_a_run_that_fails_table_and_chart_are_shown_as_they_stand(
    driven: Callable[[Coordinator], Any], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """They say who was missing."""
    async def fails(*_: object) -> None:
        raise UnavailableError("too few plants")

    monkeypatch.setattr(Coordinator, place, fails)
    with pytest.raises(UnavailableError, match="too few plants"):
        driven(Coordinator())
    assert Progress.told == ["shown"]
