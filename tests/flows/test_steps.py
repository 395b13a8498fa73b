"""Which steps of a run are tried again, for how long, and what comes out of one that failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flows import steps
from flows.steps import REGISTRY_WAITS, may_pass, step
from models.basics import ProblemError
from services.contracts.errors import ConflictError, UnavailableError

AWAY = UnavailableError("MLflow does not answer", code="registry_unavailable")


class Tried:
    """A task as Prefect runs it, without waiting: again where the condition says so, as often as it may."""

    made: dict[str, Any]

    def __init__(self, work: Callable[[], Any], **given: Any) -> None:
        type(self).made = given
        self._work = work

    async def __call__(self) -> Any:
        for left in range(self.made["retries"], -1, -1):
            try:
                answer = await self._work()
            except Exception:
                if not left or not self.made["retry_condition_fn"](None, None, None):
                    raise
                continue
            failed = getattr(answer, "is_failed", lambda: False)() or getattr(answer, "is_crashed", lambda: False)()
            if not failed or not left or not self.made["retry_condition_fn"](None, None, None):
                return answer
        raise AssertionError("it has an end")


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> type[Tried]:
    monkeypatch.setattr(steps, "Task", Tried)
    return Tried


def failing(*errors: Exception) -> tuple[Callable[[], Any], list[int]]:
    """Work that fails so, one error after the other, and then answers; how often it was done."""
    done: list[int] = []

    async def work() -> str:
        done.append(len(done))
        if len(done) <= len(errors):
            raise errors[len(done) - 1]
        return "version 3"

    return work, done


@pytest.mark.parametrize(("error", "passes"), [
    (AWAY, True), (UnavailableError("no NATS server"), True),
    (UnavailableError("locked", code="database_busy"), False), (UnavailableError("gone", code="database_disk"), False),
    (ConflictError("taken"), False), (ProblemError("no such problem"), False), (ValueError("x"), False),
])
def test_what_may_pass_is_a_server_that_is_away_and_not_the_store(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


async def test_a_step_is_tried_again_until_the_server_answers(task: type[Tried]) -> None:
    work, done = failing(AWAY, AWAY)
    assert await step("register", work, (2.0, 10.0, 30.0)) == "version 3" and len(done) == 3
    assert task.made["retries"] == 3 and task.made["retry_delay_seconds"] == [2.0, 10.0, 30.0]
    assert (task.made["name"], task.made["task_run_name"]) == ("register", "register")
    assert task.made["persist_result"] is False and task.made["log_prints"] is False, "nothing of it is kept by Prefect"


@pytest.mark.parametrize(("errors", "tries"), [
    ([AWAY] * 9, 3), ([ConflictError("taken")], 1), ([AWAY, ConflictError("taken")], 2), ([ProblemError("none")], 1),
    ([UnavailableError("locked", code="database_busy")], 1), ([ValueError("a mistake")], 1),
])
async def test_what_does_not_pass_comes_out_as_it_was_raised(errors: list[Exception], tries: int) -> None:
    work, done = failing(*errors)
    with pytest.raises(type(errors[tries - 1])) as raised:
        await step("promote", work, (2.0, 10.0))
    assert raised.value is errors[tries - 1] and len(done) == tries


async def test_a_step_of_the_plants_is_done_once() -> None:
    work, done = failing(AWAY)
    with pytest.raises(UnavailableError):
        await step("train", work)
    assert len(done) == 1


def test_a_registry_that_is_away_is_waited_for_six_hours_in_as_many_tries_as_prefect_takes() -> None:
    assert 6 * 3600 - 600 <= sum(REGISTRY_WAITS) <= 6.5 * 3600 and len(REGISTRY_WAITS) == 50
    assert list(REGISTRY_WAITS) == sorted(REGISTRY_WAITS) and REGISTRY_WAITS[0] == 2.0
