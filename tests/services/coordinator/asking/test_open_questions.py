"""Who is waited for and how long, on virtual time: plants of given weights that take given seconds."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any

import pytest

from services.contracts.machines.asset_type import AssetType, FaultClass, Feature
from services.contracts.plans.plan import Plan
from services.contracts.plans.waiting import Waiting
from services.coordinator.asking.open_questions import OpenQuestions
from services.coordinator.asking.poll import Question
from services.coordinator.asking.ports import RawAnswer
from tests.simulation.loop import SimulationLoop

RIG = AssetType(
    name="rig", features=(Feature(name="p", unit="1", low=0, high=1),),
    fault_classes=(FaultClass(name="ok", severity=0), FaultClass(name="leak", severity=1)),
)
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


class Timed:
    """Answers each site after its seconds."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = dict(seconds)

    async def ask(self, frames: Mapping[str, bytes], deadline_seconds: float) -> dict[str, RawAnswer]:
        (site,) = frames
        await asyncio.sleep(self.seconds[site])
        return {site: RawAnswer(site, b"answer", "", self.seconds[site])}


def question_of(number: int = 1) -> Question:
    plan = Plan(name="nightly", asset_type="rig", reveal="each site")
    return Question("round", "0" * 32, number, plan, RIG, dict.fromkeys(WEIGHTS, plan.spec), {}, {}, {})


class Asked:
    """Questions to all plants at once, and how long a round waits for enough of them."""

    def __init__(self, **seconds: float) -> None:
        self.transport, self.open = Timed(seconds), OpenQuestions()

    def ask(self, number: int = 1) -> None:
        for site in self.transport.seconds:
            if site not in self.open:
                self.open.ask(site, question_of(number), self.transport, 1e3)

    async def waited(self, rule: Waiting, *, behind: tuple[str, ...] = (), asked: tuple[str, ...] = ()) -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self.open.enough(rule, asked or tuple(self.transport.seconds), WEIGHTS, behind)
        return loop.time() - began


def on_virtual_time(whole: Any) -> Any:
    loop = SimulationLoop(random.Random(0))
    try:
        return loop.run_until_complete(whole)
    finally:
        loop.run_until_complete(given_up())
        loop.close()


async def given_up() -> None:
    """Questions that nobody waits for any more: a task that is left behind speaks up when it is collected."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@pytest.mark.parametrize(
    ("rule", "seconds"),
    [
        (Waiting(enough=0.5, times=2.0, seconds=0.0), 2.0),  # a, of half the weight, is enough; twice its time
        (Waiting(enough=0.51, times=1.5, seconds=0.0), 6.0),  # a and b, 1.5 times b's time
        (Waiting(enough=1.0, times=1.0, seconds=0.0), 10.0),
        (Waiting(enough=0.5, times=1.0, seconds=3.0), 3.0),  # never less than these
        (Waiting(enough=0.5, times=20.0, seconds=0.0), 10.0),  # nobody is left to wait for
        (Waiting(enough=0.5, times=1.0, seconds=0.0, sites={"c": 7.0}), 7.0),  # c has a time of its own
        (Waiting(enough=0.8, times=1.0, seconds=0.0, sites={"a": 0.0}), 10.0),  # b alone is 0.6 of what is paced
        (Waiting(enough=0.6, times=1.0, seconds=0.0, sites={"a": 0.0}), 4.0),
    ],
)
def test_a_round_waits_for_enough_of_the_weight_and_a_multiple_of_its_time(rule: Waiting, seconds: float) -> None:
    async def whole() -> float:
        asked = Asked(a=1.0, b=4.0, c=10.0)
        asked.ask()
        return await asked.waited(rule)

    assert on_virtual_time(whole()) == pytest.approx(seconds)


def test_an_answer_is_taken_once_and_its_plant_is_idle_then() -> None:
    async def whole() -> None:
        asked = Asked(a=1.0, b=4.0, c=10.0)
        asked.ask()
        with pytest.raises(RuntimeError, match="site a works on a question"):
            asked.open.ask("a", question_of(), asked.transport, 1e3)
        assert asked.open.taken() == {} and len(asked.open) == 3
        await asyncio.sleep(4.5)
        found = asked.open.taken()
        assert {site: raw.seconds for site, (_, raw) in found.items()} == {"a": 1.0, "b": 4.0}
        assert asked.open.taken() == {} and len(asked.open) == 1 and "a" not in asked.open
        await asked.open.drop(["c", "a"])
        assert len(asked.open) == 0

    on_virtual_time(whole())


def test_who_was_slow_before_is_not_waited_for_and_who_is_too_far_behind_is() -> None:
    rule = Waiting(enough=0.5, times=2.0, seconds=0.0)

    async def whole() -> tuple[float, ...]:
        asked = Asked(a=1.0, b=1.5, c=10.0)
        asked.ask()
        first = await asked.waited(rule)
        await asyncio.sleep(20.0)
        asked.open.taken()
        asked.transport.seconds["b"] = 5.0
        asked.ask(2)
        b_may_come = await asked.waited(rule)  # b took 1.5 s the last time: the round waits 2 s for it, not for c
        asked.open.taken()
        asked.transport.seconds["a"] = 0.5
        asked.ask(3)  # a alone is idle; c took 10 s the last time
        alone = await asked.waited(rule, asked=("a", "c"))
        asked.open.taken()
        asked.ask(4)
        return first, b_may_come, alone, await asked.waited(rule, asked=("a",), behind=("b",))

    first, b_may_come, alone, behind = on_virtual_time(whole())
    assert (first, b_may_come, alone) == (pytest.approx(2.0), pytest.approx(2.0), pytest.approx(0.5))
    assert behind == pytest.approx(2.5), "b, asked 2.5 s ago, answers after 5 s"


def test_a_plants_own_seconds_run_from_its_question_and_not_from_the_round() -> None:
    rule = Waiting(enough=0.5, times=1.0, seconds=0.0, sites={"c": 6.0})

    async def whole() -> tuple[float, float]:
        asked = Asked(a=1.0, b=1.0, c=10.0)
        asked.ask()
        await asyncio.sleep(4.0)
        asked.open.taken()
        asked.ask(2)
        first = await asked.waited(rule, asked=("a", "b"))
        asked.open.taken()
        asked.ask(3)
        return first, await asked.waited(rule, asked=("a", "b"))

    assert on_virtual_time(whole()) == (pytest.approx(2.0), pytest.approx(1.0))
