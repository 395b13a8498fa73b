"""Work is given up for certain, also where it swallows a cancel as a client does that is closing a connection."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from services.process import ended_tasks
from services.process.ended_tasks import done_within, give_up


class Stubborn:
    """Work that swallows so many cancels, going on each time; what it does in the end is in ``end``."""

    def __init__(self, swallows: int) -> None:
        self.left, self.end = swallows, ""

    async def work(self) -> str:
        while True:
            try:
                await asyncio.sleep(2.0)
            except asyncio.CancelledError:
                if not self.left:
                    self.end = "cancelled"
                    raise
                self.left -= 1
            else:
                self.end = "went on"
                return self.end


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_tasks, "AGAIN_SECONDS", 0.01)


@pytest.mark.parametrize("swallows", [0, 1, 3])
async def test_what_takes_too_long_is_ended_however_often_it_swallows_a_cancel(swallows: int) -> None:
    stubborn = Stubborn(swallows)
    with pytest.raises(TimeoutError):
        await done_within(stubborn.work(), 0.01)
    assert stubborn.end == "cancelled"


async def test_a_result_and_an_error_in_time_are_the_works_own() -> None:
    async def gives() -> int:
        return 7

    async def fails() -> None:
        raise OSError("no such host")

    assert await done_within(gives(), 5.0) == 7
    with pytest.raises(OSError, match="no such host"):
        await done_within(fails(), 5.0)


async def test_what_ends_as_it_is_given_up_has_ended() -> None:
    async def just_then() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(2.0)
        return "connected"

    assert await done_within(just_then(), 0.01) == "connected"


async def test_who_waits_may_be_given_up_himself() -> None:
    stubborn = Stubborn(0)
    waiting = asyncio.ensure_future(done_within(stubborn.work(), 5.0))
    await asyncio.sleep(0.01)
    await give_up(waiting)
    assert waiting.cancelled() and stubborn.end == "cancelled"


async def test_an_error_on_the_way_out_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def breaks() -> Any:
        try:
            await asyncio.sleep(2.0)
        finally:
            raise OSError("already closed")

    task = asyncio.ensure_future(breaks())
    await asyncio.sleep(0)
    await give_up(task)
    del task
    assert not caplog.records
