"""One question to one site: asked more than once, answered once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from services.coordinator.asking import link_call
from services.coordinator.asking.link_call import MOST_REQUESTS, Call

Requests = list[asyncio.Future[Any]]


def asked(requests: Requests) -> Call:
    """A call whose requests are futures of the test's own."""

    async def request() -> Any:
        requests.append(asyncio.get_running_loop().create_future())
        return await requests[-1]

    return Call(request)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_call, "FIRST_PAUSE", 0.0)


async def again(call: Call, requests: Requests) -> None:
    count = len(requests)
    call.ask_again()
    while len(requests) == count:
        await asyncio.sleep(0)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_the_first_answer_does_whichever_request_it_is_to(which: int) -> None:
    requests: Requests = []
    call = asked(requests)
    await asyncio.sleep(0)
    await again(call, requests)
    await again(call, requests)
    requests[which].set_result(SimpleNamespace(data=b"this"))
    assert await call.answer == b"this"
    call.end()
    await asyncio.sleep(0)
    assert all(each.done() for each in requests), "nobody waits for the others"


@pytest.mark.usefixtures("at_once")
async def test_a_request_that_fails_is_no_failure_while_another_is_open() -> None:
    requests: Requests = []
    call = asked(requests)
    await asyncio.sleep(0)
    await again(call, requests)
    requests[0].set_exception(TimeoutError())
    await asyncio.sleep(0.01)
    assert not call.answer.done()
    requests[1].set_exception(OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await call.answer


@pytest.mark.usefixtures("at_once")
async def test_the_first_and_the_newest_requests_stay_open_and_no_more() -> None:
    requests: Requests = []
    call = asked(requests)
    await asyncio.sleep(0)
    for _ in range(3 * MOST_REQUESTS):
        await again(call, requests)
    await asyncio.sleep(0.01)
    still = [place for place, each in enumerate(requests) if not each.done()]
    assert still == [0, *range(len(requests) - MOST_REQUESTS + 1, len(requests))]
    call.end()


async def test_who_says_hello_all_the_time_is_asked_after_pauses_that_double() -> None:
    requests: Requests = []
    due = [asyncio.get_running_loop().time()]
    call = asked(requests)
    while len(requests) < 5:
        call.ask_again()
        if call._again is not None and call._again.when() not in due:
            due.append(call._again.when())
        await asyncio.sleep(0.001)
    call.end()
    pauses = [later - earlier for earlier, later in zip(due, due[1:5], strict=False)]
    assert all(found >= 0.999 * least for found, least in zip(pauses, (0.05, 0.1, 0.2, 0.4), strict=True)), pauses


async def test_a_lost_connection_ends_it_and_asks_no_more() -> None:
    requests: Requests = []
    call = asked(requests)
    await asyncio.sleep(0)
    call.lose()
    call.ask_again()
    with pytest.raises(ConnectionError, match="while the site was at work"):
        await call.answer
    call.end()
    await asyncio.sleep(0.1)
    assert len(requests) == 1
