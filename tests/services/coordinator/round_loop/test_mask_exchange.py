"""One exchange of a run on sums: who is asked what, how much an answer may take, and what is counted of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from services.coordinator.asking.poll import Poll, Question
from services.coordinator.asking.ports import SiteTransport
from services.coordinator.round_loop import mask_exchange
from services.coordinator.round_loop.mask_exchange import BYTES_A_PEER, MaskExchange, opened_bytes, parts
from tests.versions import an_answer

KEYS = {"a": "key-a", "b": "key-b", "c": "key-c"}
LIVE = {"a": "key-a"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was polled; each exchange takes a quarter of a second, and every site is late from the second one on."""
    calls: list[tuple[Any, ...]] = []

    async def poll(question: Question, keys: Mapping[str, str], *more: object) -> Poll:
        calls.append((question, keys, *more))
        status = {} if len(calls) == 1 else {"status": "late", "code": "deadline"}
        return Poll({}, tuple(an_answer(site, **status) for site in keys), 0.25, {})

    monkeypatch.setattr(mask_exchange, "poll", poll)
    return calls


def question() -> Question:
    nothing: Any = None
    arrays = {site: {"point": np.ones(2)} for site in KEYS}
    return Question("round", "ab" * 16, 3, nothing, nothing, {}, {}, arrays, {})


async def test_those_with_a_task_are_asked_under_the_keys_that_hold_then(asked: list[tuple[Any, ...]]) -> None:
    transport: SiteTransport = SimpleNamespace()
    exchange = MaskExchange(KEYS, LIVE, transport, 7.0, largest=4)
    tasks: Any = {"a": "of a", "c": "of c"}
    await exchange.ask(question(), tasks, "round", most=100)
    await exchange.ask(question(), tasks, "unmask")
    (first, keys, *more), (second, *_) = asked
    assert keys == {"a": "key-a", "c": "key-c"} and more == [transport, 7.0, LIVE]
    assert (first.kind, first.masking, first.most_bytes) == ("round", tasks, 100 + 4 * BYTES_A_PEER)
    assert (second.kind, second.most_bytes) == ("unmask", 4 * BYTES_A_PEER)
    assert set(first.arrays) == set(KEYS) and second.arrays == {}, "only a round's own exchange has its arrays"


@pytest.mark.parametrize(("account", "status"), [(True, "late"), (False, "accepted")])
async def test_exchanges_of_a_round_are_added_up_and_the_next_round_begins_at_nothing(
    asked: list[tuple[Any, ...]], account: bool, status: str
) -> None:
    transport: SiteTransport = SimpleNamespace()
    exchange, tasks = MaskExchange(KEYS, None, transport, 7.0, largest=3), dict.fromkeys(KEYS)
    given: Any = tasks
    await exchange.ask(question(), given, "round")
    await exchange.ask(question(), given, "unmask", account=account)
    told = exchange.accounts.of()
    assert exchange.slowest_seconds == 0.5
    assert {(each.status, each.bytes_in, each.bytes_out) for each in told} == {(status, 1800, 1400)}
    exchange.begin()
    assert exchange.slowest_seconds == 0.0 and exchange.accounts.of() == ()


def test_only_what_was_asked_for_of_those_who_were_asked_counts() -> None:
    said = {"a": 1, "b": "no", "c": 3, "d": None}
    updates: Any = {site: SimpleNamespace(masking=each) for site, each in said.items()}
    outcome = Poll(updates, (), 0.0, {})
    assert parts(outcome, ["b", "a", "d", "nobody"], int) == {"a": 1}
    assert parts(outcome, {"c": object()}, int) == {"c": 3}


def test_openings_take_their_words_and_their_plants_in_every_round() -> None:
    assert opened_bytes(1, 1, 0) > 14.3 and opened_bytes(1, 0, 1) == BYTES_A_PEER
    assert opened_bytes(6, 10, 3) == 6 * opened_bytes(1, 10, 3) == 6 * (opened_bytes(1, 10, 0) + opened_bytes(1, 0, 3))
