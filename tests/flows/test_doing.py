"""Each step of a run is told before it is done, and a store that has no time for that holds up no run."""

from __future__ import annotations

import ast
import asyncio
import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from flows import doing, retrain
from services.contracts.errors import ConflictError, UnavailableError
from services.coordinator.run_state.doing import tell_doing


@pytest.mark.parametrize("away", [False, True])
def test_a_step_is_told_and_done(monkeypatch: pytest.MonkeyPatch, away: bool, caplog: pytest.LogCaptureFixture) -> None:
    happened: list[Any] = []

    def set_doing(run_id: str, what: str) -> None:
        happened.append((run_id, what))
        if away:
            raise UnavailableError("the database is locked", code="store_unavailable")

    async def step(name: str, work: Any, waits: tuple[float, ...]) -> Any:
        happened.append((name, waits))
        return await work()

    async def work() -> str:
        return "version 3"

    monkeypatch.setattr(doing, "step", step)
    context: Any = SimpleNamespace(store=SimpleNamespace(runs=SimpleNamespace(set_doing=set_doing)))
    run: Any = SimpleNamespace(run_id="r1")
    assert asyncio.run(doing.told_step(context, run, "register", work, (2.0,))) == "version 3"
    assert happened == [("r1", "registering the version"), ("register", (2.0,))]
    assert ("the database is locked" in caplog.text) == away


def test_what_else_the_store_says_ends_the_step() -> None:
    def set_doing(*_: str) -> None:
        raise ConflictError("no such run")

    runs: Any = SimpleNamespace(set_doing=set_doing)
    with pytest.raises(ConflictError):
        tell_doing(runs, "r1", "training")


def test_every_step_of_the_flow_has_its_words() -> None:
    calls = [each for each in ast.walk(ast.parse(inspect.getsource(retrain))) if isinstance(each, ast.Call)]
    steps = [each.args[2] for each in calls if isinstance(each.func, ast.Name) and each.func.id == "told_step"]
    assert {each.value for each in steps if isinstance(each, ast.Constant)} == set(doing.DOING)
    assert len(steps) == len(doing.DOING) and len(set(doing.DOING.values())) == len(doing.DOING)
